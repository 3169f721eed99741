/* SPDX-License-Identifier: MIT */
/* vpt's packets, read back by libipt's packet decoder; and what follows from how a block ends. */
#include "collector/vpt/block.h"
#include "collector/vpt/packets.h"
#include "collector/vpt/tail.h"
#include "tests/unit/test.h"

#include <stdlib.h>
#include <string.h>

#define RING 4096u

struct bench {
    struct etch_vpt_thread *thread;
    uint8_t *flow;
    struct etch_vpt_writer writer;
};

static void set_up(struct bench *b)
{
    b->thread = aligned_alloc(64, (sizeof(*b->thread) + 63) / 64 * 64);
    memset(b->thread, 0, sizeof(*b->thread));
    b->flow = calloc(2, RING);
    assert_int_equal(etch_vpt_writer_init(&b->writer, b->thread, b->flow, RING), 0);
}

static void tear_down(struct bench *b)
{
    assert_false(b->writer.failed);
    etch_vpt_writer_release(&b->writer);
    free(b->flow);
    free(b->thread);
}

/* The packets of some bytes. */
struct packets {
    struct pt_packet v[256];
    unsigned n;
};

static void read_back(struct packets *p, const uint8_t *bytes, size_t size)
{
    struct pt_config config;
    struct pt_packet_decoder *decoder;

    pt_config_init(&config);
    config.begin = (uint8_t *)(uintptr_t)bytes;
    config.end = (uint8_t *)(uintptr_t)bytes + size;
    decoder = pt_pkt_alloc_decoder(&config);
    assert_non_null(decoder);
    assert_int_equal(pt_pkt_sync_set(decoder, 0), 0);
    p->n = 0;
    while (p->n < 256 && pt_pkt_next(decoder, &p->v[p->n], sizeof(p->v[0])) > 0)
        p->n++;
    pt_pkt_free_decoder(decoder);
}

static void expect_types(const struct packets *p, const enum pt_packet_type *types, unsigned n)
{
    for (unsigned i = 0; i < n && i < p->n; i++)
        assert_int_equal(p->v[i].type, types[i]);
    assert_int_equal(p->n, n);
}

static void put_psb_group(void **state)
{
    static const enum pt_packet_type types[] = {ppt_psb, ppt_tsc, ppt_mode, ppt_fup, ppt_psbend};
    struct packets p;
    struct bench b;

    (void)state;
    set_up(&b);
    etch_vpt_put_psb(&b.writer, 0x123456789abcull, 0x400123);
    read_back(&p, b.flow, b.writer.head);
    expect_types(&p, types, 5);
    assert_int_equal(p.v[1].payload.tsc.tsc, 0x123456789abcull);
    assert_int_equal(pt_get_exec_mode(&p.v[2].payload.mode.bits.exec), ptem_64bit);
    assert_int_equal(p.v[3].payload.ip.ip, 0x400123);
    tear_down(&b);
}

static void put_psb_before_tracing(void **state)
{
    static const enum pt_packet_type types[] = {ppt_psb, ppt_tsc, ppt_psbend};
    struct packets p;
    struct bench b;

    (void)state;
    set_up(&b);
    etch_vpt_put_psb(&b.writer, 1, 0);
    read_back(&p, b.flow, b.writer.head);
    expect_types(&p, types, 3);
    tear_down(&b);
}

static void put_bits_in_order(void **state)
{
    struct packets p;
    struct bench b;

    (void)state;
    set_up(&b);
    etch_vpt_put_bit(&b.writer, 1);
    etch_vpt_put_bit(&b.writer, 0);
    etch_vpt_put_bit(&b.writer, 0);
    assert_int_equal(b.writer.head, 0);
    etch_vpt_put_tip(&b.writer, 0x401000);
    read_back(&p, b.flow, b.writer.head);
    assert_int_equal(p.n, 2);
    assert_int_equal(p.v[0].type, ppt_tnt_8);
    assert_int_equal(p.v[0].payload.tnt.bit_size, 3);
    assert_int_equal(p.v[0].payload.tnt.payload, 4);
    assert_int_equal(p.v[1].type, ppt_tip);
    tear_down(&b);
}

static void put_bits_until_full(void **state)
{
    struct packets p;
    struct bench b;

    (void)state;
    set_up(&b);
    for (unsigned i = 0; i < VPT_TNT_BITS; i++)
        etch_vpt_put_bit(&b.writer, i % 3 == 0);
    assert_int_equal(b.writer.tnt, 1);
    read_back(&p, b.flow, b.writer.head);
    assert_int_equal(p.n, 1);
    assert_int_equal(p.v[0].type, ppt_tnt_64);
    assert_int_equal(p.v[0].payload.tnt.bit_size, VPT_TNT_BITS);
    for (unsigned i = 0; i < VPT_TNT_BITS; i++)
        assert_int_equal(p.v[0].payload.tnt.payload >> (VPT_TNT_BITS - 1 - i) & 1, i % 3 == 0);
    tear_down(&b);
}

static void put_ips_compressed(void **state)
{
    static const struct {
        uint64_t ip;
        enum pt_ip_compression ipc;
    } cases[] = {
        {0x7f1234567890, pt_ipc_sext_48}, {0x7f1234560001, pt_ipc_update_16},   {0x7f12aaaa0001, pt_ipc_update_32},
        {0x400000, pt_ipc_sext_48},       {0xffffffff81000000, pt_ipc_sext_48}, {0x1234567890abcdef, pt_ipc_full},
    };
    struct packets p;
    struct bench b;

    (void)state;
    set_up(&b);
    for (unsigned i = 0; i < 6; i++)
        etch_vpt_put_tip(&b.writer, cases[i].ip);
    read_back(&p, b.flow, b.writer.head);
    assert_int_equal(p.n, 6);
    for (unsigned i = 0; i < 6; i++)
        assert_int_equal(p.v[i].payload.ip.ipc, cases[i].ipc);
    tear_down(&b);
}

static void compress_return_that_matches(void **state)
{
    struct bench b;

    (void)state;
    set_up(&b);
    etch_vpt_put_call(&b.writer, 0x1005);
    etch_vpt_put_return(&b.writer, 0x1005);
    assert_int_equal(b.writer.tnt, 3); /* a taken bit */
    assert_int_equal(b.writer.head, 0);
    etch_vpt_put_return(&b.writer, 0x1005); /* nothing left to match */
    assert_int_not_equal(b.writer.head, 0);
    tear_down(&b);
}

static void compress_return_64_deep(void **state)
{
    struct packets p;
    struct bench b;

    (void)state;
    set_up(&b);
    for (unsigned i = 0; i < 100; i++)
        etch_vpt_put_call(&b.writer, 0x1000 + i);
    for (unsigned i = 100; i > 36; i--)
        etch_vpt_put_return(&b.writer, 0x1000 + i - 1);
    read_back(&p, b.flow, b.writer.head);
    assert_int_equal(p.n, 1); /* 47 of the 64 bits */
    etch_vpt_put_return(&b.writer, 0x1000 + 35);
    read_back(&p, b.flow, b.writer.head);
    assert_int_equal(p.v[p.n - 1].type, ppt_tip);
    tear_down(&b);
}

static void forget_calls_at_psb(void **state)
{
    struct packets p;
    struct bench b;

    (void)state;
    set_up(&b);
    etch_vpt_put_call(&b.writer, 0x1005);
    etch_vpt_put_psb(&b.writer, 1, 0x1000);
    etch_vpt_put_return(&b.writer, 0x1005);
    read_back(&p, b.flow, b.writer.head);
    assert_int_equal(p.v[p.n - 1].type, ppt_tip);
    tear_down(&b);
}

static void forget_calls_after_mismatch(void **state)
{
    struct packets p;
    struct bench b;

    (void)state;
    set_up(&b);
    etch_vpt_put_call(&b.writer, 0x1005);
    etch_vpt_put_call(&b.writer, 0x2005);
    etch_vpt_put_return(&b.writer, 0x3000); /* a longjmp */
    etch_vpt_put_return(&b.writer, 0x1005);
    read_back(&p, b.flow, b.writer.head);
    assert_int_equal(p.n, 2);
    assert_int_equal(p.v[1].type, ppt_tip);
    tear_down(&b);
}

static void write_across_the_end(void **state)
{
    struct packets p;
    struct bench b;

    (void)state;
    set_up(&b);
    b.writer.head = 3 * RING - 3;
    etch_vpt_put_tip(&b.writer, 0x7f1234567890);
    assert_int_equal(b.writer.head, 3 * RING + 4);
    read_back(&p, b.flow + RING - 3, 7);
    assert_int_equal(p.v[0].payload.ip.ip, 0x7f1234567890);
    tear_down(&b);
}

static void commit_all_at_once(void **state)
{
    const struct etch_vpt_state *now;
    struct bench b;

    (void)state;
    set_up(&b);
    etch_vpt_put_tip(&b.writer, 0x1000);
    etch_vpt_put_bit(&b.writer, 1);
    assert_int_equal(b.thread->states[0].head + b.thread->states[1].head, 0);
    etch_vpt_commit(&b.writer, 0x1000);
    now = &b.thread->states[b.thread->current & 1];
    assert_int_equal(now->head, b.writer.head);
    assert_int_equal(now->tnt, 3);
    assert_int_equal(now->at, 0x1000);
    etch_vpt_put_bit(&b.writer, 0);
    etch_vpt_commit_bits(&b.writer, 0x2000);
    assert_int_equal(now->tnt, 6);
    assert_int_equal(now->at, 0x2000);
    tear_down(&b);
}

static void tail_of_killed_thread(void **state)
{
    static const enum pt_packet_type types[] = {ppt_tnt_64, ppt_fup, ppt_tip_pgd};
    uint8_t bytes[ETCH_VPT_TAIL_MAX];
    struct packets p;

    (void)state;
    read_back(&p, bytes, etch_vpt_tail(bytes, 0x2d /* 1 01101 */, 0x7f1234567890));
    expect_types(&p, types, 3);
    assert_int_equal(p.v[0].payload.tnt.bit_size, 5);
    assert_int_equal(p.v[0].payload.tnt.payload, 0x0d);
    assert_int_equal(p.v[1].payload.ip.ipc, pt_ipc_sext_48);
    assert_int_equal(p.v[1].payload.ip.ip, 0x7f1234567890);
    assert_int_equal(p.v[2].payload.ip.ipc, pt_ipc_suppressed);
}

static void tail_without_bits(void **state)
{
    uint8_t bytes[ETCH_VPT_TAIL_MAX];
    struct packets p;

    (void)state;
    read_back(&p, bytes, etch_vpt_tail(bytes, 1, 0x1000));
    assert_int_equal(p.n, 2);
    assert_int_equal(p.v[0].type, ppt_fup);
    assert_int_equal(etch_vpt_tail(bytes, 1, 0), 0); /* in the kernel: all is written */
}

static void classify_endings(void **state)
{
    static const struct {
        const char *bytes;
        size_t size;
        enum etch_vpt_ending ending;
        uint64_t target;
    } cases[] = {
        {"\x90", 1, VPT_GOES_ON, 0x1001},                           /* nop */
        {"\x74\x10", 2, VPT_CONDITIONAL, 0x1012},                   /* je */
        {"\xe3\xfe", 2, VPT_CONDITIONAL, 0x1000},                   /* jrcxz to itself */
        {"\xe2\xf0", 2, VPT_CONDITIONAL, 0xff2},                    /* loop */
        {"\xe9\x00\x01\x00\x00", 5, VPT_GOES_ON, 0x1105},           /* jmp */
        {"\xe8\xfb\xff\xff\xff", 5, VPT_CALLS, 0x1000},             /* call itself */
        {"\xe8\x00\x00\x00\x00", 5, VPT_GOES_ON, 0x1005},           /* call next: not a call for returns */
        {"\xff\xd0", 2, VPT_CALLS_INDIRECT, 0},                     /* call *%rax */
        {"\xff\xe0", 2, VPT_JUMPS_INDIRECT, 0},                     /* jmp *%rax */
        {"\x3e\xff\xe0", 3, VPT_JUMPS_INDIRECT, 0},                 /* notrack jmp *%rax */
        {"\xf2\xff\x25\x00\x00\x00\x00", 7, VPT_JUMPS_INDIRECT, 0}, /* bnd jmp *0(%rip) */
        {"\xc3", 1, VPT_RETURN, 0},                                 /* ret */
        {"\xf3\xc3", 2, VPT_RETURN, 0},                             /* rep ret */
        {"\xc2\x08\x00", 3, VPT_RETURN, 0},                         /* ret $8 */
        {"\x0f\x05", 2, VPT_FAR, 0},                                /* syscall */
        {"\xcc", 1, VPT_FAR, 0},                                    /* int3 */
        {"\x48\xcf", 2, VPT_FAR, 0},                                /* iretq */
        {"\xcb", 1, VPT_FAR, 0},                                    /* lret */
        {"\xf3\xaa", 2, VPT_REPEATS, 0x1002},                       /* rep stos */
        {"\xf2\xae", 2, VPT_REPEATS, 0x1002},                       /* repne scas */
        {"\xf3\x0f\x1e\xfa", 4, VPT_GOES_ON, 0x1004},               /* endbr64 */
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct etch_vpt_block b = {.start = 0x1000, .last = 0x1000, .end = 0x1000 + cases[i].size};

        assert_int_equal(etch_vpt_block_classify(&b, (const uint8_t *)cases[i].bytes, cases[i].size), 0);
        assert_int_equal(b.ending, cases[i].ending);
        if (cases[i].target)
            assert_int_equal(b.target, cases[i].target);
    }
}

static void tell_a_beginning_from_an_instruction(void **state)
{
    (void)state;
    assert_false(etch_vpt_instruction_is_whole((const uint8_t *)"\x48\xc7\x85\x80", 4));
    assert_true(etch_vpt_instruction_is_whole((const uint8_t *)"\x48\x89\xd0", 3));
}

static void end_block_where_it_cannot_go(void **state)
{
    struct etch_vpt_block b = {.start = 0x1000, .end = 0x1002, .target = 0x2000, .ending = VPT_CONDITIONAL};
    struct bench bench;

    (void)state;
    set_up(&bench);
    assert_false(etch_vpt_block_ends(&bench.writer, &b, 0x3000));
    assert_int_equal(bench.writer.tnt, 1);
    assert_true(etch_vpt_block_ends(&bench.writer, &b, 0x2000));
    assert_true(etch_vpt_block_ends(&bench.writer, &b, 0x1002));
    assert_int_equal(bench.writer.tnt, 6);
    b.ending = VPT_CALLS;
    assert_false(etch_vpt_block_ends(&bench.writer, &b, 0x3000));
    assert_int_equal(bench.writer.n_returns, 0);
    tear_down(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(put_psb_group),
        cmocka_unit_test(put_psb_before_tracing),
        cmocka_unit_test(put_bits_in_order),
        cmocka_unit_test(put_bits_until_full),
        cmocka_unit_test(put_ips_compressed),
        cmocka_unit_test(compress_return_that_matches),
        cmocka_unit_test(compress_return_64_deep),
        cmocka_unit_test(forget_calls_at_psb),
        cmocka_unit_test(forget_calls_after_mismatch),
        cmocka_unit_test(write_across_the_end),
        cmocka_unit_test(commit_all_at_once),
        cmocka_unit_test(tail_of_killed_thread),
        cmocka_unit_test(tail_without_bits),
        cmocka_unit_test(classify_endings),
        cmocka_unit_test(tell_a_beginning_from_an_instruction),
        cmocka_unit_test(end_block_where_it_cannot_go),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
