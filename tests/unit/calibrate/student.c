/* SPDX-License-Identifier: MIT */
/* Student's t against the printed tables. */
#include "calibrate/student.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void quantile_matches_tables(void **state)
{
    static const struct {
        double confidence, df, t;
    } table[] = {
        {0.50, 1, 1.0000},   {0.95, 1, 12.7062},  {0.95, 2, 4.30265},   {0.95, 5, 2.57058},   {0.95, 10, 2.22814},
        {0.99, 10, 3.16927}, {0.95, 30, 2.04227}, {0.99, 30, 2.75000},  {0.999, 30, 3.64596}, {0.99, 120, 2.61742},
        {0.998, 4, 7.17318}, {0.90, 19, 1.72913}, {0.95, 1e7, 1.95996},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
        assert_true(fabs(etch_student_quantile(table[i].confidence, table[i].df) - table[i].t) < 1e-4 * table[i].t);
}

/* With one and two degrees of freedom the distribution has a closed form. */
static void tail_matches_closed_forms(void **state)
{
    (void)state;
    for (double t = 0.01; t < 1e4; t *= 3) {
        double one = 0.5 - atan(t) / M_PI;
        double two = 0.5 - t / (2 * sqrt(2 + t * t));

        assert_true(fabs(etch_student_tail(t, 1) / one - 1) < 1e-7);
        assert_true(t > 100 || fabs(etch_student_tail(t, 2) / two - 1) < 1e-7);
    }
}

static void quantile_inverts_tail_far_out(void **state)
{
    (void)state;
    for (double df = 1; df < 5000; df *= 1.7)
        for (double miss = 0.5; miss > 1e-9; miss /= 7) {
            double t = etch_student_quantile(1 - miss, df);

            assert_true(fabs(2 * etch_student_tail(t, df) / miss - 1) < 1e-5);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quantile_matches_tables),
        cmocka_unit_test(tail_matches_closed_forms),
        cmocka_unit_test(quantile_inverts_tail_far_out),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
