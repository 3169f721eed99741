/* SPDX-License-Identifier: MIT */
/* perf's records, byte by byte. */
#include "collector/hits.h"
#include "tests/unit/test.h"

#include <linux/perf_event.h>
#include <string.h>

struct record {
    uint64_t words[64];
    size_t n;
};

static void finish(struct record *r, uint32_t type)
{
    struct perf_event_header header = {.type = type, .size = (uint16_t)(r->n * 8)};

    memcpy(r->words, &header, 8);
}

static void make_sample(struct record *r)
{
    const uint64_t fixed[] = {0, 77, 0x401234, (uint64_t)12 << 32 | 11, 5000, 0x404010, 3, PERF_SAMPLE_REGS_ABI_64};

    memcpy(r->words, fixed, sizeof(fixed));
    r->n = 8;
    for (unsigned i = 0; i < ETCH_HIT_REGISTERS; i++)
        if (etch_hits_registers >> i & 1)
            r->words[r->n++] = 0x100 + i;
    finish(r, PERF_RECORD_SAMPLE);
}

static void read_sample(void **state)
{
    struct record r;
    struct etch_hit hit;
    uint64_t lost;
    size_t used;

    (void)state;
    make_sample(&r);
    assert_int_equal(etch_hits_next((uint8_t *)r.words, r.n * 8, &used, &hit, &lost), ETCH_HITS_HIT);
    assert_int_equal(used, r.n * 8);
    assert_true(hit.event == 77 && hit.ip == 0x401234 && hit.pid == 11 && hit.tid == 12 && hit.perf_ns == 5000);
    assert_true(hit.address == 0x404010 && hit.cpu == 3 && hit.registers_known);
    assert_int_equal(hit.registers[0], 0x100);
    assert_int_equal(hit.registers[12], 0); /* ds is not sampled */
    assert_int_equal(hit.registers[23], 0x117);
}

static void read_sample_cut_anywhere(void **state)
{
    struct record r;
    struct etch_hit hit;
    uint64_t lost;
    size_t used;

    (void)state;
    make_sample(&r);
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
    struct record r = {.words = {0, 77, 9}, .n = 3};
    struct etch_hit hit;
    uint64_t lost = 0;
    size_t used;

    (void)state;
    finish(&r, PERF_RECORD_LOST);
    assert_int_equal(etch_hits_next((uint8_t *)r.words, 24, &used, &hit, &lost), ETCH_HITS_LOST);
    assert_true(lost == 9 && hit.event == 77 && used == 24);
    finish(&r, PERF_RECORD_THROTTLE);
    assert_int_equal(etch_hits_next((uint8_t *)r.words, 24, &used, &hit, &lost), ETCH_HITS_OTHER);
    assert_int_equal(etch_hits_next((uint8_t *)r.words, 0, &used, &hit, &lost), ETCH_HITS_END);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(read_sample),
        cmocka_unit_test(read_sample_cut_anywhere),
        cmocka_unit_test(read_lost_and_others),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
