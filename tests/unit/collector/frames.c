/* SPDX-License-Identifier: MIT */
/* Frames out of a copied stack. */
#include "collector/native/frames.h"
#include "tests/unit/test.h"

#define STACK 0x7000u

/* Addresses that end in 8 are behind a call. */
static bool follows_call(void *context, uint64_t address)
{
    (void)context;
    return address > 0x1000 && address < 0x2000 && (address & 0xf) == 8;
}

static void walk_chain(void **state)
{
    const uint64_t stack[] = {0x1998, STACK + 0x18, 0x1108, STACK + 0x28, 0x1208, 0, 0x1308};
    struct etch_frames_stack s = {0x1500, STACK, STACK + 8, (const uint8_t *)stack, sizeof(stack), follows_call, NULL};
    uint64_t frames[8];
    bool scanned;

    (void)state;
    assert_int_equal(etch_frames_find(&s, frames, 8, &scanned), 4);
    assert_false(scanned);
    assert_true(frames[0] == 0x1500 && frames[1] == 0x1108 && frames[2] == 0x1208 && frames[3] == 0x1308);
    assert_int_equal(etch_frames_find(&s, frames, 2, &scanned), 2);
    assert_int_equal(etch_frames_find(&s, frames, 0, &scanned), 0);
}

static void scan_without_chain(void **state)
{
    const uint64_t stack[] = {1, 0x1998, 0x1555, 0x1208, 0};
    struct etch_frames_stack s = {0x1500, STACK, 0x123, (const uint8_t *)stack, sizeof(stack), follows_call, NULL};
    uint64_t frames[8];
    bool scanned;

    (void)state;
    assert_int_equal(etch_frames_find(&s, frames, 8, &scanned), 3);
    assert_true(scanned);
    assert_true(frames[1] == 0x1998 && frames[2] == 0x1208);
    s.size = 0;
    assert_int_equal(etch_frames_find(&s, frames, 8, &scanned), 1);
}

static void walk_stops_at_a_loop(void **state)
{
    const uint64_t stack[] = {STACK + 0x10, 0x1108, STACK, 0x1208};
    struct etch_frames_stack s = {0x1500, STACK, STACK, (const uint8_t *)stack, sizeof(stack), follows_call, NULL};
    uint64_t frames[8];
    bool scanned;

    (void)state;
    assert_int_equal(etch_frames_find(&s, frames, 8, &scanned), 3);
}

static void know_calls(void **state)
{
    static const struct {
        uint8_t bytes[7];
        size_t n;
        bool call;
    } rows[] = {
        {{0xe8, 1, 2, 3, 4}, 5, true},
        {{0xff, 0xd0}, 2, true},                   /* call *%rax */
        {{0x41, 0xff, 0xd3}, 3, true},             /* call *%r11 */
        {{0xff, 0x15, 1, 2, 3, 4}, 6, true},       /* call *x(%rip) */
        {{0xff, 0x50, 0x18}, 3, true},             /* call *24(%rax) */
        {{0xff, 0x94, 0xc8, 1, 2, 3, 4}, 7, true}, /* call *x(%rax,%rcx,8) */
        {{0xff, 0x14, 0xc5, 1, 2, 3, 4}, 7, true}, /* call *x(,%rax,8) */
        {{0xff, 0xe0}, 2, false},                  /* jmp *%rax */
        {{0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90}, 7, false},
        {{0xd0}, 1, false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (etch_code_ends_in_call(rows[i].bytes + rows[i].n, rows[i].n) != rows[i].call)
            fail_msg("row %zu", i);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(walk_chain),
        cmocka_unit_test(scan_without_chain),
        cmocka_unit_test(walk_stops_at_a_loop),
        cmocka_unit_test(know_calls),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
