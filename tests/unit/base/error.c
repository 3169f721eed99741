/* SPDX-License-Identifier: MIT */
#include "base/error.h"
#include "tests/unit/test.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static char *printed(const struct etch_error *err)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);

    etch_error_print(err, "etch record", out);
    fclose(out);
    return text;
}

static void print_with_cause_and_advice(void **state)
{
    struct etch_error err;
    char *text;

    (void)state;
    assert_int_equal(etch_error_set_errno(&err, EACCES, "cannot open %s", "perf event"), -1);
    assert_int_equal(etch_error_advise(&err, "run as root"), -1);
    text = printed(&err);
    assert_string_equal(text, "etch record: cannot open perf event: Permission denied (try: run as root)\n");
    free(text);
}

static void set_clears_advice(void **state)
{
    struct etch_error err;
    char *text;

    (void)state;
    etch_error_set(&err, "first");
    etch_error_advise(&err, "old advice");
    etch_error_set(&err, "second");
    text = printed(&err);
    assert_string_equal(text, "etch record: second\n");
    free(text);
}

static void prefix_keeps_the_cause(void **state)
{
    struct etch_error err;

    (void)state;
    etch_error_set(&err, "no such symbol");
    etch_error_advise(&err, "nm");
    etch_error_prefix(&err, "cannot watch %s", "counter");
    assert_string_equal(err.what, "cannot watch counter: no such symbol");
    assert_string_equal(err.advice, "nm");
}

static void set_too_long_is_cut(void **state)
{
    struct etch_error err;
    char big[2000];

    (void)state;
    memset(big, 'x', sizeof(big) - 1);
    big[sizeof(big) - 1] = '\0';
    etch_error_set_errno(&err, ENOENT, "%s", big);
    assert_int_equal(strlen(err.what), sizeof(err.what) - 1);
    etch_error_prefix(&err, "%s", big);
    assert_int_equal(strlen(err.what), sizeof(err.what) - 1);
}

static void no_memory_clears_advice(void **state)
{
    struct etch_error err = {.advice = "old"};

    (void)state;
    assert_int_equal(etch_error_no_memory(&err), -1);
    assert_string_equal(err.what, "out of memory");
    assert_string_equal(err.advice, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(print_with_cause_and_advice), cmocka_unit_test(set_clears_advice),
        cmocka_unit_test(prefix_keeps_the_cause),      cmocka_unit_test(set_too_long_is_cut),
        cmocka_unit_test(no_memory_clears_advice),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
