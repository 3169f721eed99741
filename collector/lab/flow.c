/* SPDX-License-Identifier: MIT */
/* The lab beside the native collector. The collector starts the program and sees the failure. The program writes notes
 * into the shared memory, and this file makes records of them after the program's end. */
#include "base/array.h"
#include "collector/lab/layout.h"
#include "collector/source.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WATCHES 4096u     /* places in memory of which accesses are kept */
#define SMALL 16384u      /* accesses and synchronisations of a small run */
#define CHUNK 512u        /* events of a record */
#define RING (512u << 10) /* bytes of a thread's control flow, unless others are asked for: the newest are kept */
#define WIDEST 4096u      /* bytes of an access: readers take a wider one for damage */

/* A place in memory, and whose accesses it has. */
struct place {
    uint64_t address;
    uint32_t size, thread, first; /* the first note */
    bool shared, aside;           /* all its accesses are aside */
    uint32_t id;                  /* of its watch; 0: none */
};

struct flow {
    struct etch_lab_shared *shared;
    struct etch_sink sink;
    const struct etch_source *flow; /* of the program's control flow: the software recorder */
    void *recorder;                 /* its state */
    char variable[64];
    struct place *places; /* by address, then size */
    size_t n_places;
    bool keeps_aside;   /* accesses of instructions that are no points */
    uint64_t unwatched; /* accesses to places without a watch */
};

/* ---- Places ---- */

static int compare(const struct place *a, uint64_t address, uint32_t size)
{
    if (a->address != address)
        return a->address < address ? -1 : 1;
    return a->size < size ? -1 : a->size > size;
}

static int by_address(const void *x, const void *y)
{
    const struct place *a = x, *b = y;
    int order = compare(a, b->address, b->size);

    return order ? order : a->first < b->first ? -1 : a->first > b->first;
}

static uint32_t size_of(const struct etch_lab_note *n)
{
    return n->size < WIDEST ? n->size : WIDEST;
}

static struct place *place_of(const struct flow *f, const struct etch_lab_note *n)
{
    size_t from = 0, to = f->n_places;

    while (from < to) {
        size_t middle = from + (to - from) / 2;
        int order = compare(&f->places[middle], n->object, size_of(n));

        if (order == 0)
            return &f->places[middle];
        if (order < 0)
            from = middle + 1;
        else
            to = middle;
    }
    return NULL;
}

static bool is_access(const struct etch_lab_note *n)
{
    return n->op == 0 && n->size;
}

/* Accesses of instructions that are no points count only in a run of which no instruction was known to share memory, or
 * which has one thread. Code without bitcode changes memory too: values of memory that few instructions share would
 * often contradict each other. A large run keeps them only if two threads use the memory. */
static bool is_of_interest(const struct flow *f, bool aside, const struct place *p)
{
    return p && (!aside || (f->keeps_aside && (p->shared || f->shared->n_notes <= SMALL)));
}

static bool keeps_aside(const struct etch_lab_shared *s)
{
    for (uint32_t i = 0; i < ETCH_LAB_SITES && s->threads > 1; i++)
        if (s->sites[i])
            return false;
    return true;
}

static bool list_places(struct flow *f)
{
    const struct etch_lab_shared *s = f->shared;
    size_t n = 0, k = 0;

    f->places = malloc((s->n_notes + 1) * sizeof(*f->places));
    if (!f->places)
        return false;
    for (uint32_t i = 0; i < s->n_notes; i++)
        if (is_access(&s->notes[i]))
            f->places[n++] = (struct place){.address = s->notes[i].object,
                                            .size = size_of(&s->notes[i]),
                                            .thread = s->notes[i].thread,
                                            .first = i,
                                            .aside = s->notes[i].aside};
    qsort(f->places, n, sizeof(*f->places), by_address);
    for (size_t i = 0; i < n; i++) {
        if (k && compare(&f->places[k - 1], f->places[i].address, f->places[i].size) == 0) {
            f->places[k - 1].shared |= f->places[k - 1].thread != f->places[i].thread;
            f->places[k - 1].aside &= f->places[i].aside;
        } else
            f->places[k++] = f->places[i];
    }
    f->n_places = k;
    return true;
}

/* Memory that two threads use comes first: there is a bound. */
static void write_watches(struct flow *f)
{
    uint32_t id = 0;

    for (int shared = 1; shared >= 0; shared--)
        for (size_t i = 0; i < f->n_places && id < WATCHES; i++) {
            struct place *p = &f->places[i];
            const struct etch_lab_note *n = &f->shared->notes[p->first];
            Etch__Watch watch = ETCH__WATCH__INIT;

            if (p->shared != shared || !is_of_interest(f, p->aside, p))
                continue;
            p->id = watch.id = ++id;
            watch.address = p->address;
            watch.size = p->size;
            watch.reads = watch.writes = watch.emulated = true;
            watch.armed_tsc = n->tsc;
            f->sink.write(f->sink.context, ETCH__RECORD__BODY_WATCH, &watch);
        }
}

/* ---- Records ---- */

static size_t list_callers(const struct etch_lab_note *n)
{
    size_t k = 0;

    while (k < ETCH_LAB_NOTE_CALLERS && n->callers[k])
        k++;
    return k;
}

static void fill_access(const struct flow *f, Etch__Access *a, const struct etch_lab_note *n, uint32_t watch)
{
    etch__access__init(a);
    a->tsc = n->tsc;
    a->tid = f->shared->thread[n->thread].tid;
    a->ip = n->site;
    a->ip_is_after = n->made;
    a->ip_is_before = !n->made;
    a->address = n->object;
    a->size = size_of(n);
    a->read = n->read;
    a->write = n->write;
    a->watch = watch;
    a->callers = (uint64_t *)(uintptr_t)n->callers;
    a->n_callers = list_callers(n);
    if (!n->known)
        return;
    a->known_case = ETCH__ACCESS__KNOWN_VALUE;
    a->value = n->other;
}

static void write_accesses(struct flow *f)
{
    static Etch__Access events[CHUNK];
    Etch__Access *list[CHUNK];
    Etch__Accesses message = ETCH__ACCESSES__INIT;

    message.accesses = list;
    for (uint32_t i = 0; i < f->shared->n_notes; i++) {
        const struct etch_lab_note *n = &f->shared->notes[i];
        const struct place *p = is_access(n) && n->thread < ETCH_LAB_THREADS ? place_of(f, n) : NULL;

        if (is_of_interest(f, n->aside, p) && p->id) {
            fill_access(f, &events[message.n_accesses], n, p->id);
            list[message.n_accesses] = &events[message.n_accesses];
            message.n_accesses++;
        }
        f->unwatched += is_of_interest(f, n->aside, p) && !p->id;
        f->sink.summary->accesses += is_of_interest(f, n->aside, p) && p->id;
        if (message.n_accesses == CHUNK || (message.n_accesses && i + 1 == f->shared->n_notes)) {
            f->sink.write(f->sink.context, ETCH__RECORD__BODY_ACCESSES, &message);
            message.n_accesses = 0;
        }
    }
    if (message.n_accesses)
        f->sink.write(f->sink.context, ETCH__RECORD__BODY_ACCESSES, &message);
}

static void fill_sync(const struct flow *f, Etch__Sync *s, const struct etch_lab_note *n)
{
    etch__sync__init(s);
    s->tsc = n->tsc;
    s->tid = f->shared->thread[n->thread].tid;
    s->op = (Etch__SyncOp)n->op;
    s->object = n->object;
    s->other = n->other;
    s->result = n->result;
    s->caller = n->site;
    s->callers = (uint64_t *)(uintptr_t)n->callers;
    s->n_callers = list_callers(n);
}

static void write_syncs(struct flow *f)
{
    static Etch__Sync events[CHUNK];
    Etch__Sync *list[CHUNK];
    Etch__Syncs message = ETCH__SYNCS__INIT;

    message.syncs = list;
    for (uint32_t i = 0; i <= f->shared->n_notes; i++) {
        const struct etch_lab_note *n = i < f->shared->n_notes ? &f->shared->notes[i] : NULL;

        if (n && n->op && n->op <= ETCH__SYNC_OP__SYNC_BARRIER_INIT && n->thread < ETCH_LAB_THREADS) {
            fill_sync(f, &events[message.n_syncs], n);
            list[message.n_syncs] = &events[message.n_syncs];
            message.n_syncs++;
            f->sink.summary->syncs++;
        }
        if (message.n_syncs == CHUNK || (message.n_syncs && !n)) {
            f->sink.write(f->sink.context, ETCH__RECORD__BODY_SYNCS, &message);
            message.n_syncs = 0;
        }
    }
}

static void write_loss(struct flow *f, uint64_t events, const char *detail)
{
    Etch__Loss loss = ETCH__LOSS__INIT;

    if (!events)
        return;
    loss.cause = ETCH__LOSS_CAUSE__LOSS_LIMIT;
    loss.events = events;
    loss.detail = (char *)(uintptr_t)detail;
    f->sink.lost(f->sink.context, &loss);
}

/* ---- The recorder ---- */

/* The software recorder in the program gets its settings by the shared memory. */
static int open_recorder(struct flow *f, const struct etch_record_options *options, struct etch_error *err)
{
    struct etch_record_options own = *options;
    char *words[8];
    size_t n, at = 0;

    if (!own.snapshot)
        own.snapshot = RING;
    if (f->flow->open(&f->recorder, &own, &f->sink, err) < 0)
        return -1;
    n = f->flow->environment(f->recorder, words, sizeof(words) / sizeof(words[0]));
    for (size_t i = 0; i < n; i++) {
        size_t length = strlen(words[i]) + 1;

        if (at + length + 1 > sizeof(f->shared->words))
            return etch_error_set(err, "the name of the folder for rings is too long");
        memcpy(f->shared->words + at, words[i], length);
        at += length;
    }
    return 0;
}

static int open_lab(void **state, const struct etch_record_options *options, const struct etch_sink *sink,
                    struct etch_error *err)
{
    struct flow *f = calloc(1, sizeof(*f));

    _Static_assert(ETCH__SYNC_OP__SYNC_THREAD_CREATE == 1 && ETCH__SYNC_OP__SYNC_COND_WAIT_BEGIN == 10 &&
                       ETCH__SYNC_OP__SYNC_MUTEX_BLOCKED == 20,
                   "enum lab_sync has the numbers of Etch__SyncOp");
    *state = f;
    if (!f)
        return etch_error_no_memory(err);
    f->shared = options->lab;
    f->flow = options->lab_flow;
    f->sink = *sink;
    snprintf(f->variable, sizeof(f->variable), ETCH_LAB_VARIABLE "=%04d", options->lab_fd);
    return open_recorder(f, options, err);
}

static size_t lab_environment(const void *state, char **words, size_t max)
{
    struct flow *f = (struct flow *)(uintptr_t)state;

    if (max)
        words[0] = f->variable;
    return max ? 1 : 0;
}

static int start_lab(void *state, pid_t pid, struct etch_error *err)
{
    struct flow *f = state;

    return f->flow->start(f->recorder, pid, err);
}

static bool is_lab_hung(const void *state)
{
    const struct flow *f = state;

    return *(const volatile uint32_t *)&f->shared->outcome == ETCH_LAB_DEADLOCK;
}

static void stop_lab(void *state)
{
    struct flow *f = state;

    f->flow->stop(f->recorder);
    if (f->shared->n_notes > ETCH_LAB_NOTES)
        f->shared->n_notes = ETCH_LAB_NOTES; /* a program can write anything there */
    f->keeps_aside = keeps_aside(f->shared);
    if (!list_places(f)) {
        write_loss(f, f->shared->n_notes, "no memory for the accesses");
        return;
    }
    write_watches(f);
    write_accesses(f);
    write_syncs(f);
    write_loss(f, f->shared->notes_lost, "the lab keeps the first accesses and synchronisations of a run only");
    write_loss(f, f->unwatched, "the lab keeps the accesses to some thousand places in memory only");
}

static void close_lab(void *state)
{
    struct flow *f = state;

    if (f) {
        f->flow->close(f->recorder);
        free(f->places);
    }
    free(f);
}

/* The notes stay where they are until the program has ended: there is nothing to drain. */
const struct etch_source etch_source_lab = {
    .name = "lab",
    .id = ETCH__SOURCE__SOURCE_LAB,
    .open = open_lab,
    .environment = lab_environment,
    .start = start_lab,
    .hung = is_lab_hung,
    .stop = stop_lab,
    .close = close_lab,
};
