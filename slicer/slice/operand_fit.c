/* SPDX-License-Identifier: MIT */
/* How well an operand of the machine code fits an access of the bitcode. See operand_fit.h. */
#include "slicer/slice/operand_fit.h"

static bool on_stack(const struct etch_operand_fit *fit, const ZydisDecodedOperand *op)
{
    return op->mem.base == ZYDIS_REGISTER_RSP || (fit->frame_pointer && op->mem.base == ZYDIS_REGISTER_RBP);
}

int etch_operand_fitness(const struct etch_operand_fit *fit, const ZydisDecodedInstruction *insn,
                         const ZydisDecodedOperand *op, uint64_t address)
{
    ZyanU8 action = fit->mention->write ? ZYDIS_OPERAND_ACTION_MASK_WRITE : ZYDIS_OPERAND_ACTION_MASK_READ;
    ZyanU64 target = 0;
    int score = 1;

    if (op->type != ZYDIS_OPERAND_TYPE_MEMORY || op->mem.type != ZYDIS_MEMOP_TYPE_MEM || !(op->actions & action) ||
        op->visibility == ZYDIS_OPERAND_VISIBILITY_HIDDEN)
        return 0;
    if (fit->mention->size && op->size / 8 == fit->mention->size)
        score += 2;
    if (fit->global) {
        bool known = ZYAN_SUCCESS(ZydisCalcAbsoluteAddress(insn, op, address, &target));

        return known && target == fit->global ? score + 4 : known ? 0 : score;
    }
    if (fit->mention->shared && op->mem.base == ZYDIS_REGISTER_RIP)
        return 0;
    if (fit->mention->shared == on_stack(fit, op))
        return 0;
    if (fit->slot)
        return fit->slot->known && (!fit->constant || op->mem.disp.value == fit->slot->displacement + fit->offset)
                   ? score + 4
                   : 0;
    if (fit->constant && op->mem.disp.value == fit->offset)
        score += 2;
    return score;
}
