/* SPDX-License-Identifier: MIT */
/* Two pinned threads and a cache line; see race.h.
 *
 * The bounds hold on x86 for these reasons. A store becomes visible only after it retires, and every earlier rdtsc
 * has executed by then: the first stamp needs no fence before the store. The second stamp must come after the store is
 * visible. mfence, a locked instruction or cpuid drains the store buffer, and rdtsc does not start before the lfence
 * behind it is done. */
#include "calibrate/race.h"

#include "base/time.h"
#include "calibrate/stamp.h"

#include <pthread.h>
#include <sched.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#define STEP 8    /* loop turns by which the race is balanced after a round, */
#define SLIDE 101 /* and through which the sides slide over each other; found by trying */
#define NICE (-15)
#define PAGE 4096
#define LINE 128 /* two lines: the neighbour is prefetched with the one asked for */

/* One side's view of a round. */
struct mark {
    uint64_t begin, end;
    bool moved; /* not on its CPU before or after, or no stamp: no evidence */
};

struct table;

struct side {
    alignas(LINE) _Atomic uint64_t arrived; /* rounds begun; the other side waits for it */
    alignas(LINE) _Atomic uint64_t left;    /* rounds finished */
    alignas(LINE) struct table *table;
    unsigned cpu;
    bool second;          /* this is side b */
    volatile uint32_t *x; /* the variable that both sides race for */
    struct mark *marks;
    uint64_t done;
};

struct table {
    alignas(LINE) _Atomic bool stop;
    enum etch_race_variant variant;
    const struct etch_race *race;
    void (*play)(struct side *me, uint64_t round);
    uint32_t *final; /* x after each round of writes */
    size_t want;
    alignas(LINE) struct side sides[2];
};

const char *etch_race_variant_name(enum etch_race_variant variant)
{
    static const char *const names[] = {"mfence", "locked", "cpuid", "xchg", "cmpxchg"};

    return (unsigned)variant < ETCH_RACE_VARIANTS ? names[variant] : "none";
}

/* ---- The bracketed writes: stamp, write x, stamp ---- */

#define STAMP_TO(reg) "rdtsc\n\tshl $32, %%rdx\n\tor %%rdx, %%rax\n\tmov %%rax, " reg "\n\t"

/* `write`: the instruction that writes x, right behind the first rdtsc (the registers are put together later);
 * `drain`: what waits until the write is visible. */
#define BRACKET(write, drain, ...)                                                                                     \
    __asm__ volatile("lfence\n\trdtsc\n\t" write "\n\tshl $32, %%rdx\n\tor %%rdx, %%rax\n\tmov %%rax, %0\n\t" drain    \
                     "\n\t" STAMP_TO("%1") "lfence"                                                                    \
                     : "=&r"(m->begin), "=&r"(m->end), "+m"(*x), "+r"(value)                                           \
                     :                                                                                                 \
                     : "rax", "rdx", "memory", "cc", ##__VA_ARGS__)

static inline void write_fence(volatile uint32_t *x, uint32_t value, struct mark *m)
{
    BRACKET("movl %3, %2", "mfence\n\tlfence");
}

static inline void write_locked(volatile uint32_t *x, uint32_t value, struct mark *m)
{
    BRACKET("movl %3, %2", "lock orl $0, (%%rsp)\n\tlfence");
}

static inline void write_cpuid(volatile uint32_t *x, uint32_t value, struct mark *m)
{
    BRACKET("movl %3, %2", "xor %%eax, %%eax\n\tcpuid", "rbx", "rcx");
}

static inline void write_xchg(volatile uint32_t *x, uint32_t value, struct mark *m)
{
    BRACKET("xchgl %3, %2", "lfence");
}

/* Expects the 0 that the round began with; needs eax, so the stamp is put away first. */
static inline void write_cmpxchg(volatile uint32_t *x, uint32_t value, struct mark *m)
{
    __asm__ volatile(
        "lfence\n\t" STAMP_TO("%0") "xor %%eax, %%eax\n\tlock cmpxchgl %3, %2\n\tlfence\n\t" STAMP_TO("%1") "lfence"
        : "=&r"(m->begin), "=&r"(m->end), "+m"(*x)
        : "r"(value)
        : "rax", "rdx", "memory", "cc");
}

static void play_write(struct side *me, uint64_t round)
{
    struct mark *m = &me->marks[round];
    uint32_t value = me->second ? 2 : 1;
    uint32_t before, after;

    etch_stamp(&before);
    switch (me->table->variant) {
    case ETCH_RACE_FENCE:
        write_fence(me->x, value, m);
        break;
    case ETCH_RACE_LOCKED:
        write_locked(me->x, value, m);
        break;
    case ETCH_RACE_CPUID:
        write_cpuid(me->x, value, m);
        break;
    case ETCH_RACE_XCHG:
        write_xchg(me->x, value, m);
        break;
    default:
        write_cmpxchg(me->x, value, m);
        break;
    }
    etch_stamp(&after);
    m->moved = before != me->cpu || after != me->cpu;
}

/* ---- The flag: the sides take turns to stamp and set it, and to stamp when it is set ---- */

/* Loop and stamp within one line of code. Gives up after some milliseconds: the other side was preempted. */
static inline uint64_t see_flag(volatile uint32_t *x, uint32_t value)
{
    uint64_t stamp;
    uint32_t tries = 1u << 22;

    __asm__ volatile(".p2align 6\n"
                     "1:\tdecl %1\n\tjz 2f\n\tcmpl %3, %2\n\tjne 1b\n"
                     "2:\tlfence\n\t" STAMP_TO("%0") "lfence"
                     : "=&r"(stamp), "+r"(tries), "+m"(*x)
                     : "r"(value)
                     : "rax", "rdx", "memory", "cc");
    return tries ? stamp : 0;
}

static inline uint64_t set_flag(volatile uint32_t *x, uint32_t value)
{
    uint64_t stamp;

    __asm__ volatile(".p2align 6\n\tlfence\n\t" STAMP_TO("%0") "movl %2, %1\n\tlfence"
                     : "=&r"(stamp), "+m"(*x)
                     : "r"(value)
                     : "rax", "rdx", "memory", "cc");
    return stamp;
}

static void play_flag(struct side *me, uint64_t round)
{
    struct mark *m = &me->marks[round];
    bool setter = (round & 1) == (me->second ? 1 : 0);
    uint32_t before, after;

    etch_stamp(&before);
    if (setter) {
        /* Let the other side reach its loop, and have the line there: what is timed is one transfer. */
        for (unsigned i = 0, n = 6 + (unsigned)(round / 2 * 7 % 8); i < n; i++)
            __asm__ volatile("pause");
        m->begin = set_flag(me->x, (uint32_t)round + 1);
    } else {
        m->begin = see_flag(me->x, (uint32_t)round + 1);
    }
    etch_stamp(&after);
    m->end = m->begin;
    m->moved = before != me->cpu || after != me->cpu || m->begin == 0;
}

/* ---- The store buffer: b stores to a line that a keeps taking ---- */

static void play_drain(struct side *me, uint64_t round)
{
    struct mark *m = &me->marks[round];
    uint32_t before, after;

    if (!me->second) {
        for (int i = 0; i < 4; i++)
            write_xchg(me->x, (uint32_t)round, m);
        m->moved = false;
        return;
    }
    etch_stamp(&before);
    __asm__ volatile("lfence\n\tmovl %3, %2\n\t" STAMP_TO("%0") "mfence\n\tlfence\n\t" STAMP_TO("%1") "lfence"
                     : "=&r"(m->begin), "=&r"(m->end), "+m"(*me->x)
                     : "r"((uint32_t)round)
                     : "rax", "rdx", "memory", "cc");
    etch_stamp(&after);
    m->moved = before != me->cpu || after != me->cpu;
}

/* ---- Rounds ---- */

/* Until the other side has come to `round`. False when time is up. */
static bool meet(struct table *t, _Atomic uint64_t *theirs, uint64_t round)
{
    for (uint32_t spins = 1;; spins++) {
        /* acquire: pairs with the release of `arrived` or `left`; what the other wrote before is there */
        if (atomic_load_explicit(theirs, memory_order_acquire) >= round)
            return true;
        if (spins % 4096 != 0)
            continue;
        if (atomic_load_explicit(&t->stop, memory_order_relaxed))
            return false;
        if (etch_time_ns() > t->race->deadline)
            atomic_store_explicit(&t->stop, true, memory_order_relaxed);
    }
}

/* The sides leave their meeting apart by a transfer or two, and the rounds that bound tightly are those in which nobody
 * is clearly first. Side a therefore waits longer after a round it won, and shorter after a round it lost. */
static int race_lead(const struct table *t, uint64_t round)
{
    bool b_left = t->final[round] == 2;
    bool a_first = t->variant == ETCH_RACE_CMPXCHG ? !b_left : b_left;

    return a_first ? STEP : -STEP;
}

static size_t line_offset(size_t line)
{
    return line * PAGE + line * 5 % (PAGE / LINE) * LINE;
}

static size_t line_of(const struct etch_race *race, uint64_t round)
{
    return round / race->per_line % race->lines->n;
}

static void *rounds_run(void *argument)
{
    struct side *me = argument;
    struct table *t = me->table;
    struct side *other = &t->sides[me->second ? 0 : 1];
    int balance[2] = {0};

    /* Both sides must run at once to get anywhere: ask for a larger share of busy CPUs, where that is allowed. */
    setpriority(PRIO_PROCESS, (id_t)gettid(), NICE);
    for (uint64_t round = 0; round < t->want; round++) {
        int wait = balance[round & 1] + 200 + (int)(me->second ? round * 5 % SLIDE : round * 3 % (SLIDE - 2));

        me->x = (volatile uint32_t *)((char *)t->race->lines->memory + line_offset(line_of(t->race, round)));
        if (t->play == play_write && me->second == (round & 1))
            *me->x = 0; /* in turns: who has the line writes sooner, and each bound is tightest from one of the two */
        atomic_store_explicit(&me->arrived, round + 1, memory_order_release);
        if (!meet(t, &other->arrived, round + 1))
            break;
        for (int i = 0; i < wait; i++)
            __asm__ volatile("");
        t->play(me, round);
        atomic_store_explicit(&me->left, round + 1, memory_order_release);
        if (!meet(t, &other->left, round + 1))
            break;
        if (!me->second && t->play == play_write) {
            t->final[round] = *me->x; /* both are done, and b does not write again before a arrives at the next round */
            balance[round & 1] += race_lead(t, round);
        }
        me->done = round + 1;
    }
    return NULL;
}

static int start(struct side *side, pthread_t *thread, struct etch_error *err)
{
    pthread_attr_t attr;
    cpu_set_t cpus;
    int rc;

    if (side->cpu >= CPU_SETSIZE)
        return etch_error_set(err, "CPU %u is beyond what this can measure", side->cpu);
    CPU_ZERO(&cpus);
    CPU_SET(side->cpu, &cpus);
    pthread_attr_init(&attr);
    pthread_attr_setaffinity_np(&attr, sizeof(cpus), &cpus);
    rc = pthread_create(thread, &attr, rounds_run, side);
    pthread_attr_destroy(&attr);
    if (rc == 0)
        return 0;
    etch_error_set_errno(err, rc, "cannot start a thread on CPU %u", side->cpu);
    return etch_error_advise(err, "allow this process that CPU (taskset, cpuset)");
}

/* Plays `t->want` rounds. Returns how many both sides finished, or -1. */
static int64_t run(struct table *t, struct etch_error *err)
{
    pthread_t threads[2] = {0};

    if (start(&t->sides[0], &threads[0], err) < 0)
        return -1;
    if (start(&t->sides[1], &threads[1], err) < 0) {
        atomic_store(&t->stop, true);
        pthread_join(threads[0], NULL);
        return -1;
    }
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    return (int64_t)(t->sides[0].done < t->sides[1].done ? t->sides[0].done : t->sides[1].done);
}

int etch_race_lines_new(struct etch_race_lines *lines, size_t n, struct etch_error *err)
{
    lines->n = n;
    lines->memory = mmap(NULL, n * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (lines->memory == MAP_FAILED)
        return etch_error_no_memory(err);
    madvise(lines->memory, n * PAGE, MADV_NOHUGEPAGE);
    memset(lines->memory, 0, n * PAGE);
    return 0;
}

void etch_race_lines_free(struct etch_race_lines *lines)
{
    if (lines->memory)
        munmap(lines->memory, lines->n * PAGE);
    lines->memory = NULL;
    lines->n = 0;
}

static void table_free(struct table *t)
{
    if (!t)
        return;
    free(t->sides[0].marks);
    free(t->sides[1].marks);
    free(t->final);
    free(t);
}

static struct table *table_new(const struct etch_race *race, size_t want)
{
    struct table *t = aligned_alloc(alignof(struct table), sizeof(*t));

    if (!t)
        return NULL;
    memset(t, 0, sizeof(*t));
    memset(race->lines->memory, 0, race->lines->n * PAGE); /* a flag of an earlier race must not be seen in this one */
    t->race = race;
    t->want = want;
    t->final = calloc(want, sizeof(*t->final));
    for (int i = 0; i < 2; i++) {
        t->sides[i].table = t;
        t->sides[i].second = i == 1;
        t->sides[i].cpu = i == 1 ? race->b : race->a;
        t->sides[i].marks = malloc(want * sizeof(struct mark));
        if (t->sides[i].marks) /* touched here, so that no round takes a page fault */
            memset(t->sides[i].marks, 0xff, want * sizeof(struct mark));
    }
    if (t->final && t->sides[0].marks && t->sides[1].marks)
        return t;
    table_free(t);
    return NULL;
}

int64_t etch_race_write(const struct etch_race *race, enum etch_race_variant variant, struct etch_skew_round *rounds,
                        size_t want, struct etch_error *err)
{
    struct table *t = table_new(race, want);
    int64_t n, kept = 0;

    if (!t)
        return etch_error_no_memory(err);
    t->play = play_write;
    t->variant = variant;
    n = run(t, err);
    for (int64_t i = 0; i < n; i++) {
        const struct mark *a = &t->sides[0].marks[i];
        const struct mark *b = &t->sides[1].marks[i];
        bool b_left = t->final[i] == 2;

        if (a->moved || b->moved || t->final[i] == 0)
            continue;
        rounds[kept++] = (struct etch_skew_round){
            .a_begin = a->begin + (uint64_t)race->a_error,
            .a_end = a->end + (uint64_t)race->a_error,
            .b_begin = b->begin + (uint64_t)race->b_error,
            .b_end = b->end + (uint64_t)race->b_error,
            /* CMPXCHG lets only the first writer succeed, so the variable has the value of the first writer. */
            .b_second = variant == ETCH_RACE_CMPXCHG ? !b_left : b_left,
        };
    }
    table_free(t);
    return n < 0 ? -1 : kept;
}

int64_t etch_race_flag(const struct etch_race *race, struct etch_race_difference *differences, size_t want,
                       struct etch_error *err)
{
    struct table *t = table_new(race, want);
    int64_t n, kept = 0;

    if (!t)
        return etch_error_no_memory(err);
    t->play = play_flag;
    n = run(t, err);
    for (int64_t i = 0; i < n; i++) {
        const struct mark *a = &t->sides[0].marks[i];
        const struct mark *b = &t->sides[1].marks[i];

        if (!a->moved && !b->moved)
            differences[kept++] = (struct etch_race_difference){
                .cycles = (int64_t)(b->begin - a->begin) + race->b_error - race->a_error,
                .line = (uint32_t)line_of(race, (uint64_t)i),
            };
    }
    table_free(t);
    return n < 0 ? -1 : kept;
}

int64_t etch_race_drain(const struct etch_race *race, uint64_t *waits, size_t want, struct etch_error *err)
{
    struct table *t = table_new(race, want);
    int64_t n, kept = 0;

    if (!t)
        return etch_error_no_memory(err);
    t->play = play_drain;
    n = run(t, err);
    for (int64_t i = 0; i < n; i++)
        if (!t->sides[1].marks[i].moved)
            waits[kept++] = t->sides[1].marks[i].end - t->sides[1].marks[i].begin;
    table_free(t);
    return n < 0 ? -1 : kept;
}
