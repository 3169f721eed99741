/* SPDX-License-Identifier: MIT */
/* perf's records beside a trace, byte by byte, whole and cut. */
#include "collector/pt/sideband.h"
#include "tests/unit/side_bytes.h"
#include "tests/unit/test.h"

#include <stdlib.h>

static void read_mapped(void **state)
{
    struct side_bytes r;
    struct etch_side s;

    (void)state;
    side_mapped(&r, 7, 0x400000, 0x2000, 0x1000, "/bin/true", 99);
    assert_true(etch_side_read(&s, r.bytes, r.n));
    assert_true(s.kind == ETCH_SIDE_MAPPED && s.pid == 7 && s.start == 0x400000 && s.size == 0x2000);
    assert_true(s.offset == 0x1000 && s.prot == 5 && s.time == 99 && s.build_id_size == 20 && s.build_id[19] == 0xab);
    assert_string_equal(s.text, "/bin/true");
}

static void read_mapped_nonsense(void **state)
{
    struct side_bytes r;
    struct etch_side s;

    (void)state;
    side_mapped(&r, 7, 0x400000, 0x2000, 0, "/bin/true", 99);
    r.bytes[8 + 32] = 21; /* a build-id longer than its place */
    assert_false(etch_side_read(&s, r.bytes, r.n));
    side_mapped(&r, 7, UINT64_MAX - 5, 0x2000, 0, "/bin/true", 99);
    assert_false(etch_side_read(&s, r.bytes, r.n));
    side_mapped(&r, 7, 0x400000, 0, 0, "/bin/true", 99);
    assert_false(etch_side_read(&s, r.bytes, r.n));
    side_mapped(&r, 7, 0x400000, 0x2000, 0, "/bin/true", 99);
    memset(r.bytes + 8 + 64, 'x', 16); /* a path without an end */
    assert_false(etch_side_read(&s, r.bytes, r.n));
}

static void read_tasks(void **state)
{
    struct side_bytes r;
    struct etch_side s;

    (void)state;
    side_task(&r, PERF_RECORD_FORK, 8, 9, 7, 6, 50);
    assert_true(etch_side_read(&s, r.bytes, r.n));
    assert_true(s.kind == ETCH_SIDE_FORKED && s.pid == 8 && s.tid == 9 && s.ppid == 7 && s.ptid == 6 && s.time == 50);
    side_task(&r, PERF_RECORD_EXIT, 8, 9, 7, 6, 51);
    assert_true(etch_side_read(&s, r.bytes, r.n) && s.kind == ETCH_SIDE_EXITED && s.tid == 9);
    side_named(&r, 8, 9, "worker", 1, 52);
    assert_true(etch_side_read(&s, r.bytes, r.n) && s.kind == ETCH_SIDE_NAMED && s.exec && s.tid == 9);
    assert_string_equal(s.text, "worker");
}

static void read_switches(void **state)
{
    struct side_bytes r;
    struct etch_side s;

    (void)state;
    side_begin(&r, PERF_RECORD_SWITCH, PERF_RECORD_MISC_SWITCH_OUT | PERF_RECORD_MISC_SWITCH_OUT_PREEMPT);
    side_end(&r, 3, 4, 5, 6);
    assert_true(etch_side_read(&s, r.bytes, r.n) && s.kind == ETCH_SIDE_SWITCHED);
    assert_true(!s.in && s.preempted && s.pid == 3 && s.tid == 4 && s.time == 5 && s.cpu == 6);
    side_begin(&r, PERF_RECORD_SWITCH_CPU_WIDE, 0);
    side_u64(&r, 1); /* the other task is not whom it is about */
    side_end(&r, 3, 4, 5, 6);
    assert_true(etch_side_read(&s, r.bytes, r.n) && s.in && !s.preempted && s.pid == 3);
    side_begin(&r, PERF_RECORD_ITRACE_START, 0);
    side_u32(&r, 11);
    side_u32(&r, 12);
    side_end(&r, 3, 4, 5, 6);
    assert_true(etch_side_read(&s, r.bytes, r.n) && s.kind == ETCH_SIDE_STARTED && s.in && s.pid == 11 && s.tid == 12);
}

static void read_losses(void **state)
{
    struct side_bytes r;
    struct etch_side s;

    (void)state;
    side_begin(&r, PERF_RECORD_AUX, 0);
    side_u64(&r, 100);
    side_u64(&r, 20);
    side_u64(&r, PERF_AUX_FLAG_TRUNCATED | PERF_AUX_FLAG_PARTIAL);
    side_end(&r, 3, 4, 5, 6);
    assert_true(etch_side_read(&s, r.bytes, r.n) && s.kind == ETCH_SIDE_AUX);
    assert_true(s.offset == 100 && s.size == 20 && s.flags == (PERF_AUX_FLAG_TRUNCATED | PERF_AUX_FLAG_PARTIAL));
    side_begin(&r, PERF_RECORD_LOST, 0);
    side_u64(&r, 1);
    side_u64(&r, 55);
    side_end(&r, 3, 4, 5, 6);
    assert_true(etch_side_read(&s, r.bytes, r.n) && s.kind == ETCH_SIDE_LOST && s.lost == 55);
}

/* Whatever is missing, nothing beyond the bytes is read (the sanitizers see to it) and no half of a record is taken. */
static void read_cut_anywhere(void **state)
{
    struct side_bytes r;
    struct etch_side s;

    (void)state;
    for (uint32_t type = 1; type < 24; type++)
        for (size_t n = 0; n < 160; n += 8) {
            uint8_t *copy;
            uint16_t size = (uint16_t)n;

            side_mapped(&r, 7, 0x400000, 0x2000, 0, "/some/longer/path/to/a/program/of/ours", 99);
            memcpy(r.bytes, &type, 4);
            memcpy(r.bytes + 6, &size, 2);
            copy = malloc(n ? n : 1);
            assert_non_null(copy);
            memcpy(copy, r.bytes, n);
            if (etch_side_read(&s, copy, n))
                assert_true(n >= 40 && (!s.text || memchr(s.text, 0, (size_t)((char *)copy + n - s.text))));
            assert_false(etch_side_read(&s, copy, n ? n - 1 : 0));
            free(copy);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(read_mapped),   cmocka_unit_test(read_mapped_nonsense), cmocka_unit_test(read_tasks),
        cmocka_unit_test(read_switches), cmocka_unit_test(read_losses),          cmocka_unit_test(read_cut_anywhere),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
