/* SPDX-License-Identifier: MIT */
/* Did you mean: which word is near, and which is nearest. */
#include "base/nearest.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* The nearest of a list that NULL ends. */
static const char *nearest(const char *word, unsigned int *steps, ...)
{
    static struct etch_nearest n;
    const char *known;
    va_list list;

    etch_nearest_begin(&n, word, strlen(word));
    va_start(list, steps);
    while ((known = va_arg(list, const char *)))
        etch_nearest_try(&n, known, strlen(known));
    va_end(list);
    if (steps)
        *steps = n.steps;
    return n.best;
}

static void find_each_mistake(void **state)
{
    unsigned int steps;

    (void)state;
    assert_string_equal(nearest("recrod", &steps, "redact", "record", "replay", NULL), "record"); /* swapped */
    assert_int_equal(steps, 1);
    assert_string_equal(nearest("recod", &steps, "record", NULL), "record"); /* missing */
    assert_int_equal(steps, 1);
    assert_string_equal(nearest("recoord", &steps, "record", NULL), "record"); /* too many */
    assert_int_equal(steps, 1);
    assert_string_equal(nearest("recorf", &steps, "record", NULL), "record"); /* another */
    assert_int_equal(steps, 1);
}

static void find_equal(void **state)
{
    unsigned int steps = 9;

    (void)state;
    assert_string_equal(nearest("info", &steps, "core", "info", NULL), "info");
    assert_int_equal(steps, 0);
}

static void find_first_of_equals(void **state)
{
    (void)state;
    assert_string_equal(nearest("--ba", NULL, "--bb", "--bc", NULL), "--bb");
}

static void find_none_far(void **state)
{
    (void)state;
    assert_string_equal(nearest("frobnicate", NULL, "record", "calibrate", "cc", NULL), "");
    assert_string_equal(nearest("cx", NULL, "core", NULL), "");
}

static void find_none_long(void **state)
{
    char word[200];

    (void)state;
    memset(word, 'a', sizeof(word));
    word[sizeof(word) - 1] = '\0';
    assert_string_equal(nearest(word, NULL, "aaaa", word, NULL), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(find_each_mistake), cmocka_unit_test(find_equal),     cmocka_unit_test(find_first_of_equals),
        cmocka_unit_test(find_none_far),     cmocka_unit_test(find_none_long),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
