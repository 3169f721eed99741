/* SPDX-License-Identifier: MIT */
/* What the kernel's log says of processes that it killed. */
#include "collector/left/kernel_log.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static bool parse(const char *record, struct etch_kernel_kill *kill)
{
    return etch_kernel_log_parse(record, strlen(record), kill);
}

static void test_parse(void **state)
{
    struct etch_kernel_kill kill;

    (void)state;
    assert_true(
        parse("3,907,5012345,-;Out of memory: Killed process 4711 (eater) total-vm:9kB, anon-rss:4kB\n", &kill));
    assert_int_equal(kill.pid, 4711);
    assert_string_equal(kill.name, "eater");
    assert_int_equal(kill.boot_ns, 5012345000);
    assert_false(kill.group);
    assert_true(
        parse("3,1,7,-;Memory cgroup out of memory: Killed process 8 (fifteen-letters!) total-vm:9kB\n", &kill));
    assert_true(kill.group);
    assert_string_equal(kill.name, "fifteen-letters");
}

static void test_parse_others(void **state)
{
    struct etch_kernel_kill kill;

    (void)state;
    assert_false(parse("6,1,7,-;eth0: link is up\n", &kill));
    assert_false(parse("3,1,7,-;Out of memory: Killed process many (eater)\n", &kill));
    assert_false(parse("3,1,7,-;Out of memory: Killed process 8\n", &kill));
    assert_false(parse("3,1,7,-;Out of memory: Killed process 8 ()\n", &kill));
    assert_false(parse("3,1;Out of memory: Killed process 8 (eater)\n", &kill));
    assert_false(parse("", &kill));
}

static void test_find(void **state)
{
    struct etch_kernel_kill records[] = {{.pid = 8, .name = "eater", .boot_ns = 1}, {.pid = 9, .name = "other"}};
    const etch_kernel_kills kills = {.v = records, .n = 2};

    (void)state;
    assert_ptr_equal(etch_kernel_log_find(&kills, 8, "eater", 0), &records[0]);
    assert_null(etch_kernel_log_find(&kills, 8, "other", 0));
    assert_null(etch_kernel_log_find(&kills, 9, "eater", 0));
    assert_null(etch_kernel_log_find(&kills, 8, "eater", UINT64_MAX)); /* the process began after the kill */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parse),
        cmocka_unit_test(test_parse_others),
        cmocka_unit_test(test_find),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
