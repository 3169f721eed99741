/* SPDX-License-Identifier: MIT */
/* A recording's accesses: which variable, object and place each is of, by the slice's operands and the watches, and the
 * sequence that they have in the run. */
#include "sketch/runs/build_model.h"
#include "sketch/runs/order.h"

#include "base/assert.h"
#include "decoder/accesses.h"

#include <stdlib.h>
#include <string.h>

int etch_build_settle_accesses(struct build *b, struct etch_error *err)
{
    struct etch_code *code;
    int status;

    if (b->recording->settled)
        return 0;
    b->recording->settled = true;
    if (b->recording->source == ETCH__SOURCE__SOURCE_VPT)
        return etch_accesses_doubt(b->recording, err);
    if (!b->recording->accesses.n && !b->recording->syncs.n)
        return 0;
    if (etch_code_open(&code, b->recording, NULL, err) < 0)
        return -1;
    if (b->recording->source == ETCH__SOURCE__SOURCE_LAB) {
        etch_accesses_settle_lab(b->recording, code, b->symbols);
        status = 0;
    } else {
        status = etch_accesses_settle(b->recording, code, b->symbols, err);
    }
    etch_code_free(code);
    return status;
}

/* ---- Operands ---- */

int etch_build_index_operands(struct build *b, struct etch_error *err)
{
    const Etch__Slice *slice = b->options->slice;

    for (size_t i = 0; i < slice->n_statements; i++) {
        const Etch__Place *at = slice->statements[i]->place;
        uint32_t place = etch_names_place(b->names, at->file, at->line, at->function);

        for (size_t k = 0; k < slice->statements[i]->n_operands; k++) {
            const Etch__Operand *o = slice->statements[i]->operands[k];
            uint32_t number = (uint32_t)b->operands.n, variable = etch_names_variable(b->names, o->name);

            if (variable == ETCH_NOWHERE || etch_names_locate(b->names, variable, o->location) < 0 ||
                !etch_array_push(&b->operands, o) || !etch_array_push(&b->operand_places, place) ||
                (o->inner &&
                 !etch_index_add(&b->by_address, etch_hash(ETCH_HASH_START, &o->inner, sizeof(o->inner)), number)) ||
                !etch_index_add(&b->by_address, etch_hash(ETCH_HASH_START, &o->address, sizeof(o->address)), number) ||
                (o->global &&
                 !etch_index_add(&b->by_global, etch_hash(ETCH_HASH_START, &o->global, sizeof(o->global)), number)))
                return etch_error_no_memory(err);
        }
    }
    return 0;
}

const Etch__Operand *etch_build_operand_at(const struct build *b, uint64_t address, bool write)
{
    uint64_t hash = etch_hash(ETCH_HASH_START, &address, sizeof(address));
    const Etch__Operand *found = NULL;
    size_t probe = 0;
    uint32_t i;

    while ((i = etch_index_next(&b->by_address, hash, &probe)) < b->operands.n) {
        const Etch__Operand *o = b->operands.v[i];

        if ((o->address == address || o->inner == address) && (!found || o->write == write))
            found = o;
    }
    return found;
}

/* The operand of a place that fits an access whose instruction the slice does not know, as an atomic operation of the
 * lab. NULL: none fits, or several of different names do. */
static const Etch__Operand *operand_of_place(struct build *b, uint32_t place, const Etch__Access *from)
{
    uint64_t global = etch_build_file_address(b, from->address);
    const Etch__Operand *found = NULL;

    for (size_t i = 0; i < b->operands.n; i++) {
        const Etch__Operand *o = b->operands.v[i];

        if (b->operand_places.v[i] != place || o->write != from->write || (o->size && o->size != from->size) ||
            (o->global && o->global != global))
            continue;
        if (o->global)
            return o;
        if (found && strcmp(found->name, o->name) != 0)
            return NULL;
        found = o;
    }
    return found;
}

static const struct watched *watch_of(const struct build *b, uint32_t id);

void etch_build_name_library(struct build *b, size_t access)
{
    struct etch_run_access *a = &b->accesses.v[access];
    const Etch__Access *from = &b->recording->accesses.v[b->from.v[access]];
    const struct watched *watched = watch_of(b, from->watch);
    uint64_t ip = from->ip - b->bias, hash = etch_hash(ETCH_HASH_START, &ip, sizeof(ip));
    size_t probe = 0;
    uint32_t i;

    a->operand = ETCH_NOWHERE;
    while ((i = etch_index_next(&b->by_address, hash, &probe)) < b->operands.n)
        if (b->operands.v[i]->inner == ip && b->operand_places.v[i] == a->place)
            a->operand = etch_names_variable(b->names, b->operands.v[i]->name);
    if (watched && watched->inner)
        a->watch = a->operand;
    a->variable = a->watch != ETCH_NOWHERE ? a->watch : a->operand;
}

/* ---- Watches ---- */

/* The name of a watched variable: the operand of the watch's site, the global at its address, or the text that the user
 * wrote. */
static const char *watch_name(struct build *b, const Etch__Watch *w)
{
    const Etch__Operand *operand = w->site ? etch_build_operand_at(b, w->site, false) : NULL;
    uint64_t global = etch_build_file_address(b, w->address),
             hash = etch_hash(ETCH_HASH_START, &global, sizeof(global));
    size_t probe = 0;
    uint32_t i;

    if (operand)
        return operand->name;
    while ((i = etch_index_next(&b->by_global, hash, &probe)) < b->operands.n)
        if (b->operands.v[i]->global == global)
            return b->operands.v[i]->name;
    return w->name;
}

static bool is_inner(const struct build *b, uint64_t site)
{
    const Etch__Operand *operand = site ? etch_build_operand_at(b, site, false) : NULL;

    return operand && operand->inner == site;
}

static int by_watch_start(const void *x, const void *y)
{
    const struct watched *a = x, *b = y;

    return a->watch->address < b->watch->address ? -1 : a->watch->address > b->watch->address;
}

static int by_watch_id(const void *x, const void *y)
{
    const struct watched *a = x, *b = y;

    return a->watch->id < b->watch->id ? -1 : a->watch->id > b->watch->id;
}

/* Accesses to overlapping memory are of one object: the object whose watch has the lowest number. */
static void number_objects(struct watched *list, size_t n)
{
    for (size_t first = 0, i; first < n; first = i) {
        uint64_t end = list[first].watch->address + list[first].watch->size;
        uint32_t object = list[first].watch->id;

        for (i = first + 1; i < n && list[i].watch->address < end; i++) {
            const Etch__Watch *w = list[i].watch;

            end = w->address + w->size > end ? w->address + w->size : end;
            object = w->id < object ? w->id : object;
        }
        for (size_t k = first; k < i; k++)
            list[k].object = object;
    }
}

/* A watch of the lab gets the instruction of its first access that the slice knows. */
static void find_sites(struct build *b)
{
    const struct etch_recording *r = b->recording;

    if (r->source != ETCH__SOURCE__SOURCE_LAB)
        return;
    for (size_t i = 0; i < r->accesses.n; i++) {
        const Etch__Access *a = &r->accesses.v[i];
        Etch__Watch *w = a->watch && a->watch <= r->watches.n ? r->watches.v[a->watch - 1] : NULL;

        if (w && w->id == a->watch && !w->site && !a->ip_is_after &&
            etch_build_use_image(b, etch_build_image_at(b, a->ip)) &&
            etch_build_operand_at(b, a->ip - b->bias, a->write))
            w->site = a->ip - b->bias;
    }
}

/* Memory that the slice has no name for has the name of other accesses to the same object, or none. */
static void name_unnamed(struct build *b, uint32_t unnamed)
{
    for (size_t i = 0; i < b->watched.n; i++) {
        struct watched *w = &b->watched.v[i];

        for (size_t k = 0; k < b->watched.n && w->variable == unnamed; k++)
            if (b->watched.v[k].object == w->object && b->watched.v[k].variable != ETCH_NOWHERE)
                w->variable = b->watched.v[k].variable;
        if (w->variable == unnamed)
            w->variable = ETCH_NOWHERE;
    }
}

int etch_build_list_watches(struct build *b, struct etch_error *err)
{
    const struct etch_recording *r = b->recording;

    find_sites(b);

    for (size_t i = 0; i < r->watches.n; i++) {
        struct watched watched = {.watch = r->watches.v[i]};

        if (watched.watch->skipped)
            continue;
        watched.variable = etch_names_variable(b->names, watch_name(b, watched.watch));
        watched.inner = is_inner(b, watched.watch->site);
        if (watched.variable == ETCH_NOWHERE || !etch_array_push(&b->watched, watched))
            return etch_error_no_memory(err);
    }
    if (b->watched.n) {
        qsort(b->watched.v, b->watched.n, sizeof(*b->watched.v), by_watch_start);
        number_objects(b->watched.v, b->watched.n);
        if (r->source == ETCH__SOURCE__SOURCE_LAB)
            name_unnamed(b, etch_names_variable(b->names, ""));
        qsort(b->watched.v, b->watched.n, sizeof(*b->watched.v), by_watch_id);
    }
    return 0;
}

static const struct watched *watch_of(const struct build *b, uint32_t id)
{
    Etch__Watch watch = {.id = id};
    struct watched key = {.watch = &watch};

    return id && b->watched.n ? bsearch(&key, b->watched.v, b->watched.n, sizeof(key), by_watch_id) : NULL;
}

/* True if there was no room for some locations of a variable, for example elements of an array. */
static bool is_left_out(struct build *b, uint32_t variable)
{
    for (size_t i = 0; i < b->recording->watches.n; i++) {
        const Etch__Watch *w = b->recording->watches.v[i];

        if (w->skipped && w->emulated && w->site && etch_names_variable(b->names, watch_name(b, w)) == variable)
            return true;
    }
    return false;
}

/* Lists the sites, also those whose object was watched already. */
static bool list_sites(struct build *b)
{
    for (size_t i = 0; i < b->recording->watches.n; i++) {
        const Etch__Watch *w = b->recording->watches.v[i];
        const struct etch_run_site site = {etch_build_file_address(b, w->site), etch_build_file_address(b, w->address)};

        if (w->site && w->address && !w->emulated && !etch_array_push(&b->run->sites, site))
            return false;
    }
    return true;
}

int etch_build_list_watched(struct build *b, struct etch_error *err)
{
    for (size_t i = 0; i < b->watched.n; i++) {
        const Etch__Watch *w = b->watched.v[i].watch;

        if (b->watched.v[i].variable == ETCH_NOWHERE)
            continue;
        if (w->reads && w->writes && !is_left_out(b, b->watched.v[i].variable) &&
            (!etch_array_push(&b->run->watched_operands, b->watched.v[i].variable) ||
             !etch_array_push(&b->run->watched, b->watched.v[i].variable)))
            return etch_error_no_memory(err);
        if (w->site && !w->emulated &&
            (!etch_array_push(&b->run->sited_operands, b->watched.v[i].variable) ||
             !etch_array_push(&b->run->sited, b->watched.v[i].variable)))
            return etch_error_no_memory(err);
    }
    return list_sites(b) ? 0 : etch_error_no_memory(err);
}

/* ---- Accesses ---- */

static int by_thread(const void *x, const void *y)
{
    const struct etch_run_access *a = x, *b = y;

    if (a->thread != b->thread)
        return a->thread < b->thread ? -1 : 1;
    if (a->hi != b->hi)
        return a->hi < b->hi ? -1 : 1;
    return a->seq < b->seq ? -1 : a->seq > b->seq;
}

static void name_access(struct build *b, struct etch_run_access *a, const Etch__Access *from)
{
    const Etch__Operand *operand;
    const Etch__Image *image = etch_build_image_at(b, from->ip);
    const struct watched *watched = watch_of(b, from->watch);

    if (etch_build_use_image(b, image)) {
        uint64_t back = from->ip_is_after ? 1 : 0;

        a->place = etch_build_place_of(b, image, from->ip - back);
        a->header = a->place == ETCH_NOWHERE;
        if (a->header && from->caller)
            a->place = etch_build_place_of(b, etch_build_image_at(b, from->caller), from->caller - 1);
        operand = etch_build_operand_at(b, from->ip - b->bias, from->write);
        if (from->ip_is_after)
            operand = NULL;
        if (!operand && b->recording->source == ETCH__SOURCE__SOURCE_LAB && a->place != ETCH_NOWHERE)
            operand = operand_of_place(b, a->place, from);
        if (operand)
            a->operand = etch_names_variable(b->names, operand->name);
    } else if (from->caller && !from->direction_unknown) { /* the kernel's may be either */
        a->outside = true;
        a->place = etch_build_place_of(b, etch_build_image_at(b, from->caller), from->caller - 1);
    }
    if (watched) {
        a->watch = watched->inner ? a->operand : watched->variable;
        a->object = watched->object;
    }
    a->variable = a->watch != ETCH_NOWHERE ? a->watch : a->operand;
}

int etch_build_list_accesses(struct build *b, struct etch_error *err)
{
    const struct etch_recording *r = b->recording;

    for (size_t i = 0; i < r->accesses.n; i++) {
        const Etch__Access *from = &r->accesses.v[i];
        struct etch_run_access a = {.thread = etch_build_thread(b, from->tid),
                                    .place = ETCH_NOWHERE,
                                    .operand = ETCH_NOWHERE,
                                    .watch = ETCH_NOWHERE,
                                    .variable = ETCH_NOWHERE,
                                    .object = ETCH_NOWHERE,
                                    .seq = i,
                                    .value = from->value,
                                    .known = from->known_case == ETCH__ACCESS__KNOWN_VALUE,
                                    .address = from->address,
                                    .size = from->size,
                                    .lo = from->since,
                                    .hi = from->tsc,
                                    .read = from->read || !from->write,
                                    .write = from->write,
                                    .event = ETCH_NOWHERE};

        name_access(b, &a, from);
        if (a.thread == ETCH_NOWHERE || !etch_array_push(&b->accesses, a))
            return etch_error_no_memory(err);
    }
    if (b->accesses.n)
        qsort(b->accesses.v, b->accesses.n, sizeof(*b->accesses.v), by_thread);
    for (size_t i = 0; i < b->accesses.n; i++) {
        if (!etch_array_push(&b->from, (uint32_t)b->accesses.v[i].seq))
            return etch_error_no_memory(err);
        b->accesses.v[i].seq = UINT64_MAX;
    }
    b->of_thread = calloc(b->run->threads.n + 1, sizeof(*b->of_thread));
    if (!b->of_thread)
        return etch_error_no_memory(err);
    b->n_of_thread = b->run->threads.n;
    for (size_t i = b->accesses.n; i-- > 0;) {
        ETCH_ASSERT(b->accesses.v[i].thread < b->n_of_thread);
        b->of_thread[b->accesses.v[i].thread].first = i;
        b->of_thread[b->accesses.v[i].thread].n++;
    }
    return 0;
}

struct sorted {
    uint64_t at;
    struct etch_run_access access;
};

static int by_position(const void *x, const void *y)
{
    const struct sorted *a = x, *b = y;

    return a->at < b->at ? -1 : a->at > b->at;
}

int etch_build_sort_accesses(struct build *b, struct etch_error *err)
{
    struct sorted *list = malloc((b->accesses.n + 1) * sizeof(*list));
    bool good = list != NULL;

    for (size_t i = 0; good && i < b->accesses.n; i++) {
        struct etch_run_access *a = &b->accesses.v[i];

        a->event = b->run->order ? etch_run_order_event(b->run->order, b->from.v[i], 0) : ETCH_NOWHERE;
        list[i].at = b->run->order ? (uint64_t)etch_run_order_position(b->run->order, a->event) << 32 | i : i;
        list[i].access = *a;
    }
    if (good)
        qsort(list, b->accesses.n, sizeof(*list), by_position);
    for (size_t i = 0; good && i < b->accesses.n; i++)
        good = etch_array_push(&b->run->accesses, list[i].access);
    free(list);
    return good ? 0 : etch_error_no_memory(err);
}
