/* SPDX-License-Identifier: MIT */
/* The colours of a line of source. */
#include "sketch/render/highlight.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* One letter for each byte of the line. */
static const char *colours(const char *line)
{
    static const char letters[] = {
        [ETCH_PLAIN] = '.',   [ETCH_KEYWORD] = 'k',   [ETCH_NUMBER] = 'n', [ETCH_STRING] = 's',
        [ETCH_COMMENT] = 'c', [ETCH_DIRECTIVE] = 'p', [ETCH_CALL] = 'f'};
    static char text[256];
    size_t at = 0, size;

    while (line[at]) {
        enum etch_highlight kind = etch_highlight_next(line + at, &size);

        assert_in_range(size, 1, strlen(line + at));
        memset(text + at, letters[kind], size);
        at += size;
    }
    text[at] = '\0';
    return text;
}

static void colours_each_kind(void **state)
{
    (void)state;
    assert_string_equal(colours("return f(x1, 0x10u);"), "kkkkkk.f....."
                                                         "nnnnn..");
    assert_string_equal(colours("s = \"a\\\"b\" + 'c'; // end"), "....ssssss...sss..cccccc");
    assert_string_equal(colours("a /* b */ c / d"), "..ccccccc......");
    assert_string_equal(colours("#include <x>"), "pppppppppppp");
}

static void survives_what_does_not_end(void **state)
{
    (void)state;
    assert_string_equal(colours("\"abc\\"), "sssss");
    assert_string_equal(colours("/* abc"), "cccccc");
    assert_string_equal(colours("'"), "s");
    assert_string_equal(colours("\xff\xfe \x01"), "....");
    assert_string_equal(colours(""), "");
}

static void takes_no_part_of_a_name_for_a_keyword(void **state)
{
    (void)state;
    assert_string_equal(colours("int integer_of_int"), "kkk...............");
    assert_string_equal(colours("1'000.5f"), "nnnnnnnn");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(colours_each_kind),
        cmocka_unit_test(survives_what_does_not_end),
        cmocka_unit_test(takes_no_part_of_a_name_for_a_keyword),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
