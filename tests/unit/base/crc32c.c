/* SPDX-License-Identifier: MIT */
/* The expected sums are those of RFC 3720, appendix B.4, and the usual check value of "123456789". */
#include "base/crc32c.h"
#include "tests/unit/test.h"

#include <string.h>

static void check(const void *data, size_t size, uint32_t expected)
{
    assert_int_equal(etch_crc32c(0, data, size), expected);
    assert_int_equal(etch_crc32c_portable(0, data, size), expected);
}

static void sum_known(void **state)
{
    uint8_t bytes[32];

    (void)state;
    check("123456789", 9, 0xe3069283);
    check("", 0, 0);
    memset(bytes, 0, sizeof(bytes));
    check(bytes, sizeof(bytes), 0x8a9136aa);
    memset(bytes, 0xff, sizeof(bytes));
    check(bytes, sizeof(bytes), 0x62a8ab43);
    for (uint8_t i = 0; i < 32; i++)
        bytes[i] = i;
    check(bytes, sizeof(bytes), 0x46dd794e);
}

static void sum_in_pieces(void **state)
{
    uint8_t bytes[257];
    uint32_t whole;

    (void)state;
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (uint8_t)(i * 37 + 11);
    whole = etch_crc32c(0, bytes, sizeof(bytes));
    for (size_t cut = 0; cut <= sizeof(bytes); cut++) {
        assert_int_equal(etch_crc32c(etch_crc32c(0, bytes, cut), bytes + cut, sizeof(bytes) - cut), whole);
        assert_int_equal(etch_crc32c_portable(0, bytes, cut), etch_crc32c(0, bytes, cut));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(sum_known), cmocka_unit_test(sum_in_pieces)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
