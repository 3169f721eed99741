/* SPDX-License-Identifier: MIT */
/* Steps that are decoded once and read out again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "decoder/kept_steps.h"
#include "tests/unit/memory_recording.h"
#include "tests/unit/pt_stream.h"

#include <stdio.h>

/* 1000: nop; je 1005; nop; nop; 1005: call 1010; 100a: syscall; 100c: jmp 1000; 1010: ret */
static const uint8_t code[] = {0x90, 0x74, 0x02, 0x90, 0x90, 0xe8, 0x06, 0x00, 0x00,
                               0x00, 0x0f, 0x05, 0xeb, 0xf2, 0x90, 0x90, 0xc3};

static struct pt_stream stream;

/* Two threads that each go several times through the same code, and a hole between. */
static struct etch_recording *recording(void)
{
    struct etch_recording *r = memory_recording("synthetic");

    stream.n = 0;
    put_psb(&stream, 100, 0);
    for (unsigned i = 0; i < 500; i++) {
        put_ip(&stream, ppt_tip_pge, 0x1000);
        put_tnt(&stream, i % 3 ? "NT" : "TT");
        put_ip(&stream, ppt_tip_pgd, 0);
        put_tsc(&stream, 200 + i);
    }
    memory_stream(r, UINT32_MAX, 1, 1, stream.bytes, stream.n);
    memory_stream(r, UINT32_MAX, 1, 2, stream.bytes, stream.n);
    memory_hole(r, 100, stream.bytes, stream.n);
    memory_image(r, 1, 0x1000, sizeof(code), NULL, code);
    memory_done(r);
    return r;
}

struct texts {
    ETCH_ARRAY(char) v;
    int status; /* what the visitor returns behind `after` steps */
    size_t n, after;
};

/* All that a step says, as text; the sizes too. */
static int write_step(void *context, const struct etch_step *s)
{
    struct texts *t = context;
    char line[512];
    int n = snprintf(
        line, sizeof(line), "%d %u %u %u %llu-%llu %llx %llx %llx %u %d %p %llx %llx %d %u %llu %s:", s->kind, s->pid,
        s->tid, s->cpu, (unsigned long long)s->time.lo, (unsigned long long)s->time.hi, (unsigned long long)s->first,
        (unsigned long long)s->last, (unsigned long long)s->end, s->count, s->branch, (const void *)s->image,
        (unsigned long long)s->ip, (unsigned long long)s->to, s->kind == ETCH_STEP_LOSS ? (int)s->cause : 0, s->stream,
        s->kind == ETCH_STEP_BLOCK ? 0 : (unsigned long long)s->offset, s->detail ? s->detail : "");

    for (int i = 0; i < n; i++)
        assert_true(etch_array_push(&t->v, line[i]));
    for (uint32_t i = 0; i < s->count; i++)
        assert_true(etch_array_push(&t->v, (char)('0' + s->sizes[i])));
    assert_true(etch_array_push(&t->v, '\n'));
    return ++t->n == t->after ? t->status : 0;
}

static void assert_same(const struct texts *a, const struct texts *b)
{
    assert_true(a->n > 1000);
    assert_int_equal(a->n, b->n);
    assert_int_equal(a->v.n, b->v.n);
    assert_memory_equal(a->v.v, b->v.v, a->v.n);
}

static struct texts decode(struct etch_recording *r)
{
    const struct etch_steps_options options = {.jobs = 1};
    struct texts t = {0};
    struct etch_error err;

    assert_int_equal(etch_steps(r, &options, write_step, &t, NULL, &err), 0);
    return t;
}

static void assert_kept(struct etch_kept_steps *kept, struct etch_recording *r, const struct texts *want)
{
    struct texts got = {0};
    struct etch_error err;

    assert_int_equal(etch_steps_kept(kept, r, 1, write_step, &got, &err), 0);
    assert_same(want, &got);
    etch_array_free(&got.v);
}

/* The second time the file is closed already. */
static void read_out_what_was_decoded(void **state)
{
    struct etch_recording *r = recording();
    struct texts want = decode(r);
    struct etch_kept_steps kept = {.room = 1 << 20};

    (void)state;
    assert_kept(&kept, r, &want);
    assert_true(kept.whole);
    assert_true(kept.forms.n < want.n / 2); /* a block is kept once */
    etch_recording_close_streams(r);
    assert_kept(&kept, r, &want);
    assert_int_equal(kept.times, 1);
    etch_kept_steps_release(&kept);
    assert_int_equal(etch_kept_steps_size(&kept), 0);
    etch_array_free(&want.v);
    etch_recording_free(r);
}

static void decode_again_without_room(void **state)
{
    struct etch_recording *r = recording();
    struct texts want = decode(r);
    struct etch_kept_steps kept = {.room = 4096};

    (void)state;
    for (size_t i = 1; i < 3; i++) {
        assert_kept(&kept, r, &want);
        assert_int_equal(kept.times, i);
        assert_false(kept.whole);
        assert_true(kept.over);
        assert_int_equal(etch_kept_steps_size(&kept), 0);
    }
    etch_array_free(&want.v);
    etch_recording_free(r);
}

/* A visitor that ends the decode leaves nothing that could be taken for all of it. */
static void keep_no_half(void **state)
{
    struct etch_recording *r = recording();
    struct texts want = decode(r), half = {.status = 7, .after = 20};
    struct etch_kept_steps kept = {.room = 1 << 20};
    struct etch_error err;

    (void)state;
    assert_int_equal(etch_steps_kept(&kept, r, 1, write_step, &half, &err), 7);
    assert_false(kept.whole);
    assert_kept(&kept, r, &want);
    half.n = 0;
    assert_int_equal(etch_steps_kept(&kept, r, 1, write_step, &half, &err), 7);
    assert_true(kept.whole); /* these were there before */
    etch_kept_steps_release(&kept);
    etch_array_free(&half.v);
    etch_array_free(&want.v);
    etch_recording_free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(read_out_what_was_decoded),
        cmocka_unit_test(decode_again_without_room),
        cmocka_unit_test(keep_no_half),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
