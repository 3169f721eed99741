/* SPDX-License-Identifier: MIT */
/* Draining Intel PT's rings, with the test in the kernel's place: what is written into them, in whatever way they fill
 * up, comes out whole and in order, and what does not is said to be lost exactly where it was. */
#include "collector/pt.h"
#include "tests/unit/side_bytes.h"
#include "tests/unit/test.h"

#include <stdlib.h>

#define RING 16384u /* four pages */
#define SIDE 65536u

struct fixture {
    struct perf_event_mmap_page page;
    uint8_t side[SIDE], aux[RING];
    uint64_t time, next; /* of the next piece */
    struct etch_pt *pt;
    struct etch_record_options options;
    struct etch_record_summary summary;
    uint8_t got[1 << 20]; /* by offset in the stream */
    bool had[1 << 20];
    uint64_t end; /* of the stream */
    struct {
        Etch__LossCause cause;
        uint64_t offset, bytes, events;
    } losses[16];
    size_t n_losses;
    struct {
        uint32_t tid;
        bool in;
    } switches[2048];
    size_t n_switches;
};

static uint8_t byte_at(uint64_t offset)
{
    return (uint8_t)(offset * 131 / 17 + 1);
}

static void on_write(void *context, Etch__Record__BodyCase kind, void *message)
{
    struct fixture *f = context;
    const Etch__Switches *s = message;

    if (kind != ETCH__RECORD__BODY_SWITCHES)
        return;
    for (size_t i = 0; i < s->n_switches; i++) {
        f->switches[f->n_switches].tid = s->switches[i]->tid;
        f->switches[f->n_switches++].in = s->switches[i]->in;
    }
}

static void on_bytes(void *context, uint32_t stream, uint64_t offset, const void *data, size_t size, bool hurry)
{
    struct fixture *f = context;

    (void)hurry;
    assert_int_equal(stream, 0);
    assert_true(offset >= f->end); /* in order, and nothing twice */
    memcpy(f->got + offset, data, size);
    memset(f->had + offset, true, size);
    f->end = offset + size;
}

static void on_lost(void *context, const Etch__Loss *loss)
{
    struct fixture *f = context;

    assert_true(f->n_losses < 16);
    f->losses[f->n_losses].cause = loss->cause;
    f->losses[f->n_losses].offset = loss->offset;
    f->losses[f->n_losses].bytes = loss->bytes;
    f->losses[f->n_losses++].events = loss->events;
}

static void on_note(void *context, const char *text)
{
    (void)context;
    (void)text;
}

static struct fixture *begin(bool full)
{
    struct fixture *f = calloc(1, sizeof(*f));
    struct etch_sink sink = {f, on_write, on_bytes, on_lost, on_note, &f->summary};
    struct etch_pt_cpu cpu = {3, -1, {&f->page, f->side, SIDE}, {&f->page, f->aux, RING}};
    struct etch_error err;

    assert_non_null(f);
    f->options.full = full;
    f->time = 1000;
    assert_int_equal(etch_pt_open_rings(&f->pt, &f->options, &sink, &cpu, 1, &err), 0);
    return f;
}

static void end(struct fixture *f)
{
    etch_pt_close(f->pt);
    free(f);
}

static void put(struct fixture *f, const struct side_bytes *r)
{
    for (size_t i = 0; i < r->n; i++)
        f->side[(f->page.data_head + i) % SIDE] = r->bytes[i];
    __atomic_store_n(&f->page.data_head, f->page.data_head + r->n, __ATOMIC_RELEASE);
}

static void write_record(struct fixture *f, uint64_t offset, uint64_t size, uint64_t flags)
{
    struct side_bytes r;

    side_begin(&r, PERF_RECORD_AUX, 0);
    side_u64(&r, offset);
    side_u64(&r, size);
    side_u64(&r, flags);
    side_end(&r, 1, 1, f->time++, 3);
    put(f, &r);
}

static void write_bytes(struct fixture *f, uint64_t n)
{
    assert_true(f->page.aux_head + n - f->page.aux_tail <= RING);
    for (uint64_t i = 0; i < n; i++)
        f->aux[(f->page.aux_head + i) % RING] = byte_at(f->page.aux_head + i);
    __atomic_store_n(&f->page.aux_head, f->page.aux_head + n, __ATOMIC_RELEASE);
}

/* One piece, as the kernel has it: the record first. */
static void write_piece(struct fixture *f, uint64_t n, uint64_t flags)
{
    write_record(f, f->page.aux_head, n, flags);
    write_bytes(f, n);
}

static void write_lost(struct fixture *f, uint64_t n)
{
    struct side_bytes r;

    side_begin(&r, PERF_RECORD_LOST, 0);
    side_u64(&r, 1);
    side_u64(&r, n);
    side_end(&r, 1, 1, f->time++, 3);
    put(f, &r);
}

/* [from, to) of the kernel's bytes stand `shift` further in the stream. */
static void check_bytes(const struct fixture *f, uint64_t from, uint64_t to, uint64_t shift)
{
    for (uint64_t i = from; i < to; i++) {
        assert_true(f->had[i + shift]);
        assert_int_equal(f->got[i + shift], byte_at(i));
    }
}

static void check_loss(const struct fixture *f, size_t i, Etch__LossCause cause, uint64_t offset, uint64_t bytes)
{
    assert_true(i < f->n_losses);
    assert_int_equal(f->losses[i].cause, cause);
    assert_int_equal(f->losses[i].offset, offset);
    assert_int_equal(f->losses[i].bytes, bytes);
}

static void drain_everything_in_order(void **state)
{
    struct fixture *f = begin(true);
    uint64_t sum = 0;

    (void)state;
    for (unsigned i = 0; i < 60; i++) {
        uint64_t n = 1 + i * 577 % 6000;

        write_piece(f, n, 0);
        sum += n;
        if (i % 2)
            etch_pt_drain(f->pt);
    }
    etch_pt_stop(f->pt);
    assert_int_equal(f->n_losses, 0);
    assert_int_equal(f->end, sum);
    check_bytes(f, 0, sum, 0);
    end(f);
}

static void cut_where_the_kernel_says(void **state)
{
    struct fixture *f = begin(true);

    (void)state;
    write_piece(f, 5000, 0);
    write_piece(f, 3000, PERF_AUX_FLAG_TRUNCATED);
    write_piece(f, 0, PERF_AUX_FLAG_TRUNCATED); /* told again: the same cut */
    etch_pt_drain(f->pt);
    write_piece(f, 6000, PERF_AUX_FLAG_PARTIAL);
    write_piece(f, 100, PERF_AUX_FLAG_COLLISION);
    etch_pt_stop(f->pt);
    assert_int_equal(f->n_losses, 3);
    check_loss(f, 0, ETCH__LOSS_CAUSE__LOSS_AUX_TRUNCATED, 8000, 0);
    check_loss(f, 1, ETCH__LOSS_CAUSE__LOSS_AUX_PARTIAL, 14001, 0);
    check_loss(f, 2, ETCH__LOSS_CAUSE__LOSS_AUX_COLLISION, 14101, 0);
    check_bytes(f, 0, 8000, 0);
    assert_false(f->had[8000]); /* the hole */
    check_bytes(f, 8000, 14100, 1);
    end(f);
}

static void wait_for_bytes_behind_their_record(void **state)
{
    struct fixture *f = begin(true);

    (void)state;
    write_piece(f, 6000, 0);
    write_record(f, 6000, 7000, PERF_AUX_FLAG_TRUNCATED); /* the head does not know of it yet */
    etch_pt_drain(f->pt);
    assert_int_equal(f->end, 6000);
    assert_int_equal(f->n_losses, 0);
    write_bytes(f, 7000);
    etch_pt_drain(f->pt);
    assert_int_equal(f->end, 13000);
    check_bytes(f, 0, 13000, 0);
    check_loss(f, 0, ETCH__LOSS_CAUSE__LOSS_AUX_TRUNCATED, 13000, 0);
    end(f);
}

/* Where records were lost, the ring may have been full in between: such bytes are left out, by their number. */
static void pass_over_bytes_without_a_record(void **state)
{
    struct fixture *f = begin(true);

    (void)state;
    write_piece(f, 4000, 0);
    write_bytes(f, 2500);
    write_lost(f, 7);
    write_piece(f, 5000, 0);
    etch_pt_drain(f->pt);
    write_bytes(f, 300);
    etch_pt_stop(f->pt);
    assert_int_equal(f->n_losses, 3);
    assert_int_equal(f->losses[0].events, 7);
    check_loss(f, 1, ETCH__LOSS_CAUSE__LOSS_SIDEBAND, 4000, 2500);
    check_loss(f, 2, ETCH__LOSS_CAUSE__LOSS_SIDEBAND, 11500, 300);
    check_bytes(f, 0, 4000, 0);
    check_bytes(f, 6500, 11500, 0);
    assert_false(f->had[4000] || f->had[6499] || f->had[11500]);
    end(f);
}

/* An event that finds no room at all is switched off without a word. */
static void cut_where_the_ring_was_full(void **state)
{
    struct fixture *f = begin(true);

    (void)state;
    write_piece(f, RING - 4096, 0);
    write_piece(f, 4096, 0);
    etch_pt_drain(f->pt);
    write_piece(f, 5000, 0);
    etch_pt_drain(f->pt);
    assert_int_equal(f->n_losses, 1);
    check_loss(f, 0, ETCH__LOSS_CAUSE__LOSS_AUX_TRUNCATED, RING, 0);
    assert_false(f->had[RING]);
    check_bytes(f, 0, RING, 0);
    check_bytes(f, RING, RING + 5000, 1);
    /* With a page to spare nothing is suspected. */
    write_piece(f, RING - 4096, 0);
    etch_pt_drain(f->pt);
    write_piece(f, 5000, 0);
    etch_pt_stop(f->pt);
    assert_int_equal(f->n_losses, 1);
    check_bytes(f, RING, 2 * RING - 4096 + 10000, 1);
    end(f);
}

static void switch_threads(struct fixture *f, uint32_t tid)
{
    for (int in = 1; in >= 0; in--) {
        struct side_bytes r;

        side_begin(&r, PERF_RECORD_SWITCH, in ? 0 : PERF_RECORD_MISC_SWITCH_OUT);
        side_end(&r, 1, tid, f->time++, 3);
        put(f, &r);
    }
}

/* A ring that is overwritten is read once, at the end, with as many switches as it can be about. */
static void keep_the_newest(void **state)
{
    struct fixture *f = begin(false);

    (void)state;
    for (uint32_t i = 0; i < 700; i++) {
        switch_threads(f, i);
        if (i % 50 == 0)
            etch_pt_drain(f->pt);
    }
    for (uint64_t i = 0; i < RING; i++)
        f->aux[(RING / 2 + i) % RING] = byte_at(i);
    f->page.aux_head = RING / 2;
    assert_int_equal(f->n_switches, 0);
    assert_int_equal(f->end, 0);
    etch_pt_stop(f->pt);
    assert_int_equal(f->n_switches, RING / 32);
    assert_int_equal(f->switches[f->n_switches - 1].tid, 699);
    assert_int_equal(f->switches[0].tid, 700 - RING / 64);
    assert_true(f->switches[0].in && !f->switches[f->n_switches - 1].in);
    assert_int_equal(f->n_losses, 1);
    check_loss(f, 0, ETCH__LOSS_CAUSE__LOSS_RING_WRAPPED, 0, 0);
    assert_int_equal(f->end, RING);
    check_bytes(f, 0, RING, 0);
    end(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(drain_everything_in_order),          cmocka_unit_test(cut_where_the_kernel_says),
        cmocka_unit_test(wait_for_bytes_behind_their_record), cmocka_unit_test(pass_over_bytes_without_a_record),
        cmocka_unit_test(cut_where_the_ring_was_full),        cmocka_unit_test(keep_the_newest),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
