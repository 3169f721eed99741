/* SPDX-License-Identifier: MIT */
/* Unordered steps in few sentences. */
#include "sketch/render/unordered.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define STEPS 10u
#define PAIRS 16u

struct made {
    Etch__Sketch sketch;
    Etch__SketchStep steps[STEPS], *step_list[STEPS];
    Etch__SketchUnordered pairs[PAIRS], *pair_list[PAIRS];
    size_t row_of[STEPS];
    char text[2048];
};

/* Steps 0 to 4 are of thread 0, the others of thread 1. Each step has a row of its own. */
static void begin(struct made *m)
{
    memset(m, 0, sizeof(*m));
    etch__sketch__init(&m->sketch);
    for (size_t i = 0; i < STEPS; i++) {
        etch__sketch_step__init(&m->steps[i]);
        m->steps[i].thread = i >= 5;
        m->step_list[i] = &m->steps[i];
        m->row_of[i] = i;
    }
    m->sketch.steps = m->step_list;
    m->sketch.n_steps = STEPS;
    m->sketch.unordered = m->pair_list;
}

static void pair(struct made *m, uint32_t one, uint32_t other, const char *why)
{
    Etch__SketchUnordered *u = &m->pairs[m->sketch.n_unordered];

    etch__sketch_unordered__init(u);
    u->one = one;
    u->other = other;
    u->evidence = (char *)(uintptr_t)why;
    m->pair_list[m->sketch.n_unordered++] = u;
}

static void append(void *context, const char *sentence)
{
    struct made *m = context;
    size_t n = strlen(m->text);

    snprintf(m->text + n, sizeof(m->text) - n, "%s\n", sentence);
}

static void expect(struct made *m, const char *text)
{
    m->text[0] = '\0';
    etch_render_unordered(&m->sketch, m->row_of, append, m);
    assert_string_equal(m->text, text);
}

static void show_single_pair(void **state)
{
    struct made m;

    (void)state;
    begin(&m);
    pair(&m, 0, 5, "why");
    expect(&m, "T1's step 1 and T2's step 6 are unordered (why).\n");
}

static void show_pair_the_other_way_round(void **state)
{
    struct made m;

    (void)state;
    begin(&m);
    pair(&m, 5, 0, "");
    expect(&m, "T1's step 1 and T2's step 6 are unordered.\n");
}

static void join_all_with_all(void **state)
{
    struct made m;

    (void)state;
    begin(&m);
    for (uint32_t i = 0; i < 3; i++)
        for (uint32_t k = 5; k < 9; k++)
            pair(&m, i, k, "why");
    pair(&m, 4, 6, "why");
    pair(&m, 4, 8, "why");
    expect(&m, "T1's steps 1-3 and T2's steps 6-9 are unordered (why).\n"
               "T1's step 5 and T2's steps 7, 9 are unordered (why).\n");
}

static void keep_reasons_apart(void **state)
{
    struct made m;

    (void)state;
    begin(&m);
    pair(&m, 0, 5, "one");
    pair(&m, 1, 5, "two");
    pair(&m, 2, 5, "one");
    expect(&m, "T1's steps 1, 3 and T2's step 6 are unordered (one).\n"
               "T1's step 2 and T2's step 6 are unordered (two).\n");
}

static void keep_different_partners_apart(void **state)
{
    struct made m;

    (void)state;
    begin(&m);
    pair(&m, 0, 5, "");
    pair(&m, 1, 6, "");
    expect(&m, "T1's step 1 and T2's step 6 are unordered.\nT1's step 2 and T2's step 7 are unordered.\n");
}

static void skip_unknown_step(void **state)
{
    struct made m;

    (void)state;
    begin(&m);
    pair(&m, 0, 99, "");
    expect(&m, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(show_single_pair),  cmocka_unit_test(show_pair_the_other_way_round),
        cmocka_unit_test(join_all_with_all), cmocka_unit_test(keep_reasons_apart),
        cmocka_unit_test(skip_unknown_step), cmocka_unit_test(keep_different_partners_apart),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
