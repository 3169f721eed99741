/* SPDX-License-Identifier: MIT */
#include "base/log.h"
#include "tests/unit/test.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* What etch_log() writes to standard error for one line of each level. */
static void capture(char *text, size_t size)
{
    int ends[2];
    int saved = dup(STDERR_FILENO);
    ssize_t n;

    assert_int_equal(pipe(ends), 0);
    fflush(stderr);
    dup2(ends[1], STDERR_FILENO);
    etch_log(ETCH_LOG_ERROR, "e%d", 1);
    etch_log(ETCH_LOG_WARN, "w%d", 2);
    etch_log(ETCH_LOG_INFO, "i%d", 3);
    etch_log(ETCH_LOG_DEBUG, "d%d", 4);
    fflush(stderr);
    dup2(saved, STDERR_FILENO);
    close(saved);
    close(ends[1]);
    n = read(ends[0], text, size - 1);
    text[n > 0 ? n : 0] = '\0';
    close(ends[0]);
}

static void level_filters(void **state)
{
    char text[512];

    (void)state;
    capture(text, sizeof(text));
    assert_string_equal(text, "etch: error: e1\netch: warn: w2\n");
    assert_int_equal(etch_log_set_level_by_name("debug"), 0);
    capture(text, sizeof(text));
    assert_string_equal(text, "etch: error: e1\netch: warn: w2\netch: info: i3\netch: debug: d4\n");
    etch_log_set_level(ETCH_LOG_ERROR);
    capture(text, sizeof(text));
    assert_string_equal(text, "etch: error: e1\n");
}

static void level_unknown_is_refused(void **state)
{
    (void)state;
    assert_int_equal(etch_log_set_level_by_name("loud"), -1);
    assert_int_equal(etch_log_set_level_by_name(""), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(level_filters), cmocka_unit_test(level_unknown_is_refused)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
