/* SPDX-License-Identifier: MIT */
#include "slicer/link_note.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char *const words[] = {"clang-19", "a b.o", "", "-o", "prog"};

static void test_comes_back_as_it_was(void **state)
{
    struct etch_link_note note;
    struct etch_error err;
    size_t size;
    uint8_t *object = etch_link_note_object("/some where", words, 5, &size);

    (void)state;
    assert_non_null(object);
    assert_int_equal(etch_link_note_read(&note, object, size, &err), 0);
    assert_string_equal(note.folder, "/some where");
    assert_int_equal(note.words.n, 5);
    for (size_t i = 0; i < 5; i++)
        assert_string_equal(note.words.v[i], words[i]);
    etch_link_note_release(&note);
    free(object);
}

/* A file cut at any byte is an error, or has no note; never something else. */
static void test_a_cut_file_is_an_error(void **state)
{
    size_t size;
    uint8_t *object = etch_link_note_object("/tmp", words, 5, &size);

    (void)state;
    for (size_t n = 0; n < size; n++) {
        uint8_t *part = malloc(n + 1);
        struct etch_link_note note;
        struct etch_error err;

        memcpy(part, object, n);
        assert_int_equal(etch_link_note_read(&note, part, n, &err), -1);
        free(part);
    }
    free(object);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_comes_back_as_it_was),
        cmocka_unit_test(test_a_cut_file_is_an_error),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
