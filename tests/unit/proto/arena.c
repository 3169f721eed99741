/* SPDX-License-Identifier: MIT */
#include "proto/arena.h"
#include "tests/unit/test.h"

#include <string.h>

static void alloc_is_aligned_and_apart(void **state)
{
    struct etch_arena arena;
    unsigned char *blocks[200];

    (void)state;
    etch_arena_init(&arena, (size_t)64 << 20);
    for (size_t i = 0; i < 200; i++) {
        blocks[i] = etch_arena_alloc(&arena, i * 331 + 1);
        assert_non_null(blocks[i]);
        assert_int_equal((uintptr_t)blocks[i] % _Alignof(max_align_t), 0);
        memset(blocks[i], (int)i, i * 331 + 1);
    }
    for (size_t i = 0; i < 200; i++) {
        assert_int_equal(blocks[i][0], i & 0xff);
        assert_int_equal(blocks[i][i * 331], i & 0xff);
    }
    etch_arena_release(&arena);
}

static void alloc_stops_at_limit(void **state)
{
    struct etch_arena arena;
    size_t got = 0;

    (void)state;
    etch_arena_init(&arena, (size_t)8 << 20);
    while (etch_arena_alloc(&arena, 100000) && got < 1000)
        got++;
    assert_in_range(got, 60, 84);
    assert_true(arena.exhausted);
    assert_null(etch_arena_alloc(&arena, SIZE_MAX));
    etch_arena_reset(&arena);
    assert_false(arena.exhausted);
    assert_non_null(etch_arena_alloc(&arena, 100000));
    etch_arena_release(&arena);
}

static void reset_gives_back_large_blocks(void **state)
{
    struct etch_arena arena;

    (void)state;
    etch_arena_init(&arena, (size_t)64 << 20);
    assert_non_null(etch_arena_alloc(&arena, 10));
    assert_non_null(etch_arena_alloc(&arena, (size_t)20 << 20));
    etch_arena_reset(&arena);
    assert_true(arena.total <= (size_t)4 << 20);
    etch_arena_release(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(alloc_is_aligned_and_apart),
        cmocka_unit_test(alloc_stops_at_limit),
        cmocka_unit_test(reset_gives_back_large_blocks),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
