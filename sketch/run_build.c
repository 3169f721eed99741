/* SPDX-License-Identifier: MIT */
/* From a recording to a run: walks each thread's steps once, and takes along what the slice and the watches ask for;
 * see run_build.h. */
#include "sketch/run_build.h"
#include "sketch/run_order.h"
#include "sketch/run_seen.h"

#include "decoder/accesses.h"
#include "decoder/steps.h"
#include "decoder/symbols.h"
#include "decoder/timeline.h"
#include "decoder/unwind.h"
#include "decoder/values.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEPTH_MAX 4096u
#define TABLE_MAX (64u << 20) /* bytes of code between the slice's first and last instruction */
#define IN_BLOCK_BITS 12
#define HANDLERS_MAX 8u   /* within each other */
#define HELD_MAX 4096u    /* steps of a handler that wait for their turn */
#define ONE_TRAP 10000u   /* cycles within which several debug registers tell of one instruction */
#define HISTORY 16u       /* visits of a place that are kept */
#define BUCKET_CALLERS 2u /* functions above the failing one by which failures are told apart */

/* Which place an address of the program is of. */
struct place_table {
    uint64_t start, end;
    uint32_t *place; /* by address; ETCH_NOWHERE: none */
    bool *begins;    /* a statement begins here */
};

struct frame {
    uint64_t return_address;
    uint32_t last; /* place executed last, in this call */
    uint32_t call; /* which of the thread's calls, from 1 */
};

/* A signal handler that is running. */
struct handler {
    uint64_t resume; /* where what it interrupted goes on */
    uint32_t depth;
};

/* A step that waits for its turn. */
struct held {
    struct etch_step step;
    size_t sizes; /* index into walk.held_sizes */
};

/* One thread's walk. */
struct walk {
    uint32_t tid;
    uint32_t thread;
    uint64_t block; /* steps so far */
    uint32_t depth, calls;
    struct frame frames[DEPTH_MAX];
    uint64_t last_ip, last_program_ip;
    uint64_t last_outside; /* return address of its last call from the program to the outside */
    bool in_program;
    struct handler handlers[HANDLERS_MAX];
    uint32_t n_handlers;
    uint64_t
        expected; /* where it would go on but for a signal: behind a system call, at what was interrupted; 0: none */
    bool interrupted; /* and it did not get there by itself */
    uint32_t *visit;  /* by place: its visit + 1 */
    size_t n_visit;
    size_t next_access, next_outside; /* in the thread's list: of the program itself, of libraries */
    int pending_branch;               /* index of a branch whose first place after it is not known yet */
    bool lost;
    bool over;        /* it has failed */
    uint64_t last_lo; /* when the last block may have begun */
    enum etch_step_kind last_kind;
    enum etch_branch_kind last_branch; /* of the last block */
    /* A recorder tells of a signal handler before the way that it interrupted. Its steps are held until an access shows
     * that it is their turn. */
    ETCH_ARRAY(struct held) held;
    ETCH_ARRAY(uint8_t) held_sizes;
    uint32_t nesting;             /* calls from outside that the held steps are in; 0: the handler is complete */
    ETCH_ARRAY(uint32_t) creates; /* places of pthread_create, in order */
};

/* A watch that was set. */
struct watched {
    const Etch__Watch *watch;
    uint32_t variable, object;
};

struct build {
    struct etch_run *run;
    struct etch_names *names;
    struct etch_recording *recording;
    const struct etch_run_options *options;
    struct etch_symbols *symbols;
    struct place_table table;
    ETCH_ARRAY(const Etch__Operand *) operands; /* of the slice */
    struct etch_index by_address, by_global;    /* into operands */
    struct etch_index by_branch;                /* into the run's branches */
    ETCH_ARRAY(struct watched) watched;         /* by id */
    const Etch__Image *image;                   /* of the program, the last one asked for */
    const Etch__Image *other;                   /* the last one that is not of the program */
    uint32_t pid;                               /* of the process that is looked at; 0: not known */
    uint64_t bias;                              /* address in memory minus address in the file */
    struct walk *walk;
    ETCH_ARRAY(struct etch_run_access) accesses; /* by thread, in program order */
    ETCH_ARRAY(uint32_t) from;                   /* index in the recording */
    ETCH_ARRAY(struct etch_mark) marks;          /* stamps of a recorder that accesses are behind */
    ETCH_ARRAY(struct etch_mark_tie) ties;
    struct {
        size_t first, n;
    } *of_thread; /* into accesses, by thread */
    bool failing; /* the run is */
    bool failed;  /* memory was short */
};

static int out_of_memory(struct etch_error *err)
{
    return etch_error_set(err, "out of memory");
}

static uint32_t exit_status(const struct etch_recording *r)
{
    return r->outcome && r->outcome->how_case == ETCH__OUTCOME__HOW_EXIT_STATUS ? r->outcome->exit_status : 0;
}

bool etch_recording_failed(const struct etch_recording *r, bool *hang)
{
    const Etch__Failure *f = r->failure;

    *hang = false;
    if (!f || f->kind == ETCH__FAILURE_KIND__FAILURE_NONE)
        return exit_status(r) != 0;
    *hang = f->kind == ETCH__FAILURE_KIND__FAILURE_HANG || f->kind == ETCH__FAILURE_KIND__FAILURE_TIMEOUT ||
            (f->kind == ETCH__FAILURE_KIND__FAILURE_SIGNAL && !f->ip &&
             (f->signal == SIGTERM || f->signal == SIGKILL || f->signal == SIGINT));
    return true;
}

/* ---- The program's addresses ---- */

/* The program in question may be one that the recorded one, a script say, has started. */
static const ProtobufCBinaryData *wanted_id(const struct build *b)
{
    const struct etch_run_options *o = b->options;

    if (o->slice && o->slice->build_id.len)
        return &o->slice->build_id;
    return o->build_id && o->build_id->len ? o->build_id : &b->recording->program->build_id;
}

static bool is_program(const struct build *b, const Etch__Image *image)
{
    const ProtobufCBinaryData *id;

    if (!image || !b->recording->program || (b->pid && image->pid && image->pid != b->pid))
        return false;
    id = wanted_id(b);
    if (id->len && image->build_id.len)
        return id->len == image->build_id.len && memcmp(id->data, image->build_id.data, id->len) == 0;
    return strcmp(b->recording->program->exe, image->path) == 0;
}

static bool is_program_of(struct build *b, uint32_t pid)
{
    bool found = false;

    b->pid = pid;
    for (size_t i = 0; i < b->recording->images.n && !found; i++)
        found = is_program(b, b->recording->images.v[i]);
    return found;
}

/* The process that is looked at: the one that failed, the first, or the first of those that it started; of those that
 * run the program in question. */
static bool choose_process(struct build *b)
{
    const struct etch_recording *r = b->recording;
    uint32_t first = r->program->pid;

    if (r->failure && r->failure->pid && is_program_of(b, r->failure->pid))
        return true;
    if (is_program_of(b, first))
        return true;
    for (size_t i = 0; i < r->images.n; i++)
        if (r->images.v[i]->pid && is_program_of(b, r->images.v[i]->pid))
            return true;
    b->pid = first;
    return false;
}

/* True where `image` is of the program; then b->bias is right for it. */
static bool use_image(struct build *b, const Etch__Image *image)
{
    struct etch_location location;

    if (image == b->image)
        return image != NULL;
    if (image == b->other)
        return false;
    if (!is_program(b, image)) {
        b->other = image;
        return false;
    }
    etch_symbols_find(b->symbols, image, image->start, &location);
    b->image = image;
    b->bias = image->start - location.module_offset;
    return true;
}

static const Etch__Image *image_at(const struct build *b, uint64_t address)
{
    const Etch__Image *found = NULL;

    for (size_t i = 0; i < b->recording->images.n; i++) {
        const Etch__Image *image = b->recording->images.v[i];

        if ((b->pid && image->pid && image->pid != b->pid) || address < image->start ||
            address - image->start >= image->size)
            continue;
        if (!found || image->mapped_tsc >= found->mapped_tsc) /* an exec puts one where another was */
            found = image;
    }
    return found;
}

static uint32_t table_place(const struct place_table *t, uint64_t address)
{
    return address >= t->start && address < t->end ? t->place[address - t->start] : ETCH_NOWHERE;
}

static int make_table(struct build *b, struct etch_error *err)
{
    const Etch__Slice *slice = b->options->slice;
    struct place_table *t = &b->table;

    t->start = UINT64_MAX;
    for (size_t i = 0; i < slice->n_statements; i++) {
        for (size_t k = 0; k < slice->statements[i]->n_ranges; k++) {
            const Etch__AddressRange *range = slice->statements[i]->ranges[k];

            t->start = range->start < t->start ? range->start : t->start;
            t->end = range->end > t->end ? range->end : t->end;
        }
    }
    if (t->start >= t->end)
        t->start = t->end = 0;
    if (t->end - t->start > TABLE_MAX)
        return etch_error_set(err, "the slice spreads over %llu MiB of code",
                              (unsigned long long)(t->end - t->start) >> 20);
    t->place = malloc((t->end - t->start + 1) * sizeof(*t->place));
    t->begins = calloc(t->end - t->start + 1, sizeof(*t->begins));
    if (!t->place || !t->begins)
        return out_of_memory(err);
    memset(t->place, 0xff, (t->end - t->start + 1) * sizeof(*t->place));
    for (size_t i = slice->n_statements; i-- > 0;) { /* the nearest to the failure last, so that it wins */
        const Etch__Statement *s = slice->statements[i];
        uint32_t place = etch_names_place(b->names, s->place->file, s->place->line, s->place->function);

        for (size_t k = 0; k < s->n_ranges; k++) {
            for (uint64_t a = s->ranges[k]->start; a < s->ranges[k]->end; a++)
                t->place[a - t->start] = place;
            t->begins[s->ranges[k]->start - t->start] = k == 0;
        }
    }
    return 0;
}

/* The place of an address in the program, in the slice or not. */
static uint32_t place_of(struct build *b, const Etch__Image *image, uint64_t address)
{
    struct etch_location location;
    uint32_t place;

    if (!use_image(b, image))
        return ETCH_NOWHERE;
    place = table_place(&b->table, address - b->bias);
    if (place != ETCH_NOWHERE)
        return place;
    etch_symbols_find(b->symbols, image, address, &location);
    if (!location.frame.file || !location.frame.line)
        return ETCH_NOWHERE;
    return etch_names_place(b->names, location.frame.file, location.frame.line,
                            location.frame.function ? location.frame.function : "");
}

static char *function_at(struct build *b, uint64_t address)
{
    struct etch_location location;
    char name[256];
    char *at;

    etch_symbols_find(b->symbols, image_at(b, address), address, &location);
    if (!location.symbol && !location.frame.function)
        return NULL;
    snprintf(name, sizeof(name), "%s", location.frame.function ? location.frame.function : location.symbol);
    at = strchr(name, '@');
    if (at)
        *at = '\0';
    return strdup(name);
}

/* ---- Threads ---- */

static uint32_t thread_number(struct build *b, uint32_t tid)
{
    struct etch_run_thread thread = {
        .tid = tid, .parent = ETCH_NOWHERE, .wait_place = ETCH_NOWHERE, .made_at = ETCH_NOWHERE};

    for (size_t i = 0; i < b->run->threads.n; i++)
        if (b->run->threads.v[i].tid == tid)
            return (uint32_t)i;
    if (!etch_array_push(&b->run->threads, thread)) {
        b->failed = true;
        return ETCH_NOWHERE;
    }
    return (uint32_t)(b->run->threads.n - 1);
}

static int by_start(const void *x, const void *y)
{
    const Etch__Thread *const *a = x, *const *b = y;

    if ((*a)->start_tsc != (*b)->start_tsc)
        return (*a)->start_tsc < (*b)->start_tsc ? -1 : 1;
    return (*a)->tid<(*b)->tid ? -1 : (*a)->tid>(*b)->tid;
}

/* In the order in which they began, so that their numbers are the same in like runs. Only the recorded program's own
 * process: others are other programs. */
static void number_threads(struct build *b)
{
    struct etch_recording *r = b->recording;
    uint32_t pid = b->pid;

    if (r->threads.n)
        qsort(r->threads.v, r->threads.n, sizeof(*r->threads.v), by_start);
    if (pid)
        thread_number(b, pid);
    for (size_t i = 0; i < r->threads.n; i++)
        if (!pid || r->threads.v[i]->pid == pid)
            thread_number(b, r->threads.v[i]->tid);
    for (size_t i = 0; i < r->threads.n; i++) {
        const Etch__Thread *t = r->threads.v[i];

        if ((pid && t->pid != pid) || !t->parent_tid || t->parent_tid == t->tid)
            continue;
        b->run->threads.v[thread_number(b, t->tid)].parent = thread_number(b, t->parent_tid);
    }
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

/* The slice's operands, by the address of their instruction and of their global. */
static int index_operands(struct build *b, struct etch_error *err)
{
    const Etch__Slice *slice = b->options->slice;

    for (size_t i = 0; i < slice->n_statements; i++)
        for (size_t k = 0; k < slice->statements[i]->n_operands; k++) {
            const Etch__Operand *o = slice->statements[i]->operands[k];
            uint32_t number = (uint32_t)b->operands.n, variable = etch_names_variable(b->names, o->name);

            if (variable == ETCH_NOWHERE || etch_names_locate(b->names, variable, o->location) < 0 ||
                !etch_array_push(&b->operands, o) ||
                !etch_index_add(&b->by_address, etch_hash(ETCH_HASH_START, &o->address, sizeof(o->address)), number) ||
                (o->global &&
                 !etch_index_add(&b->by_global, etch_hash(ETCH_HASH_START, &o->global, sizeof(o->global)), number)))
                return out_of_memory(err);
        }
    return 0;
}

/* The slice's operand whose instruction is at `address` of the file. */
static const Etch__Operand *operand_at(const struct build *b, uint64_t address, bool write)
{
    uint64_t hash = etch_hash(ETCH_HASH_START, &address, sizeof(address));
    const Etch__Operand *found = NULL;
    size_t probe = 0;
    uint32_t i;

    while ((i = etch_index_next(&b->by_address, hash, &probe)) < b->operands.n) {
        const Etch__Operand *o = b->operands.v[i];

        if (o->address == address && (!found || o->write == write))
            found = o;
    }
    return found;
}

/* What a watch is of: the operand of its site, the global at its address, or as the user wrote it. */
static const char *watch_name(struct build *b, const Etch__Watch *w)
{
    const Etch__Operand *operand = w->site ? operand_at(b, w->site, false) : NULL;
    uint64_t global = w->address - b->bias, hash = etch_hash(ETCH_HASH_START, &global, sizeof(global));
    size_t probe = 0;
    uint32_t i;

    if (operand)
        return operand->name;
    while ((i = etch_index_next(&b->by_global, hash, &probe)) < b->operands.n)
        if (b->operands.v[i]->global == global)
            return b->operands.v[i]->name;
    return w->name;
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

/* Accesses to overlapping memory are of one object: the one whose watch has the lowest number. */
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

static int list_watches(struct build *b, struct etch_error *err)
{
    const struct etch_recording *r = b->recording;

    for (size_t i = 0; i < r->watches.n; i++) {
        struct watched watched = {.watch = r->watches.v[i]};

        if (watched.watch->skipped)
            continue;
        watched.variable = etch_names_variable(b->names, watch_name(b, watched.watch));
        if (watched.variable == ETCH_NOWHERE || !etch_array_push(&b->watched, watched))
            return out_of_memory(err);
    }
    if (b->watched.n) {
        qsort(b->watched.v, b->watched.n, sizeof(*b->watched.v), by_watch_start);
        number_objects(b->watched.v, b->watched.n);
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

static void name_access(struct build *b, struct etch_run_access *a, const Etch__Access *from)
{
    const Etch__Operand *operand;
    const Etch__Image *image = image_at(b, from->ip);
    const struct watched *watched = watch_of(b, from->watch);

    if (use_image(b, image)) {
        uint64_t back = from->ip_is_after ? 1 : 0;

        a->place = place_of(b, image, from->ip - back);
        operand = operand_at(b, from->ip - b->bias, from->write);
        if (operand && !from->ip_is_after)
            a->operand = etch_names_variable(b->names, operand->name);
    } else if (from->caller && !from->direction_unknown) { /* the kernel's may be either */
        a->outside = true;
        a->place = place_of(b, image_at(b, from->caller), from->caller - 1);
    }
    if (watched) {
        a->watch = watched->variable;
        a->object = watched->object;
    }
    a->variable = a->watch != ETCH_NOWHERE ? a->watch : a->operand;
}

static int list_accesses(struct build *b, struct etch_error *err)
{
    const struct etch_recording *r = b->recording;

    for (size_t i = 0; i < r->accesses.n; i++) {
        const Etch__Access *from = &r->accesses.v[i];
        struct etch_run_access a = {.thread = thread_number(b, from->tid),
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
        if (!etch_array_push(&b->accesses, a))
            return out_of_memory(err);
    }
    if (b->accesses.n)
        qsort(b->accesses.v, b->accesses.n, sizeof(*b->accesses.v), by_thread);
    for (size_t i = 0; i < b->accesses.n; i++) {
        if (!etch_array_push(&b->from, (uint32_t)b->accesses.v[i].seq))
            return out_of_memory(err);
        b->accesses.v[i].seq = UINT64_MAX;
    }
    b->of_thread = calloc(b->run->threads.n + 1, sizeof(*b->of_thread));
    if (!b->of_thread)
        return out_of_memory(err);
    for (size_t i = b->accesses.n; i-- > 0;) {
        b->of_thread[b->accesses.v[i].thread].first = i;
        b->of_thread[b->accesses.v[i].thread].n++;
    }
    return 0;
}

/* ---- The walk ---- */

static struct etch_run_visit *visit_of(struct build *b, struct walk *w, uint32_t place)
{
    struct etch_run_visit visit = {.thread = w->thread, .place = place};

    if (place >= w->n_visit) {
        size_t n = b->names->places.n + 64;
        uint32_t *bigger = realloc(w->visit, n * sizeof(*bigger));

        if (!bigger)
            return NULL;
        memset(bigger + w->n_visit, 0, (n - w->n_visit) * sizeof(*bigger));
        w->visit = bigger;
        w->n_visit = n;
    }
    if (!w->visit[place]) {
        if (!etch_array_push(&b->run->visits, visit))
            return NULL;
        w->visit[place] = (uint32_t)b->run->visits.n;
    }
    return &b->run->visits.v[w->visit[place] - 1];
}

static bool is_failing(const struct build *b)
{
    bool hang;

    return b->options->verdict ? strcmp(b->options->verdict, "pass") != 0 : etch_recording_failed(b->recording, &hang);
}

/* Each visit has some room of its own, which it fills round and round. */
static void keep_visit(struct build *b, const struct etch_run_visit *visit)
{
    const struct etch_run_visit none = {0};
    size_t at = (size_t)(visit - b->run->visits.v) * HISTORY;

    while (!b->failed && b->run->history.n < at + HISTORY)
        b->failed = !etch_array_push(&b->run->history, none);
    if (!b->failed)
        b->run->history.v[at + visit->count % HISTORY] = *visit;
}

static void visit_place(struct build *b, struct walk *w, const struct etch_step *step, uint32_t place, bool begins,
                        uint32_t index)
{
    struct frame *frame = &w->frames[w->depth < DEPTH_MAX ? w->depth : DEPTH_MAX - 1];
    struct etch_run_visit *visit;

    if (w->pending_branch >= 0) {
        b->run->branches.v[w->pending_branch].to = place;
        w->pending_branch = -1;
    }
    if (frame->last == place && !begins)
        return;
    frame->last = place;
    visit = visit_of(b, w, place);
    if (!visit) {
        b->failed = true;
        return;
    }
    visit->count++;
    visit->seq = w->block << IN_BLOCK_BITS | (index & ((1u << IN_BLOCK_BITS) - 1));
    visit->lo = step->time.lo;
    visit->hi = step->time.hi;
    visit->depth = w->depth;
    if (b->failing)
        keep_visit(b, visit);
}

/* Accesses that no step can be at: by code without a recorder, or before what a ring still holds. */
static bool is_beyond_steps(struct build *b, const struct etch_run_access *a, const Etch__Access *from,
                            const struct etch_step *step)
{
    return b->recording->source == ETCH__SOURCE__SOURCE_SOFT &&
           (!is_program(b, image_at(b, from->ip - (from->ip_is_after ? 1 : 0))) || a->hi < step->time.lo);
}

static size_t accesses_end(const struct build *b, const struct walk *w)
{
    return w->thread < b->run->threads.n && b->of_thread ? b->of_thread[w->thread].first + b->of_thread[w->thread].n
                                                         : 0;
}

/* A debug register's hit is stamped when it is over, and may have begun any time since the one before. The recorder's
 * own stamps in between say more. */
static void tie_access(struct build *b, const struct walk *w, size_t access, const struct etch_step *step)
{
    struct etch_mark mark = etch_mark_of_step(step);
    struct etch_mark_tie tie = {.record = b->from.v[access], .mark_first = true};
    const struct etch_mark *last = b->marks.n ? &b->marks.v[b->marks.n - 1] : NULL;

    if (b->recording->source != ETCH__SOURCE__SOURCE_SOFT || !step->time.lo || b->accesses.v[access].hi < step->time.lo)
        return;
    mark.tid = w->tid;
    mark.hi = mark.lo;
    if (!last || last->tid != mark.tid || last->lo.tsc != mark.lo.tsc)
        b->failed |= !etch_array_push(&b->marks, mark);
    tie.mark = b->marks.n - 1;
    b->failed |= !b->failed && !etch_array_push(&b->ties, tie);
}

static void place_access(struct build *b, struct walk *w, size_t access, const struct etch_step *step, uint32_t index)
{
    struct etch_run_access *a = &b->accesses.v[access];

    tie_access(b, w, access, step);
    a->seq = w->block << IN_BLOCK_BITS | (index & ((1u << IN_BLOCK_BITS) - 1));
    a->depth = w->depth;
    a->handler = w->n_handlers > 0;
    a->call = w->depth < DEPTH_MAX ? w->frames[w->depth].call : 0;
    if (a->place != ETCH_NOWHERE && a->place < w->n_visit && w->visit[a->place])
        a->nth = b->run->visits.v[w->visit[a->place] - 1].count;
}

/* What code without a recorder did belongs to the call that led there. Those of a call that was not seen are passed
 * when their time is. */
static void take_outside(struct build *b, struct walk *w, const struct etch_step *step, uint32_t index)
{
    size_t end = accesses_end(b, w);

    for (; w->next_outside < end; w->next_outside++) {
        struct etch_run_access *a = &b->accesses.v[w->next_outside];

        if (!a->outside || a->hi < step->time.lo)
            continue;
        if (b->recording->accesses.v[b->from.v[w->next_outside]].caller != step->end)
            return;
        place_access(b, w, w->next_outside, step, index);
    }
}

/* Whether an access is of the next time that an instruction ran: it had made one of the kind already, to the same
 * memory or, where one trap tells of all that an instruction did, in another trap. */
static bool is_again(const struct build *b, const struct etch_run_access *a, const struct etch_run_access *next)
{
    bool apart = b->recording->source == ETCH__SOURCE__SOURCE_SOFT && next->hi > a->hi + ONE_TRAP;

    return (a->address == next->address || apart) && ((a->read && next->read) || (a->write && next->write));
}

static void take_accesses(struct build *b, struct walk *w, const struct etch_step *step, uint64_t ip, uint32_t index)
{
    size_t end = accesses_end(b, w), first = w->next_access;
    bool wrote = false;

    while (w->next_access < end) {
        struct etch_run_access *a = &b->accesses.v[w->next_access];
        const Etch__Access *from = &b->recording->accesses.v[b->from.v[w->next_access]];
        bool again = false;

        if (is_beyond_steps(b, a, from, step)) {
            w->next_access++;
            first = w->next_access;
            continue;
        }
        for (size_t i = first; i < w->next_access; i++)
            again |= is_again(b, &b->accesses.v[i], a);
        if (from->ip != (from->ip_is_after ? ip + step->sizes[index] : ip) || (wrote && a->read && !a->write) || again)
            return;
        wrote |= a->write;
        place_access(b, w, w->next_access, step, index);
        w->next_access++;
    }
}

static void note_branch(struct build *b, struct walk *w, const struct etch_step *step, uint32_t place)
{
    struct etch_run_branch branch = {
        .place = place, .address = step->last - b->bias, .taken = step->to != step->end, .to = ETCH_NOWHERE};
    uint64_t hash = etch_hash(branch.taken, &branch.address, sizeof(branch.address));
    size_t probe = 0;
    uint32_t i;

    w->pending_branch = -1;
    if (!b->names->places.v[place].branches)
        return; /* a recorder's own, say */
    while ((i = etch_index_next(&b->by_branch, hash, &probe)) != ETCH_INDEX_NONE)
        if (b->run->branches.v[i].address == branch.address && b->run->branches.v[i].taken == branch.taken)
            return;
    if (!etch_array_push(&b->run->branches, branch) ||
        !etch_index_add(&b->by_branch, hash, (uint32_t)b->run->branches.n - 1))
        b->failed = true;
    else
        w->pending_branch = (int)b->run->branches.n - 1;
}

/* Asked only where it matters: of a run that failed and yet ended by itself, whose last lines are what is known. */
static bool has_line(struct build *b, const struct etch_step *step)
{
    struct etch_location location;

    if (b->recording->failure || !is_failing(b))
        return false;
    etch_symbols_find(b->symbols, step->image, step->last, &location);
    return location.frame.line != 0;
}

/* Whether the thread's next access is one of the block's: nearly all blocks outside of the program have none. */
static bool has_access(const struct build *b, const struct walk *w, const struct etch_step *step)
{
    uint64_t ip =
        w->next_access < b->accesses.n ? b->recording->accesses.v[b->from.v[w->next_access]].ip : step->last + 1;

    return ip >= step->first && ip <= step->last;
}

/* Whether an access is one of the held steps'. */
static bool is_of_held(const struct build *b, const struct walk *w, size_t access)
{
    const Etch__Access *from = &b->recording->accesses.v[b->from.v[access]];
    uint64_t ip = from->ip - (from->ip_is_after ? 1 : 0);

    for (size_t i = 0; i < w->held.n; i++) {
        const struct etch_step *s = &w->held.v[i].step;

        if (s->kind == ETCH_STEP_BLOCK && ip >= s->first && ip < s->end && from->tsc >= s->time.lo)
            return true;
    }
    return false;
}

/* Whether it is the held steps' turn: the thread's next access is one of theirs. */
static bool is_held(const struct build *b, const struct walk *w)
{
    return !w->nesting && w->next_access < accesses_end(b, w) && is_of_held(b, w, w->next_access);
}

static void run_handler(struct build *b, struct walk *w);

static void walk_block(struct build *b, struct walk *w, const struct etch_step *step)
{
    bool program = use_image(b, step->image), look = program && b->options->slice;
    uint32_t place = ETCH_NOWHERE, index = 0;

    for (uint64_t ip = look || has_access(b, w, step) ? step->first : 0; ip;
         ip = etch_step_next_ip(step, ip), index++) {
        if (look) {
            place = table_place(&b->table, ip - b->bias);
            if (place != ETCH_NOWHERE)
                visit_place(b, w, step, place, b->table.begins[ip - b->bias - b->table.start], index);
        }
        if (w->held.n && is_held(b, w))
            run_handler(b, w);
        if (w->next_access < b->accesses.n)
            take_accesses(b, w, step, ip, index);
    }
    if (program && b->recording->source == ETCH__SOURCE__SOURCE_SOFT)
        take_outside(b, w, step, index);
    if (program && b->options->slice && step->branch == ETCH_BRANCH_CONDITIONAL && step->to && place != ETCH_NOWHERE)
        note_branch(b, w, step, place);
    w->last_ip = step->last;
    w->last_lo = step->time.lo;
    if (program && has_line(b, step))
        w->last_program_ip = step->last;
    else if (w->in_program && w->depth && w->depth < DEPTH_MAX &&
             is_program(b, image_at(b, w->frames[w->depth].return_address)))
        w->last_outside = w->frames[w->depth].return_address;
    w->in_program = program;
}

/* A thread's name is that of the first function of the program that it ran; the first thread's is main. */
static void name_thread(struct build *b, struct walk *w, const struct etch_step *step)
{
    struct etch_run_thread *t = &b->run->threads.v[w->thread];

    if (t->name || !is_program(b, step->image))
        return;
    t->name = w->tid == b->run->threads.v[0].tid ? strdup("main") : function_at(b, step->first);
}

static void note_create(struct build *b, struct walk *w, uint64_t target, uint64_t caller)
{
    struct etch_location location;

    etch_symbols_find(b->symbols, image_at(b, target), target, &location);
    if (!location.symbol || strncmp(location.symbol, "pthread_create", 14) != 0)
        return;
    if (!etch_array_push(&w->creates, place_of(b, image_at(b, caller), caller - 1)))
        b->failed = true;
}

static void return_to(struct walk *w, uint64_t address)
{
    for (uint32_t d = w->depth; d > 0; d--) {
        if (d < DEPTH_MAX && w->frames[d].return_address == address) {
            w->depth = d - 1;
            return;
        }
    }
}

static void follow_call(struct build *b, struct walk *w, const struct etch_step *step)
{
    if (step->branch == ETCH_BRANCH_CALL || step->branch == ETCH_BRANCH_CALL_INDIRECT) {
        if (step->to == step->end)
            return;
        w->depth++;
        w->calls++;
        if (w->depth < DEPTH_MAX)
            w->frames[w->depth] = (struct frame){step->end, ETCH_NOWHERE, w->calls};
        if (step->to && is_program(b, step->image))
            note_create(b, w, step->to, step->end);
    } else if (step->branch == ETCH_BRANCH_RETURN && step->to) {
        return_to(w, step->to);
    }
}

/* ---- Where a thread stood at its end ---- */

static const Etch__ThreadState *state_of(const Etch__Failure *f, uint32_t tid)
{
    for (size_t i = 0; f && i < f->n_threads; i++)
        if (f->threads[i]->tid == tid)
            return f->threads[i];
    return NULL;
}

static bool is_outside(struct build *b, const struct etch_run_thread *t)
{
    for (size_t i = 0; i < t->frames.n; i++)
        if (place_of(b, image_at(b, t->frames.v[i]), t->frames.v[i] - (i > 0)) != ETCH_NOWHERE)
            return false;
    return true;
}

static void stand(struct build *b, struct walk *w)
{
    struct etch_run_thread *t = &b->run->threads.v[w->thread];
    const Etch__Failure *f = b->recording->failure;
    uint64_t ip = f && f->tid == w->tid && f->ip ? f->ip : w->last_ip;

    if (!etch_array_push(&t->frames, ip))
        b->failed = true;
    for (uint32_t d = w->depth < DEPTH_MAX ? w->depth : DEPTH_MAX - 1; d > 0 && t->frames.n < 256; d--)
        b->failed |= !etch_array_push(&t->frames, w->frames[d].return_address);
    if (is_outside(b, t)) {
        /* A heap that was damaged is often noticed only when the program's own functions have returned. */
        bool died = f && f->tid == w->tid && f->kind == ETCH__FAILURE_KIND__FAILURE_SIGNAL;

        if (died && w->last_outside)
            b->failed |= !etch_array_push(&t->frames, w->last_outside);
        else if (!f && w->last_program_ip)
            b->failed |= !etch_array_push(&t->frames, w->last_program_ip + 1);
        b->run->inferred |= died && w->last_outside;
    }
}

/* The instruction that failed did not run to its end, so no step has it; the statement began all the same. */
static void visit_failure(struct build *b, struct walk *w)
{
    const Etch__Failure *f = b->recording->failure;
    struct etch_step step = {0};
    uint32_t place;

    if (!f || f->tid != w->tid || !f->ip || f->kind != ETCH__FAILURE_KIND__FAILURE_SIGNAL || !b->options->slice ||
        !use_image(b, image_at(b, f->ip)))
        return;
    place = table_place(&b->table, f->ip - b->bias);
    step.time.lo = step.time.hi = f->tsc;
    w->block++;
    if (place != ETCH_NOWHERE)
        visit_place(b, w, &step, place, false, 0);
}

/* The calls that the stack at the end has no more have returned, seen or not. */
static void leave_calls(struct walk *w, const Etch__ThreadState *state)
{
    for (; w->depth > 0; w->depth--)
        for (size_t i = 0; i < state->n_frames; i++)
            if (w->depth < DEPTH_MAX && state->frames[i] == w->frames[w->depth].return_address)
                return;
}

/* What a thread did behind the last step that is known of it: a recorder tells of a way only at its end. An access that
 * was seen proves that its statement ran. */
static void visit_rest(struct build *b, struct walk *w)
{
    size_t end = accesses_end(b, w);

    for (; w->next_access < end; w->next_access++) {
        struct etch_run_access *a = &b->accesses.v[w->next_access];
        const struct etch_step step = {.time = {w->last_lo, a->hi}, .cpu = UINT32_MAX};

        if (a->hi < w->last_lo || a->outside || a->seq != UINT64_MAX || a->place == ETCH_NOWHERE ||
            !b->names->places.v[a->place].statement)
            continue;
        w->block++;
        visit_place(b, w, &step, a->place, false, 0);
        place_access(b, w, w->next_access, &step, 0);
    }
}

/* Whether the steps lead to where the thread stood. The functions in which it may have done more are noted where not.
 */
static void check_end(struct build *b, struct walk *w, const Etch__ThreadState *state)
{
    struct etch_run_thread *t = &b->run->threads.v[w->thread];
    size_t i = 0;

    while (i < state->n_frames && !is_program(b, image_at(b, state->frames[i] - (i > 0))))
        i++;
    if (i == state->n_frames || w->over || w->last_ip == state->frames[i])
        return;
    t->unseen = function_at(b, w->last_ip);
    b->failed |= !t->unseen && !(t->unseen = strdup(""));
}

static void go_to_end(struct build *b, struct walk *w)
{
    const Etch__ThreadState *state = state_of(b->recording->failure, w->tid);

    if (b->recording->source != ETCH__SOURCE__SOURCE_SOFT || !state || !state->n_frames || !b->options->slice)
        return;
    check_end(b, w, state);
    leave_calls(w, state);
    visit_rest(b, w);
}

static void end_walk(struct build *b)
{
    struct walk *w = b->walk;
    uint32_t child = 0;

    if (!w->tid)
        return;
    if (w->held.n)
        run_handler(b, w);
    go_to_end(b, w);
    visit_failure(b, w);
    stand(b, w);
    for (size_t i = 0; i < b->run->threads.n; i++) {
        struct etch_run_thread *t = &b->run->threads.v[i];

        if (t->parent == w->thread && child < w->creates.n)
            t->made_at = w->creates.v[child++];
    }
    b->run->threads.v[w->thread].lost = w->lost;
    b->run->lost |= w->lost;
    free(w->visit);
    etch_array_free(&w->creates);
    etch_array_free(&w->held_sizes);
    memset(w, 0, sizeof(*w));
}

static void begin_walk(struct build *b, const struct etch_step *step)
{
    struct walk *w = b->walk;

    w->tid = step->tid;
    w->thread = thread_number(b, step->tid);
    w->pending_branch = -1;
    w->frames[0] = (struct frame){0, ETCH_NOWHERE, w->calls = 1};
    if (b->of_thread && w->thread != ETCH_NOWHERE)
        w->next_access = w->next_outside = b->of_thread[w->thread].first;
}

static void enter_handler(struct walk *w, uint64_t resume)
{
    if (w->n_handlers == HANDLERS_MAX || !resume)
        return;
    w->handlers[w->n_handlers++] = (struct handler){resume, w->depth};
    w->depth++;
    w->calls++;
    if (w->depth < DEPTH_MAX)
        w->frames[w->depth] = (struct frame){0, ETCH_NOWHERE, w->calls};
}

static bool is_function(struct build *b, uint64_t ip)
{
    struct etch_location location;
    const Etch__Image *image = image_at(b, ip);

    if (!is_program(b, image))
        return false;
    etch_symbols_find(b->symbols, image, ip, &location);
    return location.symbol && location.offset == 0;
}

/* Tracing begins again: behind a system call, where a handler's end leads back to, or in a handler that came instead.
 */
static void begin_again(struct build *b, struct walk *w, uint64_t ip)
{
    uint32_t n = w->n_handlers;

    while (n > 0 && w->handlers[n - 1].resume != ip)
        n--;
    if (n > 0) {
        w->n_handlers = n - 1;
        w->depth = w->handlers[n - 1].depth;
    } else if (w->expected && ip != w->expected && is_function(b, ip)) {
        enter_handler(w, w->expected);
    } else if (!w->interrupted) {
        return_to(w, ip); /* what was called was not traced */
    }
    w->interrupted = false;
    w->expected = 0;
}

/* ---- Signal handlers, as a recorder tells of them ---- */

static void take_step(struct build *b, struct walk *w, const struct etch_step *step);

static void leave_handler(struct walk *w)
{
    if (w->n_handlers)
        w->depth = w->handlers[--w->n_handlers].depth;
}

/* The held steps, in their place. A handler that is not complete goes on with the steps that follow. */
static void run_handler(struct build *b, struct walk *w)
{
    ETCH_ARRAY(struct held) held = {.v = w->held.v, .n = w->held.n};

    memset(&w->held, 0, sizeof(w->held));
    enter_handler(w, UINT64_MAX);
    for (size_t i = 0; i < held.n; i++) {
        struct etch_step step = held.v[i].step;

        if (step.kind == ETCH_STEP_BLOCK)
            step.sizes = w->held_sizes.v + held.v[i].sizes;
        take_step(b, w, &step);
    }
    if (!w->nesting)
        leave_handler(w);
    etch_array_free(&held);
    w->held_sizes.n = 0;
}

static void hold(struct build *b, struct walk *w, const struct etch_step *step)
{
    struct held held = {*step, w->held_sizes.n};

    for (uint32_t i = 0; step->kind == ETCH_STEP_BLOCK && i < step->count; i++)
        b->failed |= !etch_array_push(&w->held_sizes, step->sizes[i]);
    b->failed |= !etch_array_push(&w->held, held);
}

/* A function that begins where nothing was called is a signal handler. It ends with the return to the outside that goes
 * with its beginning. Returns whether the step is one of a handler's. */
static bool take_handler(struct build *b, struct walk *w, const struct etch_step *step)
{
    bool enters = step->kind == ETCH_STEP_BEGIN && step->ip && is_function(b, step->ip);
    bool called = w->last_kind != ETCH_STEP_BLOCK && w->last_kind != ETCH_STEP_BEGIN;
    bool leaves = step->kind == ETCH_STEP_END && !called && w->last_branch == ETCH_BRANCH_RETURN;
    bool begins = !w->nesting && enters && !called && w->block;

    if (b->recording->source != ETCH__SOURCE__SOURCE_SOFT || (!w->nesting && !begins))
        return false;
    if (begins && w->held.n)
        run_handler(b, w); /* the one before had no access that would say more */
    w->nesting += enters;
    if (begins || w->held.n)
        hold(b, w, step);
    else
        take_step(b, w, step);
    w->nesting -= leaves;
    if (w->held.n > HELD_MAX)
        run_handler(b, w);
    else if (!w->nesting && !w->held.n)
        leave_handler(w);
    return true;
}

/* Whether none of the accesses to come is of the held steps: then nothing says where they belong. */
static bool is_nowhere(const struct build *b, const struct walk *w)
{
    for (size_t i = w->next_access; i < accesses_end(b, w); i++)
        if (is_of_held(b, w, i))
            return false;
    return true;
}

static void take_step(struct build *b, struct walk *w, const struct etch_step *step)
{
    const Etch__Failure *f = b->recording->failure;

    if (step->kind == ETCH_STEP_LOSS) {
        w->lost = true;
    } else if (step->kind == ETCH_STEP_INTERRUPT && f && f->tid == step->tid && f->ip == step->ip &&
               step->time.hi >= f->tsc) {
        w->last_ip = step->ip;
        w->over = true; /* what a handler did then is not how it came to fail */
    } else if (step->kind == ETCH_STEP_BLOCK) {
        w->block++;
        name_thread(b, w, step);
        if (w->interrupted)
            begin_again(b, w, step->first);
        walk_block(b, w, step);
        follow_call(b, w, step);
        w->expected = step->branch == ETCH_BRANCH_FAR ? step->end : 0;
    } else if (step->ip) {
        if (step->kind == ETCH_STEP_BEGIN) {
            begin_again(b, w, step->ip);
        } else if (step->kind == ETCH_STEP_INTERRUPT) {
            w->interrupted = true;
            w->expected = step->ip;
        }
        w->last_ip = step->ip;
    }
}

static int on_step(void *context, const struct etch_step *step)
{
    struct build *b = context;
    struct walk *w = b->walk;

    if (b->pid && step->pid && b->pid != step->pid)
        return 0;
    if (w->tid != step->tid) {
        end_walk(b);
        begin_walk(b, step);
    }
    if (w->thread == ETCH_NOWHERE || b->failed)
        return -1;
    if (w->over)
        return 0;
    if (!take_handler(b, w, step)) {
        if (w->held.n && is_nowhere(b, w))
            run_handler(b, w);
        take_step(b, w, step);
    }
    w->last_kind = step->kind;
    if (step->kind == ETCH_STEP_BLOCK)
        w->last_branch = step->branch;
    return 0;
}

static int walk_steps(struct build *b, struct etch_error *err)
{
    struct etch_steps_options options = {.jobs = b->options->jobs};
    int status;

    if (!b->recording->streams.n)
        return 0;
    b->failing = is_failing(b);
    b->walk = calloc(1, sizeof(*b->walk));
    if (!b->walk)
        return out_of_memory(err);
    status = etch_steps(b->recording, &options, on_step, b, NULL, err);
    if (b->failed)
        status = out_of_memory(err);
    if (status == 0) {
        end_walk(b);
        b->run->flow = true;
    }
    free(b->walk->visit);
    etch_array_free(&b->walk->creates);
    etch_array_free(&b->walk->held);
    etch_array_free(&b->walk->held_sizes);
    free(b->walk);
    return status;
}

/* ---- How it ended ---- */

/* The nearest frame within the program, as a place. */
static uint32_t frame_place(struct build *b, const uint64_t *frames, size_t n, uint64_t *outside)
{
    *outside = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t place = place_of(b, image_at(b, frames[i]), frames[i] - (i > 0));

        if (place != ETCH_NOWHERE)
            return place;
        *outside = frames[i] - (i > 0);
    }
    return ETCH_NOWHERE;
}

static void stack_places(struct build *b, struct etch_run_thread *t)
{
    for (size_t i = 0; i < t->frames.n; i++) {
        uint32_t place = place_of(b, image_at(b, t->frames.v[i]), t->frames.v[i] - (i > 0));

        if (place != ETCH_NOWHERE)
            b->failed |= !etch_array_push(&t->stack, place);
    }
}

static void place_threads(struct build *b)
{
    for (size_t i = 0; i < b->run->threads.n; i++) {
        struct etch_run_thread *t = &b->run->threads.v[i];
        const Etch__ThreadState *state = state_of(b->recording->failure, t->tid);
        bool ended = false;
        uint64_t outside;

        if (state && state->n_frames)
            t->frames.n = 0;
        for (size_t k = 0; state && k < state->n_frames; k++)
            b->failed |= !etch_array_push(&t->frames, state->frames[k]);
        for (size_t k = 0; k < b->recording->threads.n; k++)
            ended |= b->recording->threads.v[k]->tid == t->tid && b->recording->threads.v[k]->end_tsc &&
                     (!b->recording->failure || !b->recording->failure->tsc ||
                      b->recording->threads.v[k]->end_tsc < b->recording->failure->tsc);
        if (ended && !state && t->tid != b->run->failure->tid)
            continue;
        t->wait_place = frame_place(b, t->frames.v, t->frames.n, &outside);
        stack_places(b, t);
        if (outside)
            t->wait_in = function_at(b, outside);
        if (!t->name && t->frames.n)
            t->name = i == 0 ? strdup("main") : NULL;
    }
}

static bool is_joining(const struct build *b, const struct etch_run_thread *t)
{
    bool joining = false;

    for (size_t i = 0; i < t->frames.n && i < 8 && !joining; i++) {
        char *name = function_at((struct build *)(uintptr_t)b, t->frames.v[i] - (i > 0));

        joining = name && (strstr(name, "pthread_join") || strstr(name, "pthread_clockjoin") ||
                           strstr(name, "pthread_timedjoin"));
        free(name);
    }
    return joining;
}

/* A thread that only waits for another's end has no part in a hang, unless all do. */
static bool has_part(const struct build *b, size_t i)
{
    const struct etch_run_thread *t = &b->run->threads.v[i];

    if (t->wait_place == ETCH_NOWHERE)
        return false;
    if (!is_joining(b, t))
        return true;
    for (size_t k = 0; k < b->run->threads.n; k++)
        if (b->run->threads.v[k].wait_place != ETCH_NOWHERE && !is_joining(b, &b->run->threads.v[k]))
            return false;
    return true;
}

static void add_state(Etch__Failure *f, const struct etch_run_thread *t, bool *failed)
{
    Etch__ThreadState **bigger = realloc(f->threads, (f->n_threads + 1) * sizeof(*bigger)), *state;

    if (bigger)
        f->threads = bigger;
    state = bigger ? malloc(sizeof(*state)) : NULL;
    if (!state) {
        *failed = true;
        return;
    }
    etch__thread_state__init(state);
    state->tid = t->tid;
    state->name = strdup(t->name ? t->name : "");
    state->frames = malloc((t->frames.n + 1) * sizeof(*state->frames));
    if (state->frames)
        memcpy(state->frames, t->frames.v, t->frames.n * sizeof(*state->frames));
    state->n_frames = state->frames ? t->frames.n : 0;
    f->threads[f->n_threads++] = state;
}

static Etch__Failure *copy_failure(const Etch__Failure *from)
{
    size_t size = etch__failure__get_packed_size(from);
    uint8_t *bytes = malloc(size + 1);
    Etch__Failure *copy = bytes ? etch__failure__unpack(NULL, etch__failure__pack(from, bytes), bytes) : NULL;

    free(bytes);
    return copy;
}

static Etch__Failure *own_failure(const struct build *b, bool hang)
{
    Etch__Failure none = ETCH__FAILURE__INIT, *f;

    f = copy_failure(b->recording->failure ? b->recording->failure : &none);
    if (f && hang) {
        f->kind = ETCH__FAILURE_KIND__FAILURE_HANG;
    } else if (f && f->kind == ETCH__FAILURE_KIND__FAILURE_NONE) {
        f->code = (int32_t)exit_status(b->recording);
        f->kind = f->code ? ETCH__FAILURE_KIND__FAILURE_EXIT : ETCH__FAILURE_KIND__FAILURE_CHECK;
    }
    return f;
}

static int by_text(const void *x, const void *y)
{
    return strcmp(*(char *const *)x, *(char *const *)y);
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

/* Who called there: the nearest functions of the program, each named once, so that recursion makes no difference. */
static void add_callers(struct build *b, const struct etch_run_thread *t, char *text, size_t size)
{
    const char *last = b->names->places.v[t->wait_place].function;
    bool there = false;

    for (size_t i = 0, n = 0; i < t->frames.n && n < BUCKET_CALLERS; i++) {
        uint32_t place = place_of(b, image_at(b, t->frames.v[i]), t->frames.v[i] - (i > 0));
        size_t length = strlen(text);

        if (place == ETCH_NOWHERE)
            continue;
        if (there && strcmp(b->names->places.v[place].function, last) != 0) {
            last = b->names->places.v[place].function;
            snprintf(text + length, size - length, " < %s", last);
            n++;
        }
        there |= place == t->wait_place;
    }
}

static size_t name_failure(const Etch__Failure *f, char *text, size_t size)
{
    const char *signal = f->kind == ETCH__FAILURE_KIND__FAILURE_SIGNAL ? sigabbrev_np((int)f->signal) : NULL;

    if (f->kind == ETCH__FAILURE_KIND__FAILURE_HANG)
        return (size_t)snprintf(text, size, "hang");
    if (f->kind == ETCH__FAILURE_KIND__FAILURE_EXIT)
        return (size_t)snprintf(text, size, "exit status %d", f->code);
    if (f->kind == ETCH__FAILURE_KIND__FAILURE_CHECK)
        return (size_t)snprintf(text, size, "the check failed");
    return signal ? (size_t)snprintf(text, size, "SIG%s", signal)
                  : (size_t)snprintf(text, size, "signal %u", f->signal);
}

/* "SIGSEGV, consumer bug.c:18 < main"; for a hang where all its threads stand. */
static char *bucket_of(struct build *b, bool hang)
{
    ETCH_ARRAY(char *) parts = {0};
    const Etch__Failure *f = b->run->failure;
    char text[4096], callers[1024], *part;
    size_t length = name_failure(f, text, sizeof(text));

    for (size_t i = 0; i < b->run->threads.n; i++) {
        const struct etch_run_thread *t = &b->run->threads.v[i];
        uint32_t at = t->wait_place;

        if (at == ETCH_NOWHERE || (hang ? !has_part(b, i) : i != b->run->failing_thread))
            continue;
        snprintf(callers, sizeof(callers), ", %s %s:%u", b->names->places.v[at].function,
                 base_name(b->names->places.v[at].file), b->names->places.v[at].line);
        if (!hang)
            add_callers(b, t, callers, sizeof(callers));
        part = strdup(callers);
        if (part && !etch_array_push(&parts, part))
            free(part);
    }
    if (parts.n)
        qsort(parts.v, parts.n, sizeof(*parts.v), by_text);
    for (size_t i = 0; i < parts.n; i++) {
        if (length < sizeof(text))
            length += (size_t)snprintf(text + length, sizeof(text) - length, "%s", parts.v[i]);
        free(parts.v[i]);
    }
    etch_array_free(&parts);
    return strdup(text);
}

static int conclude(struct build *b, struct etch_error *err)
{
    const char *verdict = b->options->verdict;
    struct etch_run *run = b->run;
    bool hang;

    etch_recording_failed(b->recording, &hang);
    run->failing = is_failing(b);
    if (verdict)
        hang = strcmp(verdict, "hang") == 0;
    run->failing_place = run->failing_thread = ETCH_NOWHERE;
    if (!run->failing)
        return 0;
    run->failure = own_failure(b, hang);
    if (!run->failure)
        return out_of_memory(err);
    if (!run->failure->tid && !hang && run->failure->kind != ETCH__FAILURE_KIND__FAILURE_SIGNAL && run->threads.n)
        run->failure->tid = run->threads.v[0].tid; /* it ended by itself: by its first thread */
    place_threads(b);
    for (size_t i = 0; i < run->threads.n; i++) {
        struct etch_run_thread *t = &run->threads.v[i];
        bool here = hang ? has_part(b, i) : t->tid == run->failure->tid;

        t->part = here;
        if (here && run->failing_thread == ETCH_NOWHERE && t->wait_place != ETCH_NOWHERE) {
            run->failing_thread = (uint32_t)i;
            run->failing_place = t->wait_place;
        }
        if (here && !state_of(run->failure, t->tid))
            add_state(run->failure, t, &b->failed);
    }
    run->bucket = bucket_of(b, hang);
    return run->bucket && !b->failed ? 0 : out_of_memory(err);
}

/* ---- A pointer to nothing ---- */

static bool reads_operand(const Etch__Statement *s, const char *name, size_t length)
{
    for (size_t i = 0; i < s->n_operands; i++)
        if (!s->operands[i]->write && strlen(s->operands[i]->name) == length &&
            strncmp(s->operands[i]->name, name, length) == 0)
            return true;
    return false;
}

/* Of e->data[0] the pointer is e->data where the statement reads that, else e: data is then an array within. Returns
 * the length of the pointer's name, 0 where there is none. */
static size_t pointer_length(const Etch__Statement *s, const char *name)
{
    size_t length = strlen(name);

    while (length > 1) {
        size_t depth = 0, at = length - 1;

        if (name[at] == ']') {
            for (; at > 0; at--) {
                depth += name[at] == ']';
                if (name[at] == '[' && --depth == 0)
                    break;
            }
        } else {
            while (at > 0 && name[at] != '.' && name[at] != '>')
                at--;
            at -= at > 0 && name[at] == '>' && name[at - 1] == '-';
        }
        length = at;
        if (length && reads_operand(s, name, length))
            return length;
    }
    return 0;
}

/* The bytes of the instruction at `ip`, as many as there may be. */
static const uint8_t *instruction_at(const struct etch_code *code, const struct build *b, uint64_t ip, size_t *size)
{
    const struct etch_code_space *space = etch_code_space_of(code, b->pid);
    const char *why;
    const struct etch_code_section *section = etch_code_find(space, ip, 0, etch_code_space_changes(space), &why);

    *size = section && section->bytes && ip - section->start < section->size
                ? (size_t)(section->size - (ip - section->start))
                : 0;
    return *size ? section->bytes + (ip - section->start) : NULL;
}

static bool is_null(struct build *b, const Etch__ThreadState *state)
{
    const Etch__Failure *f = b->run->failure;
    struct etch_error ignored;
    struct etch_code *code;
    const uint8_t *bytes;
    uint64_t pointer = 1;
    size_t size;

    if (etch_code_open(&code, b->recording, NULL, &ignored) < 0)
        return false;
    bytes = instruction_at(code, b, f->ip, &size);
    if (!bytes || !etch_value_pointer(bytes, size, f->ip, state->registers, f->fault_address, &pointer))
        pointer = 1;
    etch_code_free(code);
    return pointer == 0;
}

/* The failing statement's last accesses belong to its last visit, also where the steps end a little before them. */
static void place_last(struct build *b)
{
    const struct etch_run *run = b->run;
    const struct etch_run_visit *visit = etch_run_visited_by(run, run->failing_thread, run->failing_place);

    for (size_t i = b->accesses.n; visit && i-- > 0;) {
        struct etch_run_access *a = &b->accesses.v[i];

        if (a->thread != run->failing_thread)
            continue;
        if (a->place != run->failing_place || a->nth)
            return;
        a->nth = visit->count;
        a->seq = visit->seq;
        a->depth = visit->depth;
    }
}

/* As if it had been seen: a read of the failing statement's, its thread's last access. */
static int add_last(struct build *b, struct etch_run_access a, struct etch_error *err)
{
    const struct etch_run *run = b->run;
    const struct etch_run_visit *visit = etch_run_visited_by(run, run->failing_thread, run->failing_place);

    a.thread = run->failing_thread;
    a.place = run->failing_place;
    a.hi = run->failure->tsc;
    a.event = ETCH_NOWHERE;
    a.read = true;
    a.nth = visit ? visit->count : 0;
    a.seq = visit ? visit->seq : UINT64_MAX;
    a.depth = visit ? visit->depth : 0;
    for (size_t i = 0; i < run->accesses.n; i++) {
        const struct etch_run_access *seen = &run->accesses.v[i];

        if (seen->thread == a.thread && seen->place == a.place && seen->operand == a.operand && seen->nth == a.nth)
            return 0;
    }
    return etch_array_push(&b->run->accesses, a) ? 0 : out_of_memory(err);
}

static int add_null(struct build *b, struct etch_error *err)
{
    const struct etch_run_access a = {.operand = b->run->null_operand,
                                      .watch = ETCH_NOWHERE,
                                      .variable = b->run->null_operand,
                                      .object = ETCH_NOWHERE,
                                      .known = true,
                                      .crash = true};

    return add_last(b, a, err);
}

/* The watch whose location the failing instruction's memory operand is at, by the registers before it; NULL: none. */
static const struct watched *fatal_watch(struct build *b, const Etch__ThreadState *state)
{
    const struct watched *found = NULL;
    struct etch_error ignored;
    struct etch_code *code;
    const uint8_t *bytes;
    uint64_t pointer;
    size_t size;

    if (etch_code_open(&code, b->recording, NULL, &ignored) < 0)
        return NULL;
    bytes = instruction_at(code, b, b->run->failure->ip, &size);
    for (size_t i = 0; bytes && !found && i < b->watched.n; i++)
        if (etch_value_pointer(bytes, size, b->run->failure->ip, state->registers, b->watched.v[i].watch->address,
                               &pointer))
            found = &b->watched.v[i];
    etch_code_free(code);
    return found;
}

/* An instruction that fails after it has read (a division) makes no debug register trap. It read all the same. */
static int add_fatal(struct build *b, struct etch_error *err)
{
    const Etch__Failure *f = b->run->failure;
    const Etch__ThreadState *state = f ? state_of(f, f->tid) : NULL;
    const struct watched *watched;
    const Etch__Operand *operand;
    struct etch_run_access a = {.watch = ETCH_NOWHERE};

    if (b->recording->source == ETCH__SOURCE__SOURCE_VPT || !state || f->signal != SIGFPE || f->code == SI_USER ||
        state->n_registers < 24 || !use_image(b, image_at(b, f->ip)) || b->run->failing_place == ETCH_NOWHERE)
        return 0;
    operand = operand_at(b, f->ip - b->bias, false);
    watched = operand ? fatal_watch(b, state) : NULL;
    if (!watched)
        return 0;
    a.operand = etch_names_variable(b->names, operand->name);
    a.watch = a.variable = watched->variable;
    a.object = watched->object;
    a.address = watched->watch->address;
    a.size = watched->watch->size;
    return add_last(b, a, err);
}

/* That the failing instruction followed a null pointer is known from the crash itself, without a watch. */
static void find_null(struct build *b)
{
    const Etch__Failure *f = b->run->failure;
    const Etch__ThreadState *state = f ? state_of(f, f->tid) : NULL;
    const Etch__Operand *operand;
    const Etch__Slice *slice = b->options->slice;
    size_t length = 0;
    char name[256];

    if (!state || f->signal != SIGSEGV || f->code == SI_USER || state->n_registers < 24 ||
        !use_image(b, image_at(b, f->ip)) || b->run->failing_place == ETCH_NOWHERE)
        return;
    operand = operand_at(b, f->ip - b->bias, false);
    for (size_t i = 0; operand && !length && i < slice->n_statements; i++)
        for (size_t k = 0; k < slice->statements[i]->n_operands; k++)
            if (slice->statements[i]->operands[k] == operand)
                length = pointer_length(slice->statements[i], operand->name);
    if (!length || length >= sizeof(name) || !is_null(b, state))
        return;
    memcpy(name, operand->name, length);
    name[length] = '\0';
    b->run->null_operand = b->run->null_variable = etch_names_variable(b->names, name);
}

/* ---- All of it ---- */

struct sorted {
    uint64_t at;
    struct etch_run_access access;
};

static int by_position(const void *x, const void *y)
{
    const struct sorted *a = x, *b = y;

    return a->at < b->at ? -1 : a->at > b->at;
}

/* Into the order's sequence; accesses of which the order knows nothing come last, by thread. */
static int sort_accesses(struct build *b, struct etch_error *err)
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
    return good ? 0 : out_of_memory(err);
}

/* Whether there was no room for some of a variable's locations: an array's elements, say. */
static bool is_left_out(struct build *b, uint32_t variable)
{
    for (size_t i = 0; i < b->recording->watches.n; i++) {
        const Etch__Watch *w = b->recording->watches.v[i];

        if (w->skipped && w->emulated && w->site && etch_names_variable(b->names, watch_name(b, w)) == variable)
            return true;
    }
    return false;
}

/* Which variables were watched: every access to them is known, from the time their place became known. */
static int list_watched(struct build *b, struct etch_error *err)
{
    for (size_t i = 0; i < b->watched.n; i++) {
        const Etch__Watch *w = b->watched.v[i].watch;

        if (w->reads && w->writes && !is_left_out(b, b->watched.v[i].variable) &&
            (!etch_array_push(&b->run->watched_operands, b->watched.v[i].variable) ||
             !etch_array_push(&b->run->watched, b->watched.v[i].variable)))
            return out_of_memory(err);
        if (w->site && !w->emulated &&
            (!etch_array_push(&b->run->sited_operands, b->watched.v[i].variable) ||
             !etch_array_push(&b->run->sited, b->watched.v[i].variable)))
            return out_of_memory(err);
    }
    return 0;
}

/* By thread; the recording has them in the order of each thread already. */
static int list_syncs(struct build *b, struct etch_error *err)
{
    const struct etch_recording *r = b->recording;

    for (uint32_t t = 0; t < b->run->threads.n; t++)
        for (size_t i = 0; i < r->syncs.n; i++) {
            const Etch__Sync *from = &r->syncs.v[i];
            struct etch_run_sync sync = {.thread = t,
                                         .place = ETCH_NOWHERE,
                                         .op = from->op,
                                         .object = from->object,
                                         .other = from->other,
                                         .result = from->result,
                                         .tsc = from->tsc,
                                         .event = ETCH_NOWHERE};

            if (from->tid != b->run->threads.v[t].tid)
                continue;
            if (from->caller)
                sync.place = place_of(b, image_at(b, from->caller), from->caller - 1);
            if (b->run->order)
                sync.event = etch_run_order_event(b->run->order, i, 1);
            if (!etch_array_push(&b->run->syncs, sync))
                return out_of_memory(err);
        }
    b->run->synced = r->syncs.n && !b->run->lost;
    return 0;
}

static int copy_losses(struct build *b, struct etch_error *err)
{
    for (size_t i = 0; i < b->recording->losses.n; i++) {
        const Etch__Loss *from = b->recording->losses.v[i];
        size_t size = etch__loss__get_packed_size(from);
        uint8_t *bytes = malloc(size + 1);
        Etch__Loss *copy = bytes ? etch__loss__unpack(NULL, etch__loss__pack(from, bytes), bytes) : NULL;

        free(bytes);
        if (!copy || !etch_array_push(&b->run->losses, copy)) {
            if (copy)
                etch__loss__free_unpacked(copy, NULL);
            return out_of_memory(err);
        }
    }
    b->run->lost |= b->recording->losses.n > 0 || b->recording->cut || b->recording->damaged;
    return 0;
}

bool etch_recording_runs(struct etch_recording *recording, const ProtobufCBinaryData *build_id)
{
    const struct etch_run_options options = {.build_id = build_id};
    struct build b = {.recording = recording, .options = &options};
    const ProtobufCBinaryData *theirs = recording->program ? &recording->program->build_id : NULL;

    if (!theirs || !build_id->len || !theirs->len || choose_process(&b))
        return true;
    return build_id->len == theirs->len && memcmp(build_id->data, theirs->data, theirs->len) == 0;
}

static int check_program(struct build *b, struct etch_error *err)
{
    const Etch__Program *p = b->recording->program;
    const ProtobufCBinaryData *id;

    if (!p) {
        etch_error_set(err, "%s does not say which program ran", b->recording->path);
        return etch_error_advise(err, "a bundle made by etch record");
    }
    id = wanted_id(b);
    if (choose_process(b) || !id->len || !p->build_id.len ||
        (id->len == p->build_id.len && memcmp(id->data, p->build_id.data, id->len) == 0))
        return 0;
    etch_error_set(err, "%s is of another build of the program, or of another program", b->recording->path);
    return etch_error_advise(err, "bundles and program of one build; etch info says what is in a bundle");
}

/* The program's mapping must be known before an access or a frame is looked up. */
static void find_program(struct build *b)
{
    for (size_t i = 0; i < b->recording->images.n; i++)
        if (is_program(b, b->recording->images.v[i]) && b->recording->images.v[i]->prot & 4)
            use_image(b, b->recording->images.v[i]);
}

/* What debug registers saw needs the code to say which instruction it was, and what it did. */
static int settle_accesses(struct build *b, struct etch_error *err)
{
    struct etch_code *code;
    int status;

    if (b->recording->source == ETCH__SOURCE__SOURCE_VPT)
        return etch_accesses_doubt(b->recording, err);
    if (!b->recording->accesses.n)
        return 0;
    if (etch_code_open(&code, b->recording, NULL, err) < 0)
        return -1;
    status = etch_accesses_settle(b->recording, code, b->symbols, err);
    etch_code_free(code);
    return status;
}

/* Without control flow a thread is known by what pthread_create was given. */
static void name_threads(struct build *b)
{
    const struct etch_recording *r = b->recording;

    for (size_t i = 0; i < b->run->threads.n; i++) {
        struct etch_run_thread *t = &b->run->threads.v[i];

        for (size_t k = 0; !t->name && k < r->syncs.n; k++)
            if (r->syncs.v[k].tid == t->tid && r->syncs.v[k].op == ETCH__SYNC_OP__SYNC_THREAD_START)
                t->name = function_at(b, r->syncs.v[k].other);
        if (!t->name && i == 0)
            t->name = strdup("main");
    }
}

static int fill(struct build *b, struct etch_error *err)
{
    struct etch_timeline_options options = {0};

    if (check_program(b, err) < 0)
        return -1;
    find_program(b);
    etch_unwind_failure(b->recording, b->symbols);
    number_threads(b);
    if (b->options->slice && settle_accesses(b, err) < 0)
        return -1;
    if (b->options->slice &&
        (make_table(b, err) < 0 || index_operands(b, err) < 0 || list_watches(b, err) < 0 || list_accesses(b, err) < 0))
        return -1;
    if (walk_steps(b, err) < 0 || conclude(b, err) < 0 || copy_losses(b, err) < 0)
        return -1;
    if (!b->options->slice)
        return 0;
    if (b->run->failing && b->run->flow)
        place_last(b);
    options.marks = b->marks.v;
    options.n_marks = b->marks.n;
    options.ties = b->ties.v;
    options.n_ties = b->ties.n;
    if (b->accesses.n + b->recording->syncs.n && etch_run_order_build(&b->run->order, b->recording, &options, err) < 0)
        return -1;
    if (sort_accesses(b, err) < 0 || list_watched(b, err) < 0 || list_syncs(b, err) < 0)
        return -1;
    find_null(b);
    if ((b->run->null_operand != ETCH_NOWHERE && add_null(b, err) < 0) || add_fatal(b, err) < 0)
        return -1;
    if (!b->run->flow) {
        name_threads(b);
        if (etch_run_see(b->run, b->names) < 0)
            return out_of_memory(err);
    }
    return etch_run_index(b->run) < 0 ? out_of_memory(err) : 0;
}

int etch_run_build(struct etch_run **run, struct etch_names *names, struct etch_recording *recording,
                   const struct etch_run_options *options, struct etch_error *err)
{
    static const struct etch_symbols_options symbols_options = {0};
    struct build b = {.names = names, .recording = recording, .options = options};
    int status = -1;

    b.run = calloc(1, sizeof(*b.run));
    b.symbols = etch_symbols_new(&symbols_options);
    if (b.run && b.symbols && (b.run->name = strdup(recording->path))) {
        b.run->source = recording->source;
        b.run->cut = recording->cut;
        b.run->names = options->slice ? names : NULL;
        b.run->null_operand = b.run->null_variable = ETCH_NOWHERE;
        b.run->key = recording->program ? recording->program->start_unix_ns : 0;
        status = fill(&b, err);
    } else {
        out_of_memory(err);
    }
    if (status < 0) {
        etch_run_free(b.run);
        b.run = NULL;
    }
    *run = b.run;
    etch_symbols_free(b.symbols);
    etch_array_free(&b.accesses);
    etch_array_free(&b.from);
    etch_array_free(&b.marks);
    etch_array_free(&b.ties);
    etch_array_free(&b.operands);
    etch_array_free(&b.watched);
    etch_index_release(&b.by_address);
    etch_index_release(&b.by_global);
    etch_index_release(&b.by_branch);
    free(b.of_thread);
    free(b.table.place);
    free(b.table.begins);
    return status;
}
