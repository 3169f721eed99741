/* SPDX-License-Identifier: MIT */
#include "proto/frame.h"
#include "tests/unit/test.h"

#include <string.h>

static const struct etch_frame_header sample = {
    .kind = 7, .flags = ETCH_FRAME_ZSTD, .length = 1234, .raw_length = 99999, .payload_crc = 0xdeadbeef};

static void header_round_trip(void **state)
{
    uint8_t bytes[ETCH_FRAME_HEADER_SIZE];
    struct etch_frame_header back;

    (void)state;
    etch_frame_header_encode(&sample, bytes);
    assert_int_equal(etch_frame_header_decode(bytes, &back), 0);
    assert_int_equal(back.kind, sample.kind);
    assert_int_equal(back.flags, sample.flags);
    assert_int_equal(back.length, sample.length);
    assert_int_equal(back.raw_length, sample.raw_length);
    assert_int_equal(back.payload_crc, sample.payload_crc);
}

static void header_any_flipped_bit_is_seen(void **state)
{
    uint8_t bytes[ETCH_FRAME_HEADER_SIZE];
    struct etch_frame_header back;

    (void)state;
    etch_frame_header_encode(&sample, bytes);
    for (size_t bit = 0; bit < 8 * sizeof(bytes); bit++) {
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        assert_int_equal(etch_frame_header_decode(bytes, &back), -1);
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
}

static void header_beyond_limit_is_refused(void **state)
{
    uint8_t bytes[ETCH_FRAME_HEADER_SIZE];
    struct etch_frame_header large = sample, back;

    (void)state;
    large.length = ETCH_RECORD_MAX + 1;
    etch_frame_header_encode(&large, bytes);
    assert_int_equal(etch_frame_header_decode(bytes, &back), -1);
    large = sample;
    large.raw_length = UINT32_MAX;
    etch_frame_header_encode(&large, bytes);
    assert_int_equal(etch_frame_header_decode(bytes, &back), -1);
}

static void file_header_verdicts(void **state)
{
    uint8_t bytes[ETCH_FILE_HEADER_SIZE];
    uint16_t major, minor;

    (void)state;
    etch_file_header_encode(bytes);
    assert_int_equal(etch_file_header_decode(bytes, sizeof(bytes), &major, &minor), ETCH_FILE_HEADER_OK);
    assert_int_equal(major, ETCH_FORMAT_MAJOR);
    for (size_t n = 0; n < sizeof(bytes); n++)
        assert_int_equal(etch_file_header_decode(bytes, n, &major, &minor), ETCH_FILE_HEADER_CUT);
    bytes[8] = ETCH_FORMAT_MAJOR + 1;
    assert_int_equal(etch_file_header_decode(bytes, sizeof(bytes), &major, &minor), ETCH_FILE_HEADER_FUTURE);
    assert_int_equal(major, ETCH_FORMAT_MAJOR + 1);
    bytes[8] = 0;
    assert_int_equal(etch_file_header_decode(bytes, sizeof(bytes), &major, &minor), ETCH_FILE_HEADER_FOREIGN);
    memcpy(bytes,
           "\x7f"
           "ELF",
           4);
    assert_int_equal(etch_file_header_decode(bytes, sizeof(bytes), &major, &minor), ETCH_FILE_HEADER_FOREIGN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(header_round_trip),
        cmocka_unit_test(header_any_flipped_bit_is_seen),
        cmocka_unit_test(header_beyond_limit_is_refused),
        cmocka_unit_test(file_header_verdicts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
