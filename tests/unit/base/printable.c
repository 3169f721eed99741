/* SPDX-License-Identifier: MIT */
/* base/printable: nothing that steers a terminal comes through, and nothing else is changed. */
#include "base/printable.h"

#include "base/error.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const struct {
    const char *in, *out;
} cases[] = {
    {"plain /usr/bin/x", "plain /usr/bin/x"},
    {"gr\xc3\xbc\xc3\x9f \xe6\xbc\xa2 \xf0\x9f\x98\x80", "gr\xc3\xbc\xc3\x9f \xe6\xbc\xa2 \xf0\x9f\x98\x80"},
    {"\033[2J", "?[2J"},
    {"a\nb\tc\rd\x7f", "a?b?c?d?"},
    {"\x9b"
     "31m",
     "?31m"}, /* C1 as a byte */
    {"\xc2\x9b"
     "31m",
     "?31m"}, /* C1 as UTF-8 */
    {"a\xe2\x80\xae"
     "b",
     "a?b"},                                         /* U+202E */
    {"\xe2\x81\xa6\xe2\x81\xa9\xd8\x9c", "???"},     /* isolates, Arabic letter mark */
    {"\xe2\x80\xa8\xe2\x80\xa9\xef\xbb\xbf", "???"}, /* line and paragraph separators, byte order mark */
    {"\xc0\x9b\xed\xa0\x80\xff\xf4\x90\x80\x80", "??????????"},
    {"cut \xe6\xbc", "cut ??"},
};

static void changes_only_what_steers(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[64];

        strcpy(text, cases[i].in);
        assert_string_equal(etch_printable(text), cases[i].out);
        assert_string_equal(etch_shown(cases[i].in), cases[i].out);
    }
}

static void prints_the_same(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char *got = NULL, *bytes = NULL;
        size_t n;
        FILE *out = open_memstream(&got, &n), *other = open_memstream(&bytes, &n);

        etch_print(out, cases[i].in);
        etch_print_bytes(other, cases[i].in, strlen(cases[i].in));
        fclose(out);
        fclose(other);
        assert_string_equal(got, cases[i].out);
        assert_string_equal(bytes, cases[i].out);
        free(got);
        free(bytes);
    }
}

static void prints_long_text_whole(void **state)
{
    char in[3001], *got = NULL;
    size_t n;
    FILE *out = open_memstream(&got, &n);

    (void)state;
    for (size_t i = 0; i < 3000; i += 3)
        memcpy(in + i, "\xe6\xbc\xa2", 3);
    in[3000] = '\0';
    etch_print_bytes(out, in, 3000);
    fclose(out);
    assert_string_equal(got, in);
    free(got);
}

static void cuts_to_fit(void **state)
{
    char small[8];

    (void)state;
    assert_string_equal(etch_printable_copy(small, sizeof(small), "1234567"), "1234567");
    assert_string_equal(etch_printable_copy(small, sizeof(small), "12345678"), "1234...");
    assert_string_equal(etch_printable_copy(small, sizeof(small), NULL), "");
}

static void cleans_errors(void **state)
{
    struct etch_error err;

    (void)state;
    etch_error_set(&err, "cannot open %s", "\033]0;x\a");
    assert_string_equal(err.what, "cannot open ?]0;x?");
    etch_error_prefix(&err, "in %s", "\xe2\x80\xae");
    assert_string_equal(err.what, "in ?: cannot open ?]0;x?");
    etch_error_advise(&err, "%s",
                      "\x9b"
                      "1m");
    assert_string_equal(err.advice, "?1m");
    etch_error_set_errno(&err, ENOENT, "%s", "a\nb");
    assert_string_equal(err.what, "a?b: No such file or directory");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(changes_only_what_steers),
        cmocka_unit_test(prints_the_same),
        cmocka_unit_test(prints_long_text_whole),
        cmocka_unit_test(cuts_to_fit),
        cmocka_unit_test(cleans_errors),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
