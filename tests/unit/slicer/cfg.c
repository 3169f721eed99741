/* SPDX-License-Identifier: MIT */
/* Dominators, postdominators and control dependence on small graphs, and against the definition on random ones. */
#include "slicer/model/model.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* Edges as pairs, ended by -1. */
static struct etch_cfg *make(uint32_t n, const int *edges)
{
    etch_numbers *succs = calloc(n + 1, sizeof(*succs));

    for (; *edges >= 0; edges += 2)
        assert_true(etch_array_push(&succs[edges[0]], (uint32_t)edges[1]));
    return etch_cfg_make(n, succs);
}

static bool controls(const struct etch_cfg *cfg, uint32_t branch, uint32_t block)
{
    for (size_t i = 0; i < cfg->controlled[block].n; i++)
        if (cfg->controlled[block].v[i] == branch)
            return true;
    return false;
}

static void finds_if_else(void **state)
{
    struct etch_cfg *cfg = make(4, (const int[]){0, 1, 0, 2, 1, 3, 2, 3, -1});

    (void)state;
    assert_int_equal(cfg->postdominator[0], 3);
    assert_int_equal(cfg->postdominator[3], 4);
    assert_int_equal(cfg->dominator[3], 0);
    assert_true(controls(cfg, 0, 1) && controls(cfg, 0, 2));
    assert_int_equal(cfg->controlled[3].n, 0);
    assert_true(etch_cfg_dominates(cfg, 0, 3));
    assert_false(etch_cfg_dominates(cfg, 1, 3));
    etch_cfg_free(cfg);
}

static void finds_loop_that_controls_itself(void **state)
{
    struct etch_cfg *cfg = make(4, (const int[]){0, 1, 1, 2, 1, 3, 2, 1, -1});

    (void)state;
    assert_true(controls(cfg, 1, 2) && controls(cfg, 1, 1));
    assert_false(controls(cfg, 1, 3));
    assert_int_equal(cfg->postdominator[2], 1);
    etch_cfg_free(cfg);
}

static void survives_endless_loops_and_dead_blocks(void **state)
{
    struct etch_cfg *cfg = make(5, (const int[]){0, 1, 0, 2, 1, 1, 4, 2, -1}); /* 1 never ends, 3 and 4 are dead */

    (void)state;
    assert_true(controls(cfg, 0, 1));
    assert_true(controls(cfg, 0, 2));
    assert_int_equal(cfg->dominator[4], 4);
    etch_cfg_free(cfg);
}

/* Can `to` be reached from `from` without `without`? */
static bool reaches(const struct etch_cfg *cfg, uint32_t from, uint32_t to, uint32_t without)
{
    bool seen[17] = {false};
    uint32_t stack[17 * 17], n = 0;

    if (from == without)
        return false;
    stack[n++] = from;
    while (n) {
        uint32_t at = stack[--n];

        if (at == to)
            return true;
        if (seen[at] || at == cfg->n)
            continue;
        seen[at] = true;
        for (size_t i = 0; i < cfg->succs[at].n; i++)
            if (cfg->succs[at].v[i] != without)
                stack[n++] = cfg->succs[at].v[i];
    }
    return false;
}

static bool postdominates(const struct etch_cfg *cfg, uint32_t a, uint32_t b)
{
    return a == b || !reaches(cfg, b, cfg->n, a);
}

/* b is controlled by a: some way from a always comes to b, and b does not come after a by itself. */
static bool controls_by_definition(const struct etch_cfg *cfg, uint32_t a, uint32_t b)
{
    bool some = false;

    for (size_t i = 0; i < cfg->succs[a].n; i++)
        some = some || (cfg->succs[a].v[i] != cfg->n && postdominates(cfg, b, cfg->succs[a].v[i]));
    return cfg->succs[a].n > 1 && some && (a == b || !postdominates(cfg, b, a));
}

static void agrees_with_definition(void **state)
{
    unsigned seed = 7;

    (void)state;
    for (int round = 0; round < 400; round++) {
        int edges[64], n = 0;
        struct etch_cfg *cfg;

        for (int i = 0; i < 15; i++) {
            seed = seed * 1103515245u + 12345u;
            edges[n++] = i;
            edges[n++] = i + 1; /* so that all is reached, and reaches the end */
            if (seed >> 16 & 1) {
                edges[n++] = i;
                edges[n++] = (int)(seed >> 17) % 16;
            }
        }
        edges[n] = -1;
        cfg = make(16, edges);
        for (uint32_t a = 0; a < 16; a++) {
            for (uint32_t b = 0; b < 16; b++) {
                assert_int_equal(controls(cfg, a, b), controls_by_definition(cfg, a, b));
                assert_int_equal(etch_cfg_dominates(cfg, a, b), a == b || !reaches(cfg, 0, b, a));
            }
        }
        etch_cfg_free(cfg);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_if_else),
        cmocka_unit_test(finds_loop_that_controls_itself),
        cmocka_unit_test(survives_endless_loops_and_dead_blocks),
        cmocka_unit_test(agrees_with_definition),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
