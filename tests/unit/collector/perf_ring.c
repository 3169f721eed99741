/* SPDX-License-Identifier: MIT */
/* perf's rings with the test in the kernel's place: records and bytes that go round the end, rings that were
 * overwritten, heads that no kernel would write. */
#include "collector/perf_ring.h"
#include "tests/unit/test.h"

#include <stdlib.h>
#include <string.h>

#define SIZE 4096u

struct fixture {
    struct perf_event_mmap_page page;
    uint8_t memory[SIZE];
    uint8_t got[4 * SIZE];
    size_t n_got;
    uint64_t next; /* offset that must come next */
    unsigned calls;
    bool in_order;
};

static void take_record(void *context, const uint8_t *record, size_t size)
{
    struct fixture *f = context;

    memcpy(f->got + f->n_got, record, size);
    f->n_got += size;
    f->calls++;
}

static void take_bytes(void *context, uint64_t offset, const uint8_t *bytes, size_t size)
{
    struct fixture *f = context;

    f->in_order &= offset == f->next;
    f->next = offset + size;
    take_record(f, bytes, size);
}

static void clear(struct fixture *f)
{
    memset(f, 0, sizeof(*f));
    f->in_order = true;
}

/* Appends one record of `words` words that all have the same value. */
static void put_record(struct fixture *f, uint16_t words, uint64_t value)
{
    struct perf_event_header header = {.type = 77, .size = (uint16_t)(8 * words)};

    for (unsigned i = 0; i < words; i++)
        memcpy(f->memory + (f->page.data_head + 8 * i) % SIZE, i ? (void *)&value : (void *)&header, 8);
    f->page.data_head += header.size;
}

static void drain_records_round_the_end(void **state)
{
    static struct fixture f;
    struct etch_perf_ring ring = {&f.page, f.memory, SIZE};

    (void)state;
    clear(&f);
    for (uint64_t round = 0; round < 300; round++) {
        f.n_got = f.calls = 0;
        put_record(&f, 3, round);
        put_record(&f, 9, ~round);
        etch_perf_ring_drain(&ring, take_record, &f);
        assert_int_equal(f.calls, 2);
        assert_int_equal(f.n_got, 96);
        assert_memory_equal(f.got + 8, &round, 8);
        assert_memory_equal(f.got + 16, &round, 8);
        for (unsigned i = 0; i < 8; i++)
            assert_memory_equal(f.got + 32 + 8 * i, &(uint64_t){~round}, 8);
        assert_true(f.page.data_tail == f.page.data_head);
    }
}

static void drain_refuses_nonsense(void **state)
{
    static struct fixture f;
    struct etch_perf_ring ring = {&f.page, f.memory, SIZE};
    static const uint16_t sizes[] = {0, 7, 12, 4000};

    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        clear(&f);
        put_record(&f, 2, 1);
        put_record(&f, 2, 2);
        memcpy(f.memory + 16 + 6, &sizes[i], 2);
        etch_perf_ring_drain(&ring, take_record, &f);
        assert_int_equal(f.calls, 1); /* the good one before it */
        assert_true(f.page.data_tail == f.page.data_head);
    }
    clear(&f);
    f.page.data_head = 2 * SIZE;
    etch_perf_ring_drain(&ring, take_record, &f);
    f.page.data_head += 3;
    etch_perf_ring_drain(&ring, take_record, &f);
    assert_int_equal(f.calls, 0);
}

static void put_bytes(struct fixture *f, uint64_t *head, size_t n)
{
    for (; n; n--, ++*head)
        f->memory[*head % SIZE] = (uint8_t)(*head * 31 / 7 + 1);
}

static void check_bytes(const struct fixture *f, uint64_t from)
{
    for (size_t i = 0; i < f->n_got; i++)
        assert_int_equal(f->got[i], (uint8_t)((from + i) * 31 / 7 + 1));
}

static void take_all_bytes_in_order(void **state)
{
    static struct fixture f;
    struct etch_aux_ring ring = {&f.page, f.memory, SIZE};
    uint64_t head = 0;

    (void)state;
    clear(&f);
    for (unsigned i = 0; i < 100; i++) {
        size_t n = 17 + i * 37 % (SIZE - 17);
        uint64_t from = head;

        put_bytes(&f, &head, n);
        __atomic_store_n(&f.page.aux_head, head, __ATOMIC_RELEASE);
        f.n_got = 0;
        assert_int_equal(etch_aux_ring_waiting(&ring), n);
        assert_int_equal(etch_aux_ring_take(&ring, 16, take_bytes, &f), 16);
        assert_int_equal(etch_aux_ring_take(&ring, SIZE_MAX, take_bytes, &f), n - 16);
        assert_int_equal(f.n_got, n);
        check_bytes(&f, from);
        assert_true(f.in_order && f.page.aux_tail == head);
        assert_int_equal(etch_aux_ring_take(&ring, SIZE_MAX, take_bytes, &f), 0);
    }
}

static void take_refuses_a_head_beyond_the_ring(void **state)
{
    static struct fixture f;
    struct etch_aux_ring ring = {&f.page, f.memory, SIZE};

    (void)state;
    clear(&f);
    f.page.aux_head = SIZE + 1;
    assert_int_equal(etch_aux_ring_waiting(&ring), 0);
    assert_int_equal(etch_aux_ring_take(&ring, SIZE_MAX, take_bytes, &f), 0);
    f.page.aux_head = 5;
    f.page.aux_tail = 6;
    assert_int_equal(etch_aux_ring_take(&ring, SIZE_MAX, take_bytes, &f), 0);
    assert_int_equal(f.calls, 0);
}

/* The kernel says where in the ring it stands, not how often it came round. */
static void snapshot_of_every_fill(void **state)
{
    static struct fixture f;
    struct etch_aux_ring ring = {&f.page, f.memory, SIZE};
    static const size_t fills[] = {0,        1,          100,      SIZE - 1,      SIZE,
                                   SIZE + 1, SIZE + 100, 2 * SIZE, 2 * SIZE + 77, 9 * SIZE - 1};

    (void)state;
    for (unsigned i = 0; i < sizeof(fills) / sizeof(fills[0]); i++) {
        uint64_t head = 0;
        bool wrapped;

        clear(&f);
        put_bytes(&f, &head, fills[i]);
        f.page.aux_head = head % SIZE;
        wrapped = etch_aux_ring_snapshot(&ring, take_bytes, &f);
        assert_true(f.in_order);
        assert_int_equal(wrapped, fills[i] >= SIZE);
        assert_int_equal(f.n_got, fills[i] < SIZE ? fills[i] : SIZE);
        check_bytes(&f, fills[i] - f.n_got);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(drain_records_round_the_end), cmocka_unit_test(drain_refuses_nonsense),
        cmocka_unit_test(take_all_bytes_in_order),     cmocka_unit_test(take_refuses_a_head_beyond_the_ring),
        cmocka_unit_test(snapshot_of_every_fill),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
