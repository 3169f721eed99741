/* SPDX-License-Identifier: MIT */
/* Which waits nobody outside can end, from lines of /proc. */
#include "collector/native/stuck.h"
#include "tests/unit/test.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

struct row {
    const char *what;
    const char *text; /* of /proc/PID/task/TID/syscall */
    bool own;
};

#define REST "0x0 0x0 0x7ffe10 0x7f11\n"

static const struct row rows[] = {
    {"a mutex", "202 0x1000 0x80 0x2 0x0 " REST, true},
    {"a condition", "202 0x1000 0x189 0x0 0x0 " REST, true},
    {"a mutex with inheritance", "202 0x1000 0x86 0x0 0x0 " REST, true},
    {"a time limit", "202 0x1000 0x80 0x2 0x7ffe00 " REST, false},
    {"a condition with a time limit", "202 0x1000 0x189 0x0 0x7ffe00 " REST, false},
    {"waking others", "202 0x1000 0x81 0x1 0x0 " REST, false},
    {"several at once", "449 0x1000 0x80 0x2 0x0 " REST, false},
    {"reading", "0 0x0 0x80 0x2 0x0 " REST, false},
    {"polling", "7 0x0 0x0 0xffffffff 0x0 " REST, false},
    {"running", "running\n", false},
    {"not in a call", "-1 0x7ffe10 0x7f11\n", false},
    {"gone", "", false},
    {"joining", "202 0x1000 0x109 0x3581 0x0 " REST, true},
    {"another's memory", "202 0x2000 0x109 0x1 0x0 " REST, false},
    {"shared memory, said to be private", "202 0x2000 0x80 0x1 0x0 " REST, true},
    {"a page of a file", "202 0x3000 0x0 0x1 0x0 " REST, false},
    {"no memory", "202 0x9000 0x0 0x1 0x0 " REST, false},
};

static void wait_is_own(void **state)
{
    struct etch_mapping list[] = {{.start = 0x1000, .end = 0x2000, .prot = 3},
                                  {.start = 0x2000, .end = 0x3000, .prot = 3, .shared = true},
                                  {.start = 0x3000, .end = 0x4000, .prot = 3, .inode = 7}};
    struct etch_mappings mappings = {.list = {.v = list, .n = 3}};

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct etch_thread_wait wait;

        etch_thread_wait_parse(rows[i].text, &wait);
        if (etch_wait_is_own(&wait, &mappings) != rows[i].own)
            fail_msg("%s", rows[i].what);
    }
}

static uint64_t bit(int signal)
{
    return (uint64_t)1 << (signal - 1);
}

static void handlers_may_wake(void **state)
{
    struct etch_process_status status = {0};

    (void)state;
    assert_false(etch_signals_may_wake(&status));
    status.caught = bit(SIGSEGV) | bit(SIGABRT) | bit(32) | bit(33);
    assert_false(etch_signals_may_wake(&status));
    for (int i = 1; i <= 64; i++) {
        bool faults = i == SIGSEGV || i == SIGBUS || i == SIGFPE || i == SIGILL || i == SIGABRT || i == SIGTRAP ||
                      i == SIGSYS || i == 32 || i == 33;

        status.caught = bit(i);
        assert_int_equal(etch_signals_may_wake(&status), !faults);
    }
}

static void look_at_running(void **state)
{
    uint64_t print;

    (void)state;
    assert_false(etch_stuck_look(getpid(), &print));
    assert_false(etch_stuck_look(4194304, &print)); /* nobody */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wait_is_own),
        cmocka_unit_test(handlers_may_wake),
        cmocka_unit_test(look_at_running),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
