/* SPDX-License-Identifier: MIT */
/* The order that etch finds in a real recording against what really happened.
 *   ordered syncs BUNDLE LOG   of tests/programs/native/ordered, which wrote LOG
 *   ordered token BUNDLE N     of tests/programs/token, which handed over N times
 * Prints how many pairs were asked, how many stayed unordered, by which evidence the others are known, and how many are
 * wrong; the exit status is 1 if any is, or if the records are not those that were made. */
#include "decoder/accesses.h"
#include "decoder/timeline.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NOBODY UINT32_MAX

static _Noreturn void die(const char *what)
{
    fprintf(stderr, "ordered: %s\n", what);
    exit(1);
}

static void *allocate(size_t n, size_t size)
{
    void *memory = calloc(n + 1, size);

    if (!memory)
        die("out of memory");
    return memory;
}

struct count {
    uint64_t asked, wrong, unordered;
    uint64_t by[16]; /* kinds of evidence that a known pair rests on; of several, each */
};

/* What the order is made from: clocks, or everything but clocks, or both; and signals, of which there is no proof. */
struct mode {
    const char *name;
    bool clocks, others, signals;
};

static const struct mode modes[] = {{"all evidence", true, true, false},
                                    {"no clocks", false, true, false},
                                    {"clocks alone", true, false, false},
                                    {"with signals", false, true, true}};

static struct etch_order *build(const struct etch_timeline *t, const struct mode *mode, struct etch_event *events)
{
    struct etch_order_input input = t->input;
    struct etch_cpu_range *cpus = allocate(input.n_cpus, sizeof(*cpus));
    static struct etch_order_input kept;
    struct etch_order *order;
    struct etch_error err;
    size_t conflicts;

    memcpy(events, input.events, input.n * sizeof(*events));
    if (mode->clocks)
        memcpy(cpus, input.cpus, input.n_cpus * sizeof(*cpus));
    for (size_t i = 0; !mode->others && i < input.n; i++)
        if (events[i].kind == ETCH_EVENT_SYNC)
            events[i].kind = ETCH_EVENT_MARK;
    input.events = events;
    input.cpus = cpus;
    input.signals_wake = mode->signals;
    input.n_locations = mode->others ? input.n_locations : 0;
    kept = input;
    if (etch_order_build(&order, &kept, &err) < 0) {
        etch_error_print(&err, "ordered", stderr);
        exit(1);
    }
    etch_order_conflicts(order, &conflicts);
    if (conflicts)
        die("the evidence of a real run contradicts itself");
    free(cpus); /* asked only while building */
    return order;
}

static void ask(const struct etch_order *order, uint32_t first, uint32_t last, struct count *count)
{
    struct etch_evidence links[32];
    enum etch_relation relation = etch_order_ask(order, first, last);
    size_t n;

    count->asked++;
    count->wrong += relation == ETCH_AFTER;
    count->unordered += relation == ETCH_UNORDERED;
    n = relation == ETCH_BEFORE ? etch_order_why(order, first, last, links, 32) : 0;
    for (size_t i = 0; i < n && i < 32; i++)
        count->by[links[i].kind & 15]++;
}

static void tell(const struct mode *mode, const struct count *c)
{
    printf("%s: %" PRIu64 " pairs, %" PRIu64 " wrong, %" PRIu64 " unordered (%.4f %%), by", mode->name, c->asked,
           c->wrong, c->unordered, c->asked ? 100.0 * (double)c->unordered / (double)c->asked : 0.0);
    for (unsigned i = 0; i <= ETCH_BY_VALUE; i++)
        if (c->by[i])
            printf(" %s", etch_evidence_name(i));
    printf("\n");
}

/* ---- Tickets ---- */

struct line {
    uint32_t tid, op;
    uint64_t before, after;
};

struct log {
    struct line *v;
    size_t n;
};

static struct log read_log(const char *path)
{
    FILE *file = fopen(path, "r");
    struct log log = {0};
    struct line l;

    if (!file)
        die("cannot read the log");
    while (fscanf(file, "%" SCNu32 " %" SCNu32 " %" SCNu64 " %" SCNu64, &l.tid, &l.op, &l.before, &l.after) == 4) {
        if ((log.n & (log.n - 1)) == 0)
            log.v = realloc(log.v, (log.n ? 2 * log.n : 1) * sizeof(l));
        if (!log.v)
            die("out of memory");
        log.v[log.n++] = l;
    }
    fclose(file);
    return log;
}

/* Which the program itself does not see. */
static bool is_silent(uint32_t op)
{
    return op == ETCH__SYNC_OP__SYNC_THREAD_START || op == ETCH__SYNC_OP__SYNC_THREAD_EXIT ||
           op == ETCH__SYNC_OP__SYNC_MUTEX_BLOCKED;
}

/* The log's line of each event, by thread and place. */
static const struct line **match(const struct etch_timeline *t, const struct log *log)
{
    const struct line **lines = allocate(t->events.n, sizeof(*lines));
    size_t used = 0;

    for (size_t i = 0; i < t->events.n; i++) {
        const struct etch_event *e = &t->events.v[i];
        size_t k = 0;

        if (e->kind != ETCH_EVENT_SYNC || is_silent(e->op))
            continue;
        if (i > 0 && lines[i - 1] && t->events.v[i - 1].thread == e->thread)
            k = (size_t)(lines[i - 1] - log->v) + 1;
        else /* the thread's next line: after its last one so far, or its first */
            for (size_t back = i; back-- > 0 && k == 0;)
                if (lines[back] && t->events.v[back].thread == e->thread)
                    k = (size_t)(lines[back] - log->v) + 1;
        while (k < log->n && log->v[k].tid != t->tids.v[e->thread])
            k++;
        if (k == log->n || log->v[k].op != e->op)
            die("the events are not those that happened");
        lines[i] = &log->v[k];
        used++;
    }
    if (used != log->n)
        die("events are missing");
    return lines;
}

/* All pairs of which the tickets tell the order: a call that was over before another began. */
static void ask_tickets(const struct etch_timeline *t, const struct etch_order *order, const struct line **lines,
                        struct count *count)
{
    for (size_t a = 0; a < t->events.n; a++)
        for (size_t b = 0; b < t->events.n; b++)
            if (lines[a] && lines[b] && t->tids.v[t->events.v[a].thread] != t->tids.v[t->events.v[b].thread] &&
                lines[a]->after < lines[b]->before)
                ask(order, (uint32_t)a, (uint32_t)b, count);
}

/* ---- What must be known without any clock, of threads that were made once ---- */

static uint32_t nth(const struct etch_timeline *t, uint32_t thread, uint32_t op, uint64_t object, unsigned n)
{
    for (size_t i = 0; i < t->events.n; i++) {
        const struct etch_event *e = &t->events.v[i];

        if (e->kind == ETCH_EVENT_SYNC && e->op == op && (thread == NOBODY || e->thread == thread) &&
            (!object || e->object == object) && n-- == 0)
            return (uint32_t)i;
    }
    return NOBODY;
}

static void must(const struct etch_order *order, uint32_t a, uint32_t b, const char *what)
{
    if (a == NOBODY || b == NOBODY || etch_order_ask(order, a, b) != ETCH_BEFORE)
        die(what);
}

/* One thread posts, another waits. */
static void check_semaphores(const struct etch_timeline *t, const struct etch_order *order)
{
    for (unsigned s = 0; s < 2; s++) {
        uint32_t init = nth(t, NOBODY, ETCH__SYNC_OP__SYNC_SEM_INIT, 0, s);

        for (unsigned i = 0; init != NOBODY && i < 10; i++)
            must(order, nth(t, NOBODY, ETCH__SYNC_OP__SYNC_SEM_POST, t->events.v[init].object, i),
                 nth(t, NOBODY, ETCH__SYNC_OP__SYNC_SEM_WAIT, t->events.v[init].object, i), "a post and its wait");
        if (init == NOBODY)
            die("no semaphore");
    }
}

/* All threads but the first take part. */
static void check_barriers(const struct etch_timeline *t, const struct etch_order *order)
{
    for (uint32_t x = 1; x < t->tids.n; x++)
        for (uint32_t y = 1; y < t->tids.n; y++)
            for (unsigned g = 0; g < 5; g++)
                must(order, nth(t, x, ETCH__SYNC_OP__SYNC_BARRIER_ENTER, 0, g),
                     nth(t, y, ETCH__SYNC_OP__SYNC_BARRIER_LEAVE, 0, g), "a barrier");
}

static void check_lives(const struct etch_timeline *t, const struct etch_order *order)
{
    for (unsigned i = 0; i < 3; i++) {
        uint32_t create = nth(t, NOBODY, ETCH__SYNC_OP__SYNC_THREAD_CREATE, 0, i);
        uint64_t handle = create == NOBODY ? 0 : t->events.v[create].object;

        must(order, create, nth(t, NOBODY, ETCH__SYNC_OP__SYNC_THREAD_START, handle, 0), "create and start");
        must(order, nth(t, NOBODY, ETCH__SYNC_OP__SYNC_THREAD_EXIT, handle, 0),
             nth(t, NOBODY, ETCH__SYNC_OP__SYNC_THREAD_JOIN, handle, 0), "exit and join");
    }
}

static uint64_t judge_syncs(const struct etch_timeline *t, const char *path)
{
    bool once = nth(t, NOBODY, ETCH__SYNC_OP__SYNC_THREAD_CREATE, 0, 3) == NOBODY;
    struct etch_event *events = allocate(t->events.n, sizeof(*events));
    struct log log = read_log(path);
    const struct line **lines = match(t, &log);
    uint64_t wrong = 0;

    for (size_t m = 0; m < sizeof(modes) / sizeof(modes[0]); m++) {
        struct etch_order *order = build(t, &modes[m], events);
        struct count count = {0};

        ask_tickets(t, order, lines, &count);
        tell(&modes[m], &count);
        wrong += count.wrong;
        if (modes[m].others && once) {
            check_semaphores(t, order);
            check_barriers(t, order);
            check_lives(t, order);
        }
        etch_order_free(order);
    }
    free(lines);
    free(log.v);
    free(events);
    return wrong;
}

/* ---- Tokens ---- */

/* In truth: write of v, read of v by the other thread, write of v + 1. */
static uint64_t judge_token(const struct etch_timeline *t, uint64_t hand_overs)
{
    struct etch_event *events = allocate(t->events.n, sizeof(*events));
    uint32_t *by_truth = allocate(2 * hand_overs + 4, sizeof(*by_truth));
    uint64_t wrong = 0;

    memset(by_truth, 0xff, (2 * hand_overs + 4) * sizeof(*by_truth));
    for (size_t i = 0; i < t->events.n; i++) {
        const struct etch_event *e = &t->events.v[i];
        uint64_t value = e->access & ETCH_ACCESS_WRITE ? e->written : e->seen;

        if (e->kind == ETCH_EVENT_ACCESS && e->access & (ETCH_ACCESS_SEEN_KNOWN | ETCH_ACCESS_WRITTEN_KNOWN) &&
            value <= hand_overs && by_truth[2 * value + !(e->access & ETCH_ACCESS_WRITE)] == NOBODY)
            by_truth[2 * value + !(e->access & ETCH_ACCESS_WRITE)] = (uint32_t)i; /* main reads the last once more */
    }
    for (size_t m = 0; m < sizeof(modes) / sizeof(modes[0]); m++) {
        struct etch_order *order = build(t, &modes[m], events);
        struct count count = {0};

        for (uint64_t v = 1; v < hand_overs; v++) {
            if (by_truth[2 * v] == NOBODY || by_truth[2 * v + 1] == NOBODY)
                die("a hand-over is missing");
            ask(order, by_truth[2 * v], by_truth[2 * v + 1], &count);
        }
        tell(&modes[m], &count);
        wrong += count.wrong;
        if (modes[m].others && count.unordered)
            die("hand-overs are unordered although every access and value was recorded");
        etch_order_free(order);
    }
    free(by_truth);
    free(events);
    return wrong;
}

static void open_recording(struct etch_recording **r, const char *path)
{
    struct etch_symbols *symbols = etch_symbols_new(&(struct etch_symbols_options){0});
    struct etch_code *code = NULL;
    struct etch_error err;

    if (!symbols || etch_recording_open(r, path, &err) < 0 || etch_code_open(&code, *r, NULL, &err) < 0 ||
        etch_accesses_settle(*r, code, symbols, &err) < 0) {
        etch_error_print(&err, "ordered", stderr);
        exit(1);
    }
    etch_symbols_free(symbols);
    etch_code_free(code);
}

int main(int argc, char **argv)
{
    static const struct etch_timeline_options options = {0};
    struct etch_recording *r = NULL;
    struct etch_timeline t;
    struct etch_error err;
    uint32_t known = 0;
    uint64_t wrong;

    if (argc != 4)
        die("usage: ordered syncs BUNDLE LOG, or ordered token BUNDLE N");
    open_recording(&r, argv[2]);
    if (etch_timeline_build(&t, r, &options, &err) < 0) {
        etch_error_print(&err, "ordered", stderr);
        return 1;
    }
    for (uint32_t cpu = 0; cpu < t.clocks.n_cpus; cpu++)
        known += t.clocks.cpus[cpu].known;
    printf("%zu accesses, %zu syncs, %zu losses; %u clocks of %u known, margin %" PRId64 "; %s\n", r->accesses.n,
           r->syncs.n, r->losses.n, known, t.clocks.n_cpus, t.clocks.margin,
           t.clocks.refused ? t.clocks.why : "clocks are used");
    wrong = strcmp(argv[1], "token") == 0 ? judge_token(&t, strtoull(argv[3], NULL, 10)) : judge_syncs(&t, argv[3]);
    etch_timeline_free(&t);
    etch_recording_free(r);
    return wrong ? 1 : 0;
}
