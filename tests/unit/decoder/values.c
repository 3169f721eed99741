/* SPDX-License-Identifier: MIT */
/* Values of watched accesses: one row is an instruction, the registers after it, and what must come out. */
#include "decoder/values.h"
#include "decoder/accesses.h"
#include "tests/unit/test.h"

#include <string.h>

#define AX 0
#define BX 1
#define CX 2
#define FLAGS 9
#define ZERO 0x40

#define WATCHED 0x404010u
#define CODE 0x401000u

struct row {
    const char *what;
    const char *code; /* bytes, `length` of them */
    size_t length;
    uint64_t ax, cx, flags; /* bx points to the location, unless `bx` says otherwise */
    bool previous_known;
    uint64_t previous;
    bool read, write, known;
    uint64_t value;
    uint32_t size; /* watched; 0: 4 */
};

static void ask(const struct row *r, struct etch_value_answer *answer)
{
    uint64_t registers[24] = {0};
    struct etch_value_question q = {
        .ip = CODE + r->length,
        .ip_is_after = true,
        .code = (const uint8_t *)r->code,
        .code_address = CODE,
        .code_size = r->length,
        .boundary_known = true,
        .registers = registers,
        .address = WATCHED,
        .size = r->size ? r->size : 4,
        .previous_known = r->previous_known,
        .previous = r->previous,
    };

    registers[AX] = r->ax;
    registers[BX] = WATCHED - 8;
    registers[CX] = r->cx;
    registers[FLAGS] = r->flags;
    etch_value_find(&q, answer);
}

#define CODE_OF(bytes) bytes, sizeof(bytes) - 1

static const struct row rows[] = {
    {"store eax", CODE_OF("\x89\x43\x08"), .ax = 0x1122334455667788, .write = true, .known = true, .value = 0x55667788},
    {"store rax over 8", CODE_OF("\x48\x89\x43\x08"), .ax = 7, .write = true, .known = true, .value = 7, .size = 8},
    {"store rax, low half watched", CODE_OF("\x48\x89\x43\x08"), .ax = 0x900000005, .write = true, .known = true,
     .value = 5},
    {"store a number", CODE_OF("\xc7\x43\x08\x2a\x00\x00\x00"), .write = true, .known = true, .value = 42},
    {"store ax, rest known", CODE_OF("\x66\x89\x43\x08"), .ax = 0xbeef, .previous_known = true, .previous = 0x12345678,
     .write = true, .known = true, .value = 0x1234beef},
    {"store ax, rest unknown", CODE_OF("\x66\x89\x43\x08"), .ax = 0xbeef, .write = true},
    {"load into eax", CODE_OF("\x8b\x43\x08"), .ax = 99, .read = true, .known = true, .value = 99},
    {"load sign-extended", CODE_OF("\x48\x63\x43\x08"), .ax = 0xfffffffffffffffe, .read = true, .known = true,
     .value = 0xfffffffe},
    {"load into its own base", CODE_OF("\x8b\x5b\x08"), .read = true, .known = true, .value = WATCHED - 8},
    {"increment, replayed", CODE_OF("\xff\x43\x08"), .previous_known = true, .previous = 41, .read = true,
     .write = true, .known = true, .value = 42},
    {"increment, unknown before", CODE_OF("\xff\x43\x08"), .read = true, .write = true},
    {"increment to zero", CODE_OF("\xff\x43\x08"), .flags = ZERO, .read = true, .write = true, .known = true,
     .value = 0},
    {"locked add of a register", CODE_OF("\xf0\x01\x4b\x08"), .cx = 5, .previous_known = true, .previous = 10,
     .read = true, .write = true, .known = true, .value = 15},
    {"subtraction wraps at its width", CODE_OF("\x29\x4b\x08"), .cx = 1, .previous_known = true, .previous = 0,
     .read = true, .write = true, .known = true, .value = 0xffffffff},
    {"exchange: what was written is gone", CODE_OF("\x87\x4b\x08"), .cx = 3, .previous_known = true, .previous = 3,
     .read = true, .write = true},
    {"exchange and add: the addend is gone", CODE_OF("\xf0\x0f\xc1\x4b\x08"), .cx = 3, .previous_known = true,
     .previous = 3, .read = true, .write = true},
    {"compare and exchange, done", CODE_OF("\xf0\x0f\xb1\x4b\x08"), .ax = 1, .cx = 2, .flags = ZERO, .read = true,
     .write = true, .known = true, .value = 2},
    {"compare and exchange, not done", CODE_OF("\xf0\x0f\xb1\x4b\x08"), .ax = 9, .cx = 2, .read = true, .known = true,
     .value = 9},
    {"compare, equal", CODE_OF("\x39\x4b\x08"), .cx = 6, .flags = ZERO, .read = true, .known = true, .value = 6},
    {"compare, not equal", CODE_OF("\x39\x4b\x08"), .cx = 6, .read = true},
    {"compare, replayed", CODE_OF("\x39\x4b\x08"), .cx = 6, .previous_known = true, .previous = 8, .read = true,
     .known = true, .value = 8},
    {"store of a vector: not sampled", CODE_OF("\x0f\x11\x43\x08"), .previous_known = true, .previous = 8,
     .write = true},
    {"no memory operand", CODE_OF("\x01\xc8"), .ax = 1},
    {"another location", CODE_OF("\x89\x43\x10"), .ax = 1},
    {"no instruction", CODE_OF("\x06"), .ax = 1},
};

static void find_rows(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct etch_value_answer a;

        ask(&rows[i], &a);
        if (a.read != rows[i].read || a.write != rows[i].write || a.known != rows[i].known ||
            (a.known && a.value != rows[i].value))
            fail_msg("%s: %s%s%s 0x%lx", rows[i].what, a.read ? "r" : "", a.write ? "w" : "",
                     a.known ? " known" : " unknown", (unsigned long)a.value);
    }
}

static void find_without_boundary(void **state)
{
    /* The tail of mov %rax, 8(%rbx) is mov %eax, 8(%rbx): without a boundary nobody can say. */
    static const uint8_t twice[] = {0x90, 0x90, 0x48, 0x89, 0x43, 0x08};
    static const uint8_t once[] = {0x90, 0x90, 0xc7, 0x43, 0x08, 0x2a, 0x00, 0x00, 0x00};
    uint64_t registers[24] = {[BX] = WATCHED - 8};
    struct etch_value_question q = {.ip = CODE + sizeof(twice),
                                    .ip_is_after = true,
                                    .code = twice,
                                    .code_address = CODE,
                                    .code_size = sizeof(twice),
                                    .registers = registers,
                                    .address = WATCHED,
                                    .size = 4};
    struct etch_value_answer a;

    (void)state;
    etch_value_find(&q, &a);
    assert_false(a.known);
    assert_int_equal(a.instruction, 0);
    q.code = once;
    q.code_size = sizeof(once);
    q.ip = CODE + sizeof(once);
    etch_value_find(&q, &a);
    assert_true(a.known && a.write);
    assert_int_equal(a.value, 42);
    assert_int_equal(a.instruction, CODE + 2);
}

static bool read_code(void *context, uint64_t ip, struct etch_value_code *code)
{
    (void)ip;
    *code = (struct etch_value_code){context, CODE, 3, true};
    return true;
}

static void fill_replays_until_a_loss(void **state)
{
    static uint8_t increment[] = {0xff, 0x43, 0x08};
    uint64_t registers[24] = {[BX] = WATCHED - 8};
    Etch__Watch watch = ETCH__WATCH__INIT;
    Etch__Access access[3], *list[3];
    const bool lost[3] = {false, false, true};

    (void)state;
    watch.address = WATCHED;
    watch.size = 4;
    watch.initially_case = ETCH__WATCH__INITIALLY_INITIAL_VALUE;
    watch.initial_value = 5;
    for (int i = 0; i < 3; i++) {
        etch__access__init(&access[i]);
        access[i].ip = CODE + 3;
        access[i].ip_is_after = true;
        access[i].registers = registers;
        access[i].n_registers = 24;
        list[i] = &access[i];
    }
    etch_values_fill(&watch, list, 3, lost, read_code, increment);
    assert_int_equal(access[0].value, 6);
    assert_int_equal(access[1].value, 7);
    assert_int_equal(access[1].ip, CODE);
    assert_false(access[1].ip_is_after);
    assert_int_equal(access[2].known_case, ETCH__ACCESS__KNOWN__NOT_SET);
    assert_true(access[2].write);
}

/* What an emulated watch read back is another's where another thread may have written meanwhile, and only there. */
static void doubt_what_may_be_anothers(void **state)
{
    static const struct {
        uint32_t tid;
        bool write;
        uint64_t since, tsc, address;
        bool known;
    } cases[] = {
        {1, false, 100000, 101000, 0x1000, true},                                            /* alone */
        {1, false, 200000, 201000, 0x1000, false},                                           /* with the next */
        {2, true, 200500, 200900, 0x1000, false},  {1, false, 300000, 301000, 0x1000, true}, /* two reads */
        {2, false, 300500, 300900, 0x1000, true},  {1, true, 400000, 401000, 0x1000, true},  /* elsewhere */
        {2, true, 400500, 400900, 0x1008, true},   {1, true, 500000, 501000, 0x1000, true},  /* its own */
        {1, true, 500500, 500900, 0x1000, true},
    };
    const size_t n = sizeof(cases) / sizeof(cases[0]);
    struct etch_recording r = {0};
    struct etch_error err;

    (void)state;
    for (size_t i = 0; i < n; i++) {
        Etch__Access a = ETCH__ACCESS__INIT;

        a.tid = cases[i].tid;
        a.write = cases[i].write;
        a.since = cases[i].since;
        a.tsc = cases[i].tsc;
        a.address = cases[i].address;
        a.size = 8;
        a.known_case = ETCH__ACCESS__KNOWN_VALUE;
        assert_true(etch_array_push(&r.accesses, a));
    }
    assert_int_equal(etch_accesses_doubt(&r, &err), 0);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(r.accesses.v[i].known_case == ETCH__ACCESS__KNOWN_VALUE, cases[i].known);
    etch_array_free(&r.accesses);
}

static bool met(const Etch__Access *a, const Etch__Access *b)
{
    uint64_t apart = a->tsc < b->tsc ? b->tsc - a->tsc : a->tsc - b->tsc;

    return a->tid != b->tid && (a->write || b->write) && a->address < b->address + b->size &&
           b->address < a->address + a->size && a->since <= b->tsc + 4096 && b->since <= a->tsc + 4096 &&
           apart < 100000000;
}

static void push_random(struct etch_recording *r, uint32_t *seed)
{
    Etch__Access a = ETCH__ACCESS__INIT;
    uint32_t x[6];

    for (int i = 0; i < 6; i++)
        x[i] = (*seed = *seed * 1664525u + 1013904223u) >> 16;
    a.tid = x[0] % 3;
    a.write = x[1] % 4 == 0;
    a.address = 0x1000 + x[2] % 64;
    a.size = 1u << x[3] % 5;
    a.tsc = 1000000000u + (uint64_t)x[4] * 20000;
    a.since = a.tsc - (x[5] % 8 ? (uint64_t)x[5] % 3000 : (uint64_t)x[5] * 4000);
    a.known_case = ETCH__ACCESS__KNOWN_VALUE;
    assert_true(etch_array_push(&r->accesses, a));
}

/* The sweep says what a look at each pair would, also of accesses that overlap in part. */
static void doubt_as_pair_by_pair(void **state)
{
    size_t known[2] = {0, 0};

    (void)state;
    for (uint32_t round = 0, seed = 1; round < 20; round++) {
        struct etch_recording r = {0};
        struct etch_error err;

        for (unsigned i = 0; i < 60 + 12 * round; i++)
            push_random(&r, &seed);
        assert_int_equal(etch_accesses_doubt(&r, &err), 0);
        for (size_t i = 0; i < r.accesses.n; i++) {
            bool doubtful = false;

            for (size_t k = 0; k < r.accesses.n; k++)
                doubtful |= met(&r.accesses.v[i], &r.accesses.v[k]);
            assert_int_equal(r.accesses.v[i].known_case == ETCH__ACCESS__KNOWN_VALUE, !doubtful);
            known[doubtful]++;
        }
        etch_array_free(&r.accesses);
    }
    assert_true(known[0] > 100 && known[1] > 100);
}

/* However many accesses are between two that met: the value is doubted. */
static void doubt_over_many(void **state)
{
    struct etch_recording r = {0};
    struct etch_error err;
    Etch__Access a = ETCH__ACCESS__INIT;

    (void)state;
    a.tid = 1;
    a.size = 8;
    a.tsc = 1000;
    a.known_case = ETCH__ACCESS__KNOWN_VALUE;
    for (unsigned i = 0; i < 6000; i++) {
        a.address = i ? 0x2000 : 0x1000;
        assert_true(etch_array_push(&r.accesses, a));
    }
    a.tid = 2;
    a.write = true;
    a.address = 0x1000;
    a.tsc = 1001;
    assert_true(etch_array_push(&r.accesses, a));
    assert_int_equal(etch_accesses_doubt(&r, &err), 0);
    assert_int_equal(r.accesses.v[0].known_case, ETCH__ACCESS__KNOWN__NOT_SET);
    assert_int_equal(r.accesses.v[1].known_case, ETCH__ACCESS__KNOWN_VALUE);
    assert_int_equal(r.accesses.v[6000].known_case, ETCH__ACCESS__KNOWN__NOT_SET);
    etch_array_free(&r.accesses);
}

/* mov eax, [rbx + 8]: the pointer is rbx's, where the operand is where it failed. */
static void find_pointer(void **state)
{
    static const uint8_t load[] = {0x8b, 0x43, 0x08}, indexed[] = {0x8b, 0x04, 0x8b}, none[] = {0x90};
    uint64_t registers[24] = {0}, pointer = 1;

    (void)state;
    assert_true(etch_value_pointer(load, sizeof(load), CODE, registers, 8, &pointer));
    assert_int_equal(pointer, 0);
    registers[BX] = 0x1000;
    assert_true(etch_value_pointer(load, sizeof(load), CODE, registers, 0x1008, &pointer));
    assert_int_equal(pointer, 0x1000);
    assert_false(etch_value_pointer(load, sizeof(load), CODE, registers, 8, &pointer));
    assert_false(etch_value_pointer(load, sizeof(load), CODE, registers, 0x2008, &pointer));
    assert_false(etch_value_pointer(indexed, sizeof(indexed), CODE, registers, 0x1000, &pointer));
    assert_false(etch_value_pointer(none, sizeof(none), CODE, registers, 0, &pointer));
    assert_false(etch_value_pointer(load, 2, CODE, registers, 0x1008, &pointer));
}

/* A register that a policy hid is not known: neither the value that is in it, nor one that is computed from it. */
static void keep_masked_unknown(void **state)
{
    static const uint8_t store[] = {0x89, 0x43, 0x08}, add[] = {0x01, 0x43, 0x08};
    uint64_t registers[24] = {[AX] = 5, [BX] = WATCHED - 8};
    struct etch_value_question q = {.ip = CODE + 3,
                                    .ip_is_after = true,
                                    .code = store,
                                    .code_address = CODE,
                                    .code_size = 3,
                                    .boundary_known = true,
                                    .registers = registers,
                                    .address = WATCHED,
                                    .size = 4,
                                    .previous_known = true,
                                    .previous = 1};
    struct etch_value_answer answer;

    (void)state;
    etch_value_find(&q, &answer);
    assert_true(answer.known && answer.value == 5);
    q.masked = 1u << AX;
    etch_value_find(&q, &answer);
    assert_true(answer.write && !answer.known);
    q.code = add;
    etch_value_find(&q, &answer);
    assert_true(answer.write && !answer.known);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(find_pointer),
        cmocka_unit_test(keep_masked_unknown),
        cmocka_unit_test(doubt_what_may_be_anothers),
        cmocka_unit_test(doubt_as_pair_by_pair),
        cmocka_unit_test(doubt_over_many),
        cmocka_unit_test(find_rows),
        cmocka_unit_test(find_without_boundary),
        cmocka_unit_test(fill_replays_until_a_loss),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
