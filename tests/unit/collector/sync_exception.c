/* SPDX-License-Identifier: MIT */
/* Which exception a thread ended with, from rings that this test writes itself, in good order and not. */
#include "collector/sync/exception.h"
#include "collector/sync/reader.h"
#include "tests/unit/test.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static struct etch_sync_reader *reader;

static struct etch_sync_memory *memory(void)
{
    struct etch_error err;

    assert_int_equal(etch_sync_reader_new(&reader, &err), 0);
    return etch_sync_reader_memory(reader);
}

static void put(struct etch_sync_memory *m, unsigned ring, uint64_t tsc, uint64_t object, bool again)
{
    struct etch_throw_ring *r = &m->throws[ring];
    uint64_t index = r->next++;
    struct etch_throw *t = &r->throws[index % ETCH_THROWS];

    *t = (struct etch_throw){.tsc = tsc, .object = object, .tid = 100 + ring, .again = again, .ip = 0x1000 + tsc};
    t->stack_size = 16;
    t->sequence = index + 1;
    if (m->claimed < ring + 1)
        m->claimed = ring + 1;
}

static void end(struct etch_sync_memory *m, unsigned ring, uint64_t tsc, uint64_t object, const char *type)
{
    struct etch_terminate *t = &m->throws[ring].terminate;

    t->tid = 100 + ring;
    t->tsc = tsc;
    t->object = object;
    t->state = ETCH_TERMINATE_ACTIVE;
    snprintf(t->type, sizeof(t->type), "%s", type);
    if (m->claimed < ring + 1)
        m->claimed = ring + 1;
}

static void release(Etch__Exception *e)
{
    if (e)
        etch__exception__free_unpacked(e, NULL);
    etch_sync_reader_free(reader);
}

static void find_no_end(void **state)
{
    struct etch_sync_memory *m = memory();

    (void)state;
    put(m, 0, 10, 0xa0, false);
    assert_null(etch_sync_exception(m, 100));
    release(NULL);
}

/* An object's memory may be another exception's later: the newest throw before the end is the one. */
static void find_newest_throw(void **state)
{
    struct etch_sync_memory *m = memory();
    Etch__Exception *e;

    (void)state;
    put(m, 0, 10, 0xa0, false);
    put(m, 0, 20, 0xb0, false);
    put(m, 0, 30, 0xa0, false);
    put(m, 0, 90, 0xa0, false);
    end(m, 0, 50, 0xa0, "St13runtime_error");
    e = etch_sync_exception(m, 100);
    assert_non_null(e);
    assert_string_equal(e->type, "St13runtime_error");
    assert_non_null(e->thrown);
    assert_int_equal(e->thrown->tsc, 30);
    assert_int_equal(e->thrown->state->frames[0], 0x1000 + 30 - 1);
    assert_int_equal(e->n_again, 0);
    assert_null(etch_sync_exception(m, 101));
    release(e);
}

/* Thrown by a thread, thrown again by two others; what came before the throw is of another exception. */
static void find_throws_of_threads(void **state)
{
    struct etch_sync_memory *m = memory();
    Etch__Exception *e;

    (void)state;
    put(m, 1, 5, 0xa0, true);
    put(m, 2, 10, 0xa0, false);
    put(m, 1, 30, 0xa0, true);
    put(m, 0, 20, 0xa0, true);
    end(m, 1, 50, 0xa0, "i");
    e = etch_sync_exception(m, 101);
    assert_int_equal(e->thrown->state->tid, 102);
    assert_int_equal(e->n_again, 2);
    assert_int_equal(e->again[0]->tsc, 20);
    assert_int_equal(e->again[1]->tsc, 30);
    release(e);
}

static void find_overwritten(void **state)
{
    struct etch_sync_memory *m = memory();
    Etch__Exception *e;

    (void)state;
    put(m, 0, 10, 0xa0, false);
    for (unsigned i = 0; i < ETCH_THROWS; i++)
        put(m, 0, 20 + i, 0xb0 + i, false);
    end(m, 0, 50, 0xa0, "i");
    e = etch_sync_exception(m, 100);
    assert_null(e->thrown);
    release(e);
}

static void find_none_active(void **state)
{
    struct etch_sync_memory *m = memory();
    Etch__Exception *e;

    (void)state;
    end(m, 0, 50, 0, "");
    m->throws[0].terminate.state = ETCH_TERMINATE_NONE;
    e = etch_sync_exception(m, 100);
    assert_true(e->none);
    assert_string_equal(e->type, "");
    release(e);
}

/* The program may write what it likes. */
static void find_damaged(void **state)
{
    struct etch_sync_memory *m = memory();
    Etch__Exception *e;

    (void)state;
    put(m, 0, 10, 0xa0, false);
    m->throws[0].throws[0].stack_size = UINT16_MAX;
    put(m, 0, 20, 0xa0, false);
    m->throws[0].throws[1].sequence = 0; /* begun, and not finished */
    end(m, 0, 50, 0xa0, "");
    memset(m->throws[0].terminate.type, 'x', ETCH_TYPE_MAX);
    memset(m->throws[0].terminate.what, 'y', ETCH_WHAT_MAX);
    m->throws[0].terminate.known = UINT32_MAX;
    m->claimed = UINT32_MAX;
    e = etch_sync_exception(m, 100);
    assert_null(e->thrown);
    assert_int_equal(strlen(e->type), ETCH_TYPE_MAX - 1);
    assert_int_equal(strlen(e->what), ETCH_WHAT_MAX - 1);
    release(e);
}

/* UTF-8 stays; what is none does not get into the bundle. */
static void find_text(void **state)
{
    struct etch_sync_memory *m = memory();
    Etch__Exception *e;

    (void)state;
    end(m, 0, 50, 0xa0, "PKc");
    snprintf(m->throws[0].terminate.what, ETCH_WHAT_MAX,
             "gr\xc3\xbc\xc3\x9f\n\xff\xc3 \xed\xa0\x80 \xe2\x82\xac\x01 \xf0\x9f");
    m->throws[0].terminate.known = ETCH_TERMINATE_TEXT;
    e = etch_sync_exception(m, 100);
    assert_true(e->is_text);
    assert_string_equal(e->what, "gr\xc3\xbc\xc3\x9f ?? ??? \xe2\x82\xac? ??");
    release(e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(find_no_end),
        cmocka_unit_test(find_newest_throw),
        cmocka_unit_test(find_throws_of_threads),
        cmocka_unit_test(find_overwritten),
        cmocka_unit_test(find_none_active),
        cmocka_unit_test(find_damaged),
        cmocka_unit_test(find_text),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
