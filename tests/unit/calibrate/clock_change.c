/* SPDX-License-Identifier: MIT */
/* A clock that somebody changes while a program is recorded, from one tick upward, on simulated machines: measured
 * before and after as etch does, written to records, read back, and used to order what the program did. Each change is
 * reported, and no pair is ever in the wrong order. */
#include "collector/clock_record.h"
#include "tests/sim/sim.h"

#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define CPUS 4
#define LINES 2000
#define PER_LINE 20
#define ROUNDS 400
#define CHANGED_CPU 1

/* What is peculiar to each line stays the same from one measurement to the next. */
struct machine {
    struct sim_random random;
    double asymmetry[LINES];
};

static double estimate(struct machine *m, double skew, double asymmetry)
{
    int64_t d[PER_LINE];
    size_t dropped = 0;

    for (int i = 0; i < PER_LINE; i++)
        d[i] = sim_flag_round(&m->random, skew, asymmetry, i % 2);
    return etch_skew_estimate(d, PER_LINE, &dropped);
}

static void measure_cpu(struct machine *m, struct etch_calibration_cpu *cpu, int64_t skew, bool statistics)
{
    cpu->bounds = ETCH_SKEW_BOUNDS_NONE;
    for (int i = 0; i < ROUNDS; i++) {
        struct etch_skew_round round = sim_write_round(&m->random, skew);

        etch_skew_bounds_add(&cpu->bounds, &round);
    }
    if (!statistics)
        return;
    cpu->n_estimates = LINES;
    cpu->estimates = malloc(LINES * sizeof(*cpu->estimates));
    assert_non_null(cpu->estimates);
    for (int i = 0; i < LINES; i++)
        cpu->estimates[i] = estimate(m, (double)skew, m->asymmetry[i]);
    etch_skew_interval(cpu->estimates, LINES, 0.99999, &cpu->interval);
}

/* As etch_calibrate() would find it; statistics only of the CPU that matters, which is what takes the time. */
static void measure(struct machine *m, struct etch_calibration *c, const int64_t *skew,
                    const struct etch_calibration *like)
{
    memset(c, 0, sizeof(*c));
    c->health.constant = c->health.nonstop = true;
    c->like = like;
    c->n_cpus = CPUS - 1;
    c->cpus = calloc(CPUS, sizeof(*c->cpus));
    assert_non_null(c->cpus);
    for (unsigned i = 1; i < CPUS; i++) {
        c->cpus[i - 1].cpu = i;
        measure_cpu(m, &c->cpus[i - 1], skew[i], i == CHANGED_CPU);
    }
}

struct verdict {
    uint64_t reported, asked, wrong, unordered, conflicts;
};

static void judge(const struct sim_run *run, const struct etch_timeline_clocks *clocks, struct verdict *v)
{
    struct etch_order_input input = run->input;
    struct etch_order *order;
    struct etch_error err;
    size_t conflicts;

    input.cpus = clocks->cpus;
    input.n_cpus = clocks->n_cpus;
    assert_int_equal(etch_order_build(&order, &input, &err), 0);
    etch_order_conflicts(order, &conflicts);
    v->conflicts += conflicts;
    for (size_t a = 0; a < run->n; a++)
        for (size_t b = a + 1; b < run->n; b++) {
            enum etch_relation relation = etch_order_ask(order, a, b);

            v->asked++;
            v->unordered += relation == ETCH_UNORDERED;
            v->wrong += (relation == ETCH_BEFORE && run->truth[a] > run->truth[b]) ||
                        (relation == ETCH_AFTER && run->truth[a] < run->truth[b]);
        }
    etch_order_free(order);
}

/* One machine, one program, one change. */
static void change_clock(uint64_t seed, int64_t ticks, struct verdict *v)
{
    struct sim_options options = SIM_OPTIONS_DEFAULT;
    struct machine *m = calloc(1, sizeof(*m));
    struct etch_calibration before, after;
    struct etch_timeline_clocks clocks;
    Etch__Clock *records[2];
    struct etch_error err;
    struct sim_run run;

    assert_non_null(m);
    m->random.state = seed + 1000;
    for (int i = 0; i < LINES; i++)
        m->asymmetry[i] = 20 * sim_normal(&m->random);
    options.seed = seed;
    options.cpus = options.threads = CPUS;
    options.pace = 300;
    options.trap = 50;
    options.wrong_cpu = CHANGED_CPU;
    options.wrong_by = ticks;
    options.wrong_from = 0.4;
    assert_int_equal(sim_run_new(&run, &options), 0);
    measure(m, &before, run.skew, NULL);
    run.skew[CHANGED_CPU] += ticks;
    measure(m, &after, run.skew, &before);
    records[0] = etch_clock_record(&before, ETCH__CLOCK_PHASE__CLOCK_BEFORE);
    records[1] = etch_clock_record(&after, ETCH__CLOCK_PHASE__CLOCK_AFTER);
    assert_non_null(records[0]);
    assert_non_null(records[1]);
    assert_int_equal(etch_timeline_clocks(&clocks, records, 2, false, 0, &err), 0);
    v->reported += clocks.changed + clocks.shifted == 1;
    assert_int_equal(clocks.cpus[CHANGED_CPU].known, clocks.changed == 0);
    judge(&run, &clocks, v);
    etch_timeline_clocks_free(&clocks);
    for (int i = 0; i < 2; i++)
        etch__clock__free_unpacked(records[i], NULL);
    etch_calibration_free(&after);
    etch_calibration_free(&before);
    sim_run_free(&run);
    free(m);
}

static void every_change_is_reported_and_orders_nothing_wrong(void **state)
{
    static const int64_t changes[] = {0, 1, -1, 3, -10, 30, -100, 300, -1000, 10000, -1000000};

    (void)state;
    for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
        struct verdict v = {0};

        for (uint64_t seed = 0; seed < 6; seed++)
            change_clock(seed, changes[i], &v);
        print_message("%+8" PRId64 " ticks: reported in %" PRIu64 " of 6, %" PRIu64 " pairs, %" PRIu64
                      " wrong, %.2f %% unordered\n",
                      changes[i], v.reported, v.asked, v.wrong, 100.0 * (double)v.unordered / (double)v.asked);
        assert_int_equal(v.reported, changes[i] ? 6 : 0);
        assert_int_equal(v.wrong, 0);
        assert_int_equal(v.conflicts, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_change_is_reported_and_orders_nothing_wrong)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
