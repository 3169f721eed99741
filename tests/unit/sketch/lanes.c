/* SPDX-License-Identifier: MIT */
/* Which threads have lanes. */
#include "sketch/render/lanes.h"
#include "tests/sketch/samples.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void check(const char *sample, size_t n, size_t n_strip, size_t first, size_t second)
{
    Etch__Sketch *sketch = sample_make(sample);
    struct etch_render_model model;
    struct etch_render_lanes lanes;

    assert_int_equal(etch_render_model_make(&model, sketch, false), 0);
    assert_int_equal(etch_render_lanes_make(&lanes, &model), 0);
    assert_int_equal(lanes.n, n);
    assert_int_equal(lanes.n_strip, n_strip);
    if (n > 1) {
        assert_int_equal(lanes.threads[0], first);
        assert_int_equal(lanes.threads[1], second);
        assert_true(lanes.first[0] <= lanes.last[0]);
    }
    etch_render_lanes_release(&lanes);
    etch_render_model_release(&model);
    etch__sketch__free_unpacked(sketch, NULL);
}

static void has_the_failing_thread_and_the_culprit_first(void **state)
{
    (void)state;
    check("pbzip2", 2, 0, 1, 0);
    check("session_cache", 3, 0, 1, 2);
}

static void folds_bystanders(void **state)
{
    (void)state;
    check("threads_2", 2, 0, 1, 0);
    check("threads_8", 2, 6, 1, 0);
    check("threads_32", 2, 30, 1, 0);
}

static void folds_no_thread_of_the_cause(void **state)
{
    (void)state;
    check("five_threads", 5, 0, 4, 0);
}

static void has_lanes_without_a_cause(void **state)
{
    (void)state;
    check("steps_10000", 4, 0, 3, 0);
    check("empty", 0, 0, 0, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(has_the_failing_thread_and_the_culprit_first),
        cmocka_unit_test(folds_bystanders),
        cmocka_unit_test(folds_no_thread_of_the_cause),
        cmocka_unit_test(has_lanes_without_a_cause),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
