/* SPDX-License-Identifier: MIT */
/* A sequence of instructions to equations. An instruction that is not known makes everything that it writes unknown. */
#include "decoder/values/backward_lift.h"

const uint8_t etch_backward_perf_numbers[R_SNAPSHOT] = {0, 2, 3, 1, 7, 6, 4, 5, 16, 17, 18, 19, 20, 21, 22, 23, 9};

/* ---- Everything unknown ---- */

static void forget_vectors(struct lift *l)
{
    for (int r = R_VECTOR; r < R_COUNT; r++)
        l->now[r] = etch_lift_fresh(l);
}

static void write_anything(struct lift *l)
{
    etch_lift_access(l, (struct access){.kind = ACCESS_ALL, .address = NO_VAR, .value = NO_VAR});
}

static void forget_registers(struct lift *l)
{
    uint8_t why = l->why;

    l->why = ETCH_WHY_GAP;
    for (int r = 0; r < R_VECTOR; r++)
        l->now[r] = etch_lift_fresh(l);
    forget_vectors(l);
    l->why = why;
}

static void forget_all(struct lift *l)
{
    forget_registers(l);
    write_anything(l);
}

/* ---- Instructions of which only the operands are known ---- */

static void forget_register(struct lift *l, ZydisRegister reg)
{
    unsigned shift, width;
    int r = etch_lift_general(reg, &shift, &width), v = etch_lift_vector(reg);

    if (r >= 0)
        l->now[r] = etch_lift_fresh(l);
    else if (v >= 0) {
        l->now[R_VECTOR + 2 * v] = etch_lift_fresh(l);
        l->now[R_VECTOR + 2 * v + 1] = etch_lift_fresh(l);
    } else if (reg == ZYDIS_REGISTER_RFLAGS || reg == ZYDIS_REGISTER_EFLAGS || reg == ZYDIS_REGISTER_FLAGS)
        l->now[R_FLAGS] = etch_lift_fresh(l);
}

static bool saves_state(ZydisMnemonic m)
{
    return m == ZYDIS_MNEMONIC_XSAVE || m == ZYDIS_MNEMONIC_XSAVEC || m == ZYDIS_MNEMONIC_XSAVEOPT ||
           m == ZYDIS_MNEMONIC_XSAVE64 || m == ZYDIS_MNEMONIC_XSAVEC64 || m == ZYDIS_MNEMONIC_XSAVEOPT64 ||
           m == ZYDIS_MNEMONIC_FXSAVE || m == ZYDIS_MNEMONIC_FXSAVE64;
}

/* The state of a processor has at most this many bytes. */
#define STATE_BYTES 12288u

static void unknown_write(struct lift *l, const ZydisDecodedOperand *o)
{
    uint32_t bytes = saves_state(l->i.mnemonic) ? STATE_BYTES : o->size / 8;
    bool is_stack = o->visibility == ZYDIS_OPERAND_VISIBILITY_HIDDEN && o->mem.base == ZYDIS_REGISTER_RSP;

    if (!bytes || (bytes > 64 && bytes != STATE_BYTES) || is_stack || o->mem.type != ZYDIS_MEMOP_TYPE_MEM ||
        (l->i.attributes & (ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE | ZYDIS_ATTRIB_HAS_REPNE))) {
        write_anything(l);
        return;
    }
    etch_lift_access(l, (struct access){.kind = bytes > 8 ? ACCESS_WIDE : ACCESS_WRITE,
                                        .size = (uint8_t)(bytes > 8 ? 0 : bytes),
                                        .length = bytes,
                                        .address = etch_lift_address(l, o),
                                        .value = etch_lift_fresh(l)});
}

static void unknown_read(struct lift *l, const ZydisDecodedOperand *o)
{
    uint32_t bytes = o->size / 8;

    if (o->mem.type == ZYDIS_MEMOP_TYPE_MEM && bytes >= 1 && bytes <= 8 &&
        o->visibility != ZYDIS_OPERAND_VISIBILITY_HIDDEN)
        (void)etch_lift_load(l, etch_lift_address(l, o), bytes, false);
}

/* Instructions that ask the processor. */
static bool only_asks(ZydisMnemonic m)
{
    return m == ZYDIS_MNEMONIC_RDTSC || m == ZYDIS_MNEMONIC_RDTSCP || m == ZYDIS_MNEMONIC_RDPID ||
           m == ZYDIS_MNEMONIC_CPUID || m == ZYDIS_MNEMONIC_XGETBV;
}

static bool leaves_the_program(const struct lift *l)
{
    ZydisInstructionCategory c = l->i.meta.category;

    if (only_asks(l->i.mnemonic))
        return false;
    return c == ZYDIS_CATEGORY_INTERRUPT || c == ZYDIS_CATEGORY_SYSCALL || c == ZYDIS_CATEGORY_SYSRET ||
           c == ZYDIS_CATEGORY_SYSTEM || c == ZYDIS_CATEGORY_CALL || c == ZYDIS_CATEGORY_RET ||
           l->i.mnemonic == ZYDIS_MNEMONIC_XBEGIN || l->i.mnemonic == ZYDIS_MNEMONIC_XABORT ||
           l->i.mnemonic == ZYDIS_MNEMONIC_XEND;
}

static void lift_operands(struct lift *l)
{
    ZydisInstructionCategory c = l->i.meta.category;

    if (leaves_the_program(l)) {
        forget_all(l);
        return;
    }
    for (unsigned k = 0; k < l->i.operand_count; k++)
        if (l->o[k].type == ZYDIS_OPERAND_TYPE_MEMORY && (l->o[k].actions & ZYDIS_OPERAND_ACTION_MASK_READ))
            unknown_read(l, &l->o[k]);
    for (unsigned k = 0; k < l->i.operand_count; k++)
        if (l->o[k].type == ZYDIS_OPERAND_TYPE_MEMORY && (l->o[k].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE))
            unknown_write(l, &l->o[k]);
    for (unsigned k = 0; k < l->i.operand_count; k++)
        if (l->o[k].type == ZYDIS_OPERAND_TYPE_REGISTER && (l->o[k].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE))
            forget_register(l, l->o[k].reg.value);
    if (l->i.mnemonic == ZYDIS_MNEMONIC_VZEROALL || c == ZYDIS_CATEGORY_XSAVE || c == ZYDIS_CATEGORY_XSAVEOPT)
        forget_vectors(l);
}

/* ---- What ran unseen ---- */

static bool kept_by_calls(int r)
{
    return r == 3 /* bx */ || r == 5 /* bp */ || r >= 12;
}

/* The variable of an argument, counted from 1. */
static uint32_t argument(struct lift *l, unsigned n)
{
    static const uint8_t registers[6] = {7, 6, 2, 1, 8, 9}; /* di, si, dx, cx, r8, r9 */

    return n >= 1 && n <= 6 ? l->now[registers[n - 1]] : etch_lift_fresh(l);
}

static void write_through(struct lift *l, unsigned pointer, uint32_t length)
{
    uint32_t from = argument(l, pointer);

    etch_lift_access(l, (struct access){.kind = ACCESS_RANGE,
                                        .size = 1,
                                        .address = from,
                                        .value = etch_lift_op(l, OP_ADD, 64, 0, from, length, NO_VAR)});
}

static void write_through_arguments(struct lift *l, const struct etch_library_effect *effect)
{
    if (effect->pointer)
        write_through(l, effect->pointer,
                      effect->length ? argument(l, effect->length) : etch_lift_constant(l, effect->bytes));
    if (effect->other)
        write_through(l, effect->other, etch_lift_constant(l, effect->bytes));
}

/* The result of a function that always returns the same. */
static void take_same(struct lift *l, const struct etch_library_effect *effect)
{
    for (size_t i = 0; i < sizeof(l->same) / sizeof(l->same[0]); i++) {
        if (!l->same[i].effect) {
            l->same[i].effect = effect;
            l->same[i].var = l->now[0];
        }
        if (l->same[i].effect == effect) {
            l->now[0] = l->same[i].var;
            return;
        }
    }
}

static void take_result(struct lift *l, const struct etch_library_effect *effect)
{
    uint8_t why = l->why;

    l->why = effect && effect->allocates ? ETCH_WHY_ALLOCATED : ETCH_WHY_RESULT;
    l->now[0] = etch_lift_fresh(l);
    l->why = why;
    if (effect && effect->same)
        take_same(l, effect);
}

/* A function was called and returned. By the rules of x86-64 it kept some registers. */
static void unseen_call(struct lift *l, enum etch_unseen kind, const struct etch_library_effect *effect)
{
    l->why = ETCH_WHY_RESULT;
    if (effect)
        write_through_arguments(l, effect);
    l->now[R_SP] = etch_lift_op(l, OP_ADD, 64, 0, l->now[R_SP], etch_lift_constant(l, 8), NO_VAR);
    etch_lift_access(
        l, (struct access){.kind = ACCESS_UNSEEN, .length = (uint32_t)kind, .address = l->now[R_SP], .value = NO_VAR});
    for (int r = 0; r < R_FLAGS; r++)
        if (r != R_SP && !kept_by_calls(r))
            l->now[r] = etch_lift_fresh(l);
    take_result(l, effect);
    l->now[R_FLAGS] = etch_lift_fresh(l);
    forget_vectors(l);
    if (l->depth) /* the call itself */
        l->activation = l->calls[--l->depth].activation;
    else
        etch_lift_lose_calls(l);
    l->why = ETCH_WHY_INSTRUCTION;
}

/* A function was jumped to, and returned to the caller of this one. */
static bool is_tail_call(const struct lift *l, uint64_t to)
{
    return l->i.mnemonic == ZYDIS_MNEMONIC_JMP && l->depth && l->calls[l->depth - 1].next == to;
}

/* What ran wrote. */
static void unseen_writes(struct lift *l, uint64_t to, enum etch_unseen kind, const struct etch_library_effect *effect)
{
    uint32_t sp = l->now[R_SP];
    bool tail = is_tail_call(l, to);

    if (tail && effect)
        write_through_arguments(l, effect);
    if (tail)
        sp = etch_lift_op(l, OP_ADD, 64, 0, sp, etch_lift_constant(l, 8), NO_VAR);
    forget_registers(l);
    if (!tail) {
        write_anything(l);
        return;
    }
    take_result(l, effect);
    etch_lift_access(
        l, (struct access){.kind = ACCESS_UNSEEN, .length = (uint32_t)kind, .address = sp, .value = NO_VAR});
}

/* Unseen code ran. If control is back behind the innermost call, the function that was called has returned. By the
 * rules of x86-64 it kept some registers. Otherwise the code that ran may have called the function at hand. */
static void unseen_return(struct lift *l, uint64_t to, enum etch_unseen kind, const struct etch_library_effect *effect)
{
    const struct pending_call *c = l->depth ? &l->calls[l->depth - 1] : NULL;

    unseen_writes(l, to, kind, effect);
    if (!c || c->next != to) {
        etch_lift_remember_call(l, 0);
        return;
    }
    for (int r = 0; r < R_FLAGS; r++)
        if (r == R_SP || kept_by_calls(r))
            l->now[r] = c->registers[r];
    l->activation = c->activation;
    l->depth--;
}

static bool is_call(const struct lift *l)
{
    return l->i.mnemonic == ZYDIS_MNEMONIC_CALL && l->i.meta.branch_type == ZYDIS_BRANCH_TYPE_NEAR;
}

/* Whether control can go from the instruction at hand to `to`. */
static bool leads_to(const struct lift *l, uint64_t to)
{
    ZydisInstructionCategory c = l->i.meta.category;
    bool direct = l->o[0].type == ZYDIS_OPERAND_TYPE_IMMEDIATE;
    uint64_t target = direct ? l->next + (uint64_t)l->o[0].imm.value.s : 0;

    if (c == ZYDIS_CATEGORY_COND_BR)
        return to == l->next || (direct && to == target);
    if (c == ZYDIS_CATEGORY_UNCOND_BR || c == ZYDIS_CATEGORY_CALL)
        return !direct || to == target;
    return c == ZYDIS_CATEGORY_RET || to == l->next;
}

static void between(struct lift *l, enum etch_unseen unseen, const struct etch_library_effect *effect, uint64_t to,
                    bool end)
{
    if (unseen == ETCH_UNSEEN_NOTHING) {
        if (!end && !leads_to(l, to)) {
            forget_all(l);
            etch_lift_lose_calls(l);
        }
    } else if (unseen != ETCH_UNSEEN_ANY && is_call(l) && (end || to == l->next))
        unseen_call(l, unseen, effect);
    else if (unseen != ETCH_UNSEEN_ANY && !end)
        unseen_return(l, to, unseen, effect);
    else {
        forget_all(l);
        etch_lift_lose_calls(l);
    }
}

/* ---- The sequence ---- */

unsigned etch_backward_length(const uint8_t *bytes, size_t size)
{
    ZydisDecoder decoder;
    ZydisDecodedInstruction i;

    ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
    return ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(&decoder, NULL, bytes, size, &i)) ? i.length : 0;
}

static bool decode(struct lift *l, const struct etch_backward_instruction *n)
{
    return ZYAN_SUCCESS(ZydisDecoderDecodeFull(&l->decoder, n->bytes, n->size, &l->i, l->o));
}

/* The operand of a no-operation or of a prefetch is not accessed, and may be no valid address. */
static bool does_nothing(const struct lift *l)
{
    return l->i.meta.category == ZYDIS_CATEGORY_NOP || l->i.meta.category == ZYDIS_CATEGORY_WIDENOP ||
           l->i.meta.category == ZYDIS_CATEGORY_PREFETCH;
}

static void lift_one(struct lift *l)
{
    const struct etch_backward_question *q = l->m->question;
    const struct etch_backward_instruction *n = &q->instructions[l->index];

    for (int r = 0; r < R_SNAPSHOT; r++)
        if (!etch_array_push(&l->m->registers, l->now[r]))
            l->m->failed = true;
    if (n->incomplete && l->index + 1 == q->n)
        return;
    l->followed = l->index + 1 < q->n && n[1].unseen == ETCH_UNSEEN_NOTHING;
    l->to = l->followed ? n[1].address : 0;
    l->ring = n->into_ring;
    l->frame = n->frame;
    l->at_frame = l->at_stack = false;
    l->own_push = l->frame != ETCH_FRAME_OPEN;
    l->address = n->address;
    if (!decode(l, n)) {
        l->i = (ZydisDecodedInstruction){0};
        l->next = n->address;
        forget_all(l);
        return;
    }
    l->next = n->address + l->i.length;
    l->followed = l->followed && leads_to(l, l->to);
    if (!does_nothing(l) && !etch_lift_integer(l) && !etch_lift_stack(l) && !etch_lift_moves(l))
        lift_operands(l);
}

static bool has_direction(struct lift *l)
{
    const struct etch_backward_question *q = l->m->question;

    for (size_t i = 0; i < q->n; i++) {
        const struct etch_backward_instruction *n = &q->instructions[i];

        if (n->size && (n->bytes[0] == 0xfc || n->bytes[0] == 0xfd))
            return true;
    }
    return false;
}

static void bind_end(struct lift *l)
{
    const struct etch_backward_question *q = l->m->question;

    for (int r = 0; r < R_FLAGS; r++)
        if (!(q->masked >> etch_backward_perf_numbers[r] & 1))
            etch_lift_root(l, l->now[r], q->registers[etch_backward_perf_numbers[r]], ~(uint64_t)0, ETCH_HOW_CORE);
    if (!(q->masked >> etch_backward_perf_numbers[R_FLAGS] & 1))
        etch_lift_root(l, l->now[R_FLAGS], q->registers[etch_backward_perf_numbers[R_FLAGS]], FLAG_ALL, ETCH_HOW_CORE);
    if (q->fs_base_known)
        etch_lift_root(l, l->fs, q->fs_base, ~(uint64_t)0, ETCH_HOW_CORE);
}

bool etch_backward_lift(struct model *m)
{
    struct lift l = {.m = m, .why = ETCH_WHY_START_REGISTER};
    const struct etch_backward_question *q = m->question;

    ZydisDecoderInit(&l.decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
    for (int r = 0; r < R_COUNT; r++)
        l.now[r] = etch_lift_fresh(&l);
    l.fs = etch_lift_fresh(&l);
    l.forward_only = !has_direction(&l);
    l.why = ETCH_WHY_INSTRUCTION;
    for (l.index = 0; l.index < q->n && !m->failed; l.index++) {
        if (l.index)
            between(&l, q->instructions[l.index].unseen, q->instructions[l.index].effect,
                    q->instructions[l.index].address, false);
        lift_one(&l);
    }
    if (q->n) {
        l.index = (uint32_t)q->n - 1;
        l.ring = false;
        if (q->unseen_after != ETCH_UNSEEN_NOTHING)
            between(&l, q->unseen_after, q->effect_after, 0, true);
        bind_end(&l);
    }
    (void)etch_array_push(&m->alive, l.activation); /* one less is knowledge less */
    for (size_t i = 0; i < l.depth; i++)
        (void)etch_array_push(&m->alive, l.calls[i].activation);
    return !m->failed;
}
