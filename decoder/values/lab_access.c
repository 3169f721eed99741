/* SPDX-License-Identifier: MIT */
/* Accesses of the lab: which instruction makes them, and for whom; see accesses.h. */
#include "decoder/lab_access.h"
#include "decoder/accesses.h"
#include "decoder/values/callers.h"

#include <Zydis/Zydis.h>

#define FORWARD 64u /* instructions between the lab's call and the access */

static bool is_stack(ZydisRegister reg)
{
    return reg == ZYDIS_REGISTER_RSP || reg == ZYDIS_REGISTER_RBP;
}

/* How well an operand fits the access: 0 not at all. The lab does not see variables that stay on a thread's own stack,
 * so an operand that the stack pointer leads to is likely a value that was put aside. */
static int fitness(const ZydisDecodedOperand *o, uint32_t size, bool write)
{
    ZydisOperandActions wanted = write ? ZYDIS_OPERAND_ACTION_MASK_WRITE : ZYDIS_OPERAND_ACTION_MASK_READ;

    if (o->type != ZYDIS_OPERAND_TYPE_MEMORY || o->mem.type != ZYDIS_MEMOP_TYPE_MEM || !(o->actions & wanted) ||
        o->visibility == ZYDIS_OPERAND_VISIBILITY_HIDDEN || o->size / 8u != size)
        return 0;
    return is_stack(o->mem.base) ? 1 : 2;
}

uint64_t etch_lab_access_find(const uint8_t *bytes, size_t size, uint64_t ip, uint32_t access, bool write)
{
    ZydisDecodedInstruction insn;
    ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];
    uint64_t found = 0;
    ZydisDecoder decoder;
    size_t at = 0;
    int best = 0;

    ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
    for (unsigned i = 0; i < FORWARD && at < size && best < 2; i++) {
        if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, bytes + at, size - at, &insn, ops)))
            break;
        for (unsigned k = 0; k < insn.operand_count; k++) {
            int fits = fitness(&ops[k], access, write);

            if (fits > best) {
                best = fits;
                found = ip + at;
            }
        }
        if (insn.meta.category == ZYDIS_CATEGORY_CALL || insn.meta.category == ZYDIS_CATEGORY_RET ||
            insn.meta.category == ZYDIS_CATEGORY_UNCOND_BR || insn.meta.category == ZYDIS_CATEGORY_COND_BR)
            break;
        at += insn.length;
    }
    return found;
}

static void find_instruction(Etch__Access *a, const struct etch_code_space *space, size_t ages)
{
    const char *why;
    const struct etch_code_section *s = etch_code_find(space, a->ip, 0, ages, &why);
    uint64_t found = 0;

    a->ip_is_before = false;
    if (s && s->bytes && a->ip >= s->start && a->ip - s->start < s->size)
        found =
            etch_lab_access_find(s->bytes + (a->ip - s->start), s->size - (a->ip - s->start), a->ip, a->size, a->write);
    if (found)
        a->ip = found;
    else
        a->ip_is_after = true; /* the call of the lab has the access' line */
}

void etch_accesses_settle_lab(struct etch_recording *r, const struct etch_code *code, struct etch_symbols *symbols)
{
    const struct etch_code_space *space = etch_code_space_of(code, r->program ? r->program->pid : 0);
    size_t ages = etch_code_space_changes(space);

    for (size_t i = 0; i < r->accesses.n; i++) {
        Etch__Access *a = &r->accesses.v[i];

        if (a->ip_is_before)
            find_instruction(a, space, ages);
        a->caller = etch_callers_choose(r, symbols, a->ip - (a->ip_is_after ? 1 : 0), a->callers, a->n_callers);
    }
    for (size_t i = 0; i < r->syncs.n; i++) {
        Etch__Sync *s = &r->syncs.v[i];
        uint64_t caller = s->caller ? etch_callers_choose(r, symbols, s->caller - 1, s->callers, s->n_callers) : 0;

        s->caller = caller ? caller : s->caller;
    }
}
