/* SPDX-License-Identifier: MIT */
/* A real run on this machine: two threads hand a token over through a variable with a hardware watchpoint on it, and
 * the order of the accesses, found from the stamps and values of the traps, is held against the truth. ETCH_TOKENS sets
 * how many. */
#include "collector/clock_record.h"
#include "decoder/timeline.h"

#include <errno.h>
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define RING_PAGES 64
#define REGISTER_AX 1 /* as a mask of perf's register numbers */

static _Alignas(64) volatile long token;
static _Alignas(64) _Atomic long turn;
static long hand_overs = 10000;

/* A sample, as the attributes below make it. */
struct sample {
    struct perf_event_header header;
    uint64_t ip;
    uint32_t pid, tid;
    uint64_t time;
    uint32_t cpu, reserved;
    uint64_t abi, ax;
};

struct player {
    long side;
    int fd;
    struct perf_event_mmap_page *head;
    size_t ring_size, map_size;
    struct sample *samples;
    size_t n;
    uint64_t lost;
    int error;
};

static int watch(struct player *p)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    struct perf_event_attr attr = {
        .type = PERF_TYPE_BREAKPOINT,
        .size = sizeof(attr),
        .bp_type = HW_BREAKPOINT_RW,
        .bp_addr = (uint64_t)(uintptr_t)&token,
        .bp_len = HW_BREAKPOINT_LEN_8,
        .sample_period = 1,
        .sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU | PERF_SAMPLE_REGS_USER,
        .sample_regs_user = REGISTER_AX,
        .exclude_kernel = 1,
        .exclude_hv = 1,
        .use_clockid = 1,
        .clockid = CLOCK_MONOTONIC_RAW,
    };

    p->fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
    if (p->fd < 0)
        return -1;
    p->ring_size = RING_PAGES * page;
    p->map_size = p->ring_size + page;
    p->head = mmap(NULL, p->map_size, PROT_READ | PROT_WRITE, MAP_SHARED, p->fd, 0);
    return p->head == MAP_FAILED ? -1 : 0;
}

static void drain(struct player *p)
{
    const unsigned char *ring = (const unsigned char *)p->head + (p->map_size - p->ring_size);
    uint64_t head = __atomic_load_n(&p->head->data_head, __ATOMIC_ACQUIRE);
    uint64_t at = p->head->data_tail;

    while (at < head) {
        struct sample s;
        size_t size;

        memset(&s, 0, sizeof(s));
        for (size_t i = 0; i < sizeof(s.header); i++)
            ((unsigned char *)&s)[i] = ring[(at + i) % p->ring_size];
        size = s.header.size < sizeof(s) ? s.header.size : sizeof(s);
        for (size_t i = 0; i < size; i++)
            ((unsigned char *)&s)[i] = ring[(at + i) % p->ring_size];
        if (s.header.type == PERF_RECORD_SAMPLE && p->n < (size_t)hand_overs * 2)
            p->samples[p->n++] = s;
        else
            p->lost++;
        at += s.header.size;
    }
    __atomic_store_n(&p->head->data_tail, head, __ATOMIC_RELEASE);
}

/* Both accesses through rax, so that a sample has the value. */
static long read_token(void)
{
    long value;

    __asm__ volatile("mov %1, %%rax" : "=&a"(value) : "m"(token));
    return value;
}

static void write_token(long value)
{
    __asm__ volatile("mov %%rax, %0" : "=m"(token) : "a"(value));
}

static void *play(void *argument)
{
    struct player *p = argument;

    if (watch(p) < 0) {
        p->error = errno;
        hand_overs = 0;
        return NULL;
    }
    for (long value = p->side; value < hand_overs; value += 2) {
        while (atomic_load_explicit(&turn, memory_order_acquire) != value)
            if (hand_overs == 0)
                return NULL;
        if (read_token() != value)
            abort();
        write_token(value + 1);
        atomic_store_explicit(&turn, value + 1, memory_order_release);
        if (value % 256 < 2)
            drain(p);
    }
    drain(p);
    return NULL;
}

/* Accesses alternate in a thread: it reads v, then writes v + 1. */
static void add_accesses(struct etch_recording *r, const struct player *p)
{
    for (size_t i = 0; i < p->n; i++) {
        Etch__Access access = ETCH__ACCESS__INIT;

        access.cpu = p->samples[i].cpu;
        access.tid = p->samples[i].tid;
        access.perf_ns = p->samples[i].time;
        access.watch = 1;
        access.read = i % 2 == 0;
        access.write = i % 2 == 1;
        access.known_case = ETCH__ACCESS__KNOWN_VALUE;
        access.value = p->samples[i].ax;
        assert_true(etch_array_push(&r->accesses, access));
    }
}

struct verdict {
    size_t wrong, unordered, asked;
};

/* In truth: write of v, read of v, write of v + 1. */
static uint64_t truth_of(const struct etch_event *e)
{
    return e->access & ETCH_ACCESS_WRITE ? 2 * e->written : 2 * e->seen + 1;
}

static struct verdict judge(const struct etch_timeline *t, bool with_values)
{
    struct etch_order_input input = t->input;
    struct verdict verdict = {0};
    struct etch_order *order;
    struct etch_error err;
    uint32_t *by_truth = malloc((2 * (size_t)hand_overs + 2) * sizeof(*by_truth));
    size_t conflicts;

    input.n_locations = with_values ? input.n_locations : 0;
    assert_non_null(by_truth);
    assert_int_equal(etch_order_build(&order, &input, &err), 0);
    etch_order_conflicts(order, &conflicts);
    assert_int_equal(conflicts, 0);
    memset(by_truth, 0xff, (2 * (size_t)hand_overs + 2) * sizeof(*by_truth));
    for (size_t i = 0; i < t->events.n; i++)
        if (t->events.v[i].kind == ETCH_EVENT_ACCESS && truth_of(&t->events.v[i]) < 2 * (uint64_t)hand_overs + 2)
            by_truth[truth_of(&t->events.v[i])] = (uint32_t)i;
    /* A hand-over: the write by one thread, the read of it by the other. */
    for (size_t v = 1; v < (size_t)hand_overs; v++) {
        uint32_t w = by_truth[2 * v], r = by_truth[2 * v + 1];
        enum etch_relation relation;

        if (w == UINT32_MAX || r == UINT32_MAX)
            continue;
        relation = etch_order_ask(order, w, r);
        verdict.asked++;
        verdict.wrong += relation == ETCH_AFTER;
        verdict.unordered += relation == ETCH_UNORDERED;
    }
    etch_order_free(order);
    free(by_truth);
    return verdict;
}

static void say(const char *by, const struct verdict *v)
{
    print_message("by %s: %zu hand-overs, %zu wrong, %zu unordered (%.4f %%)\n", by, v->asked, v->wrong, v->unordered,
                  v->asked ? 100.0 * (double)v->unordered / (double)v->asked : 0.0);
}

static void record(struct etch_recording *r, struct player players[2])
{
    pthread_t threads[2];

    for (int i = 0; i < 2; i++) {
        players[i].side = i;
        players[i].samples = malloc((size_t)hand_overs * 2 * sizeof(struct sample) + 1);
        assert_non_null(players[i].samples);
    }
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, play, &players[i]), 0);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    if (players[0].error || players[1].error) {
        print_message("no watchpoints here: %s\n", strerror(players[0].error ? players[0].error : players[1].error));
        exit(77);
    }
    for (int i = 0; i < 2; i++)
        add_accesses(r, &players[i]);
}

static void add_records(struct etch_recording *r, Etch__Host *host, Etch__Watch *watched)
{
    static char source[] = "tsc";

    etch__host__init(host);
    host->clocksource = source;
    r->host = host;
    etch__watch__init(watched);
    watched->id = 1;
    watched->reads = watched->writes = true;
    watched->initially_case = ETCH__WATCH__INITIALLY_INITIAL_VALUE;
    watched->initial_value = 0;
    assert_true(etch_array_push(&r->watches, watched));
}

static void orders_every_hand_over(void **state)
{
    struct etch_calibration_options options = {.skip_trap = true};
    struct etch_calibration before, after;
    struct etch_recording recording = {0};
    struct player players[2] = {{0}};
    struct etch_timeline timeline;
    struct etch_error err;
    struct verdict by_clock, by_all;
    Etch__Host host;
    Etch__Watch watched;

    (void)state;
    assert_int_equal(etch_calibrate(&before, &options, &err), 0);
    record(&recording, players);
    options.like = &before;
    assert_int_equal(etch_calibrate(&after, &options, &err), 0);
    add_records(&recording, &host, &watched);
    assert_true(etch_array_push(&recording.clocks, etch_clock_record(&before, ETCH__CLOCK_PHASE__CLOCK_BEFORE)));
    assert_true(etch_array_push(&recording.clocks, etch_clock_record(&after, ETCH__CLOCK_PHASE__CLOCK_AFTER)));
    print_message("%zu and %zu accesses, %lu records of another kind; drift of the clock's line %ld cycles\n",
                  players[0].n, players[1].n, players[0].lost + players[1].lost, (long)after.drift);
    assert_int_equal(etch_timeline_build(&timeline, &recording, &(struct etch_timeline_options){.margin = 200}, &err),
                     0);
    by_clock = judge(&timeline, false);
    say("clocks alone", &by_clock);
    assert_int_equal(by_clock.wrong, 0);
    if (players[0].n == (size_t)hand_overs && players[1].n == (size_t)hand_overs) {
        by_all = judge(&timeline, true);
        say("clocks and values", &by_all);
        assert_int_equal(by_all.wrong, 0);
        assert_int_equal(by_all.unordered, 0);
        assert_int_equal(by_all.asked, hand_overs - 1);
    }
    etch_timeline_free(&timeline);
    for (size_t i = 0; i < recording.clocks.n; i++)
        etch__clock__free_unpacked(recording.clocks.v[i], NULL);
    etch_array_free(&recording.clocks);
    etch_array_free(&recording.watches);
    etch_array_free(&recording.accesses);
    for (int i = 0; i < 2; i++) {
        free(players[i].samples);
        munmap(players[i].head, players[i].map_size);
        close(players[i].fd);
    }
    etch_calibration_free(&after);
    etch_calibration_free(&before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(orders_every_hand_over)};

    if (getenv("ETCH_TOKENS"))
        hand_overs = atol(getenv("ETCH_TOKENS"));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
