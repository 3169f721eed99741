/* SPDX-License-Identifier: MIT */
/* The suspects of the HTML page, each with its numbers, and the legend that explains words and marks. */
#include "sketch/render/html.h"

#include <stdio.h>

/* The short names of patterns, for the reader who hovers. */
static const char *pattern_in_words(const char *pattern)
{
    static const char *const words[][2] = {{"WR", "a write, then another thread's read"},
                                           {"RW", "a read, then another thread's write"},
                                           {"WW", "two writes by different threads"},
                                           {"RWR", "another thread's write between two reads"},
                                           {"WWR", "another thread's write between a write and a read"},
                                           {"RWW", "another thread's write between a read and a write"},
                                           {"WRW", "another thread's read between two writes"},
                                           {"WRRW", "of two variables, one was read old and the other new"},
                                           {"null", "a null pointer, or zero"},
                                           {"==", "one value"},
                                           {"<0", "a negative number"}};

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (strcmp(pattern, words[i][0]) == 0)
            return words[i][1];
    return "how the program did it";
}

/* The predictor's words. Its pattern stands beside them already, so that only the variable is left of "(WR of x)". */
static void put_words(struct etch_page *page, const Etch__Predictor *p)
{
    const char *text = etch_render_string(p->text), *pattern = etch_render_string(p->pattern), *of;
    char mark[64], words[1024];
    size_t n;

    snprintf(mark, sizeof(mark), " (%.40s of ", pattern);
    of = pattern[0] ? strstr(text, mark) : NULL;
    n = of ? strlen(of + strlen(mark)) : 0;
    if (!n || of[strlen(mark) + n - 1] != ')') {
        etch_page_text(page, text);
        return;
    }
    snprintf(words, sizeof(words), "%.*s", (int)(of - text), text);
    etch_page_text(page, words);
    snprintf(words, sizeof(words), "%.*s", (int)(n - 1), of + strlen(mark));
    etch_page_write(page, " <span class=\"soft\">on ");
    etch_page_text(page, words);
    etch_page_write(page, "</span>");
}

static void put_cause(struct etch_page *page, size_t i, bool top)
{
    const Etch__Predictor *p = page->sketch->predictors[i];
    const char *pattern = etch_render_string(p->pattern);
    char counts[256];

    etch_render_counts(p, counts, sizeof(counts));
    etch_page_write(page,
                    "<li%s><a class=\"cause\" id=\"cause-%zu\" href=\"#cause-%zu\" title=\"show its steps only\">",
                    top ? " class=\"top\"" : "", i, i);
    etch_page_letter(page, i);
    etch_page_write(page, "<span>");
    etch_page_escape(page, p->kind);
    if (pattern[0]) {
        etch_page_write(page, " <abbr class=\"soft\" title=\"%s\">", pattern_in_words(pattern));
        etch_page_escape(page, pattern);
        etch_page_write(page, "</abbr>");
    }
    etch_page_write(page, "</span><strong>");
    put_words(page, p);
    etch_page_write(page, "</strong><span class=\"counts\">%s</span>", counts);
    if (p->failing || p->passing)
        etch_page_write(page,
                        "<abbr class=\"counts\" title=\"how well it separates failing from passing runs, 0 to 1: "
                        "precision %.3f, recall %.3f, F between %.2f and %.2f\">F %.2f</abbr>",
                        p->precision, p->recall, p->f_lo, p->f_hi, p->f);
    etch_page_write(page, "</a></li>\n");
}

static void put_other_causes(struct etch_page *page)
{
    if (!page->model.unshown)
        return;
    etch_page_write(page, "<details><summary>%zu more</summary><ol>\n", page->model.unshown);
    for (size_t i = 0; i < page->sketch->n_predictors; i++)
        if (!etch_page_is_picked(page, i))
            put_cause(page, i, false);
    etch_page_write(page, "</ol></details>\n");
}

void etch_page_causes(struct etch_page *page)
{
    bool cause = etch_render_has_cause(page->sketch);

    if ((!page->sketch->compared && !cause) || !page->sketch->failing_runs)
        return;
    etch_page_write(page, "<section class=\"causes\">\n<h2>%s</h2>\n<ol>\n",
                    cause && page->sketch->predictors[0]->experiment ? "Cause, by experiment"
                    : cause               ? "Cause: what failing runs do and passing runs do not"
                    : page->model.n_shown ? "No strong predictor yet; the best hints"
                                          : "No predictor separates failing runs from passing runs yet");
    for (size_t i = 0; i < page->model.n_shown; i++)
        put_cause(page, page->model.shown[i], cause);
    etch_page_write(page, "</ol>\n");
    put_other_causes(page);
    etch_page_write(page, "<a class=\"all\" href=\"#_\">Show all steps</a>\n</section>\n");
}

void etch_page_legend(struct etch_page *page)
{
    static const char *const rows[][2] = {
        {"A, B", "the step belongs to that suspect above. A click on the suspect shows only its steps"},
        {"thick arrow", "the order that the first suspect is about. Dotted arrows are other proven orders"},
        {"wrote, read", "the value that the step wrote or read. A frame marks the value that decides. A click shows "
                        "where the value came from"},
        {"~ after a value", "recovered backwards from the end of the run. Other values were observed"},
        {"~ after a number", "the steps of this row are unordered: nothing proves which came first"},
        {"3\u00d7", "the step ran so often, and stands here for all"},
        {"suspected", "the comparison of runs says so. Proven and necessary are words for experiments"},
        {"F", "how well a suspect separates failing from passing runs: 1 is perfect"},
        {"W, R", "write and read: WR is a write before another thread's read, RWR another thread's write between two "
                 "reads"},
        {"round, \u03c3", "how often etch widened what it watches, and to how many statements"},
        {"keys",
         "up and down: steps; Enter: evidence of the step; left: the step that wrote its value; o: other threads; "
         "Escape: back"}};

    etch_page_write(page, "<details class=\"legend\" id=\"legend\"><summary>What the marks mean</summary><dl>\n");
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        etch_page_write(page, "<dt>%s</dt><dd>%s</dd>\n", rows[i][0], rows[i][1]);
    etch_page_write(page, "</dl></details>\n");
}
