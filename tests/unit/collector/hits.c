/* SPDX-License-Identifier: MIT */
/* perf's records, byte by byte. */
#include "collector/hits.h"
#include "tests/unit/hit_bytes.h"
#include "tests/unit/test.h"

static void read_sample(void **state)
{
    struct hit_bytes r;
    struct etch_hit hit;
    uint64_t lost;
    size_t used;

    (void)state;
    hit_sample(&r, 4, 24);
    assert_int_equal(etch_hits_next((uint8_t *)r.words, r.n * 8, &used, &hit, &lost), ETCH_HITS_HIT);
    assert_int_equal(used, r.n * 8);
    assert_true(hit.event == 77 && hit.ip == 0x401234 && hit.pid == 11 && hit.tid == 12 && hit.perf_ns == 5000);
    assert_true(hit.address == 0x404010 && hit.cpu == 3 && hit.registers_known);
    assert_int_equal(hit.registers[0], 0x100);
    assert_int_equal(hit.registers[12], 0); /* ds is not sampled */
    assert_int_equal(hit.registers[23], 0x117);
    assert_int_equal(hit.stack_size, 24); /* of the 32 bytes that there was room for */
    assert_memory_equal(hit.stack, ((uint64_t[]){0x200, 0x201, 0x202}), 24);
}

static void read_sample_without_stack(void **state)
{
    struct hit_bytes r;
    struct etch_hit hit;
    uint64_t lost;
    size_t used;

    (void)state;
    hit_sample(&r, 0, 0);
    assert_int_equal(etch_hits_next((uint8_t *)r.words, r.n * 8, &used, &hit, &lost), ETCH_HITS_HIT);
    assert_true(hit.stack_size == 0 && !hit.stack && hit.registers_known);
    hit_sample(&r, 4, 0);
    assert_int_equal(etch_hits_next((uint8_t *)r.words, r.n * 8, &used, &hit, &lost), ETCH_HITS_HIT);
    assert_int_equal(hit.stack_size, 0);
}

static void read_sample_stack_beyond_record(void **state)
{
    struct hit_bytes r;
    struct etch_hit hit;
    uint64_t lost;
    size_t used, room;

    (void)state;
    hit_sample(&r, 4, 33); /* more than there was room for */
    assert_int_equal(etch_hits_next((uint8_t *)r.words, r.n * 8, &used, &hit, &lost), ETCH_HITS_BAD);
    hit_sample(&r, 4, 32);
    room = r.n - 6;
    for (unsigned shift = 0; shift <= 64; shift++) {
        r.words[room] = 40 + (shift < 64 ? (uint64_t)1 << shift : 0); /* beyond the end; at last up to it */
        assert_int_equal(etch_hits_next((uint8_t *)r.words, r.n * 8, &used, &hit, &lost), ETCH_HITS_BAD);
    }
}

static void read_sample_cut_anywhere(void **state)
{
    struct hit_bytes r;
    struct etch_hit hit;
    uint64_t lost;
    size_t used;

    (void)state;
    hit_sample(&r, 4, 24);
    for (size_t n = 1; n < r.n * 8; n++)
        assert_int_equal(etch_hits_next((uint8_t *)r.words, n, &used, &hit, &lost), ETCH_HITS_BAD);
    for (uint16_t size = 0; size < r.n * 8; size++) { /* a record that says that it is shorter */
        struct perf_event_header header = {.type = PERF_RECORD_SAMPLE, .size = size};

        memcpy(r.words, &header, 8);
        assert_int_equal(etch_hits_next((uint8_t *)r.words, r.n * 8, &used, &hit, &lost), ETCH_HITS_BAD);
    }
}

static void read_lost_and_others(void **state)
{
    struct hit_bytes r = {.words = {0, 77, 9}, .n = 3};
    struct etch_hit hit;
    uint64_t lost = 0;
    size_t used;

    (void)state;
    hit_finish(&r, PERF_RECORD_LOST);
    assert_int_equal(etch_hits_next((uint8_t *)r.words, 24, &used, &hit, &lost), ETCH_HITS_LOST);
    assert_true(lost == 9 && hit.event == 77 && used == 24);
    hit_finish(&r, PERF_RECORD_THROTTLE);
    assert_int_equal(etch_hits_next((uint8_t *)r.words, 24, &used, &hit, &lost), ETCH_HITS_OTHER);
    assert_int_equal(etch_hits_next((uint8_t *)r.words, 0, &used, &hit, &lost), ETCH_HITS_END);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(read_sample),
        cmocka_unit_test(read_sample_without_stack),
        cmocka_unit_test(read_sample_stack_beyond_record),
        cmocka_unit_test(read_sample_cut_anywhere),
        cmocka_unit_test(read_lost_and_others),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
