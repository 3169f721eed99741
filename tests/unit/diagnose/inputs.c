/* SPDX-License-Identifier: MIT */
/* Which input the next run gets, and the smallest difference between two inputs. */
#include "diagnose/inputs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static char folder[64], pattern[80];
static char *const by_argument[] = {"prog", "--file={}", NULL}, *const by_input[] = {"prog", NULL};

static void put(const char *name, const char *text)
{
    char path[128];
    FILE *out;

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    out = fopen(path, "w");
    assert_non_null(out);
    fputs(text, out);
    fclose(out);
}

static int set_up(void **state)
{
    (void)state;
    snprintf(folder, sizeof(folder), "/tmp/etch-inputs-XXXXXX");
    assert_non_null(mkdtemp(folder));
    snprintf(pattern, sizeof(pattern), "%s/*", folder);
    put("a", "[net]\nport=80\n");
    put("b", "[net\nport=80\n");
    put("c", "other\n");
    return 0;
}

static int tear_down(void **state)
{
    char path[128];

    (void)state;
    for (char name = 'a'; name <= 'c'; name++) {
        snprintf(path, sizeof(path), "%s/%c", folder, name);
        unlink(path);
    }
    return rmdir(folder);
}

static void open_takes_files_in_order(void **state)
{
    struct etch_inputs inputs;
    struct etch_error err;
    char **argv;

    (void)state;
    assert_int_equal(etch_inputs_open(&inputs, pattern, by_argument, &err), 0);
    assert_int_equal(inputs.n, 3);
    assert_true(inputs.in_argv);
    argv = etch_inputs_argv(&inputs, 1, by_argument);
    assert_string_equal(argv[0], "prog");
    assert_memory_equal(argv[1], "--file=/tmp/etch-inputs-", 24);
    assert_int_equal(argv[1][strlen(argv[1]) - 1], 'b');
    assert_null(argv[2]);
    etch_inputs_free_argv(argv);
    etch_inputs_release(&inputs);
    assert_int_equal(etch_inputs_open(&inputs, pattern, by_input, &err), 0);
    assert_false(inputs.in_argv);
    etch_inputs_release(&inputs);
}

static void open_says_that_no_file_matches(void **state)
{
    struct etch_inputs inputs;
    struct etch_error err;

    (void)state;
    assert_int_equal(etch_inputs_open(&inputs, "/nowhere/*", by_input, &err), -1);
    assert_non_null(strstr(err.what, "/nowhere/*"));
    assert_true(err.advice[0]);
    etch_inputs_release(&inputs);
}

static void next_runs_each_once_and_then_takes_turns(void **state)
{
    struct etch_inputs inputs;
    struct etch_error err;
    char text[2048];
    size_t first, second;

    (void)state;
    assert_int_equal(etch_inputs_open(&inputs, pattern, by_argument, &err), 0);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(etch_inputs_next(&inputs), i);
        assert_false(etch_inputs_are_alike(&inputs));
        etch_inputs_take(&inputs, i, i == 1);
    }
    assert_false(etch_inputs_are_alike(&inputs));
    first = etch_inputs_next(&inputs);
    second = etch_inputs_next(&inputs);
    assert_int_equal(first, 1); /* the one that fails, then the passing one that is nearest to it */
    assert_int_equal(second, 0);
    assert_true(etch_inputs_text(&inputs, 0, text, sizeof(text)));
    assert_memory_equal(text, "1 of 3 inputs fail: ", 20);
    assert_true(etch_inputs_text(&inputs, 2, text, sizeof(text)));
    assert_non_null(strstr(text, "b fails with nothing in line 1, where "));
    assert_non_null(strstr(text, "a passes with ']'"));
    assert_false(etch_inputs_text(&inputs, 3, text, sizeof(text)));
    etch_inputs_release(&inputs);
}

static void alike_if_all_fail(void **state)
{
    struct etch_inputs inputs;
    struct etch_error err;
    char text[2048];

    (void)state;
    assert_int_equal(etch_inputs_open(&inputs, pattern, by_argument, &err), 0);
    for (size_t i = 0; i < 3; i++)
        etch_inputs_take(&inputs, i, true);
    assert_true(etch_inputs_are_alike(&inputs));
    assert_false(etch_inputs_text(&inputs, 2, text, sizeof(text)));
    etch_inputs_release(&inputs);
}

static void check_difference(const char *one, const char *two, size_t at, size_t n_one, size_t n_two, unsigned line)
{
    struct etch_difference d = etch_difference_of(one, strlen(one), two, strlen(two));

    assert_int_equal(d.at, at);
    assert_int_equal(d.one, n_one);
    assert_int_equal(d.two, n_two);
    assert_int_equal(d.line, line);
}

static void difference_is_between_common_ends(void **state)
{
    (void)state;
    check_difference("abc", "abc", 3, 0, 0, 1);
    check_difference("", "", 0, 0, 0, 1);
    check_difference("", "x", 0, 0, 1, 1);
    check_difference("a\nb\nc", "a\nXY\nc", 2, 1, 2, 2);
    check_difference("aa", "aaa", 2, 0, 1, 1); /* the ends must not overlap */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(open_takes_files_in_order),
        cmocka_unit_test(open_says_that_no_file_matches),
        cmocka_unit_test(next_runs_each_once_and_then_takes_turns),
        cmocka_unit_test(alike_if_all_fail),
        cmocka_unit_test(difference_is_between_common_ends),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
