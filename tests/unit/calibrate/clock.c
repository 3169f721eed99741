/* SPDX-License-Identifier: MIT */
#include "calibrate/clock.h"
#include "tests/unit/test.h"
#include "tests/unit/tree.h"

static void health(const char *flags, const char *source, struct etch_clock_health *h)
{
    struct tree tree;
    char cpuinfo[512];

    tree_make(&tree);
    snprintf(cpuinfo, sizeof(cpuinfo), "processor\t: 0\nflags\t\t: %s\n\nprocessor\t: 1\nflags\t\t: fpu\n", flags);
    tree_file(&tree, "/proc/cpuinfo", cpuinfo);
    tree_file(&tree, "/sys/devices/system/clocksource/clocksource0/current_clocksource", source);
    etch_clock_health_read(h, tree.root);
    tree_remove(&tree);
}

static void read_good_clock(void **state)
{
    struct etch_clock_health h;

    (void)state;
    health("fpu tsc rdtscp constant_tsc rep_good nonstop_tsc", "tsc\n", &h);
    assert_true(h.constant && h.nonstop && h.rdtscp);
    assert_string_equal(h.clocksource, "tsc");
    assert_true(etch_clock_orders(&h));
}

static void read_clock_that_stops(void **state)
{
    struct etch_clock_health h;

    (void)state;
    health("fpu tsc constant_tsc", "hpet\n", &h);
    assert_true(h.constant);
    assert_false(h.nonstop);
    assert_false(etch_clock_orders(&h));
    health("fpu xconstant_tsc nonstop_tscx", "acpi_pm\n", &h); /* whole words only */
    assert_false(h.constant || h.nonstop);
}

static void read_nothing(void **state)
{
    struct etch_clock_health h;

    (void)state;
    etch_clock_health_read(&h, "/nonexistent");
    assert_false(etch_clock_orders(&h));
    assert_string_equal(h.clocksource, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(read_good_clock),
        cmocka_unit_test(read_clock_that_stops),
        cmocka_unit_test(read_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
