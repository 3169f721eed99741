/* SPDX-License-Identifier: MIT */
/* Whose a piece of a CPU's trace is: by the switches that came through, and by those that did not. */
#include "decoder/flow/attribution.h"
#include "tests/unit/pt_stream.h"
#include "tests/unit/test.h"

struct fixture {
    struct pt_stream stream;
    struct etch_recording recording;
    struct etch_slots slots;
    struct etch_tenures tenures;
    Etch__Image images[4];
};

static void add_switch(struct fixture *f, uint64_t tsc, bool in, uint32_t tid)
{
    Etch__Switch s = ETCH__SWITCH__INIT;

    s.cpu = 0;
    s.tsc = tsc;
    s.in = in;
    s.pid = s.tid = tid;
    assert_true(etch_array_push(&f->recording.switches, s));
}

static void add_process(struct fixture *f, uint32_t pid)
{
    Etch__Image *image = &f->images[f->recording.images.n];

    etch__image__init(image);
    image->pid = pid;
    image->size = 4096;
    assert_true(etch_array_push(&f->recording.images, image));
}

static void build(struct fixture *f)
{
    assert_true(etch_slots_build(&f->slots, &f->recording));
    assert_true(etch_tenures_build(&f->tenures, &f->slots));
}

/* A region of user code that begins after `lo`; 0 for no time within it. */
static void put_region(struct fixture *f, uint64_t lo, uint64_t within)
{
    struct pt_stream *s = &f->stream;

    put_tsc(s, lo);
    put_ip(s, ppt_tip_pge, 0x1000);
    if (within)
        put_tsc(s, within);
    put_ip(s, ppt_tip_pgd, 0);
}

static void start_stream(struct fixture *f)
{
    put(&f->stream, ppt_psb);
    put(&f->stream, ppt_psbend);
}

/* How many regions a thread gets in its k-th tenure, and whether they are doubtful. */
static size_t regions_of(struct fixture *f, uint32_t tid, size_t k, bool *doubtful)
{
    struct etch_pt_input input = {
        .bytes = f->stream.bytes, .size = f->stream.n, .own = f->stream.n, .last = true, .until = UINT64_MAX};
    struct etch_pt_region *regions = NULL;
    size_t n = 0, capacity = 0, n_slots, at = 0;
    const struct etch_cpu_slot *slots = etch_slots_of(&f->slots, 0, &n_slots);

    while (at < f->tenures.v.n && (f->tenures.v.v[at].tid != tid || k-- > 0))
        at++;
    *doubtful = false;
    if (at == f->tenures.v.n)
        return 0;
    assert_true(etch_regions_find(&input, slots, n_slots, &f->tenures.v.v[at], &regions, &n, &capacity));
    for (size_t i = 0; i < n; i++)
        *doubtful |= regions[i].doubtful;
    free(regions);
    return n;
}

static struct fixture *begin(void)
{
    struct fixture *f = calloc(1, sizeof(*f));

    assert_non_null(f);
    start_stream(f);
    return f;
}

static void end(struct fixture *f)
{
    etch_array_free(&f->recording.switches);
    etch_array_free(&f->recording.images);
    etch_array_free(&f->recording.losses);
    etch_array_free(&f->slots.v);
    etch_array_free(&f->tenures.v);
    free(f);
}

static void give_to_the_thread_that_ran(void **state)
{
    struct fixture *f = begin();
    bool doubtful;

    (void)state;
    add_process(f, 7);
    add_process(f, 8);
    add_switch(f, 100, true, 7);
    add_switch(f, 200, false, 7);
    add_switch(f, 210, true, 8);
    add_switch(f, 300, false, 8);
    build(f);
    put_region(f, 110, 150);
    put_region(f, 220, 250);
    assert_int_equal(regions_of(f, 7, 0, &doubtful), 1);
    assert_false(doubtful);
    assert_int_equal(regions_of(f, 8, 0, &doubtful), 1);
    assert_false(doubtful);
    end(f);
}

/* The kernel's own threads have no code: they are no reason to doubt. */
static void ignore_whoever_has_no_code(void **state)
{
    struct fixture *f = begin();
    bool doubtful;

    (void)state;
    add_process(f, 7);
    add_switch(f, 100, true, 7);
    add_switch(f, 200, false, 7);
    add_switch(f, 210, true, 15);
    add_switch(f, 300, false, 15);
    build(f);
    put_region(f, 110, 0);
    put_tsc(&f->stream, 290);
    assert_int_equal(regions_of(f, 7, 0, &doubtful), 1);
    assert_false(doubtful);
    end(f);
}

/* Of switches that were lost nobody knows: what ran then may be anybody's. */
static void doubt_where_records_were_lost(void **state)
{
    static Etch__Loss loss;
    struct fixture *f = begin();
    bool doubtful;

    (void)state;
    etch__loss__init(&loss);
    loss.cause = ETCH__LOSS_CAUSE__LOSS_SIDEBAND;
    loss.tsc = 180;
    assert_true(etch_array_push(&f->recording.losses, &loss));
    add_process(f, 7);
    add_switch(f, 100, true, 7);
    add_switch(f, 140, false, 7);
    add_switch(f, 150, true, 7);
    add_switch(f, 400, false, 7);
    build(f);
    put_region(f, 110, 120);
    assert_int_equal(regions_of(f, 7, 0, &doubtful), 1);
    assert_false(doubtful);
    put_region(f, 155, 160);
    assert_int_equal(regions_of(f, 7, 0, &doubtful), 2);
    assert_true(doubtful);
    end(f);
}

/* A thread that comes back to a CPU has nothing twice. */
static void give_once_to_one_who_came_back(void **state)
{
    struct fixture *f = begin();
    bool doubtful;

    (void)state;
    add_process(f, 7);
    add_switch(f, 100, true, 7);
    add_switch(f, 200, false, 7);
    add_switch(f, 300, true, 7);
    add_switch(f, 400, false, 7);
    f->recording.switches.v[2].cpu = 1;
    f->recording.switches.v[3].cpu = 1;
    build(f);
    /* Back on the first CPU, with a tenure on the other in between. */
    assert_true(etch_array_push(&f->slots.v, ((struct etch_cpu_slot){0, 7, 7, 500, 600, false})));
    f->slots.v.v[2] = f->slots.v.v[1];
    f->slots.v.v[1] = (struct etch_cpu_slot){0, 7, 7, 500, 600, false};
    f->tenures.v.n = 0;
    assert_true(etch_tenures_build(&f->tenures, &f->slots));
    put_region(f, 110, 0); /* no time until the end: it may be of either */
    assert_int_equal(regions_of(f, 7, 0, &doubtful) + regions_of(f, 7, 2, &doubtful), 1);
    put_region(f, 510, 550);
    assert_int_equal(regions_of(f, 7, 2, &doubtful), 1);
    end(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(give_to_the_thread_that_ran),
        cmocka_unit_test(ignore_whoever_has_no_code),
        cmocka_unit_test(doubt_where_records_were_lost),
        cmocka_unit_test(give_once_to_one_who_came_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
