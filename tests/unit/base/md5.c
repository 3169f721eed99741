/* SPDX-License-Identifier: MIT */
#include "base/md5.h"
#include "tests/unit/test.h"

#include <stdio.h>
#include <string.h>

static void is_md5(const char *text, size_t size, const char *want)
{
    uint8_t digest[16];
    char got[33];

    etch_md5(text, size, digest);
    for (int i = 0; i < 16; i++)
        snprintf(got + (size_t)(2 * i), 3, "%02x", digest[i]);
    assert_string_equal(got, want);
}

static void md5_of_known_texts(void **state)
{
    (void)state;
    is_md5("", 0, "d41d8cd98f00b204e9800998ecf8427e");
    is_md5("abc", 3, "900150983cd24fb0d6963f7d28e17f72");
    is_md5("message digest", 14, "f96b697d7cb7938d525a2f31aaf161d0");
    is_md5("12345678901234567890123456789012345678901234567890123456789012345678901234567890", 80,
           "57edf4a22be3c955ac49da2e2107b67a");
}

static void md5_at_each_padding(void **state)
{
    char text[65];

    (void)state;
    memset(text, 'a', sizeof(text));
    is_md5(text, 55, "ef1772b6dff9a122358552954ad0df65");
    is_md5(text, 56, "3b0c8ac703f828b04c6c197006d17218");
    is_md5(text, 63, "b06521f39153d618550606be297466d5");
    is_md5(text, 64, "014842d480b571495a4a0363793f7367");
    is_md5(text, 65, "c743a45e0d2e6a95cb859adae0248435");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(md5_of_known_texts),
        cmocka_unit_test(md5_at_each_padding),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
