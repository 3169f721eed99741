/* SPDX-License-Identifier: MIT */
/* Callers of watched accesses; see callers.h. libdwfl's own unwinder goes on by the frame pointer where its tables end,
 * which in libc is anything but a frame pointer: so the steps from frame to frame are made here, by the tables alone.
 */
#include "decoder/values/callers.h"

#include "base/function_name.h"
#include "decoder/unwind.h"

#include <dwarf.h>
#include <elfutils/libdwfl.h>
#include <string.h>

#define FRAMES_MAX 64u /* between an access and the program */
#define OPERATIONS_MAX 32u
#define KERNEL ((uint64_t)1 << 47) /* addresses from here on are its own */

enum { REGISTERS = 16, SP = 7, PC = 16 }; /* DWARF's numbers */

struct frame {
    uint64_t r[REGISTERS + 1];
    uint32_t known; /* bit by bit */
};

struct callers {
    Dwfl *dwfl;
    struct etch_symbols *symbols;
    const struct etch_recording *recording;
    const Etch__Access *access;
};

static void set(struct frame *f, unsigned number, uint64_t value)
{
    f->r[number] = value;
    f->known |= 1u << number;
}

static bool get(const struct frame *f, uint64_t number, uint64_t *value)
{
    if (number > PC || !(f->known >> number & 1))
        return false;
    *value = f->r[number];
    return true;
}

static bool read_stack(const struct callers *c, uint64_t address, uint64_t *word)
{
    const Etch__Access *a = c->access;
    uint64_t start = a->registers[etch_unwind_perf_register[SP]];

    if (address < start || a->stack.len < sizeof(*word) || address - start > a->stack.len - sizeof(*word))
        return false;
    memcpy(word, a->stack.data + (address - start), sizeof(*word));
    return true;
}

/* ---- Expressions of the tables ---- */

struct machine {
    const struct callers *callers;
    const struct frame *frame;
    const uint64_t *cfa;
    uint64_t stack[8];
    size_t n;
    bool is_value; /* what is found is the value itself, not where it is */
};

static bool push(struct machine *m, uint64_t v)
{
    if (m->n == sizeof(m->stack) / sizeof(m->stack[0]))
        return false;
    m->stack[m->n++] = v;
    return true;
}

static bool push_register(struct machine *m, uint64_t number, uint64_t offset)
{
    uint64_t v;

    return get(m->frame, number, &v) && push(m, v + offset);
}

static bool operate_on_two(struct machine *m, uint8_t atom)
{
    uint64_t a, b;

    if (m->n < 2)
        return false;
    b = m->stack[--m->n];
    a = m->stack[--m->n];
    switch (atom) {
    case DW_OP_plus:
        return push(m, a + b);
    case DW_OP_minus:
        return push(m, a - b);
    case DW_OP_and:
        return push(m, a & b);
    case DW_OP_shl:
        return push(m, b < 64 ? a << b : 0);
    case DW_OP_ge:
        return push(m, (int64_t)a >= (int64_t)b);
    default:
        return false;
    }
}

/* The few operations that compilers and libc's assembly put into unwind tables; any other is an end. */
static bool operate(struct machine *m, const Dwarf_Op *op)
{
    if (op->atom >= DW_OP_breg0 && op->atom <= DW_OP_breg31)
        return push_register(m, op->atom - DW_OP_breg0, op->number);
    if (op->atom >= DW_OP_lit0 && op->atom <= DW_OP_lit31)
        return push(m, op->atom - DW_OP_lit0);
    switch (op->atom) {
    case DW_OP_bregx:
        return push_register(m, op->number, op->number2);
    case DW_OP_regx:
        m->is_value = true;
        return push_register(m, op->number, 0);
    case DW_OP_call_frame_cfa:
        return m->cfa && push(m, *m->cfa);
    case DW_OP_const1u:
    case DW_OP_const1s:
    case DW_OP_const2u:
    case DW_OP_const2s:
    case DW_OP_const4u:
    case DW_OP_const4s:
    case DW_OP_const8u:
    case DW_OP_const8s:
    case DW_OP_constu:
    case DW_OP_consts:
        return push(m, op->number);
    case DW_OP_plus_uconst:
        return push(m, op->number) && operate_on_two(m, DW_OP_plus);
    case DW_OP_deref:
        return m->n && read_stack(m->callers, m->stack[m->n - 1], &m->stack[m->n - 1]);
    case DW_OP_stack_value:
        m->is_value = true;
        return true;
    default:
        return operate_on_two(m, op->atom);
    }
}

static bool evaluate(struct machine *m, const Dwarf_Op *ops, size_t n, uint64_t *result)
{
    if (!n || n > OPERATIONS_MAX)
        return false;
    for (size_t i = 0; i < n; i++)
        if (!operate(m, &ops[i]))
            return false;
    if (m->n != 1)
        return false;
    *result = m->stack[0];
    return true;
}

/* ---- From frame to frame ---- */

static Dwarf_Frame *rules_of(Dwarf_CFI *cfi, uint64_t address)
{
    Dwarf_Frame *rules = NULL;

    return cfi && dwarf_cfi_addrframe(cfi, address, &rules) == 0 ? rules : NULL;
}

static Dwarf_Frame *rules_at(const struct callers *c, uint64_t pc)
{
    Dwfl_Module *module = dwfl_addrmodule(c->dwfl, pc);
    Dwarf_Addr bias;
    Dwarf_Frame *rules;
    Dwarf_CFI *cfi;

    if (!module)
        return NULL;
    cfi = dwfl_module_eh_cfi(module, &bias);
    rules = rules_of(cfi, pc - bias);
    if (rules)
        return rules;
    cfi = dwfl_module_dwarf_cfi(module, &bias);
    return rules_of(cfi, pc - bias);
}

/* The caller's value of a register; where it cannot be told it is not known there. */
static void restore(const struct callers *c, const struct frame *inner, uint64_t cfa, Dwarf_Frame *rules,
                    unsigned number, struct frame *outer)
{
    struct machine m = {.callers = c, .frame = inner, .cfa = &cfa};
    Dwarf_Op memory[3], *ops;
    uint64_t found;
    size_t n;

    if (dwarf_frame_register(rules, (int)number, memory, &ops, &n) != 0)
        return;
    if (!n && !ops) { /* it is the same there */
        if (get(inner, number, &found))
            set(outer, number, found);
        return;
    }
    if (evaluate(&m, ops, n, &found) && (m.is_value || read_stack(c, found, &found)))
        set(outer, number, found);
}

static bool apply(const struct callers *c, Dwarf_Frame *rules, struct frame *f)
{
    struct machine m = {.callers = c, .frame = f};
    struct frame outer = {0};
    Dwarf_Op *ops;
    uint64_t cfa;
    bool signal;
    size_t n;

    /* Behind a signal's frame there is no call. */
    if (dwarf_frame_info(rules, NULL, NULL, &signal) != PC || signal)
        return false;
    if (dwarf_frame_cfa(rules, &ops, &n) != 0 || !evaluate(&m, ops, n, &cfa) || cfa <= f->r[SP])
        return false;
    for (unsigned i = 0; i <= PC; i++)
        restore(c, f, cfa, rules, i, &outer);
    set(&outer, SP, cfa);
    *f = outer;
    return f->known >> PC & 1;
}

/* The tables are for the instruction that comes next in the innermost frame, for the call that was made in all others.
 */
static bool step(const struct callers *c, struct frame *f, bool innermost)
{
    Dwarf_Frame *rules = rules_at(c, f->r[PC] - !innermost);
    bool found = rules && apply(c, rules, f);

    free(rules);
    return found;
}

/* How near to the user an address is: not in the program, or in a stub that leads out of it; in code of a system header
 * that is part of the program; in the user's own. */
enum nearness { OUTSIDE, HEADER, OWN };

static enum nearness nearness_of(const struct callers *c, uint64_t address)
{
    const struct etch_recording *r = c->recording;
    struct etch_location location;

    for (size_t i = 0; i < r->images.n; i++) {
        const Etch__Image *image = r->images.v[i];

        if (!(image->prot & 4) || address < image->start || address - image->start >= image->size ||
            (image->pid && image->pid != r->program->pid) || strcmp(image->path, r->program->exe) != 0)
            continue;
        etch_symbols_find(c->symbols, image, address, &location);
        if (location.is_plt)
            return OUTSIDE;
        for (const struct etch_frame *f = &location.frame; f; f = f->caller)
            if (!f->file || !etch_file_is_system(f->file))
                return OWN;
        return HEADER;
    }
    return OUTSIDE;
}

static uint64_t find(const struct callers *c)
{
    /* Of the registers that a system call leaves alone the kernel samples but some. */
    static const uint8_t unsampled[] = {3, 12, 13, 14, 15};
    const Etch__Access *a = c->access;
    struct frame f = {0};
    enum nearness near;
    uint64_t header = 0;

    for (unsigned i = 0; i <= PC; i++)
        set(&f, i, a->registers[etch_unwind_perf_register[i]]);
    for (size_t i = 0; a->ip >= KERNEL && i < sizeof(unsampled); i++)
        f.known &= ~(1u << unsampled[i]);
    if (nearness_of(c, f.r[PC]) == OWN)
        return 0;
    for (unsigned i = 0; i < FRAMES_MAX && step(c, &f, i == 0); i++) {
        near = nearness_of(c, f.r[PC] - 1);
        if (near == OWN)
            return f.r[PC];
        if (near == HEADER && !header)
            header = f.r[PC];
    }
    return header;
}

void etch_callers_find(struct etch_recording *r, struct etch_symbols *symbols)
{
    struct callers c = {.recording = r, .symbols = symbols};
    bool tried = false;

    for (size_t i = 0; i < r->accesses.n; i++) {
        Etch__Access *a = &r->accesses.v[i];

        if (!a->stack.len)
            continue;
        if (!tried && r->program) { /* most recordings need none */
            c.dwfl = etch_unwind_open(r, symbols);
            tried = true;
        }
        c.access = a;
        if (c.dwfl && a->n_registers >= ETCH_UNWIND_REGISTERS && !a->caller)
            a->caller = find(&c);
        free(a->stack.data);
        a->stack = (ProtobufCBinaryData){0};
    }
    if (c.dwfl)
        dwfl_end(c.dwfl);
}
