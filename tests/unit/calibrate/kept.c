/* SPDX-License-Identifier: MIT */
/* A kept measurement: it comes back as it was, for the same machine only; damaged bytes never do; new readings that
 * contradict it are noticed. */
#include "calibrate/kept.h"

#include "base/crc32c.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#define PAIRS 10
#define CPUS 3

static struct etch_kept_key key;

static uint64_t raw_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC_RAW, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* A machine of four CPUs, and this machine's kernel clock. */
static void make(struct etch_calibration *c)
{
    struct etch_error err;

    memset(c, 0, sizeof(*c));
    c->reference = 1;
    c->budget_ns = 2000000000;
    c->cpus = calloc(CPUS, sizeof(*c->cpus));
    c->pairs = calloc(PAIRS, sizeof(*c->pairs));
    for (unsigned i = 0; i < CPUS; i++) {
        c->cpus[i] = (struct etch_calibration_cpu){.cpu = 2 + i, .best = ETCH_RACE_XCHG, .bounds = {-100, 50, 1000}};
        for (int v = 0; v < ETCH_RACE_VARIANTS; v++)
            c->cpus[i].variants[v] = (struct etch_skew_bounds){-100 - v, 50 + v, 10};
        c->cpus[i].interval = (struct etch_skew_interval){-2, 1, -0.5, 3, 0.99999, 900};
    }
    c->n_cpus = CPUS;
    etch_clock_pairs_take(c->pairs, PAIRS, CLOCK_MONOTONIC_RAW, 500000);
    c->n_pairs = PAIRS;
    assert_int_equal(etch_clock_fit(c->pairs, c->n_pairs, &c->fit, &err), 0);
    c->trap = (struct etch_trap_latency){.lo = 1, .hi = 9, .median = 5, .samples = 400};
    strcpy(key.text, "boot=1\n");
    key.suspended_ns = 5000000000;
    key.raw_ns = raw_ns();
}

static void comes_back(void **state)
{
    struct etch_calibration c, back;
    struct etch_error err;
    size_t size;
    uint8_t *bytes;

    (void)state;
    make(&c);
    bytes = etch_kept_pack(&c, &key, &size);
    assert_int_equal(etch_kept_parse(&back, &key, bytes, size, &err), 0);
    assert_int_equal(back.reference, 1);
    assert_int_equal(back.n_cpus, CPUS);
    for (unsigned i = 0; i < CPUS; i++) {
        assert_int_equal(back.cpus[i].cpu, c.cpus[i].cpu);
        assert_memory_equal(&back.cpus[i].bounds, &c.cpus[i].bounds, sizeof(c.cpus[i].bounds));
        assert_memory_equal(back.cpus[i].variants, c.cpus[i].variants, sizeof(c.cpus[i].variants));
        assert_true(back.cpus[i].interval.mean == c.cpus[i].interval.mean && back.cpus[i].interval.values == 900);
    }
    assert_memory_equal(back.pairs, c.pairs, PAIRS * sizeof(*c.pairs));
    assert_true(back.fit.tsc_per_ns == c.fit.tsc_per_ns && back.fit.error == c.fit.error);
    assert_true(back.trap.hi == 9 && back.age_ns > 0 && back.budget_ns == 2000000000);
    etch_calibration_free(&back);
    etch_calibration_free(&c);
    free(bytes);
}

static void refuse(const uint8_t *bytes, size_t size, const char *why)
{
    struct etch_calibration back;
    struct etch_error err;

    assert_int_equal(etch_kept_parse(&back, &key, bytes, size, &err), -1);
    if (!strstr(err.what, why))
        fail_msg("%s", err.what);
}

static void refuses_another_machine(void **state)
{
    struct etch_calibration c;
    struct etch_kept_key same;
    size_t size;
    uint8_t *bytes;

    (void)state;
    make(&c);
    bytes = etch_kept_pack(&c, &key, &size);
    same = key;
    strcpy(key.text, "boot=2\n");
    refuse(bytes, size, "are not those");
    key = same;
    key.suspended_ns += 2000000;
    refuse(bytes, size, "suspended");
    key = same;
    key.raw_ns += UINT64_C(86401) * 1000000000;
    refuse(bytes, size, "more than a day old");
    key.raw_ns = 1; /* before it was made */
    refuse(bytes, size, "damaged");
    etch_calibration_free(&c);
    free(bytes);
}

static void set_sum(uint8_t *bytes, size_t size)
{
    uint32_t crc = etch_crc32c(0, bytes + 12, size - 12);

    memcpy(bytes + 8, &crc, sizeof(crc));
}

/* Every byte, with the checksum wrong, and then right again: no number gets through that could not be measured. */
static void survives_damage(void **state)
{
    struct etch_calibration c, back;
    struct etch_error err;
    size_t size;
    uint8_t *bytes;

    (void)state;
    make(&c);
    bytes = etch_kept_pack(&c, &key, &size);
    for (size_t n = 0; n < size; n += 7)
        refuse(bytes, n, "damaged");
    for (size_t i = 0; i < size; i++) {
        uint8_t was = bytes[i];

        bytes[i] ^= 0x80;
        refuse(bytes, size, "");
        if (i >= 12)
            set_sum(bytes, size);
        if (etch_kept_parse(&back, &key, bytes, size, &err) == 0) {
            for (size_t k = 0; k < back.n_cpus; k++)
                assert_true(etch_skew_bounds_known(&back.cpus[k].bounds) && back.cpus[k].best < ETCH_RACE_VARIANTS);
            assert_true(back.fit.tsc_per_ns > 0);
            etch_calibration_free(&back);
        }
        bytes[i] = was;
        set_sum(bytes, size);
    }
    etch_calibration_free(&c);
    free(bytes);
}

/* Rounds of CPUs whose clocks are apart by `context`. */
static int64_t race(void *context, const struct etch_race *r, enum etch_race_variant variant,
                    struct etch_skew_round *rounds, size_t want, struct etch_error *err)
{
    uint64_t skew = (uint64_t)(r->b == 3 ? *(const int64_t *)context : -20);

    (void)variant;
    (void)want;
    (void)err;
    rounds[0] = (struct etch_skew_round){1000, 1100, 1000 + skew, 1100 + skew, true};
    rounds[1] = (struct etch_skew_round){2000, 2100, 2000 + skew, 2100 + skew, false};
    return 2;
}

static int check(struct etch_calibration *c, int64_t skew, struct etch_error *err)
{
    struct etch_calibration_races races = {.cpus = 4, .write = race, .context = &skew};
    struct etch_calibration_options options = {.races = &races};

    return etch_calibration_check(c, &options, err);
}

static void check_sees_a_moved_clock(void **state)
{
    struct etch_calibration c;
    struct etch_error err;

    (void)state;
    make(&c);
    assert_int_equal(check(&c, -20, &err), 0);
    assert_int_equal(c.n_pairs_before, PAIRS);
    assert_true(c.n_pairs > PAIRS && c.n_checked == CPUS);
    assert_int_equal(check(&c, 300, &err), -1);
    assert_string_equal(err.what, "the clock of CPU 3 moved since it was measured");
    assert_int_equal(check(&c, -300, &err), -1);
    etch_calibration_free(&c);
}

static void check_sees_a_jump_of_the_kernels_clock(void **state)
{
    struct etch_calibration c;
    struct etch_error err;

    (void)state;
    make(&c);
    for (size_t i = 0; i < c.n_pairs; i++)
        c.pairs[i].ns -= 1000000000; /* a guest that stood still for a second while its TSC went on, or the reverse */
    assert_int_equal(etch_clock_fit(c.pairs, c.n_pairs, &c.fit, &err), 0);
    assert_int_equal(check(&c, -20, &err), -1);
    assert_non_null(strstr(err.what, "kernel's clock"));
    etch_calibration_free(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(comes_back),
        cmocka_unit_test(refuses_another_machine),
        cmocka_unit_test(survives_damage),
        cmocka_unit_test(check_sees_a_moved_clock),
        cmocka_unit_test(check_sees_a_jump_of_the_kernels_clock),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
