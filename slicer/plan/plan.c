/* SPDX-License-Identifier: MIT */
/* The slicer's results: the slice as a message, and the plan for watching its first statements. */
#include "base/log.h"
#include "slicer/slice/slicing.h"

#include <stdio.h>
#include <string.h>

/* ---- Messages: all pieces from malloc, so that protobuf-c frees them ---- */
/* NOLINTBEGIN(clang-analyzer-unix.Malloc): the analyzer does not see that free_unpacked() frees */

static bool fill_place(Etch__Place **place, const struct etch_slice *slice, const struct etch_statement *s)
{
    *place = malloc(sizeof(**place));
    if (!*place)
        return false;
    etch__place__init(*place);
    (*place)->file = strdup(slice->model->files.all.v[s->file]);
    (*place)->line = s->line;
    (*place)->column = s->column;
    (*place)->function = strdup(slice->model->functions.v[s->function].name);
    return (*place)->file && (*place)->function;
}

/* Grows a repeated field of pointers by one. */
static bool push(void *field, size_t *n, void *item)
{
    void ***list = field;
    void **bigger = item ? realloc(*list, (*n + 1) * sizeof(void *)) : NULL;

    if (!bigger)
        return false;
    bigger[(*n)++] = item;
    *list = bigger;
    return true;
}

static bool fill_build_id(const struct etch_model *m, uint32_t image, ProtobufCBinaryData *id)
{
    size_t n;
    const uint8_t *bytes = etch_line_table_build_id(m->lines, image, &n);

    if (!n)
        return true;
    id->data = malloc(n);
    if (!id->data)
        return false;
    memcpy(id->data, bytes, n);
    id->len = n;
    return true;
}

/* The memory that a mention is of, to be freed; "" where nothing sure can be said. */
static char *location_of(struct etch_model *m, const struct etch_mention *mention)
{
    char key[ETCH_KEY_SIZE], text[ETCH_KEY_SIZE + 32];

    if (!etch_memory_key(m, mention->pointer, NULL, key))
        return strdup("");
    snprintf(text, sizeof(text), mention->library ? "%s+%lld" : "%s", key, (long long)mention->offset);
    return strdup(text);
}

static bool fill_modules(const struct etch_model *m, Etch__Module ***list, size_t *n)
{
    for (uint32_t i = 1; i < m->images.n; i++) {
        Etch__Module *module = malloc(sizeof(*module));

        if (!module)
            return false;
        etch__module__init(module);
        if (!push(list, n, module)) {
            free(module);
            return false;
        }
        module->path = strdup(m->images.v[i]);
        module->added = (uint64_t)i << ETCH_IMAGE_SHIFT;
        if (!module->path || !fill_build_id(m, i, &module->build_id))
            return false;
    }
    return true;
}

static bool add_operand(struct etch_slice *slice, Etch__Statement *out, const struct etch_mention *mention)
{
    struct etch_access_site site;
    Etch__Operand *op;

    etch_access_site_find(slice->model, mention, &site);
    for (size_t i = 0; i < out->n_operands; i++) {
        op = out->operands[i];
        if (op->write != mention->write || strcmp(op->name, mention->name) != 0)
            continue;
        if (!op->address &&
            site.address) { /* several accesses have this name: take an access that the machine code has */
            op->address = site.address;
            op->unmapped[0] = '\0';
        }
        return true;
    }
    op = malloc(sizeof(*op));
    if (!op)
        return false;
    etch__operand__init(op);
    op->name = strdup(mention->name);
    op->write = mention->write;
    op->shared = mention->shared;
    op->address = site.address;
    op->unmapped = strdup(site.unmapped ? site.unmapped : "");
    op->size = site.size;
    op->global = site.global;
    op->call = site.call;
    op->inner = site.inner;
    op->location = location_of(slice->model, mention);
    if (!push(&out->operands, &out->n_operands, op)) {
        free(op);
        return false;
    }
    return op->name && op->unmapped && op->location;
}

static bool add_range(Etch__AddressRange ***list, size_t *n, uint64_t start, uint64_t end)
{
    Etch__AddressRange *range;

    for (size_t i = 0; i < *n; i++) {
        if ((*list)[i]->end >= start && (*list)[i]->start <= end) {
            (*list)[i]->end = end > (*list)[i]->end ? end : (*list)[i]->end;
            (*list)[i]->start = start < (*list)[i]->start ? start : (*list)[i]->start;
            return true;
        }
    }
    range = malloc(sizeof(*range));
    if (!range)
        return false;
    etch__address_range__init(range);
    range->start = start;
    range->end = end;
    if (push(list, n, range))
        return true;
    free(range);
    return false;
}

static bool fill_roles(Etch__Statement *out, uint32_t roles)
{
    out->roles = calloc(8, sizeof(*out->roles));
    if (!out->roles)
        return false;
    for (uint32_t i = 0; i < 8; i++)
        if (roles & (1u << i))
            out->roles[out->n_roles++] = (Etch__StatementRole)i;
    return true;
}

static bool fill_because(const struct etch_slice *slice, const struct etch_statement *s, Etch__Statement *out)
{
    if (!s->because.n)
        return true;
    out->because = malloc(s->because.n * sizeof(*out->because));
    if (!out->because)
        return false;
    for (size_t i = 0; i < s->because.n; i++)
        out->because[out->n_because++] = slice->rank[s->because.v[i]];
    return true;
}

static bool fill_ranges(const struct etch_slice *slice, const struct etch_statement *s, Etch__Statement *out)
{
    uint64_t starts[64], ends[64];
    size_t n = etch_code_ranges(slice->model, slice->model->files.all.v[s->file], s->line, 0, starts, ends, 64);

    for (size_t i = 0; i < n; i++)
        if (!add_range(&out->ranges, &out->n_ranges, starts[i], ends[i]))
            return false;
    return true;
}

static int by_number(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return x < y ? -1 : x > y;
}

static Etch__Statement *statement_message(struct etch_slice *slice, uint32_t number)
{
    struct etch_statement *s = &slice->statements.v[slice->order[number]];
    Etch__Statement *out = malloc(sizeof(*out));
    etch_mentions mentions = {0};
    bool ok;

    if (!out)
        return NULL;
    etch__statement__init(out);
    out->id = number;
    out->distance = s->distance;
    out->instructions = (uint32_t)s->insns.n;
    out->branch = s->branch;
    out->call = s->call;
    ok = fill_place(&out->place, slice, s) && fill_roles(out, s->roles) && fill_because(slice, s, out) &&
         fill_ranges(slice, s, out);
    if (s->insns.n)
        qsort(s->insns.v, s->insns.n, sizeof(*s->insns.v), by_number);
    for (size_t i = 0; ok && i < s->insns.n; i++)
        ok = etch_mentions_of(slice->model, s->insns.v[i], &mentions);
    for (size_t i = 0; ok && i < mentions.n; i++)
        ok = add_operand(slice, out, &mentions.v[i]);
    etch_array_free(&mentions);
    if (ok)
        return out;
    etch__statement__free_unpacked(out, NULL);
    return NULL;
}

Etch__Slice *etch_slice_message(struct etch_slice *slice)
{
    Etch__Slice *out = malloc(sizeof(*out));
    bool ok;

    if (!out)
        return NULL;
    etch__slice__init(out);
    out->program = strdup(slice->model->path);
    ok = out->program && fill_build_id(slice->model, 0, &out->build_id) &&
         fill_modules(slice->model, &out->modules, &out->n_modules);
    if (ok && slice->statements.n)
        ok = fill_place(&out->failure, slice, &slice->statements.v[slice->order[0]]);
    for (uint32_t i = 0; ok && i < slice->statements.n; i++) {
        ok = push(&out->statements, &out->n_statements, statement_message(slice, i));
        out->instructions += (uint32_t)slice->statements.v[i].insns.n;
    }
    out->lines = (uint32_t)slice->statements.n;
    out->ends_without_value = slice->ends_without_value;
    if (ok)
        return out;
    etch__slice__free_unpacked(out, NULL);
    return NULL;
}

Etch__Slice *etch_model_message(struct etch_model *model)
{
    struct etch_slice nothing = {.model = model};

    return etch_slice_message(&nothing);
}

/* ---- The plan ---- */

#define SITES_BEHIND 64u /* statements that are searched for earlier uses of watched locations */

/* A location's watches: from the mention nearest to the failure, and from the furthest; NULL: there is no other. */
struct planned {
    Etch__PlanWatch *near, *far;
};

typedef ETCH_ARRAY(uint64_t) etch_addresses;

#define SEVERAL UINT64_MAX

struct planning {
    struct etch_slice *slice;
    Etch__Plan *plan;
    uint32_t slots;
    const struct etch_slice_seen *seen;
    size_t n_seen;
    struct etch_strings known;          /* locations whose object was seen */
    etch_addresses objects;             /* of each; SEVERAL: not one */
    struct etch_strings locations;      /* watched already */
    ETCH_ARRAY(struct planned) watches; /* by location */
};

static Etch__PlanWatch *watch_at(uint32_t statement, const struct etch_mention *mention,
                                 const struct etch_access_site *site)
{
    Etch__PlanWatch *w = malloc(sizeof(*w));

    if (!w)
        return NULL;
    etch__plan_watch__init(w);
    w->name = strdup(mention->name);
    w->statement = statement;
    w->global = site->global;
    w->site = site->global && !site->seen ? 0 : site->address;
    w->site_operand = strdup(w->site ? site->operand : "");
    w->size = site->size;
    w->writes = w->reads = true; /* a sketch is made of the order of reads and writes */
    if (w->name && w->site_operand)
        return w;
    etch__plan_watch__free_unpacked(w, NULL);
    return NULL;
}

/* A location that is no global becomes known where an instruction first uses it. Which one comes first differs from run
 * to run: the nearest to the failure is tried, and the furthest from it; the first to be reached arms. */
static bool add_further(struct planning *p, uint32_t number, uint32_t statement, const struct etch_mention *mention,
                        const struct etch_access_site *site)
{
    Etch__PlanWatch *w = p->watches.v[number].near;

    w->size = w->size < site->size ? site->size : w->size;
    if (w->global || site->address == w->site)
        return true;
    if (p->watches.v[number].far)
        etch__plan_watch__free_unpacked(p->watches.v[number].far, NULL);
    p->watches.v[number].far = watch_at(statement, mention, site);
    return p->watches.v[number].far != NULL;
}

/* The identity of a location that is no global. */
static void name_location(const struct planning *p, const struct etch_mention *mention, char *text, size_t size)
{
    char *location = location_of(p->slice->model, mention);

    snprintf(text, size, "%s %s", mention->name, location ? location : "");
    free(location);
}

/* Notes the variable that a mention's instruction used in the runs so far. An array element does not count: the next
 * object that the instruction uses is another element. */
static bool learn(struct planning *p, uint32_t statement, const struct etch_mention *mention, bool behind)
{
    char location[ETCH_KEY_SIZE + 300];
    struct etch_access_site site;

    (void)statement, (void)behind;
    etch_access_site_find(p->slice->model, mention, &site);
    if (!mention->shared || site.global || !site.address || strchr(mention->name, '[') || mention->name[0] == '*')
        return true;
    name_location(p, mention, location, sizeof(location));
    for (size_t i = 0; i < p->n_seen; i++) {
        uint64_t object = p->seen[i].object;
        uint32_t number;

        if (p->seen[i].instruction != site.address)
            continue;
        if (!etch_line_table_is_variable(p->slice->model->lines, object, site.size))
            object = SEVERAL;
        number = etch_strings_add(&p->known, location);
        if (number == ETCH_NONE || (number == p->objects.n && !etch_array_push(&p->objects, object)))
            return false;
        if (p->objects.v[number] != object)
            p->objects.v[number] = SEVERAL;
    }
    return true;
}

/* `behind`: only adds a further site of a location that is watched already. */
static bool add_watch(struct planning *p, uint32_t statement, const struct etch_mention *mention, bool behind)
{
    char location[ETCH_KEY_SIZE + 300];
    size_t before = p->locations.all.n;
    struct planned planned = {0};
    struct etch_access_site site;
    uint32_t number;

    etch_access_site_find(p->slice->model, mention, &site);
    if (!mention->shared || (!site.global && !site.address) || site.size == 0)
        return true;
    name_location(p, mention, location, sizeof(location));
    number = site.global ? ETCH_NONE : etch_strings_find(&p->known, location);
    if (number != ETCH_NONE && p->objects.v[number] != SEVERAL) {
        site.global = p->objects.v[number];
        site.seen = true;
    }
    if (site.global)
        snprintf(location, sizeof(location), "%llx", (unsigned long long)site.global);
    if (behind && etch_strings_find(&p->locations, location) == ETCH_NONE)
        return true;
    number = etch_strings_add(&p->locations, location);
    if (number == ETCH_NONE)
        return false;
    if (p->locations.all.n == before) /* one watch sees all accesses to the place */
        return add_further(p, number, statement, mention, &site);
    planned.near = watch_at(statement, mention, &site);
    if (planned.near && etch_array_push(&p->watches, planned))
        return true;
    if (planned.near)
        etch__plan_watch__free_unpacked(planned.near, NULL);
    return false;
}

typedef bool visit_mention(struct planning *p, uint32_t statement, const struct etch_mention *mention, bool behind);

/* Statements after the first sigma only add sites: the earlier a location is known, the more accesses to it are
 * seen. */
static bool visit_mentions(struct planning *p, uint32_t sigma, visit_mention *visit)
{
    uint32_t all = (uint32_t)p->slice->statements.n, end = sigma + SITES_BEHIND < all ? sigma + SITES_BEHIND : all;
    bool ok = true;

    if (end < all)
        etch_log(ETCH_LOG_PLAN, ETCH_LOG_INFO, "access sites: %u of %u statements are not searched", all - end, all);
    for (uint32_t i = 0; ok && i < end; i++) {
        const struct etch_statement *s = &p->slice->statements.v[p->slice->order[i]];
        etch_mentions mentions = {0};

        for (size_t k = 0; ok && k < s->insns.n; k++)
            ok = etch_mentions_of(p->slice->model, s->insns.v[k], &mentions);
        for (size_t k = 0; ok && k < mentions.n; k++)
            ok = visit(p, i, &mentions.v[k], i >= sigma);
        etch_array_free(&mentions);
    }
    return ok;
}

static Etch__PlanSet *new_set(struct planning *p)
{
    Etch__PlanSet *set = malloc(sizeof(*set));

    if (!set)
        return NULL;
    etch__plan_set__init(set);
    if (push(&p->plan->sets, &p->plan->n_sets, set))
        return set;
    free(set);
    return NULL;
}

static bool put(Etch__PlanSet *set, Etch__PlanWatch **watch)
{
    if (!set || !push(&set->watches, &set->n_watches, *watch))
        return false;
    *watch = NULL;
    return true;
}

/* Puts the nearest locations together, as many as fit into a run. If only one watch fits, a location with two sites
 * takes two runs: one for its furthest site and one for its nearest site. */
static bool split_sets(struct planning *p)
{
    Etch__PlanSet *set = NULL;

    for (size_t i = 0; i < p->watches.n; i++) {
        struct planned *w = &p->watches.v[i];
        size_t needs = w->far ? 2 : 1;

        if (w->far && p->slots == 1) {
            if (!put(new_set(p), &w->far))
                return false;
            needs = 1;
        }
        if (!set || set->n_watches + needs > p->slots)
            set = new_set(p);
        if (!put(set, &w->near) || (w->far && !put(set, &w->far)))
            return false;
    }
    return true;
}

static Etch__PlanWatch *copy_watch(const Etch__PlanWatch *from)
{
    Etch__PlanWatch *w = malloc(sizeof(*w));

    if (!w)
        return NULL;
    *w = *from;
    w->name = strdup(from->name);
    w->site_operand = strdup(from->site_operand);
    if (w->name && w->site_operand)
        return w;
    etch__plan_watch__free_unpacked(w, NULL);
    return NULL;
}

/* An instruction uses many objects, and the object of the failure is rarely the first. So the remaining debug registers
 * wait at the same sites for the next objects. The sites furthest from the failure see an object earliest. */
static bool fill_sets(struct planning *p)
{
    for (size_t i = 0; i < p->plan->n_sets; i++) {
        Etch__PlanSet *set = p->plan->sets[i];
        size_t n = set->n_watches;

        for (size_t k = n; k-- > 0 && set->n_watches < p->slots;) {
            Etch__PlanWatch *more = set->watches[k]->global ? NULL : copy_watch(set->watches[k]);

            if (!set->watches[k]->global && !put(set, &more)) {
                if (more)
                    etch__plan_watch__free_unpacked(more, NULL);
                return false;
            }
        }
    }
    return true;
}

static bool track_block(struct planning *p, uint32_t block)
{
    const struct etch_model *m = p->slice->model;
    const struct etch_ir_block *b = &m->blocks.v[block];

    for (uint32_t i = b->first; i < b->first + b->n; i++) {
        const struct etch_insn *insn = &m->insns.v[i];
        uint64_t starts[64], ends[64];
        size_t n;

        if (insn->file == ETCH_NONE || (i > b->first && insn[-1].file == insn->file && insn[-1].line == insn->line))
            continue;
        n = etch_code_ranges(m, m->files.all.v[insn->file], insn->line, 0, starts, ends, 64);
        for (size_t k = 0; k < n; k++)
            if (!add_range(&p->plan->track, &p->plan->n_track, starts[k], ends[k]))
                return false;
    }
    return true;
}

/* From the blocks before a statement's block up to, not including, its immediate postdominator. */
static bool track_from(struct planning *p, const struct etch_cfg *cfg, uint32_t block, etch_numbers *tracked)
{
    uint32_t stop = cfg->postdominator[block];
    bool *seen = calloc(cfg->n + 1, sizeof(*seen)), ok = seen != NULL;
    etch_numbers work = {0};

    for (size_t i = 0; ok && i < cfg->preds[block].n; i++)
        ok = track_block(p, cfg->first + cfg->preds[block].v[i]);
    ok = ok && etch_array_push(&work, block);
    while (ok && work.n) {
        uint32_t at = work.v[--work.n];

        if (at == stop || at >= cfg->n || seen[at])
            continue;
        seen[at] = true;
        ok = track_block(p, cfg->first + at) && etch_array_push(tracked, cfg->first + at);
        for (size_t i = 0; ok && i < cfg->succs[at].n; i++)
            ok = etch_array_push(&work, cfg->succs[at].v[i]);
    }
    etch_array_free(&work);
    free(seen);
    return ok;
}

static bool plan_tracking(struct planning *p, uint32_t sigma)
{
    struct etch_model *m = p->slice->model;
    etch_numbers tracked = {0};
    bool ok = true;

    for (uint32_t i = 0; ok && i < sigma; i++) {
        const struct etch_statement *s = &p->slice->statements.v[p->slice->order[i]];
        uint32_t block = s->insns.n ? m->insns.v[s->insns.v[0]].block : ETCH_NONE;
        uint32_t function = block == ETCH_NONE ? 0 : m->blocks.v[block].function;
        const struct etch_cfg *cfg = block == ETCH_NONE ? NULL : etch_cfg_of(m, function);
        bool covered = !cfg;

        /* Within the reach of a tracked statement that dominates it: no start of its own. */
        for (size_t k = 0; k < tracked.n && !covered; k++)
            covered = tracked.v[k] == block;
        if (!covered)
            ok = track_from(p, cfg, block - cfg->first, &tracked);
    }
    etch_array_free(&tracked);
    return ok;
}

static bool fill_plan(struct planning *p, uint32_t sigma)
{
    p->plan->program = strdup(p->slice->model->path);
    p->plan->sigma = sigma;
    p->plan->statements = calloc(sigma + 1, sizeof(*p->plan->statements));
    if (!p->plan->program || !p->plan->statements || !fill_build_id(p->slice->model, 0, &p->plan->build_id) ||
        !fill_modules(p->slice->model, &p->plan->modules, &p->plan->n_modules))
        return false;
    for (uint32_t i = 0; i < sigma; i++)
        p->plan->statements[p->plan->n_statements++] = i;
    return visit_mentions(p, sigma, learn) && visit_mentions(p, sigma, add_watch) && split_sets(p) && fill_sets(p) &&
           plan_tracking(p, sigma);
}

Etch__Plan *etch_slice_plan(struct etch_slice *slice, uint32_t sigma, uint32_t slots,
                            const struct etch_slice_seen *seen, size_t n_seen)
{
    struct planning p = {
        .slice = slice, .plan = malloc(sizeof(Etch__Plan)), .slots = slots ? slots : 4, .seen = seen, .n_seen = n_seen};
    bool ok;

    if (!p.plan)
        return NULL;
    etch__plan__init(p.plan);
    ok = fill_plan(&p, sigma < slice->statements.n ? sigma : (uint32_t)slice->statements.n);
    etch_strings_release(&p.locations);
    etch_strings_release(&p.known);
    etch_array_free(&p.objects);
    for (size_t i = 0; i < p.watches.n; i++) {
        if (p.watches.v[i].near)
            etch__plan_watch__free_unpacked(p.watches.v[i].near, NULL);
        if (p.watches.v[i].far)
            etch__plan_watch__free_unpacked(p.watches.v[i].far, NULL);
    }
    etch_array_free(&p.watches);
    if (ok) {
        etch_log(ETCH_LOG_PLAN, ETCH_LOG_DEBUG, "%u of %zu statements: %zu sets of at most %u watches", sigma,
                 slice->statements.n, p.plan->n_sets, p.slots);
        return p.plan;
    }
    etch__plan__free_unpacked(p.plan, NULL);
    return NULL;
}
/* NOLINTEND(clang-analyzer-unix.Malloc) */
