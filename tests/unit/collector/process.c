/* SPDX-License-Identifier: MIT */
/* What /proc says, from lines of it and of this process itself. */
#include "collector/session/process.h"
#include "tests/unit/test.h"

#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static void parse_mapping(void **state)
{
    char line[] = "55d0c0a4e000-55d0c0a50000 r-xp 00002000 fe:01 1234                       /usr/bin/a b\n";
    char anonymous[] = "7ffd1000-7ffd2000 rw-p 00000000 00:00 0 \n";
    char shared[] = "7ffd1000-7ffd2000 rw-s 00000000 00:01 5 /dev/zero (deleted)\n";
    char nonsense[] = "what is this\n";
    struct etch_mapping m;

    (void)state;
    assert_true(etch_mapping_parse(line, &m));
    assert_true(m.start == 0x55d0c0a4e000 && m.end == 0x55d0c0a50000 && m.offset == 0x2000 && m.prot == 5 &&
                m.inode == 1234);
    assert_string_equal(m.path, "/usr/bin/a b");
    assert_true(etch_mapping_parse(anonymous, &m));
    assert_true(m.prot == 3 && m.inode == 0 && !m.path[0] && !m.shared);
    assert_true(etch_mapping_parse(shared, &m));
    assert_true(m.shared);
    assert_false(etch_mapping_parse(nonsense, &m));
}

static void find_mapping(void **state)
{
    struct etch_mappings maps;
    struct etch_error err;
    const struct etch_mapping *m;

    (void)state;
    assert_int_equal(etch_process_mappings(getpid(), &maps, &err), 0);
    m = etch_mappings_at(&maps, (uint64_t)(uintptr_t)find_mapping);
    assert_non_null(m);
    assert_true(m->prot & 4);
    assert_null(etch_mappings_at(&maps, 8));
    etch_mappings_release(&maps);
    assert_int_equal(etch_process_mappings(4194304, &maps, &err), -1);
}

static void parse_status(void **state)
{
    struct etch_process_status s;

    (void)state;
    etch_process_status_parse("Name:\tx\nState:\tS (sleeping)\nTgid:\t12\nTracerPid:\t34\nSigBlk:\t0000000000000001\n"
                              "SigIgn:\t0000000000001000\nSigCgt:\t0000000000000400\n"
                              "voluntary_ctxt_switches:\t30\nnonvoluntary_ctxt_switches:\t4\n",
                              &s);
    assert_true(s.pid == 12 && s.tracer == 34 && s.state == 'S' && s.switches == 34);
    assert_false(etch_signal_is_fatal(&s, SIGSEGV)); /* 11, caught */
    assert_false(etch_signal_is_fatal(&s, SIGPIPE)); /* 13, ignored */
    assert_true(etch_signal_is_fatal(&s, SIGABRT));
}

static void parse_wait(void **state)
{
    struct etch_thread_wait w;

    (void)state;
    etch_thread_wait_parse("202 0x7f00 0x189 0x2 0x0 0x0 0xffffffff 0x7ffe10 0x7f11\n", &w);
    assert_true(w.call_plus_1 == 203 && w.arguments[0] == 0x7f00 && w.sp == 0x7ffe10 && w.pc == 0x7f11);
    etch_thread_wait_parse("-1 0x7ffe10 0x7f11\n", &w);
    assert_true(w.call_plus_1 == 0 && w.sp == 0x7ffe10 && w.pc == 0x7f11);
    etch_thread_wait_parse("running\n", &w);
    assert_true(w.call_plus_1 == 0 && w.sp == 0);
}

static void read_memory_up_to_a_hole(void **state)
{
    char *two = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char copy[8192];

    (void)state;
    memset(two, 'x', 8192);
    munmap(two + 4096, 4096);
    assert_int_equal(etch_process_read(getpid(), (uint64_t)(uintptr_t)two + 100, copy, sizeof(copy)), 3996);
    assert_int_equal(etch_process_read(getpid(), 8, copy, 8), 0);
    munmap(two, 4096);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parse_mapping),
        cmocka_unit_test(find_mapping),
        cmocka_unit_test(parse_status),
        cmocka_unit_test(parse_wait),
        cmocka_unit_test(read_memory_up_to_a_hole),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
