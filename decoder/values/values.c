/* SPDX-License-Identifier: MIT */
/* Direction and value of watched accesses; see values.h. */
#include "decoder/values.h"

#include <Zydis/Zydis.h>
#include <string.h>

#define LONGEST 15u
#define FLAGS 9 /* perf's number of the flags register */
#define CARRY 0x1u
#define ZERO 0x40u

struct instruction {
    ZydisDecodedInstruction i;
    ZydisDecodedOperand o[ZYDIS_MAX_OPERAND_COUNT];
    uint64_t address;
};

/* ---- Registers ---- */

static const uint8_t perf_numbers[16] = {0, 2, 3, 1, 7, 6, 4, 5, 16, 17, 18, 19, 20, 21, 22, 23};

/* A general register's value as an operand has it: its own width, high bytes shifted. */
static bool register_value(const struct etch_value_question *q, ZydisRegister reg, uint64_t *value)
{
    ZydisRegister whole = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);
    unsigned width = ZydisRegisterGetWidth(ZYDIS_MACHINE_MODE_LONG_64, reg);
    uint64_t v;

    if (whole < ZYDIS_REGISTER_RAX || whole > ZYDIS_REGISTER_R15)
        return false;
    if (q->masked >> perf_numbers[whole - ZYDIS_REGISTER_RAX] & 1)
        return false;
    v = q->registers[perf_numbers[whole - ZYDIS_REGISTER_RAX]];
    if (reg >= ZYDIS_REGISTER_AH && reg <= ZYDIS_REGISTER_BH)
        v >>= 8;
    *value = width >= 64 ? v : v & (((uint64_t)1 << width) - 1);
    return true;
}

/* ---- The operand in memory ---- */

static bool register_written(const struct instruction *n, ZydisRegister reg)
{
    ZydisRegister whole = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);

    for (unsigned k = 0; k < n->i.operand_count; k++)
        if (n->o[k].type == ZYDIS_OPERAND_TYPE_REGISTER && (n->o[k].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) &&
            ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, n->o[k].reg.value) == whole)
            return true;
    return false;
}

enum place { ELSEWHERE, THERE, PERHAPS };

/* Finds the place of the operand by the registers after the instruction. PERHAPS: the instruction overwrote a register
 * of the address, or the base of its segment is not sampled. */
static enum place operand_place(const struct etch_value_question *q, const struct instruction *n,
                                const ZydisDecodedOperand *o, uint64_t *at)
{
    const ZydisDecodedOperandMem *m = &o->mem;
    uint64_t base = 0, index = 0, width = o->size / 8;

    if (m->type != ZYDIS_MEMOP_TYPE_MEM || !width)
        return ELSEWHERE;
    if (m->segment == ZYDIS_REGISTER_FS || m->segment == ZYDIS_REGISTER_GS ||
        (m->base != ZYDIS_REGISTER_NONE && m->base != ZYDIS_REGISTER_RIP && register_written(n, m->base)) ||
        (m->index != ZYDIS_REGISTER_NONE && register_written(n, m->index)))
        return PERHAPS;
    if (m->base == ZYDIS_REGISTER_RIP)
        base = n->address + n->i.length;
    else if (m->base != ZYDIS_REGISTER_NONE && !register_value(q, m->base, &base))
        return ELSEWHERE;
    if (m->index != ZYDIS_REGISTER_NONE && !register_value(q, m->index, &index))
        return ELSEWHERE;
    *at = base + index * m->scale + (uint64_t)m->disp.value;
    return *at < q->address + q->size && *at + width > q->address ? THERE : ELSEWHERE;
}

static const ZydisDecodedOperand *find_operand(const struct etch_value_question *q, const struct instruction *n,
                                               uint64_t *at, enum place *place)
{
    *place = ELSEWHERE;
    for (unsigned k = 0; k < n->i.operand_count; k++) {
        const ZydisDecodedOperand *o = &n->o[k];

        if (o->type != ZYDIS_OPERAND_TYPE_MEMORY)
            continue;
        *place = operand_place(q, n, o, at);
        if (*place == PERHAPS)
            *at = q->address; /* the only memory operand that fits; taken as it is */
        if (*place != ELSEWHERE)
            return o;
    }
    return NULL;
}

/* ---- Finding the instruction ---- */

static bool decode(const struct etch_value_question *q, size_t offset, struct instruction *n)
{
    ZydisDecoder decoder;

    if (offset >= q->code_size)
        return false;
    ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
    n->address = q->code_address + offset;
    return ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, q->code + offset, q->code_size - offset, &n->i, n->o));
}

/* From a known boundary on, one after another, up to the one that ends at ip. */
static bool sweep(const struct etch_value_question *q, struct instruction *n)
{
    size_t end = (size_t)(q->ip - q->code_address);

    for (size_t at = 0; at < end; at += n->i.length) {
        if (!decode(q, at, n))
            return false;
        if (at + n->i.length == end)
            return true;
    }
    return false;
}

static uint8_t actions_of(const struct instruction *n, const ZydisDecodedOperand *o)
{
    (void)n;
    return (uint8_t)((o->actions & ZYDIS_OPERAND_ACTION_MASK_READ ? 1 : 0) |
                     (o->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE ? 2 : 0));
}

/* Without a boundary: all lengths that end at ip and touch the location. Several must be the same instruction but for
 * prefixes that change nothing that we look at. */
static bool search(const struct etch_value_question *q, struct instruction *found)
{
    size_t end = (size_t)(q->ip - q->code_address);
    bool any = false;

    for (size_t length = 1; length <= LONGEST && length <= end; length++) {
        struct instruction n;
        const ZydisDecodedOperand *o;
        enum place place;
        uint64_t at;

        if (!decode(q, end - length, &n) || n.i.length != length)
            continue;
        o = find_operand(q, &n, &at, &place);
        if (!o || place != THERE)
            continue;
        if (any)
            return false;
        *found = n;
        any = true;
    }
    return any;
}

static bool find_instruction(const struct etch_value_question *q, struct instruction *n)
{
    if (q->ip < q->code_address || q->ip - q->code_address > q->code_size)
        return false;
    if (!q->ip_is_after)
        return decode(q, (size_t)(q->ip - q->code_address), n);
    return q->boundary_known ? sweep(q, n) : search(q, n);
}

/* ---- Values ---- */

static uint64_t mask_of(unsigned bytes)
{
    return bytes >= 8 ? ~(uint64_t)0 : ((uint64_t)1 << bytes * 8) - 1;
}

/* The location's value, given what `width` bytes at `at` hold. */
static bool place_value(const struct etch_value_question *q, uint64_t at, unsigned width, uint64_t v, uint64_t *value)
{
    uint64_t known = 0, bits = 0;

    if (width > 8)
        return false;
    for (unsigned i = 0; i < q->size; i++) {
        uint64_t byte = q->address + i - at; /* of the operand; wraps to large where before it */

        if (byte < width) {
            known |= (uint64_t)0xff << i * 8;
            bits |= (v >> byte * 8 & 0xff) << i * 8;
        }
    }
    if (known != mask_of(q->size)) {
        if (!q->previous_known)
            return false;
        bits |= q->previous & ~known & mask_of(q->size);
    }
    *value = bits;
    return true;
}

/* The operand's value before the instruction, by the replayed value of the location. */
static bool operand_before(const struct etch_value_question *q, uint64_t at, unsigned width, uint64_t *v)
{
    if (!q->previous_known || at < q->address || at + width > q->address + q->size)
        return false;
    *v = q->previous >> (at - q->address) * 8 & mask_of(width);
    return true;
}

/* The other operand: a register that the instruction left alone, or a number. */
static bool source_value(const struct etch_value_question *q, const struct instruction *n, uint64_t *v)
{
    for (unsigned k = 0; k < n->i.operand_count_visible; k++) {
        const ZydisDecodedOperand *o = &n->o[k];

        if (o->type == ZYDIS_OPERAND_TYPE_IMMEDIATE) {
            *v = o->imm.is_signed ? (uint64_t)o->imm.value.s : o->imm.value.u;
            return true;
        }
        if (o->type == ZYDIS_OPERAND_TYPE_REGISTER)
            return !(o->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) && register_value(q, o->reg.value, v);
    }
    return false;
}

/* Arithmetic on the operand's old value. ADC and SBB are left out: the carry is not known afterwards. */
static bool compute(const struct instruction *n, uint64_t before, uint64_t source, uint64_t *v)
{
    switch (n->i.mnemonic) {
    case ZYDIS_MNEMONIC_ADD:
        *v = before + source;
        return true;
    case ZYDIS_MNEMONIC_SUB:
        *v = before - source;
        return true;
    case ZYDIS_MNEMONIC_AND:
        *v = before & source;
        return true;
    case ZYDIS_MNEMONIC_OR:
        *v = before | source;
        return true;
    case ZYDIS_MNEMONIC_XOR:
        *v = before ^ source;
        return true;
    case ZYDIS_MNEMONIC_INC:
        *v = before + 1;
        return true;
    case ZYDIS_MNEMONIC_DEC:
        *v = before - 1;
        return true;
    case ZYDIS_MNEMONIC_NEG:
        *v = 0 - before;
        return true;
    case ZYDIS_MNEMONIC_NOT:
        *v = ~before;
        return true;
    default:
        return false;
    }
}

static bool sets_zero_flag(ZydisMnemonic m)
{
    return m == ZYDIS_MNEMONIC_ADD || m == ZYDIS_MNEMONIC_SUB || m == ZYDIS_MNEMONIC_AND || m == ZYDIS_MNEMONIC_OR ||
           m == ZYDIS_MNEMONIC_XOR || m == ZYDIS_MNEMONIC_INC || m == ZYDIS_MNEMONIC_DEC || m == ZYDIS_MNEMONIC_NEG;
}

static bool is_plain_move(ZydisMnemonic m)
{
    return m == ZYDIS_MNEMONIC_MOV || m == ZYDIS_MNEMONIC_MOVZX || m == ZYDIS_MNEMONIC_MOVSX ||
           m == ZYDIS_MNEMONIC_MOVSXD || m == ZYDIS_MNEMONIC_MOVNTI;
}

/* Compare and exchange. The zero flag tells if the exchange took place. If so, the new value is the source operand;
 * else ax holds the location's value. */
static bool after_cmpxchg(const struct etch_value_question *q, const struct instruction *n, struct etch_value_answer *a,
                          uint64_t *v)
{
    static const ZydisRegister ax[] = {ZYDIS_REGISTER_AL, ZYDIS_REGISTER_AX, ZYDIS_REGISTER_EAX, ZYDIS_REGISTER_RAX};
    unsigned width = n->i.operand_width;

    a->write = q->registers[FLAGS] & ZERO;
    if (!a->write)
        return register_value(q, ax[width == 8 ? 0 : width == 16 ? 1 : width == 32 ? 2 : 3], v);
    return n->o[1].type == ZYDIS_OPERAND_TYPE_REGISTER && register_value(q, n->o[1].reg.value, v);
}

/* The operand's bytes after the access. */
static bool operand_after(const struct etch_value_question *q, const struct instruction *n, uint64_t at, unsigned width,
                          struct etch_value_answer *a, uint64_t *v)
{
    ZydisMnemonic m = n->i.mnemonic;
    uint64_t before = 0, source = 0;

    if (m == ZYDIS_MNEMONIC_CMPXCHG)
        return after_cmpxchg(q, n, a, v);
    if (is_plain_move(m) && a->write)
        return source_value(q, n, v);
    if (is_plain_move(m) && n->o[0].type == ZYDIS_OPERAND_TYPE_REGISTER && register_value(q, n->o[0].reg.value, v)) {
        *v &= mask_of(width);
        return true;
    }
    if (m == ZYDIS_MNEMONIC_CMP && (q->registers[FLAGS] & ZERO) && source_value(q, n, v)) {
        *v &= mask_of(width);
        return true; /* equal: it is the other operand */
    }
    if (!a->write)
        return operand_before(q, at, width, v); /* nobody wrote in between */
    if (sets_zero_flag(m) && (q->registers[FLAGS] & ZERO)) {
        *v = 0;
        return true;
    }
    if (!operand_before(q, at, width, &before))
        return false;
    if (m != ZYDIS_MNEMONIC_INC && m != ZYDIS_MNEMONIC_DEC && m != ZYDIS_MNEMONIC_NEG && m != ZYDIS_MNEMONIC_NOT &&
        !source_value(q, n, &source))
        return false;
    return compute(n, before, source, v);
}

void etch_value_find(const struct etch_value_question *question, struct etch_value_answer *answer)
{
    struct instruction n;
    const ZydisDecodedOperand *o;
    enum place place;
    uint64_t at = 0, v = 0;
    uint8_t actions;

    memset(answer, 0, sizeof(*answer));
    if (!question->registers || !question->size || question->size > 8 || !find_instruction(question, &n))
        return;
    o = find_operand(question, &n, &at, &place);
    if (!o)
        return; /* a branch was taken behind the access, or a string instruction moved its registers on */
    answer->instruction = n.address;
    actions = actions_of(&n, o);
    answer->read = actions & 1;
    answer->write = actions & 2;
    if ((o->actions & (ZYDIS_OPERAND_ACTION_CONDREAD | ZYDIS_OPERAND_ACTION_CONDWRITE)) &&
        n.i.mnemonic != ZYDIS_MNEMONIC_CMPXCHG)
        return;
    if (operand_after(question, &n, at, o->size / 8, answer, &v))
        answer->known = place_value(question, at, o->size / 8, v, &answer->value);
}

/* ---- A watch's accesses, one after another ---- */

void etch_values_fill(const Etch__Watch *watch, Etch__Access **accesses, size_t n, const bool *lost,
                      etch_value_reader *reader, void *context)
{
    struct etch_value_question q = {.address = watch->address, .size = watch->size};

    q.previous_known = watch->initially_case == ETCH__WATCH__INITIALLY_INITIAL_VALUE;
    q.previous = watch->initial_value;
    for (size_t i = 0; i < n; i++) {
        Etch__Access *a = accesses[i];
        struct etch_value_code code = {0};
        struct etch_value_answer answer = {0};

        if (lost && lost[i])
            q.previous_known = false;
        if (a->n_registers >= 24 && reader(context, a->ip, &code)) {
            q.ip = a->ip;
            q.ip_is_after = a->ip_is_after;
            q.code = code.bytes;
            q.code_address = code.start;
            q.code_size = code.size;
            q.boundary_known = code.boundary;
            q.registers = a->registers;
            q.masked = a->masked;
            etch_value_find(&q, &answer);
        }
        if (answer.instruction) {
            a->ip = answer.instruction;
            a->ip_is_after = false;
            a->read = answer.read;
            a->write = answer.write;
            a->direction_unknown = !answer.read && !answer.write;
        }
        a->known_case = answer.known ? ETCH__ACCESS__KNOWN_VALUE : ETCH__ACCESS__KNOWN__NOT_SET;
        a->value = answer.value;
        q.previous_known = answer.known;
        q.previous = answer.value;
    }
}

bool etch_value_pointer(const uint8_t *code, size_t size, uint64_t ip, const uint64_t registers[24], uint64_t fault,
                        uint64_t *pointer)
{
    const struct etch_value_question q = {
        .code = code, .code_address = ip, .code_size = size, .registers = registers, .address = fault, .size = 1};
    struct instruction n;

    if (!decode(&q, 0, &n))
        return false;
    for (unsigned k = 0; k < n.i.operand_count; k++) {
        const ZydisDecodedOperandMem *m = &n.o[k].mem;

        if (n.o[k].type == ZYDIS_OPERAND_TYPE_MEMORY && m->type == ZYDIS_MEMOP_TYPE_MEM &&
            m->index == ZYDIS_REGISTER_NONE && m->segment != ZYDIS_REGISTER_FS && m->segment != ZYDIS_REGISTER_GS &&
            register_value(&q, m->base, pointer) && *pointer + (uint64_t)m->disp.value == fault)
            return true;
    }
    return false;
}
