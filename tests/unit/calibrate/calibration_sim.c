/* SPDX-License-Identifier: MIT */
/* The whole calibration of machines that we do not have: many CPUs against a reference, and the check on pairs of the
 * others. */
#include "calibrate/calibration.h"
#include "tests/sim/sim.h"

#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define CPUS 16

struct machine {
    struct sim_random random;
    int64_t skew[CPUS];
    unsigned liar; /* its clock jumps by `jump` when two others than the reference are compared; 0: none */
    int64_t jump;
    unsigned writes;
    unsigned jumps; /* so many calls in, CPU 1's clock jumps; 0: never */
    unsigned every; /* and again after each so many further calls; 0: once */
};

static int64_t skew_between(const struct machine *m, const struct etch_race *race)
{
    int64_t skew = m->skew[race->b] - m->skew[race->a];

    if (race->a != 0 && m->liar && race->a == m->liar)
        skew -= m->jump;
    if (race->a != 0 && m->liar && race->b == m->liar)
        skew += m->jump;
    return skew + race->b_error - race->a_error;
}

static int64_t write_rounds(void *context, const struct etch_race *race, enum etch_race_variant variant,
                            struct etch_skew_round *rounds, size_t want, struct etch_error *err)
{
    struct machine *m = context;

    (void)variant;
    (void)err;
    m->writes++;
    if (m->jumps && m->writes == m->jumps) {
        m->skew[1] += 100000;
        m->jumps += m->every;
    }
    want = want < 200 ? want : 200;
    for (size_t i = 0; i < want; i++)
        rounds[i] = sim_write_round(&m->random, skew_between(m, race));
    return (int64_t)want;
}

static int64_t flag_rounds(void *context, const struct etch_race *race, struct etch_race_difference *differences,
                           size_t want, struct etch_error *err)
{
    struct machine *m = context;

    (void)err;
    want = want < 2000 ? want : 2000;
    for (size_t i = 0; i < want; i++)
        differences[i] = (struct etch_race_difference){
            .cycles = sim_flag_round(&m->random, (double)skew_between(m, race), 0, i % 2), .line = (uint32_t)(i / 20)};
    return (int64_t)want;
}

static void calibrate(struct etch_calibration *c, struct machine *m, unsigned cpus, unsigned checks)
{
    struct etch_calibration_races races = {.cpus = cpus, .write = write_rounds, .flag = flag_rounds, .context = m};
    struct etch_calibration_options options = {
        .budget_ns = 300000000, .checks = checks, .skip_trap = true, .races = &races, .root = "/nonexistent"};
    struct etch_error err;

    if (etch_calibrate(c, &options, &err) < 0)
        fail_msg("%s", err.what);
}

static void set_skews(struct machine *m, uint64_t seed)
{
    memset(m, 0, sizeof(*m));
    m->random.state = seed;
    for (unsigned i = 1; i < CPUS; i++)
        m->skew[i] = sim_between(&m->random, -1000000, 1000000);
}

static void every_range_holds_the_truth(void **state)
{
    struct etch_calibration c;
    struct machine m;

    (void)state;
    set_skews(&m, 4);
    calibrate(&c, &m, CPUS, 8);
    assert_int_equal(c.n_cpus, CPUS - 1);
    for (unsigned a = 0; a < CPUS; a++)
        for (unsigned b = 0; b < CPUS; b++) {
            struct etch_skew_bounds between = etch_calibration_between(&c, a, b);

            assert_true(between.lo <= m.skew[b] - m.skew[a] && m.skew[b] - m.skew[a] <= between.hi);
        }
    for (size_t i = 0; i < c.n_cpus; i++)
        assert_true(fabs(c.cpus[i].interval.mean - (double)m.skew[c.cpus[i].cpu]) < 10);
    etch_calibration_free(&c);
}

static void pairs_beside_the_reference_are_checked(void **state)
{
    struct etch_calibration c;
    struct machine m;

    (void)state;
    set_skews(&m, 5);
    calibrate(&c, &m, CPUS, 8);
    assert_in_range(c.n_checks, 1, 8); /* as many as there is time for */
    for (size_t i = 0; i < c.n_checks; i++) {
        int64_t truth = m.skew[c.checks[i].b] - m.skew[c.checks[i].a];

        assert_int_not_equal(c.checks[i].a, c.checks[i].b);
        assert_int_not_equal(c.checks[i].a, 0);
        assert_int_not_equal(c.checks[i].b, 0);
        assert_true(c.checks[i].agrees);
        assert_true(c.checks[i].bounds.lo <= truth && truth <= c.checks[i].bounds.hi);
    }
    assert_null(strstr(c.why, "disagree"));
    etch_calibration_free(&c);
}

static void a_clock_that_jumps_once_is_measured_again(void **state)
{
    struct etch_calibration c;
    struct machine m;

    (void)state;
    set_skews(&m, 7);
    m.jumps = 3;
    calibrate(&c, &m, 2, 0);
    assert_false(c.changed);
    assert_true(etch_skew_bounds_known(&c.cpus[0].bounds));
    assert_in_range(m.skew[1] - c.cpus[0].bounds.lo, 0, (uint64_t)(c.cpus[0].bounds.hi - c.cpus[0].bounds.lo));
    etch_calibration_free(&c);
}

static void a_clock_that_keeps_jumping_is_refused(void **state)
{
    struct etch_calibration c;
    struct machine m;

    (void)state;
    set_skews(&m, 8);
    m.jumps = m.every = 3;
    calibrate(&c, &m, 2, 0);
    assert_true(c.changed);
    assert_true(c.refused);
    assert_non_null(strstr(c.why, "changed while it was measured"));
    etch_calibration_free(&c);
}

/* Three CPUs, so that the one pair is found: what it says of itself contradicts what both say of the reference. */
static void a_pair_that_disagrees_ends_the_order_by_clocks(void **state)
{
    struct etch_calibration c;
    struct machine m;

    (void)state;
    set_skews(&m, 6);
    m.liar = 2;
    m.jump = 5000;
    calibrate(&c, &m, 3, 2);
    assert_true(c.refused);
    assert_non_null(strstr(c.why, "disagree"));
    etch_calibration_free(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_range_holds_the_truth),
        cmocka_unit_test(pairs_beside_the_reference_are_checked),
        cmocka_unit_test(a_clock_that_jumps_once_is_measured_again),
        cmocka_unit_test(a_clock_that_keeps_jumping_is_refused),
        cmocka_unit_test(a_pair_that_disagrees_ends_the_order_by_clocks),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
