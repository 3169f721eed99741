/* SPDX-License-Identifier: MIT */
/* All clocks of this machine; see calibration.h. */
#include "calibrate/calibration.h"

#include "base/log.h"
#include "base/time.h"
#include "calibrate/stamp.h"

#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LINES 2048  /* cache lines to race for, each in its own page */
#define PER_LINE 20 /* rounds of scheme 2 for an estimate */
#define WRITE_CHUNK 20000
#define CPUID_ROUNDS 500
#define FLAG_CHUNK ((size_t)LINES * PER_LINE)
#define GROUP_MAX ((size_t)4 * PER_LINE)
#define PAIRS 40
#define TRAPS 400
#define CPUS_MAX 4096
#define MEASUREMENTS 3 /* at most: a guest's clock may jump once, when its host is paused or moved */

static int64_t error_of(const struct etch_calibration_options *o, unsigned cpu)
{
    return o->errors && cpu < o->n_errors ? o->errors[cpu] : 0;
}

static struct etch_race race_of(const struct etch_calibration *c, const struct etch_calibration_options *o, unsigned a,
                                unsigned b, uint64_t until)
{
    struct etch_race race = {.a = a,
                             .b = b,
                             .a_error = error_of(o, a),
                             .b_error = error_of(o, b),
                             .deadline = until,
                             .lines = &c->lines,
                             .per_line = 1};

    return race;
}

static int64_t write_here(void *context, const struct etch_race *race, enum etch_race_variant variant,
                          struct etch_skew_round *rounds, size_t want, struct etch_error *err)
{
    (void)context;
    return etch_race_write(race, variant, rounds, want, err);
}

static int64_t flag_here(void *context, const struct etch_race *race, struct etch_race_difference *differences,
                         size_t want, struct etch_error *err)
{
    (void)context;
    return etch_race_flag(race, differences, want, err);
}

static const struct etch_calibration_races *races_of(const struct etch_calibration_options *o)
{
    static const struct etch_calibration_races here = {.write = write_here, .flag = flag_here};

    return o->races ? o->races : &here;
}

/* ---- Scheme 1 ---- */

static int add_rounds(const struct etch_calibration_options *o, const struct etch_race *race,
                      enum etch_race_variant variant, size_t want, struct etch_skew_bounds *bounds,
                      struct etch_error *err)
{
    const struct etch_calibration_races *races = races_of(o);
    struct etch_skew_round *rounds = malloc(want * sizeof(*rounds));
    int64_t n = rounds ? races->write(races->context, race, variant, rounds, want, err) : etch_error_no_memory(err);

    for (int64_t i = 0; i < n; i++)
        etch_skew_bounds_add(bounds, &rounds[i]);
    free(rounds);
    return n < 0 ? -1 : 0;
}

/* All bounds are true, so the range is where they overlap. */
static void intersect(struct etch_skew_bounds *all, const struct etch_skew_bounds *one)
{
    all->lo = one->lo > all->lo ? one->lo : all->lo;
    all->hi = one->hi < all->hi ? one->hi : all->hi;
    all->rounds += one->rounds;
}

static bool narrower(const struct etch_skew_bounds *x, const struct etch_skew_bounds *y)
{
    return etch_skew_bounds_known(x) && (!etch_skew_bounds_known(y) || x->hi - x->lo < y->hi - y->lo);
}

/* The first turn tries each variant. Later turns repeat the tightest. */
static int bounds_turn(const struct etch_calibration *c, const struct etch_calibration_options *o,
                       struct etch_calibration_cpu *cpu, bool first, uint64_t until, struct etch_error *err)
{
    struct etch_race race = race_of(c, o, c->reference, cpu->cpu, until);

    for (int v = 0; v < ETCH_RACE_VARIANTS; v++) {
        size_t want = v == ETCH_RACE_CPUID ? CPUID_ROUNDS : first ? WRITE_CHUNK / 4 : WRITE_CHUNK;

        if (first)
            cpu->variants[v] = ETCH_SKEW_BOUNDS_NONE;
        else if (v != ETCH_RACE_FENCE && v != ETCH_RACE_LOCKED && v != (int)cpu->best)
            continue;
        if (add_rounds(o, &race, (enum etch_race_variant)v, want, &cpu->variants[v], err) < 0)
            return -1;
        if (narrower(&cpu->variants[v], &cpu->variants[cpu->best]))
            cpu->best = (enum etch_race_variant)v;
    }
    return 0;
}

static void set_bounds(struct etch_calibration_cpu *cpu)
{
    cpu->bounds = ETCH_SKEW_BOUNDS_NONE;
    for (int v = 0; v < ETCH_RACE_VARIANTS; v++)
        intersect(&cpu->bounds, &cpu->variants[v]);
}

/* True if there are no bounds yet, or only those of the cpuid variant, which are useless under a hypervisor. */
static bool bounds_poor(const struct etch_calibration_cpu *cpu)
{
    if (etch_skew_bounds_contradict(&cpu->bounds))
        return false; /* more rounds cannot help */
    return !etch_skew_bounds_known(&cpu->bounds) || cpu->best == ETCH_RACE_CPUID;
}

/* Turns until the time is up; on a machine so busy that both CPUs were never ours at once, until `patience` is. */
static int refine_bounds(const struct etch_calibration *c, const struct etch_calibration_options *o,
                         struct etch_calibration_cpu *cpu, uint64_t until, uint64_t patience, struct etch_error *err)
{
    uint64_t now;

    set_bounds(cpu);
    while ((now = etch_time_ns()) < until || (now < patience && bounds_poor(cpu))) {
        if (bounds_turn(c, o, cpu, false, now < until ? until : patience, err) < 0)
            return -1;
        set_bounds(cpu);
    }
    return 0;
}

/* ---- Scheme 2 ---- */

static void estimate_lines(struct etch_calibration_cpu *cpu, const struct etch_race_difference *d, size_t n,
                           double confidence)
{
    int64_t group[GROUP_MAX];
    double *known = malloc((cpu->n_estimates + 1) * sizeof(*known));
    size_t n_known = 0, dropped = 0;

    for (size_t i = 0; i < n;) {
        uint32_t line = d[i].line;
        size_t size = 0;
        double estimate;

        for (; i < n && d[i].line == line; i++)
            if (size < GROUP_MAX)
                group[size++] = d[i].cycles;
        estimate = etch_skew_estimate(group, size, &dropped);
        if (line < cpu->n_estimates)
            cpu->estimates[line] = estimate;
        if (known && !isnan(estimate) && n_known < cpu->n_estimates)
            known[n_known++] = estimate;
    }
    cpu->dropped = dropped;
    if (known)
        etch_skew_interval(known, n_known, confidence, &cpu->interval);
    free(known);
}

static int measure_statistics(struct etch_calibration *c, const struct etch_calibration_options *o,
                              struct etch_calibration_cpu *cpu, uint64_t until, struct etch_error *err)
{
    struct etch_race race = race_of(c, o, c->reference, cpu->cpu, until);
    struct etch_race_difference *d = malloc(FLAG_CHUNK * sizeof(*d));
    int64_t n;

    race.per_line = PER_LINE;
    cpu->n_estimates = LINES;
    cpu->estimates = malloc(LINES * sizeof(*cpu->estimates));
    if (!d || !cpu->estimates) {
        free(d);
        return etch_error_no_memory(err);
    }
    for (size_t i = 0; i < LINES; i++)
        cpu->estimates[i] = NAN;
    n = races_of(o)->flag(races_of(o)->context, &race, d, FLAG_CHUNK, err);
    if (n > 0) {
        cpu->flag_rounds = (uint64_t)n;
        estimate_lines(cpu, d, (size_t)n, o->confidence > 0 ? o->confidence : 0.99999);
    }
    if (n > 0 && !c->differences) {
        c->differences = d;
        c->n_differences = (size_t)n;
    } else {
        free(d);
    }
    return n < 0 ? -1 : 0;
}

/* ---- CPUs ---- */

static int list_given_cpus(struct etch_calibration *c, unsigned n, struct etch_error *err)
{
    c->cpus = calloc(n + 1, sizeof(*c->cpus));
    if (!c->cpus)
        return etch_error_no_memory(err);
    for (unsigned cpu = 1; cpu < n; cpu++)
        c->cpus[c->n_cpus++].cpu = cpu;
    return 0;
}

static int list_cpus(struct etch_calibration *c, struct etch_error *err)
{
    cpu_set_t *set = CPU_ALLOC(CPUS_MAX);
    size_t size = CPU_ALLOC_SIZE(CPUS_MAX);
    bool first = true;

    c->cpus = calloc(CPUS_MAX, sizeof(*c->cpus));
    if (!set || !c->cpus || sched_getaffinity(0, size, set) < 0) {
        CPU_FREE(set);
        return etch_error_set(err, "cannot find out which CPUs this process may use");
    }
    for (unsigned cpu = 0; cpu < CPUS_MAX; cpu++) {
        if (!CPU_ISSET_S(cpu, size, set))
            continue;
        if (first)
            c->reference = cpu;
        else
            c->cpus[c->n_cpus++].cpu = cpu;
        first = false;
    }
    CPU_FREE(set);
    return 0;
}

static const struct etch_calibration_cpu *find_cpu(const struct etch_calibration *c, unsigned cpu)
{
    for (size_t i = 0; i < c->n_cpus; i++)
        if (c->cpus[i].cpu == cpu)
            return &c->cpus[i];
    return NULL;
}

struct etch_skew_bounds etch_calibration_between(const struct etch_calibration *c, unsigned a, unsigned b)
{
    const struct etch_calibration_cpu *x = find_cpu(c, a);
    const struct etch_calibration_cpu *y = find_cpu(c, b);
    struct etch_skew_bounds none = ETCH_SKEW_BOUNDS_NONE;
    struct etch_skew_bounds zero = {0};
    const struct etch_skew_bounds *from = x ? &x->bounds : a == c->reference ? &zero : &none;
    const struct etch_skew_bounds *to = y ? &y->bounds : b == c->reference ? &zero : &none;

    if (a == b)
        return zero;
    if ((from != &zero && !etch_skew_bounds_known(from)) || (to != &zero && !etch_skew_bounds_known(to)))
        return none;
    return (struct etch_skew_bounds){.lo = to->lo - from->hi, .hi = to->hi - from->lo};
}

/* The statistics stop when they have enough, the bounds never have: on a quiet machine these get nearly all of the
 * time, on a busy one the others get their part of it. */
static int measure_cpu(struct etch_calibration *c, const struct etch_calibration_options *o,
                       struct etch_calibration_cpu *cpu, uint64_t share, uint64_t patience, struct etch_error *err)
{
    uint64_t start = etch_time_ns();

    if (bounds_turn(c, o, cpu, true, start + share * 3 / 10, err) < 0 ||
        measure_statistics(c, o, cpu, start + share * 7 / 10, err) < 0 ||
        refine_bounds(c, o, cpu, start + share, patience, err) < 0)
        return -1;
    cpu->interval_outside = cpu->interval.values > 1 && etch_skew_bounds_known(&cpu->bounds) &&
                            (cpu->interval.lo > (double)cpu->bounds.hi || cpu->interval.hi < (double)cpu->bounds.lo);
    return 0;
}

static int measure_cpus(struct etch_calibration *c, const struct etch_calibration_options *o, uint64_t end,
                        uint64_t patience, struct etch_error *err)
{
    for (size_t i = 0; i < c->n_cpus; i++) {
        struct etch_calibration_cpu *cpu = &c->cpus[i];
        uint64_t start = etch_time_ns();
        size_t left = c->n_cpus - i + (c->n_cpus > 1 ? o->checks : 0);
        uint64_t share = end > start ? (end - start) / left : 1000000;

        if (measure_cpu(c, o, cpu, share, patience, err) < 0)
            return -1;
        cpu->duration_ns = etch_time_ns() - start;
        if (etch_skew_bounds_contradict(&cpu->bounds)) {
            c->refused = c->changed = true;
            snprintf(c->why, sizeof(c->why), "the clock of CPU %u changed while it was measured", cpu->cpu);
        }
    }
    return 0;
}

#define CHECK_NS 5000000 /* for one check, at least */

static uint64_t check_until(uint64_t end, unsigned left)
{
    uint64_t now = etch_time_ns();
    uint64_t share = end > now ? (end - now) / left : 0;

    return now + (share > CHECK_NS ? share : CHECK_NS);
}

/* Bounds against the reference must also hold between any two CPUs. */
static int check_pairs(struct etch_calibration *c, const struct etch_calibration_options *o, uint64_t end,
                       struct etch_error *err)
{
    uint64_t random = c->tsc | 1;

    if (c->n_cpus < 2 || o->checks == 0)
        return 0;
    c->checks = calloc(o->checks, sizeof(*c->checks));
    if (!c->checks)
        return etch_error_no_memory(err);
    /* Makes at least one check, even if time is up. */
    for (unsigned i = 0; i < o->checks && (i == 0 || etch_time_ns() < end); i++) {
        struct etch_calibration_check *check = &c->checks[c->n_checks++];
        struct etch_skew_bounds follows;
        struct etch_race race;
        size_t a, b;

        random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        a = (random >> 33) % c->n_cpus;
        b = (a + 1 + (random >> 13) % (c->n_cpus - 1)) % c->n_cpus;
        check->a = c->cpus[a].cpu;
        check->b = c->cpus[b].cpu;
        check->bounds = ETCH_SKEW_BOUNDS_NONE;
        race = race_of(c, o, check->a, check->b, check_until(end, o->checks - i));
        if (add_rounds(o, &race, c->cpus[a].best, WRITE_CHUNK, &check->bounds, err) < 0)
            return -1;
        follows = etch_calibration_between(c, check->a, check->b);
        check->agrees = !etch_skew_bounds_known(&check->bounds) || !etch_skew_bounds_known(&follows) ||
                        (check->bounds.lo < follows.hi && follows.lo < check->bounds.hi);
        if (!check->agrees) {
            c->refused = true;
            snprintf(c->why, sizeof(c->why), "CPUs %u and %u disagree with what both say of CPU %u", check->a, check->b,
                     c->reference);
        }
    }
    return 0;
}

/* ---- Delays ---- */

static void measure_drain(struct etch_calibration *c, const struct etch_calibration_options *o)
{
    struct etch_race race = race_of(c, o, c->reference, c->cpus[0].cpu, etch_time_ns() + 50000000);
    uint64_t *waits = malloc(4000 * sizeof(*waits));
    struct etch_error ignored;
    int64_t n = waits ? etch_race_drain(&race, waits, 4000, &ignored) : 0;

    c->drain_lo = UINT64_MAX;
    for (int64_t i = 0; i < n; i++) {
        c->drain_lo = waits[i] < c->drain_lo ? waits[i] : c->drain_lo;
        c->drain_hi = waits[i] > c->drain_hi ? waits[i] : c->drain_hi;
    }
    free(waits);
}

/* The scheduler's clock is perf's default. It can be read only from a stamp that perf makes. */
static void measure_traps(struct etch_calibration *c)
{
    struct etch_clock_pair pairs[TRAPS];
    struct etch_error err;
    int64_t n = etch_trap_take(pairs, TRAPS, CLOCK_MONOTONIC_RAW, &err);

    if (n <= 0 || c->fit.pairs == 0 || etch_trap_latency(pairs, (size_t)n, &c->fit, &c->trap, &err) < 0) {
        snprintf(c->trap_missing, sizeof(c->trap_missing), "%.150s",
                 n == 0 ? "no watched access was stamped" : err.what);
        return;
    }
    n = etch_trap_take(pairs, TRAPS, ETCH_TRAP_SCHEDULER_CLOCK, &err);
    if (n < 2 || etch_clock_fit(pairs, (size_t)n, &c->scheduler, &err) < 0)
        return;
    if (c->offered.offered)
        c->offered_differs_ns = etch_clock_offered_miss(&c->offered, pairs, (size_t)n);
}

static int measure_kernel_clock(struct etch_calibration *c, const struct etch_calibration_options *o,
                                struct etch_error *err)
{
    size_t earlier = o->like ? o->like->n_pairs : 0;

    c->pairs = malloc((earlier + PAIRS) * sizeof(*c->pairs));
    if (!c->pairs)
        return etch_error_no_memory(err);
    if (earlier)
        memcpy(c->pairs, o->like->pairs, earlier * sizeof(*c->pairs));
    etch_clock_pairs_take(c->pairs + earlier, PAIRS, CLOCK_MONOTONIC_RAW, 1000000);
    c->n_pairs_before = earlier;
    c->n_pairs = earlier + PAIRS;
    if (o->like && o->like->fit.pairs)
        c->drift = etch_clock_drift(&o->like->fit, c->pairs + earlier, PAIRS);
    return etch_clock_fit(c->pairs, c->n_pairs, &c->fit, err);
}

static int get_lines(struct etch_calibration *c, const struct etch_calibration_options *o, struct etch_error *err)
{
    if (!o->like || !o->like->lines.memory)
        return etch_race_lines_new(&c->lines, LINES, err);
    c->lines = o->like->lines;
    c->like = o->like;
    return 0;
}

static int measure_once(struct etch_calibration *c, const struct etch_calibration_options *o, struct etch_error *err)
{
    uint64_t start = etch_time_ns();
    uint64_t budget = o->budget_ns ? o->budget_ns : ETCH_CALIBRATION_NS;
    uint64_t patience = 5 * budget < ETCH_CALIBRATION_NS ? 5 * budget : ETCH_CALIBRATION_NS * 9 / 10;
    uint32_t cpu;

    memset(c, 0, sizeof(*c));
    c->tsc = etch_stamp(&cpu);
    c->budget_ns = budget;
    etch_clock_health_read(&c->health, o->root ? o->root : "");
    etch_clock_offered_read(&c->offered);
    if ((o->races ? list_given_cpus(c, o->races->cpus, err) : list_cpus(c, err)) < 0 || get_lines(c, o, err) < 0 ||
        measure_kernel_clock(c, o, err) < 0)
        goto failed;
    if (!etch_clock_orders(&c->health)) {
        c->refused = true;
        snprintf(c->why, sizeof(c->why), "the time stamp counter is not %s on this machine",
                 c->health.constant ? "nonstop: it stops in deep sleep" : "constant: it changes speed with the core");
    }
    if (!o->skip_trap)
        measure_traps(c);
    if (c->n_cpus && !o->races)
        measure_drain(c, o);
    if (measure_cpus(c, o, start + budget * 8 / 10, start + patience, err) < 0 ||
        check_pairs(c, o, start + budget * 9 / 10, err) < 0)
        goto failed;
    c->duration_ns = etch_time_ns() - start;
    return 0;
failed:
    etch_calibration_free(c);
    return -1;
}

int etch_calibrate(struct etch_calibration *c, const struct etch_calibration_options *o, struct etch_error *err)
{
    if (measure_once(c, o, err) < 0)
        return -1;
    for (unsigned again = 1; c->changed && again < MEASUREMENTS; again++) {
        etch_log(ETCH_LOG_CALIBRATE, ETCH_LOG_WARN, "%s; the clocks are measured again", c->why);
        etch_calibration_free(c);
        if (measure_once(c, o, err) < 0)
            return -1;
    }
    return 0;
}

void etch_calibration_free(struct etch_calibration *c)
{
    for (size_t i = 0; i < c->n_cpus; i++)
        free(c->cpus[i].estimates);
    free(c->cpus);
    free(c->checks);
    free(c->pairs);
    free(c->differences);
    if (!c->like)
        etch_race_lines_free(&c->lines);
    memset(c, 0, sizeof(*c));
}

enum etch_skew_change etch_calibration_compare(const struct etch_calibration *before,
                                               const struct etch_calibration *after, unsigned cpu, double floor,
                                               struct etch_skew_interval *change)
{
    const struct etch_calibration_cpu *b = find_cpu(before, cpu);
    const struct etch_calibration_cpu *a = find_cpu(after, cpu);
    enum etch_skew_change verdict;

    memset(change, 0, sizeof(*change));
    if (!a || !b || before->reference != after->reference)
        return ETCH_SKEW_UNKNOWN;
    verdict = etch_skew_compare(&b->bounds, &b->interval, &a->bounds, &a->interval, floor);
    if (verdict == ETCH_SKEW_CHANGED || b->n_estimates != a->n_estimates || after->like != before)
        return verdict;
    return etch_skew_compare_paired(b->estimates, a->estimates, a->n_estimates, a->interval.confidence, floor, change);
}
