/* SPDX-License-Identifier: MIT */
/* What must hold for the picture of any sketch, at any width; how pictures look is tests/sketch/golden. */
#include "sketch/render.h"
#include "sketch/render/canvas.h"
#include "sketch/render/model.h"
#include "tests/sketch/samples.h"
#include "tests/unit/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *draw(const char *sample, unsigned width, bool unicode, bool colour, bool all)
{
    struct etch_render_terminal options = {.width = width, .unicode = unicode, .colour = colour, .all = all};
    Etch__Sketch *sketch = sample_make(sample);
    size_t size = 0;
    char *text;

    assert_non_null(sketch);
    text = etch_render_terminal(sketch, &options, &size);
    assert_non_null(text);
    assert_int_equal(strlen(text), size);
    etch__sketch__free_unpacked(sketch, NULL);
    return text;
}

static void assert_has(const char *sample, unsigned width, const char *what, bool wanted)
{
    char *text = draw(sample, width, true, false, false);

    if ((strstr(text, what) != NULL) != wanted)
        fail_msg("%s at %u: '%s' is %s:\n%s", sample, width, what, wanted ? "missing" : "there", text);
    free(text);
}

/* Cells of each line, and nothing in it that a terminal would obey. */
static void check_lines(const char *text, unsigned width, const char *sample)
{
    struct etch_canvas ruler;

    etch_canvas_begin(&ruler, 80, true, false);
    for (const char *line = text; *line;) {
        size_t n = strcspn(line, "\n");
        char *copy = strndup(line, n);

        if (etch_canvas_measure(&ruler, copy) > width)
            fail_msg("%s: a line is wider than %u: %s", sample, width, copy);
        if (n && line[n - 1] == ' ')
            fail_msg("%s: blanks at the end of: %s", sample, copy);
        for (const char *c = copy; *c;) {
            uint32_t rune = etch_utf8_next(&c);

            if (rune < 0x20 || (rune >= 0x7f && rune < 0xa0) || etch_rune_is_invisible(rune))
                fail_msg("%s: U+%04X reached the terminal", sample, rune);
        }
        free(copy);
        line += n + (line[n] == '\n');
    }
    etch_canvas_release(&ruler);
}

static void fits_every_width(void **state)
{
    (void)state;
    for (size_t i = 0; strcmp(sample_names[i], "steps_10000") != 0; i++)
        for (unsigned width = 40; width <= 200; width++) {
            char *text = draw(sample_names[i], width, true, false, false);

            check_lines(text, width, sample_names[i]);
            free(text);
        }
}

static void stays_ascii_when_asked(void **state)
{
    (void)state;
    for (size_t i = 0; strcmp(sample_names[i], "steps_10000") != 0; i++) {
        char *text = draw(sample_names[i], 90, false, false, true);

        for (const char *c = text; *c; c++)
            assert_true(*c == '\n' || (*c >= 0x20 && *c < 0x7f));
        free(text);
    }
}

/* The same cells with and without colour, and the colours end where the line ends. */
static void colours_nothing_but_the_looks(void **state)
{
    (void)state;
    for (size_t i = 0; strcmp(sample_names[i], "steps_10000") != 0; i++) {
        char *plain = draw(sample_names[i], 100, true, false, false),
             *colour = draw(sample_names[i], 100, true, true, false);
        char *to = colour;

        for (const char *from = colour; *from;)
            if (*from == 0x1b) {
                assert_int_equal(from[1], '[');
                from += 2 + strspn(from + 2, "0123456789;");
                assert_int_equal(*from++, 'm');
            } else {
                *to++ = *from++;
            }
        *to = '\0';
        assert_string_equal(plain, colour);
        free(plain);
        free(colour);
    }
}

/* Text without blanks and line breaks: what is shown, wherever it was cut. */
static char *squeeze(char *text)
{
    char *to = text;

    for (const char *from = text; *from; from++)
        if (*from != ' ' && *from != '\n')
            *to++ = *from;
    *to = '\0';
    return text;
}

/* Narrow columns cut text, but one column per step keeps each statement in one piece at least. */
static void hides_no_step(void **state)
{
    static const char *const statements[] = {"pthread_create(&t,0,consumer,fifo);", "queueDelete(fifo);",
                                             "free(fifo->mut);", "SIGSEGV,address0x10"};
    char *text = squeeze(draw("pbzip2", 40, true, false, false));

    (void)state;
    for (size_t i = 0; i < sizeof(statements) / sizeof(*statements); i++)
        assert_non_null(strstr(text, statements[i]));
    free(text);
}

static void says_what_is_unknown(void **state)
{
    (void)state;
    for (unsigned width = 40; width <= 200; width += 20) {
        assert_has("with_loss", width, "R ?", true);
        assert_has("with_loss", width, "lost", true);
        assert_has("with_loss", width, "LOST  AUX truncated, 4096 bytes", true);
        assert_has("with_loss", width, "pbzip.c has changed", true);
        assert_has("with_loss", width, "Nothing was lost", false);
        assert_has("lost_update", width, "3~", true);
        assert_has("lost_update", width, "R ?", true);
        assert_has("lost_update", width, "unknown", true);
        assert_has("pbzip2", width, "Nothing was lost", true);
        assert_has("five_threads", width, "T5 philosopher", true);
        assert_has("five_threads", width, "1~", true);
    }
}

static void has_no_cause_without_comparison(void **state)
{
    (void)state;
    assert_has("one_failure", 80, "CAUSE", false);
    assert_has("one_failure", 80, "fifo->mut == 0", false);
    assert_has("one_failure", 80, "  A ", false);
    assert_has("one_failure", 80, "│", false);
    assert_has("one_failure", 80, "◀", false);
    assert_has("one_failure", 80, "one failure, no comparison yet", true);
    assert_has("pbzip2", 80, "CAUSE", true);
    assert_has("weak", 80, "CAUSE", false);
    assert_has("weak", 80, "No strong predictor", true);
    assert_has("no_failure", 80, "no failure in 40 runs", true);
    assert_has("no_failure", 80, "CAUSE", false);
    assert_has("empty", 80, "no failure", true);
}

static void shows_one_cause_a_kind_unless_all(void **state)
{
    char *all = draw("pbzip2", 120, true, false, true);

    (void)state;
    assert_has("pbzip2", 120, "fifo->mut < 4096", false);
    assert_has("pbzip2", 120, "135 not taken", false);
    assert_has("pbzip2", 120, "2 more with --all", true);
    assert_non_null(strstr(all, "fifo->mut < 4096"));
    assert_non_null(strstr(all, "unknown in 2"));
    assert_non_null(strstr(all, "(0.80 to 1.00)"));
    assert_null(strstr(all, "with --all"));
    free(all);
}

static void shows_values_exactly(void **state)
{
    (void)state;
    assert_has("huge_values", 120, "W -1", true);
    assert_has("huge_values", 120, "R 0xfffffffffffeffff", true);
    assert_has("huge_values", 120, "R -65536", true);
    assert_has("huge_values", 120, "R 0x10000", true);
    assert_has("huge_values", 120, "18446744073709551615x", true);
}

static void leaves_the_locale_alone(void **state)
{
    locale_t before = uselocale((locale_t)0);

    (void)state;
    free(draw("hostile", 80, true, false, false));
    assert_ptr_equal(uselocale((locale_t)0), before);
}

static void decodes_utf8_strictly(void **state)
{
    static const struct {
        const char *bytes;
        uint32_t rune;
        size_t used;
    } cases[] = {{"a", 'a', 1},
                 {"\xc3\xa9", 0xe9, 2},
                 {"\xe6\xbc\xa2", 0x6f22, 3},
                 {"\xf0\x9f\x98\x80", 0x1f600, 4},
                 {"\xc0\x80", 0xfffd, 1},         /* too long a form */
                 {"\xed\xa0\x80", 0xfffd, 1},     /* a surrogate */
                 {"\xf4\x90\x80\x80", 0xfffd, 1}, /* beyond Unicode */
                 {"\xe6\xbc", 0xfffd, 1},         /* cut */
                 {"\x80", 0xfffd, 1},
                 {"\xff", 0xfffd, 1}};

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        const char *at = cases[i].bytes;

        assert_int_equal(etch_utf8_next(&at), cases[i].rune);
        assert_int_equal(at - cases[i].bytes, cases[i].used);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fits_every_width),
        cmocka_unit_test(stays_ascii_when_asked),
        cmocka_unit_test(colours_nothing_but_the_looks),
        cmocka_unit_test(hides_no_step),
        cmocka_unit_test(says_what_is_unknown),
        cmocka_unit_test(has_no_cause_without_comparison),
        cmocka_unit_test(shows_one_cause_a_kind_unless_all),
        cmocka_unit_test(shows_values_exactly),
        cmocka_unit_test(leaves_the_locale_alone),
        cmocka_unit_test(decodes_utf8_strictly),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
