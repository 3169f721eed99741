/* SPDX-License-Identifier: MIT */
/* Values backwards from the end, over sequences of instructions made by hand. */
#include "decoder/backward.h"
#include "tests/unit/test.h"

#include <string.h>

enum { AX = 0, BX = 1, CX = 2, DX = 3, DI = 5, SP = 7, FLAGS = 9 };

#define CODE 0x401000u
#define MEMORY 0x30000u
#define STACK 0x20000u

/* Memory at the end: 64 bytes each at MEMORY and below and above STACK. */
struct world {
    struct etch_backward_question q;
    struct etch_backward_instruction instructions[32];
    size_t n;
    uint64_t next;
    uint8_t memory[64], stack[128];
    enum etch_memory_kind kind;
    struct etch_backward *b;
};

static size_t read_world(void *context, uint64_t address, void *to, size_t size)
{
    struct world *w = context;

    if (address >= MEMORY && address + size <= MEMORY + sizeof(w->memory))
        memcpy(to, w->memory + (address - MEMORY), size);
    else if (address >= STACK - 64 && address + size <= STACK + 64)
        memcpy(to, w->stack + (address - STACK + 64), size);
    else
        return 0;
    return size;
}

static enum etch_memory_kind kind_in_world(void *context, uint64_t address)
{
    struct world *w = context;

    return address < STACK + 64 ? ETCH_MEMORY_STACK : w->kind;
}

static void begin(struct world *w)
{
    memset(w, 0, sizeof(*w));
    w->next = CODE;
    w->q.masked = ~(1u << SP);
    w->q.registers[SP] = STACK;
    w->q.read = read_world;
    w->q.kind = kind_in_world;
}

static void add_at(struct world *w, const char *bytes, size_t size, enum etch_unseen unseen)
{
    struct etch_backward_instruction *n = &w->instructions[w->n++];

    n->address = w->next;
    n->bytes = (const uint8_t *)bytes;
    n->size = (uint8_t)size;
    n->unseen = (uint8_t)unseen;
    w->next += size;
}

#define ADD(w, bytes) add_at(w, bytes, sizeof(bytes) - 1, ETCH_UNSEEN_NOTHING)
#define ADD_BEHIND(w, unseen, bytes) add_at(w, bytes, sizeof(bytes) - 1, unseen)

static void know(struct world *w, unsigned reg, uint64_t value)
{
    w->q.masked &= ~(1u << reg);
    w->q.registers[reg] = value;
}

static void solve(struct world *w)
{
    struct etch_error err = {0};

    w->q.instructions = w->instructions;
    w->q.n = w->n;
    w->q.context = w;
    assert_int_equal(etch_backward_solve(&w->b, &w->q, &err), 0);
}

static void expect_register(struct world *w, size_t i, unsigned reg, enum etch_how_known how, uint64_t value)
{
    uint64_t got;

    assert_int_equal(etch_backward_register(w->b, i, reg, &got), how);
    assert_int_equal(got, value);
}

static struct etch_backward_access access_at(struct world *w, size_t i)
{
    struct etch_backward_access a;

    assert_true(i < etch_backward_accesses(w->b));
    etch_backward_access(w->b, i, &a);
    return a;
}

static void end(struct world *w)
{
    etch_backward_free(w->b);
}

static void undo_arithmetic(void **state)
{
    struct world w;

    (void)state;
    begin(&w);
    know(&w, AX, 100);
    know(&w, CX, 7);
    ADD(&w, "\x48\xff\xc0");             /* inc rax */
    ADD(&w, "\x48\x01\xc8");             /* add rax, rcx */
    ADD(&w, "\x48\x83\xe8\x05");         /* sub rax, 5 */
    ADD(&w, "\x48\x35\xff\x00\x00\x00"); /* xor rax, 255 */
    ADD(&w, "\x48\xf7\xd8");             /* neg rax */
    solve(&w);
    expect_register(&w, 4, AX, ETCH_HOW_UNDONE, (uint64_t)-100);
    expect_register(&w, 3, AX, ETCH_HOW_UNDONE, (uint64_t)-100 ^ 255);
    expect_register(&w, 0, AX, ETCH_HOW_UNDONE, ((uint64_t)-100 ^ 255) + 5 - 7 - 1);
    end(&w);
}

static void execute_what_cannot_be_undone(void **state)
{
    struct world w;

    (void)state;
    begin(&w);
    know(&w, AX, 0);
    ADD(&w, "\xb8\x2a\x00\x00\x00"); /* mov eax, 42 */
    ADD(&w, "\x89\xc1");             /* mov ecx, eax */
    ADD(&w, "\xc1\xe1\x04");         /* shl ecx, 4 */
    ADD(&w, "\x31\xc0");             /* xor eax, eax */
    solve(&w);
    expect_register(&w, 0, AX, ETCH_HOW_UNKNOWN, 0);
    expect_register(&w, 1, AX, ETCH_HOW_CONSTANT, 42);
    expect_register(&w, 3, CX, ETCH_HOW_EXECUTED, 672);
    end(&w);
}

static void carry_through_memory(void **state)
{
    struct world w;
    struct etch_backward_access a;

    (void)state;
    begin(&w);
    know(&w, BX, MEMORY);
    w.memory[8] = 77;
    w.memory[16] = 5;
    ADD(&w, "\x89\x43\x08");                 /* mov [rbx+8], eax */
    ADD(&w, "\x8b\x4b\x08");                 /* mov ecx, [rbx+8] */
    ADD(&w, "\x31\xc0");                     /* xor eax, eax */
    ADD(&w, "\xc7\x43\x10\x05\x00\x00\x00"); /* mov [rbx+16], 5 */
    solve(&w);
    a = access_at(&w, 0);
    assert_true(a.write && a.address_known && a.address == MEMORY + 8);
    assert_true(a.how == ETCH_HOW_CORE && a.value == 77);
    a = access_at(&w, 1);
    assert_true(!a.write && a.how == ETCH_HOW_CORE && a.value == 77);
    expect_register(&w, 2, CX, ETCH_HOW_CORE, 77);
    end(&w);
}

/* A value that was overwritten is not that of the end. */
static void keep_overwritten_unknown(void **state)
{
    struct world w;

    (void)state;
    begin(&w);
    know(&w, BX, MEMORY);
    w.memory[0] = 9;
    ADD(&w, "\x8b\x03");                 /* mov eax, [rbx] */
    ADD(&w, "\x31\xc0");                 /* xor eax, eax */
    ADD(&w, "\xc7\x03\x09\x00\x00\x00"); /* mov [rbx], 9 */
    solve(&w);
    assert_int_equal(access_at(&w, 0).how, ETCH_HOW_UNKNOWN);
    end(&w);
}

/* A store to an unknown place may have written everything that came before. */
static void forget_before_unknown_store(void **state)
{
    struct world w;

    (void)state;
    begin(&w);
    know(&w, BX, MEMORY);
    memset(w.memory, 3, sizeof(w.memory));
    ADD(&w, "\x8b\x03");             /* mov eax, [rbx] */
    ADD(&w, "\x89\x0a");             /* mov [rdx], ecx: both unknown */
    ADD(&w, "\x8b\x43\x04");         /* mov eax, [rbx+4] */
    ADD(&w, "\xb8\x00\x00\x00\x00"); /* mov eax, 0 */
    solve(&w);
    assert_int_equal(access_at(&w, 0).how, ETCH_HOW_UNKNOWN);
    assert_false(access_at(&w, 1).address_known);
    assert_int_equal(access_at(&w, 2).how, ETCH_HOW_CORE);
    end(&w);
}

/* The stack of a function that takes no address of it: a store through a pointer does not reach it. One that is
 * computed from the stack pointer may. */
static void keep_private_frame(void **state)
{
    static const char *const stores[] = {"\x89\x0a", "\x89\x0c\x14"}; /* mov [rdx], ecx; mov [rsp+rdx], ecx */
    static const unsigned char sizes[] = {2, 3};
    struct world w;

    (void)state;
    for (unsigned frame = ETCH_FRAME_OPEN; frame <= ETCH_FRAME_BY_SP; frame++)
        for (unsigned k = 0; k < 2; k++) {
            begin(&w);
            w.stack[64 + 8] = 7;
            ADD(&w, "\x8b\x44\x24\x08"); /* mov eax, [rsp+8] */
            add_at(&w, stores[k], sizes[k], ETCH_UNSEEN_NOTHING);
            ADD(&w, "\xb8\x00\x00\x00\x00"); /* mov eax, 0 */
            for (size_t i = 0; i < w.n; i++)
                w.instructions[i].frame = (uint8_t)frame;
            solve(&w);
            assert_int_equal(access_at(&w, 0).how == ETCH_HOW_CORE, frame == ETCH_FRAME_BY_SP && k == 0);
            end(&w);
        }
}

/* A store through a pointer that was read from memory. Its place is found if the pointer is taken to be still there,
 * and that is confirmed; if the store may have written the pointer itself, nothing is known. */
static void confirm_stores(void **state)
{
    struct world w;

    (void)state;
    for (unsigned self = 0; self < 2; self++) {
        uint64_t pointer = MEMORY + 32;

        begin(&w);
        know(&w, BX, MEMORY);
        know(&w, DX, self ? pointer : 9);
        memcpy(w.memory, &pointer, sizeof(pointer));
        ADD(&w, "\x48\x8b\x03");         /* mov rax, [rbx] */
        ADD(&w, "\x48\x89\x10");         /* mov [rax], rdx */
        ADD(&w, "\xb8\x00\x00\x00\x00"); /* mov eax, 0 */
        memcpy(w.memory + 32, self ? (const void *)&pointer : (const void *)&(uint64_t){9}, 8);
        solve(&w);
        assert_int_equal(access_at(&w, 0).how == ETCH_HOW_CORE, !self);
        assert_int_equal(access_at(&w, 1).address_known, !self);
        end(&w);
    }
}

static void call_out(struct world *w, enum etch_unseen unseen)
{
    begin(w);
    know(w, BX, MEMORY);
    memset(w->memory, 3, sizeof(w->memory));
    w->stack[64 + 8] = w->stack[64 - 16] = 5;
    ADD(w, "\x8b\x03");                             /* mov eax, [rbx] */
    ADD(w, "\x48\xc7\x44\x24\x08\x01\x00\x00\x00"); /* mov qword [rsp+8], 1 */
    ADD(w, "\x48\xc7\x44\x24\xf0\x02\x00\x00\x00"); /* mov qword [rsp-16], 2 */
    ADD(w, "\xe8\x00\x10\x00\x00");                 /* call elsewhere */
    ADD_BEHIND(w, unseen, "\x48\x8b\x4c\x24\x08");  /* mov rcx, [rsp+8] */
    ADD(w, "\x48\x8b\x44\x24\xf0");                 /* mov rax, [rsp-16] */
    ADD(w, "\xb9\x00\x00\x00\x00");                 /* mov ecx, 0 */
    ADD(w, "\xb8\x00\x00\x00\x00");                 /* mov eax, 0 */
    ADD(w, "\x48\xc7\x44\x24\x08\x05\x00\x00\x00"); /* mov qword [rsp+8], 5 */
    ADD(w, "\x48\xc7\x44\x24\xf0\x05\x00\x00\x00"); /* mov qword [rsp-16], 5 */
    solve(w);
}

/* Accesses: read, write, write, the call's push, the call, read, read. */
static void forget_at_calls(void **state)
{
    static const struct {
        enum etch_unseen unseen;
        bool plain, stack;
    } rows[] = {{ETCH_UNSEEN_QUIET, true, true},
                {ETCH_UNSEEN_LIBRARY, false, true},
                {ETCH_UNSEEN_CALL, false, false},
                {ETCH_UNSEEN_ANY, false, false}};
    struct world w;

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        call_out(&w, rows[i].unseen);
        assert_int_equal(access_at(&w, 0).how, rows[i].plain ? ETCH_HOW_CORE : ETCH_HOW_UNKNOWN);
        assert_int_equal(access_at(&w, 5).how, rows[i].stack ? ETCH_HOW_EXECUTED : ETCH_HOW_UNKNOWN);
        assert_int_equal(access_at(&w, 6).how, ETCH_HOW_UNKNOWN);
        assert_int_equal(access_at(&w, 0).address_known, rows[i].unseen != ETCH_UNSEEN_ANY);
        end(&w);
    }
}

/* Memory that others write holds no value between two accesses; constant memory always does. */
static void heed_kinds_of_memory(void **state)
{
    static const struct {
        enum etch_memory_kind kind;
        enum etch_how_known how;
    } rows[] = {{ETCH_MEMORY_PLAIN, ETCH_HOW_CORE},
                {ETCH_MEMORY_SHARED, ETCH_HOW_UNKNOWN},
                {ETCH_MEMORY_CONSTANT, ETCH_HOW_CONSTANT}};

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct world w;

        begin(&w);
        know(&w, BX, MEMORY);
        w.kind = rows[i].kind;
        ADD(&w, "\x8b\x03"); /* mov eax, [rbx] */
        ADD(&w, "\x31\xc0"); /* xor eax, eax */
        solve(&w);
        assert_int_equal(access_at(&w, 0).how, rows[i].how);
        end(&w);
    }
}

/* Somebody else wrote a byte: what was executed and what is there at the end disagree. Everything that follows from
 * that memory is unknown, the rest is not. */
static void find_contradiction(void **state)
{
    struct world w;

    (void)state;
    begin(&w);
    know(&w, BX, MEMORY);
    know(&w, DX, 12);
    w.memory[0] = 6;                     /* not what was stored */
    ADD(&w, "\xc7\x03\x05\x00\x00\x00"); /* mov dword [rbx], 5 */
    ADD(&w, "\x8b\x03");                 /* mov eax, [rbx] */
    ADD(&w, "\x89\xc1");                 /* mov ecx, eax */
    ADD(&w, "\x83\xc2\x02");             /* add edx, 2 */
    ADD(&w, "\xb9\x00\x00\x00\x00");     /* mov ecx, 0 */
    ADD(&w, "\xb8\x00\x00\x00\x00");     /* mov eax, 0 */
    solve(&w);
    assert_int_equal(etch_backward_count(w.b).contradictions, 1);
    assert_int_equal(access_at(&w, 1).how, ETCH_HOW_UNKNOWN);
    expect_register(&w, 3, CX, ETCH_HOW_UNKNOWN, 0);
    expect_register(&w, 4, DX, ETCH_HOW_CORE, 12);
    end(&w);
}

/* Registers that cannot be what is said: nothing is known. */
static void give_up(void **state)
{
    struct world w;

    (void)state;
    begin(&w);
    know(&w, AX, 4);
    know(&w, DX, 12);
    ADD(&w, "\xb8\x03\x00\x00\x00"); /* mov eax, 3 */
    solve(&w);
    assert_true(etch_backward_count(w.b).gave_up);
    expect_register(&w, 0, DX, ETCH_HOW_UNKNOWN, 0);
    end(&w);
}

static void learn_from_branches(void **state)
{
    struct world w;

    (void)state;
    begin(&w);
    ADD(&w, "\x83\xf8\x07"); /* cmp eax, 7 */
    ADD(&w, "\x75\x20");     /* jne, not taken */
    ADD(&w, "\x48\x85\xd2"); /* test rdx, rdx */
    ADD(&w, "\x74\x02");     /* je, taken */
    w.next += 2;
    ADD(&w, "\xba\x00\x00\x00\x00"); /* mov edx, 0 */
    ADD(&w, "\xb8\x00\x00\x00\x00"); /* mov eax, 0 */
    solve(&w);
    expect_register(&w, 2, DX, ETCH_HOW_UNDONE, 0);
    expect_register(&w, 0, DX, ETCH_HOW_UNDONE, 0);
    expect_register(&w, 0, AX, ETCH_HOW_UNKNOWN, 0); /* only its lower half */
    end(&w);
}

/* Their operands are no accesses: the register holds no address. */
static void ignore_operands_of_no_operations(void **state)
{
    struct world w;

    (void)state;
    begin(&w);
    ADD(&w, "\x66\x2e\x0f\x1f\x84\x00\x00\x00\x00\x00"); /* cs nopw 0(%rax,%rax,1) */
    ADD(&w, "\x0f\x18\x08");                             /* prefetcht0 (%rax) */
    ADD(&w, "\x48\xff\xc0");                             /* inc %rax */
    know(&w, AX, 0x9000000000000001);
    solve(&w);
    assert_int_equal(etch_backward_count(w.b).contradictions, 0);
    assert_int_equal(etch_backward_accesses(w.b), 0);
    expect_register(&w, 0, AX, ETCH_HOW_UNDONE, 0x9000000000000000);
    end(&w);
}

static void keep_unknown_instructions_unknown(void **state)
{
    struct world w;

    (void)state;
    begin(&w);
    know(&w, AX, 4);
    know(&w, DX, 12);
    ADD(&w, "\x0f\xa2");     /* cpuid */
    ADD(&w, "\xff\xff");     /* nothing */
    ADD(&w, "\x48\xff\xc0"); /* inc rax */
    solve(&w);
    expect_register(&w, 2, AX, ETCH_HOW_UNDONE, 3);
    expect_register(&w, 1, DX, ETCH_HOW_UNKNOWN, 0);
    end(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(undo_arithmetic),
        cmocka_unit_test(execute_what_cannot_be_undone),
        cmocka_unit_test(carry_through_memory),
        cmocka_unit_test(keep_overwritten_unknown),
        cmocka_unit_test(forget_before_unknown_store),
        cmocka_unit_test(keep_private_frame),
        cmocka_unit_test(confirm_stores),
        cmocka_unit_test(forget_at_calls),
        cmocka_unit_test(heed_kinds_of_memory),
        cmocka_unit_test(find_contradiction),
        cmocka_unit_test(give_up),
        cmocka_unit_test(learn_from_branches),
        cmocka_unit_test(ignore_operands_of_no_operations),
        cmocka_unit_test(keep_unknown_instructions_unknown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
