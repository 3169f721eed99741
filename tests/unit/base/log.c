/* SPDX-License-Identifier: MIT */
/* base/log: the list of rooms and levels, and the lines that come of it. */
#include "base/log.h"
#include "tests/unit/test.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int evaluated;

static int count(int n)
{
    evaluated++;
    return n;
}

/* Captures standard error for one line of each level. */
static void capture(char *text, size_t size)
{
    int ends[2];
    int saved = dup(STDERR_FILENO);
    ssize_t n;

    assert_int_equal(pipe(ends), 0);
    fflush(stderr);
    dup2(ends[1], STDERR_FILENO);
    etch_log(ETCH_LOG_ORDER, ETCH_LOG_ERROR, "e%d", 1);
    etch_log(ETCH_LOG_ORDER, ETCH_LOG_WARN, "w%d", 2);
    etch_log(ETCH_LOG_ORDER, ETCH_LOG_INFO, "i%d", count(3));
    etch_log(ETCH_LOG_ORDER, ETCH_LOG_DEBUG, "d%d", count(4));
    fflush(stderr);
    dup2(saved, STDERR_FILENO);
    close(saved);
    close(ends[1]);
    n = read(ends[0], text, size - 1);
    text[n > 0 ? n : 0] = '\0';
    close(ends[0]);
}

static int set(const char *list)
{
    char unknown[64];

    return etch_log_set(list, unknown, sizeof(unknown));
}

/* The highest level that is on. */
static int level_of(enum etch_log_room room)
{
    int level = -1;

    while (level < ETCH_LOG_DEBUG && etch_log_is_on(room, (enum etch_log_level)(level + 1)))
        level++;
    return level;
}

static void level_filters(void **state)
{
    char text[512];

    (void)state;
    capture(text, sizeof(text));
    assert_string_equal(text, "etch: error: order: e1\netch: warn: order: w2\n");
    assert_int_equal(evaluated, 0);
    assert_int_equal(set("debug"), 0);
    capture(text, sizeof(text));
    assert_string_equal(text, "etch: error: order: e1\netch: warn: order: w2\netch: info: order: i3\n"
                              "etch: debug: order: d4\n");
    assert_int_equal(evaluated, 2);
    assert_int_equal(set("error"), 0);
    capture(text, sizeof(text));
    assert_string_equal(text, "etch: error: order: e1\n");
}

static void level_is_for_all_rooms(void **state)
{
    (void)state;
    assert_int_equal(set("info"), 0);
    for (int i = 0; i < ETCH_LOG_N_ROOMS; i++)
        assert_int_equal(level_of((enum etch_log_room)i), ETCH_LOG_INFO);
}

static void room_has_its_own_level(void **state)
{
    (void)state;
    assert_int_equal(set("order,flow:info"), 0);
    assert_int_equal(level_of(ETCH_LOG_ORDER), ETCH_LOG_DEBUG);
    assert_int_equal(level_of(ETCH_LOG_FLOW), ETCH_LOG_INFO);
    assert_int_equal(level_of(ETCH_LOG_VALUES), ETCH_LOG_WARN);
    assert_int_equal(level_of(ETCH_LOG_DECODER), ETCH_LOG_WARN);
}

static void room_gives_its_level_to_sub_rooms(void **state)
{
    (void)state;
    assert_int_equal(set("error,decoder:info"), 0);
    assert_int_equal(level_of(ETCH_LOG_DECODER), ETCH_LOG_INFO);
    assert_int_equal(level_of(ETCH_LOG_ORDER), ETCH_LOG_INFO);
    assert_int_equal(level_of(ETCH_LOG_SLICE), ETCH_LOG_ERROR);
}

static void later_entry_counts(void **state)
{
    (void)state;
    assert_int_equal(set("debug,order:error"), 0);
    assert_int_equal(level_of(ETCH_LOG_ORDER), ETCH_LOG_ERROR);
    assert_int_equal(level_of(ETCH_LOG_FLOW), ETCH_LOG_DEBUG);
    assert_int_equal(set("order:error,debug"), 0);
    assert_int_equal(level_of(ETCH_LOG_ORDER), ETCH_LOG_DEBUG);
}

static void unknown_is_refused(void **state)
{
    static const struct {
        const char *list, *unknown;
    } bad[] = {
        {"loud", "loud"},
        {"", ""},
        {"debug,", ""},
        {"info,kitchen,debug", "kitchen"},
        {"order:loud", "order:loud"},
        {"order:", "order:"},
        {":debug", ":debug"},
        {"kitchen:debug", "kitchen:debug"},
    };
    char unknown[64];

    (void)state;
    assert_int_equal(set("info"), 0);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(etch_log_set(bad[i].list, unknown, sizeof(unknown)), -1);
        assert_string_equal(unknown, bad[i].unknown);
        assert_int_equal(level_of(ETCH_LOG_ORDER), ETCH_LOG_INFO);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(level_filters),          cmocka_unit_test(level_is_for_all_rooms),
        cmocka_unit_test(room_has_its_own_level), cmocka_unit_test(room_gives_its_level_to_sub_rooms),
        cmocka_unit_test(later_entry_counts),     cmocka_unit_test(unknown_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
