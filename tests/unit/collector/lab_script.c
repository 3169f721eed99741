/* SPDX-License-Identifier: MIT */
/* Orders by name: reading, and writing them so that they can be read again. */
#include "collector/lab_script.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static int parse(struct etch_lab_script *script, const char *text)
{
    struct etch_error err;

    return etch_lab_script_parse(script, text, strlen(text), &err);
}

static void test_parse_takes_every_part(void **state)
{
    struct etch_lab_script s;
    const struct etch_lab_named *then, *first;

    (void)state;
    assert_int_equal(parse(&s, "# orders\n\n  main.1 dir/bug.c:18 take (read) #3 `x = y;` after T2 bug.c:39\n"), 0);
    assert_int_equal(s.orders.n, 1);
    then = &s.orders.v[0].then;
    first = &s.orders.v[0].first;
    assert_int_equal(then->thread.depth, 1);
    assert_int_equal(then->thread.ordinals[0], 1);
    assert_string_equal(then->file, "dir/bug.c");
    assert_int_equal(then->line, 18);
    assert_string_equal(then->function, "take");
    assert_int_equal(then->kind, ETCH_LAB_READS);
    assert_int_equal(then->visit, 3);
    assert_string_equal(then->text, "x = y;");
    assert_int_equal(first->number, 2);
    assert_int_equal(first->visit, 1);
    assert_int_equal(first->kind, ETCH_LAB_ANY);
    etch_lab_script_release(&s);
}

static void test_before_is_after_the_other_way_round(void **state)
{
    struct etch_lab_script s;

    (void)state;
    assert_int_equal(parse(&s, "main end before main.2.1 begin\nmain.1 a.c:1 before main a.c:2"), 0);
    assert_int_equal(s.orders.n, 2);
    assert_int_equal(s.orders.v[0].first.what, ETCH_LAB_AT_END);
    assert_int_equal(s.orders.v[0].then.what, ETCH_LAB_AT_BEGIN);
    assert_int_equal(s.orders.v[0].then.thread.depth, 2);
    assert_int_equal(s.orders.v[1].first.line, 1);
    etch_lab_script_release(&s);
}

static void test_parse_refuses_what_is_no_order(void **state)
{
    static const char *const wrong[] = {"main",
                                        "main a.c:1",
                                        "main a.c:1 after",
                                        "main a.c after main a.c:1",
                                        "main a.c:0 after main a.c:1",
                                        "main :1 after main a.c:1",
                                        "T0 a.c:2 after main a.c:1",
                                        "T2000 a.c:2 after main a.c:1",
                                        "main.x a.c:2 after main a.c:1",
                                        "main. a.c:2 after main a.c:1",
                                        "maine a.c:2 after main a.c:1",
                                        "main a.c:2 #0 after main a.c:1",
                                        "main a.c:2 #99999999999 after main a.c:1",
                                        "main.1.1.1.1.1.1.1.1.1 a.c:2 after main a.c:1",
                                        "main end after main a.c:1",
                                        "main a.c:2 after main begin now",
                                        "main a.c:2 after main a.c:1 after main a.c:3"};

    (void)state;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        struct etch_lab_script s;

        if (parse(&s, wrong[i]) == 0)
            fail_msg("'%s' was taken", wrong[i]);
        etch_lab_script_release(&s);
    }
}

static void test_print_gives_what_parse_takes(void **state)
{
    static const char *const text = "main.1.2 bug.c:18 take (write) #3 `x = y;` after main bug.c:39";
    struct etch_lab_script s;
    char printed[1024], tiny[8];

    (void)state;
    assert_int_equal(parse(&s, text), 0);
    etch_lab_constraint_print(&s.orders.v[0], false, printed, sizeof(printed));
    assert_string_equal(printed, text);
    etch_lab_constraint_print(&s.orders.v[0], true, printed, sizeof(printed));
    assert_string_equal(printed, "main.1.2 bug.c:18 take (write) #3 after main bug.c:39");
    etch_lab_constraint_print(&s.orders.v[0], true, tiny, sizeof(tiny));
    assert_string_equal(tiny, "main.1.");
    etch_lab_script_release(&s);
}

static void test_parse_bounds_the_number_of_orders(void **state)
{
    static const char order[] = "main a.c:2 after T2 a.c:1\n";
    char *many = malloc((ETCH_LAB_MOST_RULES + 1) * strlen(order) + 1), *at = many;
    struct etch_lab_script s;

    (void)state;
    for (uint32_t i = 0; i <= ETCH_LAB_MOST_RULES; i++)
        at += sprintf(at, "%s", order);
    assert_int_equal(parse(&s, many), -1);
    etch_lab_script_release(&s);
    many[ETCH_LAB_MOST_RULES * strlen(order)] = '\0';
    assert_int_equal(parse(&s, many), 0);
    assert_int_equal(s.orders.n, ETCH_LAB_MOST_RULES);
    etch_lab_script_release(&s);
    free(many);
}

/* A single moment, as a debugger gets it. The thread may be left out, and the visit may follow at once. */
static void test_a_single_moment_is_read(void **state)
{
    static const char *const wrong[] = {"",           "queue.c",   "main",        "main begin",
                                        "main.1 end", "queue.c:0", "queue.c:1#0", "queue.c:1 after main begin"};
    struct etch_lab_named m;
    struct etch_error err;
    bool any;

    (void)state;
    assert_int_equal(etch_lab_named_parse(&m, "queue.c:18", &any, &err), 0);
    assert_true(any && m.line == 18 && m.visit == 1);
    assert_int_equal(etch_lab_named_parse(&m, "main.2 queue.c:18#3", &any, &err), 0);
    assert_true(!any && m.thread.depth == 1 && m.thread.ordinals[0] == 2 && m.line == 18 && m.visit == 3);
    assert_int_equal(etch_lab_named_parse(&m, "T2 queue.c:18 (write) #4", &any, &err), 0);
    assert_true(!any && m.number == 2 && m.kind == ETCH_LAB_WRITES && m.visit == 4);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        assert_int_equal(etch_lab_named_parse(&m, wrong[i], &any, &err), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_single_moment_is_read),
        cmocka_unit_test(test_parse_takes_every_part),
        cmocka_unit_test(test_before_is_after_the_other_way_round),
        cmocka_unit_test(test_parse_refuses_what_is_no_order),
        cmocka_unit_test(test_print_gives_what_parse_takes),
        cmocka_unit_test(test_parse_bounds_the_number_of_orders),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
