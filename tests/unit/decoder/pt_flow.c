/* SPDX-License-Identifier: MIT */
/* The PT decoder on synthetic streams: what no real capture at hand has. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/memory_recording.h"
#include "tests/unit/pt_stream.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

/* 1000: nop; je 1005; nop; nop; 1005: call 1010; 100a: syscall; 100c: jmp 1000; 1010: ret
 * 1020: nop; 1021: syscall; 1023: jmp *%rax; 1025: ptwrite %eax; 1029: syscall; 102b: jmp 102b;
 * 102d: xend; 1030: syscall; 1032: je 1036; 1034: jmp *%rax; 1036: jmp 1036 */
static const uint8_t code[] = {
    [0x00] = 0x90, 0x74, 0x02,          0x90,          0x90, 0xe8, 0x06, 0x00, 0x00, 0x00, 0x0f, 0x05, 0xeb, 0xf2,
    0x90,          0x90, [0x10] = 0xc3, [0x20] = 0x90, 0x0f, 0x05, 0xff, 0xe0, 0xf3, 0x0f, 0xae, 0xe0, 0x0f, 0x05,
    0xeb,          0xfe, 0x0f,          0x01,          0xd5, 0x0f, 0x05, 0x74, 0x02, 0xff, 0xe0, 0xeb, 0xfe,
};

static struct pt_stream stream;

static struct etch_recording *recording_of(const struct pt_stream *s)
{
    struct etch_recording *r = memory_recording("synthetic");

    memory_stream(r, UINT32_MAX, 1, 1, s->bytes, s->n);
    memory_image(r, 1, 0x1000, sizeof(code), NULL, code);
    return r;
}

static void run(struct etch_recording *r, struct seen *seen, const struct etch_steps_options *options)
{
    struct etch_error err;

    memory_done(r);
    assert_int_equal(etch_steps(r, options, see_step, seen, NULL, &err), 0);
}

/* Decodes the stream; the addresses must be `expected`, up to a 0. */
static struct seen decode(const uint64_t *expected)
{
    struct etch_recording *r = recording_of(&stream);
    struct etch_steps_options options = {.jobs = 1};
    struct seen seen = {0};
    size_t n = 0;

    run(r, &seen, &options);
    etch_recording_free(r);
    for (; expected[n]; n++) {
        assert_true(n < seen.ips.n);
        assert_int_equal(seen.ips.v[n], expected[n]);
    }
    assert_int_equal(seen.ips.n, n);
    return seen;
}

#define DECODE(...) decode((const uint64_t[]){__VA_ARGS__ __VA_OPT__(, ) 0})

static size_t count(const struct seen *seen, enum etch_step_kind kind, Etch__LossCause cause)
{
    size_t n = 0;

    for (size_t i = 0; i < seen->events.n; i++)
        n += seen->events.v[i].kind == kind && (kind != ETCH_STEP_LOSS || seen->events.v[i].cause == cause);
    return n;
}

static void assert_losses(const struct seen *seen, Etch__LossCause cause, size_t n)
{
    assert_int_equal(count(seen, ETCH_STEP_LOSS, cause), n);
    for (size_t i = 0; i < seen->events.n; i++)
        if (seen->events.v[i].kind == ETCH_STEP_LOSS)
            assert_int_equal(seen->events.v[i].cause, cause);
}

#define LOSS(name) ETCH__LOSS_CAUSE__LOSS_##name

static void begin(void)
{
    stream.n = 0;
    put_psb(&stream, 100, 0);
}

static void walk_calls_and_branches(void **state)
{
    struct seen seen;

    (void)state;
    begin();
    put_ip(&stream, ppt_tip_pge, 0x1000);
    put_tnt(&stream, "NT");
    put_ip(&stream, ppt_tip_pgd, 0);
    put_tsc(&stream, 200);
    seen = DECODE(0x1000, 0x1001, 0x1003, 0x1004, 0x1005, 0x1010, 0x100a);
    assert_losses(&seen, LOSS(DECODE), 0);
    assert_int_equal(seen.blocks.v[0].time.lo, 100);
    assert_int_equal(seen.blocks.v[0].time.hi, 200);
    assert_int_equal(seen.blocks.v[0].to, 0x1003);
    assert_int_equal(seen.blocks.v[seen.blocks.n - 1].branch, ETCH_BRANCH_FAR);
    assert_int_equal(seen.blocks.v[seen.blocks.n - 1].to, 0);
    seen_free(&seen);
}

static void report_nothing_behind_the_last_packet(void **state)
{
    struct seen seen;

    (void)state;
    begin();
    put_ip(&stream, ppt_tip_pge, 0x1000);
    put_tnt(&stream, "N");
    seen = DECODE(0x1000, 0x1001);
    seen_free(&seen);
}

/* tip.pge X; tip.pgd; tip.pge X, where a branch comes before any system call: nothing of X ran the first time, and
 * nothing is lost. A debugger's breakpoint at X does that. */
static void cut_before_a_branch(void **state)
{
    struct seen seen;

    (void)state;
    begin();
    put_ip(&stream, ppt_tip_pge, 0x1000);
    put_ip(&stream, ppt_tip_pgd, 0);
    put_tsc(&stream, 150);
    put_ip(&stream, ppt_tip_pge, 0x1000);
    put_tnt(&stream, "TT");
    put_ip(&stream, ppt_tip_pgd, 0);
    seen = DECODE(0x1000, 0x1001, 0x1005, 0x1010, 0x100a);
    assert_int_equal(count(&seen, ETCH_STEP_LOSS, LOSS(DECODE)), 0);
    assert_int_equal(count(&seen, ETCH_STEP_BEGIN, 0), 2);
    assert_int_equal(count(&seen, ETCH_STEP_END, 0), 2);
    seen_free(&seen);
}

/* Something ran, or may have: the thread is elsewhere when tracing begins again, or had come from elsewhere, or nobody
 * knows where it is. */
static void cut_and_gone_on(void **state)
{
    struct seen seen;

    (void)state;
    begin();
    put_ip(&stream, ppt_tip_pge, 0x1000);
    put_ip(&stream, ppt_tip_pgd, 0);
    put_ip(&stream, ppt_tip_pge, 0x1001);
    put_tnt(&stream, "TT");
    put_ip(&stream, ppt_tip_pgd, 0);
    seen = DECODE(0x1001, 0x1005, 0x1010, 0x100a);
    assert_losses(&seen, LOSS(DECODE), 1);
    seen_free(&seen);

    begin();
    put_ip(&stream, ppt_tip_pge, 0x100c);
    put_tnt(&stream, "T");
    put_ip(&stream, ppt_tip_pgd, 0); /* before the return at 1010 */
    put_ip(&stream, ppt_tip_pge, 0x100c);
    put_tnt(&stream, "T");
    seen = DECODE(0x100c, 0x1000, 0x1001, 0x100c, 0x1000, 0x1001);
    assert_losses(&seen, LOSS(DECODE), 1);
    seen_free(&seen);

    begin();
    put_ip(&stream, ppt_tip_pge, 0x1000);
    put_ip(&stream, ppt_tip_pgd, 0);
    put(&stream, ppt_ovf);
    put_ip(&stream, ppt_tip_pge, 0x1000);
    seen = DECODE();
    assert_int_equal(count(&seen, ETCH_STEP_LOSS, LOSS(DECODE)), 1);
    seen_free(&seen);
}

/* The same where a system call is in reach: whether it ran cannot be known. */
static void cut_before_a_system_call(void **state)
{
    struct seen seen;

    (void)state;
    begin();
    put_ip(&stream, ppt_tip_pge, 0x1020);
    put_ip(&stream, ppt_tip_pgd, 0);
    put_tsc(&stream, 150);
    put_ip(&stream, ppt_tip_pge, 0x1020);
    put_ip(&stream, ppt_tip_pgd, 0);
    put_ip(&stream, ppt_tip_pge, 0x1023);
    seen = DECODE(0x1020, 0x1021);
    assert_losses(&seen, LOSS(DECODE), 1);
    seen_free(&seen);
}

static void interrupt_before_the_first_instruction(void **state)
{
    struct seen seen;

    (void)state;
    begin();
    put_ip(&stream, ppt_tip_pge, 0x1020);
    put_ip(&stream, ppt_fup, 0x1020);
    put_ip(&stream, ppt_tip_pgd, 0);
    put_ip(&stream, ppt_tip_pge, 0x1020);
    put_ip(&stream, ppt_fup, 0x1021);
    put_ip(&stream, ppt_tip, 0x1005);
    put_tnt(&stream, "T");
    seen = DECODE(0x1020, 0x1005, 0x1010);
    assert_losses(&seen, LOSS(DECODE), 0);
    assert_int_equal(count(&seen, ETCH_STEP_INTERRUPT, 0), 2);
    seen_free(&seen);
}

static void overflow_then_time_then_address(void **state)
{
    struct seen seen;

    (void)state;
    begin();
    put_ip(&stream, ppt_tip_pge, 0x1000);
    put_tnt(&stream, "N");
    put(&stream, ppt_ovf);
    put_tsc(&stream, 300);
    put_ip(&stream, ppt_fup, 0x1004);
    put_tnt(&stream, "T");
    put_ip(&stream, ppt_tip_pgd, 0);
    put_tsc(&stream, 400);
    seen = DECODE(0x1000, 0x1001, 0x1004, 0x1005, 0x1010, 0x100a);
    assert_losses(&seen, LOSS(OVERFLOW), 1);
    assert_int_equal(seen.blocks.v[1].time.lo, 300);
    seen_free(&seen);
}

static void overflow_while_tracing_is_off(void **state)
{
    struct seen seen;

    (void)state;
    begin();
    put_ip(&stream, ppt_tip_pge, 0x1000);
    put(&stream, ppt_ovf);
    put_ip(&stream, ppt_tip_pge, 0x1020);
    put_ip(&stream, ppt_tip_pgd, 0);
    seen = DECODE(0x1020, 0x1021);
    assert_losses(&seen, LOSS(OVERFLOW), 1);
    seen_free(&seen);
}

static void forget_calls_at_an_overflow(void **state)
{
    struct seen seen;

    (void)state;
    begin();
    put_ip(&stream, ppt_tip_pge, 0x1000);
    put_tnt(&stream, "N");
    put(&stream, ppt_ovf);
    put_ip(&stream, ppt_fup, 0x1010);
    put_tnt(&stream, "T"); /* a compressed return whose call was lost */
    put_psb(&stream, 500, 0x1020);
    put_ip(&stream, ppt_tip_pgd, 0);
    seen = DECODE(0x1000, 0x1001, 0x1020, 0x1021);
    assert_int_equal(count(&seen, ETCH_STEP_LOSS, LOSS(DECODE)), 1);
    seen_free(&seen);
}

static void pass_over_ptwrite(void **state)
{
    struct pt_packet ptw = {.type = ppt_ptw};
    struct seen seen;

    (void)state;
    begin();
    put_ip(&stream, ppt_tip_pge, 0x1025);
    ptw.payload.ptw.plc = 1;
    ptw.payload.ptw.ip = 1;
    ptw.payload.ptw.payload = 0x0282028202820282; /* as a PSB's bytes */
    put_packet(&stream, &ptw);
    put_ip(&stream, ppt_fup, 0x1025);
    put_ip(&stream, ppt_tip_pgd, 0);
    seen = DECODE(0x1025, 0x1029);
    assert_losses(&seen, LOSS(DECODE), 0);
    seen_free(&seen);
}

static void pass_over_power_events(void **state)
{
    struct pt_packet exstop = {.type = ppt_exstop};
    struct seen seen;

    (void)state;
    begin();
    put_ip(&stream, ppt_tip_pge, 0x1020);
    put(&stream, ppt_mwait);
    put(&stream, ppt_pwre);
    exstop.payload.exstop.ip = 1;
    put_packet(&stream, &exstop);
    put_ip(&stream, ppt_fup, 0x1021);
    put(&stream, ppt_pwrx);
    put(&stream, ppt_vmcs);
    put(&stream, ppt_mnt);
    put_ip(&stream, ppt_tip_pgd, 0);
    seen = DECODE(0x1020, 0x1021);
    assert_losses(&seen, LOSS(DECODE), 0);
    seen_free(&seen);
}

static void go_on_without_psbend(void **state)
{
    struct seen seen;

    (void)state;
    stream.n = 0;
    put(&stream, ppt_psb);
    put_ip(&stream, ppt_fup, 0x1000);
    put_tnt(&stream, "TT");
    put_ip(&stream, ppt_tip_pgd, 0);
    seen = DECODE(0x1000, 0x1001, 0x1005, 0x1010, 0x100a);
    assert_losses(&seen, LOSS(DECODE), 0);
    seen_free(&seen);
}

static void begin_in_mid_packet(void **state)
{
    struct etch_recording *r;
    struct etch_steps_options options = {.jobs = 1};
    struct seen seen = {0};

    (void)state;
    stream.n = 0;
    memcpy(stream.bytes, "\x10\x02\x82\x02\x82\xff", 6); /* the rest of something that was overwritten */
    stream.n = 6;
    put_psb(&stream, 100, 0x1020);
    put_ip(&stream, ppt_tip_pgd, 0);
    r = recording_of(&stream);
    ((Etch__Stream *)(uintptr_t)r->streams.v[0].about)->snapshot = 1;
    run(r, &seen, &options);
    assert_int_equal(seen.ips.n, 2);
    assert_losses(&seen, LOSS(RING_WRAPPED), 1);
    seen_free(&seen);
    etch_recording_free(r);
}

static void end_in_mid_packet(void **state)
{
    struct seen seen;

    (void)state;
    begin();
    put_ip(&stream, ppt_tip_pge, 0x1000);
    put_tnt(&stream, "N");
    put_ip(&stream, ppt_tip, 0x1234567);
    stream.n -= 3;
    seen = DECODE(0x1000, 0x1001);
    assert_losses(&seen, LOSS(DECODE), 1);
    seen_free(&seen);
}

static void resynchronise_behind_nonsense(void **state)
{
    struct seen seen;

    (void)state;
    begin();
    put_ip(&stream, ppt_tip_pge, 0x1000);
    put_tnt(&stream, "N");
    stream.bytes[stream.n++] = 0x02;
    stream.bytes[stream.n++] = 0xff;
    put_tnt(&stream, "TTTTTT");
    put_psb(&stream, 300, 0x1020);
    put_ip(&stream, ppt_tip_pgd, 0);
    seen = DECODE(0x1000, 0x1001, 0x1020, 0x1021);
    assert_losses(&seen, LOSS(DECODE), 1);
    assert_int_equal(seen.events.v[1].kind, ETCH_STEP_LOSS);
    assert_int_equal(seen.events.v[1].offset, stream.n - 1 - 1 - 2 - 9 - 2 - 8 - 16 - 2); /* of the nonsense */
    seen_free(&seen);
}

static void take_a_deferred_tip(void **state)
{
    struct seen seen;

    (void)state;
    begin();
    put_ip(&stream, ppt_tip_pge, 0x1023);
    put_tnt(&stream, "TT"); /* of what follows the indirect jump */
    put_ip(&stream, ppt_tip, 0x1000);
    put_ip(&stream, ppt_tip_pgd, 0);
    seen = DECODE(0x1023, 0x1000, 0x1001, 0x1005, 0x1010, 0x100a);
    assert_losses(&seen, LOSS(DECODE), 0);
    seen_free(&seen);
}

static void report_code_that_is_missing(void **state)
{
    struct seen seen;

    (void)state;
    begin();
    put_ip(&stream, ppt_tip_pge, 0x1023);
    put_ip(&stream, ppt_tip, 0x5000);
    put_tnt(&stream, "TTT");
    put_ip(&stream, ppt_tip, 0x1000); /* bits before it may belong behind it */
    put_ip(&stream, ppt_tip_pgd, 0);
    put_ip(&stream, ppt_tip_pge, 0x1020);
    put_ip(&stream, ppt_tip_pgd, 0);
    seen = DECODE(0x1023, 0x1020, 0x1021);
    assert_losses(&seen, LOSS(UNMAPPED_CODE), 1);
    assert_int_equal(seen.blocks.v[0].to, 0x5000);
    seen_free(&seen);
}

static uint64_t loss_at(const struct seen *seen, size_t n)
{
    for (size_t i = 0; i < seen->events.n; i++)
        if (seen->events.v[i].kind == ETCH_STEP_LOSS && n-- == 0)
            return seen->events.v[i].ip;
    return 0;
}

/* A return into code that is missing ran, though nobody knows where to. */
static void return_to_a_caller_that_is_missing(void **state)
{
    struct seen seen;

    (void)state;
    begin();
    put_ip(&stream, ppt_tip_pge, 0x1023);
    put_ip(&stream, ppt_tip, 0x5000);
    put_ip(&stream, ppt_tip, 0x1010); /* the missing code calls back */
    put_tnt(&stream, "TTT");
    put_ip(&stream, ppt_tip_pgd, 0);
    seen = DECODE(0x1023, 0x1010);
    assert_losses(&seen, LOSS(UNMAPPED_CODE), 2);
    assert_int_equal(loss_at(&seen, 0), 0x5000);
    seen_free(&seen);
}

/* The CPU puts off no TIP: that shows where its TNT packets had room left. The TIP behind the missing code is as good
 * as any then. */
static void go_on_behind_code_that_is_missing(void **state)
{
    struct seen seen;

    (void)state;
    begin();
    put_ip(&stream, ppt_tip_pge, 0x1000);
    for (unsigned i = 0; i < 2; i++) {
        put_tnt(&stream, "TT");
        put_ip(&stream, ppt_tip_pgd, 0);
        put_ip(&stream, ppt_tip_pge, 0x1032);
        put_tnt(&stream, "N");
        put_ip(&stream, ppt_tip, 0x1000);
    }
    put_tnt(&stream, "TT");
    put_ip(&stream, ppt_tip_pgd, 0);
    put_ip(&stream, ppt_tip_pge, 0x1023);
    put_ip(&stream, ppt_tip, 0x5000);
    put_tnt(&stream, "TTT");
    put_ip(&stream, ppt_tip, 0x1020);
    put_ip(&stream, ppt_tip_pgd, 0);
    seen = DECODE(0x1000, 0x1001, 0x1005, 0x1010, 0x100a, 0x1032, 0x1034, 0x1000, 0x1001, 0x1005, 0x1010, 0x100a,
                  0x1032, 0x1034, 0x1000, 0x1001, 0x1005, 0x1010, 0x100a, 0x1023, 0x1020, 0x1021);
    assert_losses(&seen, LOSS(UNMAPPED_CODE), 1);
    seen_free(&seen);
}

/* The same, and what follows does not fit: the TIP was put off after all, and is not used. */
static void do_not_trust_what_does_not_fit(void **state)
{
    struct seen seen;

    (void)state;
    begin();
    put_ip(&stream, ppt_tip_pge, 0x1032);
    for (unsigned i = 0; i < 2; i++) {
        put_tnt(&stream, "N");
        put_ip(&stream, ppt_tip, 0x1032);
    }
    put_tnt(&stream, "N");
    put_ip(&stream, ppt_tip, 0x5000);
    put_tnt(&stream, "TTT");
    put_ip(&stream, ppt_tip, 0x1020);
    put_tnt(&stream, "T"); /* but at 1021 is a system call */
    put_psb(&stream, 200, 0x1020);
    put_ip(&stream, ppt_tip_pgd, 0);
    seen = DECODE(0x1032, 0x1034, 0x1032, 0x1034, 0x1032, 0x1034, 0x1020, 0x1021);
    assert_losses(&seen, LOSS(UNMAPPED_CODE), 1);
    seen_free(&seen);
}

static void tell_of_a_target_that_is_not_given(void **state)
{
    struct seen seen;

    (void)state;
    begin();
    put_ip(&stream, ppt_tip_pge, 0x1023);
    put_ip(&stream, ppt_tip, 0);
    put_tnt(&stream, "T");
    seen = DECODE(0x1023);
    assert_losses(&seen, LOSS(DECODE), 1);
    assert_int_equal(seen.blocks.v[0].to, 0);
    seen_free(&seen);
}

/* A disassembler counts it among the conditional branches; it leaves no TNT. */
static void pass_over_the_end_of_a_transaction(void **state)
{
    struct seen seen;

    (void)state;
    begin();
    put_ip(&stream, ppt_tip_pge, 0x102d);
    put_ip(&stream, ppt_tip_pgd, 0);
    seen = DECODE(0x102d, 0x1030);
    assert_losses(&seen, LOSS(DECODE), 0);
    seen_free(&seen);
}

static void stop_in_a_loop_without_trace(void **state)
{
    struct seen seen;

    (void)state;
    begin();
    put_ip(&stream, ppt_tip_pge, 0x102b);
    put_tnt(&stream, "T");
    put_psb(&stream, 300, 0x1020);
    put_ip(&stream, ppt_tip_pgd, 0);
    seen = DECODE(0x1020, 0x1021);
    assert_losses(&seen, LOSS(DECODE), 1);
    seen_free(&seen);
}

static void bound_time_by_cycles(void **state)
{
    struct etch_recording *r;
    struct etch_steps_options options = {.jobs = 1};
    struct pt_packet cbr = {.type = ppt_cbr}, cyc = {.type = ppt_cyc};
    struct seen seen = {0};

    (void)state;
    begin();
    cbr.payload.cbr.ratio = 9;
    put_packet(&stream, &cbr);
    cyc.payload.cyc.value = 1;
    put_packet(&stream, &cyc);
    put_ip(&stream, ppt_tip_pge, 0x1000);
    cyc.payload.cyc.value = 50; /* at ten core cycles a bus tick at most: fifty TSC ticks at least */
    put_packet(&stream, &cyc);
    put_tnt(&stream, "TT");
    put_packet(&stream, &cyc);
    put_ip(&stream, ppt_tip_pgd, 0);
    put_tsc(&stream, 400);
    r = recording_of(&stream);
    r->streams.v[0].about->pt->nom_freq = 10;
    run(r, &seen, &options);
    assert_int_equal(seen.blocks.v[0].first, 0x1000);
    assert_int_equal(seen.blocks.v[0].time.lo, 150);
    assert_int_equal(seen.blocks.v[0].time.hi, 400);
    assert_int_equal(seen.events.v[0].time.hi, 350);
    assert_int_equal(seen.blocks.v[seen.blocks.n - 1].time.lo, 200);
    assert_int_equal(seen.blocks.v[seen.blocks.n - 1].time.hi, 400);
    seen_free(&seen);
    etch_recording_free(r);
}

static void bound_time_by_crystal_ticks(void **state)
{
    struct etch_recording *r;
    struct etch_steps_options options = {.jobs = 1};
    struct pt_packet tma = {.type = ppt_tma}, mtc = {.type = ppt_mtc};
    Etch__PtConfig *config;
    struct seen seen = {0};

    (void)state;
    stream.n = 0;
    put(&stream, ppt_psb);
    put_tsc(&stream, 100000);
    tma.payload.tma.ctc = 8;
    tma.payload.tma.fc = 50;
    put_packet(&stream, &tma);
    put_mode_64(&stream);
    put(&stream, ppt_psbend);
    put_ip(&stream, ppt_tip_pge, 0x1000);
    mtc.payload.mtc.ctc = 2; /* at the count of 16: eight ticks of 100 after 99950 */
    put_packet(&stream, &mtc);
    put_tnt(&stream, "TT");
    put_ip(&stream, ppt_tip_pgd, 0);
    put_tsc(&stream, 200000);
    r = recording_of(&stream);
    config = r->streams.v[0].about->pt;
    config->mtc_freq = 3;
    config->cpuid_15_eax = 2;
    config->cpuid_15_ebx = 200;
    run(r, &seen, &options);
    assert_in_range(seen.blocks.v[0].time.lo, 100750 - 102, 100750);
    assert_int_equal(seen.blocks.v[0].time.hi, 200000);
    assert_in_range(seen.events.v[0].time.hi, 100750, 100750 + 102);
    seen_free(&seen);
    etch_recording_free(r);
}

/* Many PSBs, at every instruction of the loop: a seam everywhere. */
static void make_long(void)
{
    static const uint64_t at[] = {0x1000, 0x1003, 0x1010, 0x100a};
    unsigned n = 0;

    stream.n = 0;
    put_psb(&stream, 1, 0);
    put_ip(&stream, ppt_tip_pge, 0x1000);
    while (stream.n < sizeof(stream.bytes) - 4096) {
        put_tnt(&stream, "NT");
        put_ip(&stream, ppt_tip_pgd, 0);
        put_ip(&stream, ppt_tip_pge, 0x100c);
        if (n++ % 7 == 0)
            put_psb(&stream, 100 + n, at[0]);
        if (n % 5 == 0) {
            put_tnt(&stream, "N");
            put_psb(&stream, 0, at[1 + n % 2]);
            put_tnt(&stream, "N");
        }
        if (n % 11 == 0)
            put(&stream, ppt_ovf);
    }
}

static void assert_same_step(const struct etch_step *a, const struct etch_step *b)
{
    assert_int_equal(a->kind, b->kind);
    assert_int_equal(a->first, b->first);
    assert_int_equal(a->end, b->end);
    assert_int_equal(a->to, b->to);
    assert_int_equal(a->ip, b->ip);
    assert_int_equal(a->offset, b->offset);
    assert_int_equal(a->time.lo, b->time.lo);
    assert_int_equal(a->time.hi, b->time.hi);
}

static void give_the_same_with_any_jobs(void **state)
{
    struct etch_recording *r;
    struct seen seen[4] = {{0}};
    static const unsigned jobs[] = {1, 2, 3, 8};

    (void)state;
    make_long();
    r = recording_of(&stream);
    for (size_t i = 0; i < 4; i++) {
        struct etch_steps_options options = {.jobs = jobs[i]};

        run(r, &seen[i], &options);
        assert_true(seen[i].ips.n > 100000);
        assert_int_equal(seen[i].ips.n, seen[0].ips.n);
        assert_memory_equal(seen[i].ips.v, seen[0].ips.v, seen[0].ips.n * sizeof(uint64_t));
        assert_int_equal(seen[i].blocks.n, seen[0].blocks.n);
        assert_int_equal(seen[i].events.n, seen[0].events.n);
        for (size_t k = 0; k < seen[0].blocks.n; k++)
            assert_same_step(&seen[i].blocks.v[k], &seen[0].blocks.v[k]);
        for (size_t k = 0; k < seen[0].events.n; k++)
            assert_same_step(&seen[i].events.v[k], &seen[0].events.v[k]);
    }
    for (size_t i = 0; i < 4; i++)
        seen_free(&seen[i]);
    etch_recording_free(r);
}

/* Straight through, over many seams: each of the rounds is there, once. */
static void lose_and_double_nothing_at_seams(void **state)
{
    struct etch_recording *r;
    struct etch_steps_options options = {.jobs = 2};
    struct seen seen = {0};
    size_t rounds = 0;

    (void)state;
    stream.n = 0;
    put_psb(&stream, 1, 0);
    put_ip(&stream, ppt_tip_pge, 0x1000);
    for (; stream.n < 500000; rounds++) {
        put_tnt(&stream, "N");
        if (rounds % 100 == 0)
            put_psb(&stream, 10 + rounds, 0x1004); /* between the branch and the call */
        put_tnt(&stream, "T");
        put_ip(&stream, ppt_tip_pgd, 0);
        put_ip(&stream, ppt_tip_pge, 0x100c);
    }
    r = recording_of(&stream);
    run(r, &seen, &options);
    assert_losses(&seen, LOSS(DECODE), 0);
    assert_int_equal(seen.ips.n, rounds * 8 - 1); /* the last jump back is not proven */
    for (size_t i = 0; i < seen.ips.n; i++) {
        static const uint64_t loop[] = {0x1000, 0x1001, 0x1003, 0x1004, 0x1005, 0x1010, 0x100a, 0x100c};

        assert_int_equal(seen.ips.v[i], loop[i % 8]);
    }
    seen_free(&seen);
    etch_recording_free(r);
}

static void give_the_last(void **state)
{
    struct etch_recording *r;
    struct etch_steps_options all = {.jobs = 1}, some = {.jobs = 1};
    struct seen whole = {0};

    (void)state;
    make_long();
    r = recording_of(&stream);
    run(r, &whole, &all);
    for (some.last = 1; some.last < 200000; some.last = some.last * 7 + 3) {
        struct seen seen = {0};

        run(r, &seen, &some);
        assert_int_equal(seen.ips.n, some.last);
        assert_memory_equal(seen.ips.v, whole.ips.v + whole.ips.n - seen.ips.n, seen.ips.n * sizeof(uint64_t));
        seen_free(&seen);
    }
    seen_free(&whole);
    etch_recording_free(r);
}

static void report_a_hole(void **state)
{
    struct etch_recording *r;
    struct etch_steps_options options = {.jobs = 1};
    struct seen seen = {0};

    (void)state;
    begin();
    put_ip(&stream, ppt_tip_pge, 0x1000);
    put_tnt(&stream, "N");
    r = recording_of(&stream);
    begin();
    put_ip(&stream, ppt_tip_pge, 0x1020);
    put_ip(&stream, ppt_tip_pgd, 0);
    memory_hole(r, 1000, stream.bytes, stream.n);
    run(r, &seen, &options);
    assert_int_equal(seen.ips.n, 4);
    assert_int_equal(count(&seen, ETCH_STEP_LOSS, LOSS(UNSPECIFIED)), 1);
    seen_free(&seen);
    etch_recording_free(r);
}

static void report_a_hole_at_the_end(void **state)
{
    struct etch_recording *r;
    struct etch_steps_options options = {.jobs = 1};
    struct seen seen = {0};

    (void)state;
    begin();
    put_ip(&stream, ppt_tip_pge, 0x1020);
    put_ip(&stream, ppt_tip_pgd, 0);
    r = recording_of(&stream);
    memory_hole(r, 1, "", 0);
    run(r, &seen, &options);
    assert_int_equal(seen.ips.n, 2);
    assert_losses(&seen, LOSS(UNSPECIFIED), 1);
    assert_int_equal(seen.events.v[seen.events.n - 1].kind, ETCH_STEP_LOSS);
    seen_free(&seen);
    etch_recording_free(r);
}

static void add_switch(struct etch_recording *r, uint64_t tsc, bool in, uint32_t tid)
{
    Etch__Switch s = ETCH__SWITCH__INIT;

    s.cpu = 3;
    s.tsc = tsc;
    s.in = in;
    s.pid = 1;
    s.tid = tid;
    assert_true(etch_array_push(&r->switches, s));
}

/* Two threads in turn on one CPU, and a stretch that may be either's. */
static void cut_a_cpu_into_threads(void **state)
{
    struct etch_recording *r = memory_recording("synthetic");
    struct etch_steps_options options = {.jobs = 1};
    struct seen one = {.tid = 11}, two = {.tid = 12};

    (void)state;
    begin();
    put_ip(&stream, ppt_tip_pge, 0x1020); /* 100..200: of 11 */
    put_ip(&stream, ppt_tip_pgd, 0);
    put_tsc(&stream, 200);
    put_ip(&stream, ppt_tip_pge, 0x1025); /* 200..400: who knows */
    put_ip(&stream, ppt_tip_pgd, 0);
    put_tsc(&stream, 400);
    put_ip(&stream, ppt_tip_pge, 0x1000); /* 400..500: of 12 */
    put_tnt(&stream, "TT");
    put_ip(&stream, ppt_tip_pgd, 0);
    put_tsc(&stream, 500);
    memory_stream(r, 3, 0, 0, stream.bytes, stream.n);
    memory_image(r, 1, 0x1000, sizeof(code), NULL, code);
    add_switch(r, 50, true, 11);
    add_switch(r, 300, false, 11);
    add_switch(r, 310, true, 12);
    run(r, &one, &options);
    run(r, &two, &options);
    assert_int_equal(one.ips.n, 2);
    assert_int_equal(one.ips.v[0], 0x1020);
    assert_int_equal(two.ips.n, 5);
    assert_int_equal(two.ips.v[0], 0x1000);
    assert_losses(&one, LOSS(SIDEBAND), 1);
    assert_losses(&two, LOSS(SIDEBAND), 1);
    assert_int_equal(two.blocks.v[0].cpu, 3);
    seen_free(&one);
    seen_free(&two);
    etch_recording_free(r);
}

/* The kernel is traced too, and comes back to code that is missing: each time is told. */
static void tell_each_entry_to_missing_code(void **state)
{
    static const uint64_t kernel = 0xffffffff81000000, entries[] = {0x5000, 0x5010, 0x5000, 0x1020, 0x5000};
    struct etch_recording *r = memory_recording("synthetic");
    struct etch_steps_options options = {.jobs = 1};
    struct seen seen = {0};

    (void)state;
    stream.n = 0;
    put_psb(&stream, 100, kernel);
    for (size_t i = 0; i < 5; i++) {
        put_tnt(&stream, "TNT"); /* the kernel's */
        put_ip(&stream, ppt_tip, entries[i]);
        put_ip(&stream, ppt_tip, kernel + 16);
        put_tsc(&stream, 200 + i);
    }
    memory_stream(r, 3, 0, 0, stream.bytes, stream.n);
    memory_image(r, 1, 0x1000, sizeof(code), NULL, code);
    add_switch(r, 50, true, 11);
    run(r, &seen, &options);
    assert_losses(&seen, LOSS(UNMAPPED_CODE), 4);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(loss_at(&seen, i), entries[i]);
    assert_int_equal(seen.ips.n, 2);
    seen_free(&seen);
    etch_recording_free(r);
}

/* An overflow hides that one thread left and another came. */
static void change_threads_within_an_overflow(void **state)
{
    struct etch_recording *r = memory_recording("synthetic");
    struct etch_steps_options options = {.jobs = 1};
    struct seen one = {.tid = 11}, two = {.tid = 12};

    (void)state;
    begin();
    put_ip(&stream, ppt_tip_pge, 0x1000);
    put_tnt(&stream, "N");
    put_tsc(&stream, 150);
    put(&stream, ppt_ovf);
    put_tsc(&stream, 350);
    put_ip(&stream, ppt_fup, 0x1010); /* 12 runs */
    put_ip(&stream, ppt_tip, 0x1020);
    put_tsc(&stream, 360);
    put(&stream, ppt_ovf);
    put_ip(&stream, ppt_tip_pge, 0x1025); /* 11 again */
    put_tsc(&stream, 550);
    put_ip(&stream, ppt_tip_pgd, 0);
    put_tsc(&stream, 560);
    memory_stream(r, 3, 0, 0, stream.bytes, stream.n);
    memory_image(r, 1, 0x1000, sizeof(code), NULL, code);
    for (unsigned i = 0; i < 3; i++) {
        add_switch(r, 50 + 200 * i, true, i == 1 ? 12 : 11);
        add_switch(r, 210 + 200 * i, false, i == 1 ? 12 : 11);
    }
    run(r, &one, &options);
    run(r, &two, &options);
    assert_int_equal(one.ips.n, 4);
    assert_int_equal(one.ips.v[2], 0x1025);
    assert_losses(&one, LOSS(OVERFLOW), 1);
    assert_int_equal(two.ips.n, 1);
    assert_int_equal(two.ips.v[0], 0x1010);
    assert_losses(&two, LOSS(OVERFLOW), 1);
    seen_free(&one);
    seen_free(&two);
    etch_recording_free(r);
}

/* Thread 11 is cut at 1000 on a CPU, and is at `to` when it comes back; 12 runs at 1000 in between. Returns the losses
 * of 11. */
static size_t cut_among_threads(uint64_t to)
{
    struct etch_recording *r = memory_recording("synthetic");
    struct etch_steps_options options = {.jobs = 1};
    struct seen seen = {.tid = 11};
    size_t n;

    begin();
    for (unsigned i = 0; i < 3; i++) {
        put_ip(&stream, ppt_tip_pge, i == 2 ? to : 0x1000);
        put_tsc(&stream, 150 + 200 * i);
        if (i > 0)
            put_tnt(&stream, "TT");
        put_ip(&stream, ppt_tip_pgd, 0);
        put_tsc(&stream, 200 + 200 * i);
    }
    memory_stream(r, 3, 0, 0, stream.bytes, stream.n);
    memory_image(r, 1, 0x1000, sizeof(code), NULL, code);
    for (unsigned i = 0; i < 3; i++) {
        add_switch(r, 50 + 200 * i, true, i == 1 ? 12 : 11);
        add_switch(r, 210 + 200 * i, false, i == 1 ? 12 : 11);
    }
    run(r, &seen, &options);
    assert_int_equal(seen.ips.n, to == 0x1000 ? 5 : 4);
    n = count(&seen, ETCH_STEP_LOSS, LOSS(DECODE));
    seen_free(&seen);
    etch_recording_free(r);
    return n;
}

/* Where another thread begins does not tell whether this one went on. */
static void cut_while_others_run(void **state)
{
    (void)state;
    assert_int_equal(cut_among_threads(0x1000), 0);
    assert_int_equal(cut_among_threads(0x1001), 1);
}

static void add_failure(struct etch_recording *r, uint32_t tid, uint64_t ip)
{
    Etch__Failure *failure = malloc(sizeof(*failure));

    assert_non_null(failure);
    etch__failure__init(failure);
    failure->kind = ETCH__FAILURE_KIND__FAILURE_SIGNAL;
    failure->signal = SIGSEGV;
    failure->code = 1;
    failure->pid = 1;
    failure->tid = tid;
    failure->ip = ip;
    r->failure = failure;
}

/* Thread 11 is interrupted at 1021 on CPU 3, and is on CPU 4 from 350 to 400, whose trace is in `stream`; 12 is there
 * before and after. Thread 11 dies at 1021. */
static struct seen die_after_a_move(void)
{
    struct etch_recording *r = memory_recording("synthetic");
    struct etch_steps_options options = {.jobs = 1};
    struct seen seen = {.tid = 11};

    memory_stream(r, 4, 0, 0, stream.bytes, stream.n);
    begin();
    put_ip(&stream, ppt_tip_pge, 0x1020);
    put_tsc(&stream, 150);
    put_ip(&stream, ppt_fup, 0x1021);
    put_ip(&stream, ppt_tip_pgd, 0);
    memory_stream(r, 3, 0, 0, stream.bytes, stream.n);
    memory_image(r, 1, 0x1000, sizeof(code), NULL, code);
    add_switch(r, 50, true, 11);
    add_switch(r, 300, false, 11);
    add_switch(r, 60, true, 12);
    add_switch(r, 340, false, 12);
    add_switch(r, 350, true, 11);
    add_switch(r, 400, false, 11);
    add_switch(r, 410, true, 12);
    for (size_t i = 2; i < r->switches.n; i++)
        r->switches.v[i].cpu = 4;
    add_failure(r, 11, 0x1021);
    run(r, &seen, &options);
    etch_recording_free(r);
    return seen;
}

/* The instruction that a thread died of is the last of its trace, wherever the kernel took the thread to afterwards. */
static void end_at_the_fault(void **state)
{
    struct seen seen;

    (void)state;
    stream.n = 0;
    seen = die_after_a_move();
    assert_int_equal(seen.ips.n, 2);
    assert_int_equal(seen.ips.v[1], 0x1021);
    seen_free(&seen);

    begin(); /* another thread's, before and after */
    put_ip(&stream, ppt_tip_pge, 0x1020);
    put_tsc(&stream, 160);
    put_ip(&stream, ppt_tip_pgd, 0);
    put_tsc(&stream, 420);
    put_ip(&stream, ppt_tip_pge, 0x1020);
    put_tsc(&stream, 430);
    put_ip(&stream, ppt_tip_pgd, 0);
    seen = die_after_a_move();
    assert_int_equal(seen.ips.n, 2);
    assert_int_equal(seen.ips.v[1], 0x1021);
    seen_free(&seen);
}

static void put_full_ip(enum pt_packet_type type, uint64_t ip)
{
    struct pt_packet packet = {.type = type};

    packet.payload.ip.ipc = pt_ipc_full;
    packet.payload.ip.ip = ip;
    put_packet(&stream, &packet);
}

/* A thread that jumps to nowhere dies there: no instruction of that place is listed, and nothing is lost. */
static void die_where_no_code_is(void **state)
{
    static const uint64_t places[] = {0x5000, 0};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct etch_steps_options options = {.jobs = 1};
        struct etch_recording *r;
        struct seen seen = {0};

        begin();
        put_ip(&stream, ppt_tip_pge, 0x1023);
        put_full_ip(ppt_tip, places[i]);
        put_full_ip(ppt_fup, places[i]);
        put_ip(&stream, ppt_tip_pgd, 0);
        r = recording_of(&stream);
        add_failure(r, 1, places[i]);
        run(r, &seen, &options);
        assert_int_equal(seen.ips.n, 1);
        assert_losses(&seen, LOSS(DECODE), 0);
        assert_int_equal(seen.blocks.v[0].to, places[i]);
        assert_int_equal(seen.events.v[1].kind, ETCH_STEP_INTERRUPT);
        assert_true(seen.events.v[1].nowhere);
        assert_int_equal(seen.events.v[1].ip, places[i]);
        seen_free(&seen);
        etch_recording_free(r);
    }
}

/* An interrupt at that instruction is no end where the thread went on elsewhere. */
static void go_on_behind_the_address_of_the_fault(void **state)
{
    struct seen seen;

    (void)state;
    begin();
    put_tsc(&stream, 360);
    put_ip(&stream, ppt_tip_pge, 0x1005);
    put_tsc(&stream, 370);
    put_tnt(&stream, "T");
    put_ip(&stream, ppt_tip_pgd, 0);
    put_tsc(&stream, 390);
    seen = die_after_a_move();
    assert_int_equal(seen.ips.n, 4);
    assert_int_equal(seen.ips.v[0], 0x1020);
    assert_int_equal(seen.ips.v[1], 0x1005);
    seen_free(&seen);
}

/* Another library takes the place of the first: each run gets its own code. */
static void see_the_code_of_the_time(void **state)
{
    static const uint8_t first[] = {0x90, 0x0f, 0x05}, second[] = {0x66, 0x90, 0x90, 0x0f, 0x05};
    struct etch_recording *r = memory_recording("synthetic");
    struct etch_steps_options options = {.jobs = 1};
    struct seen seen = {0};
    Etch__Image *image;

    (void)state;
    begin();
    put_ip(&stream, ppt_tip_pge, 0x2000);
    put_ip(&stream, ppt_tip_pgd, 0);
    put_tsc(&stream, 200);
    put_tsc(&stream, 400);
    put_ip(&stream, ppt_tip_pge, 0x2002);
    put_ip(&stream, ppt_tip_pgd, 0);
    put_tsc(&stream, 500);
    memory_stream(r, UINT32_MAX, 1, 1, stream.bytes, stream.n);
    image = memory_image(r, 1, 0x2000, sizeof(first), NULL, first);
    image->unmapped_tsc = 250;
    image = memory_image(r, 1, 0x2000, sizeof(second), NULL, second);
    image->mapped_tsc = 300;
    run(r, &seen, &options);
    assert_int_equal(seen.ips.n, 4);
    assert_int_equal(seen.ips.v[1], 0x2001);
    assert_int_equal(seen.ips.v[2], 0x2002);
    assert_int_equal(seen.ips.v[3], 0x2003);
    seen_free(&seen);
    etch_recording_free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(walk_calls_and_branches),
        cmocka_unit_test(report_nothing_behind_the_last_packet),
        cmocka_unit_test(cut_before_a_branch),
        cmocka_unit_test(cut_and_gone_on),
        cmocka_unit_test(cut_before_a_system_call),
        cmocka_unit_test(interrupt_before_the_first_instruction),
        cmocka_unit_test(overflow_then_time_then_address),
        cmocka_unit_test(overflow_while_tracing_is_off),
        cmocka_unit_test(forget_calls_at_an_overflow),
        cmocka_unit_test(pass_over_ptwrite),
        cmocka_unit_test(pass_over_power_events),
        cmocka_unit_test(go_on_without_psbend),
        cmocka_unit_test(begin_in_mid_packet),
        cmocka_unit_test(end_in_mid_packet),
        cmocka_unit_test(resynchronise_behind_nonsense),
        cmocka_unit_test(take_a_deferred_tip),
        cmocka_unit_test(report_code_that_is_missing),
        cmocka_unit_test(return_to_a_caller_that_is_missing),
        cmocka_unit_test(go_on_behind_code_that_is_missing),
        cmocka_unit_test(do_not_trust_what_does_not_fit),
        cmocka_unit_test(tell_of_a_target_that_is_not_given),
        cmocka_unit_test(tell_each_entry_to_missing_code),
        cmocka_unit_test(cut_while_others_run),
        cmocka_unit_test(change_threads_within_an_overflow),
        cmocka_unit_test(pass_over_the_end_of_a_transaction),
        cmocka_unit_test(stop_in_a_loop_without_trace),
        cmocka_unit_test(bound_time_by_cycles),
        cmocka_unit_test(bound_time_by_crystal_ticks),
        cmocka_unit_test(give_the_same_with_any_jobs),
        cmocka_unit_test(lose_and_double_nothing_at_seams),
        cmocka_unit_test(give_the_last),
        cmocka_unit_test(report_a_hole),
        cmocka_unit_test(report_a_hole_at_the_end),
        cmocka_unit_test(cut_a_cpu_into_threads),
        cmocka_unit_test(end_at_the_fault),
        cmocka_unit_test(die_where_no_code_is),
        cmocka_unit_test(go_on_behind_the_address_of_the_fault),
        cmocka_unit_test(see_the_code_of_the_time),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
