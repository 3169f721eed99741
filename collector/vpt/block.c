/* SPDX-License-Identifier: MIT OR GPL-2.0-or-later */
/* How a block ends, by Zydis; see block.h. */
#include "collector/vpt/block.h"

#include <Zydis/Zydis.h>

static bool decode(const uint8_t *bytes, size_t size, ZydisDecodedInstruction *insn)
{
    ZydisDecoder decoder;

    return ZYAN_SUCCESS(ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64)) &&
           ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(&decoder, NULL, bytes, size, insn));
}

bool etch_vpt_instruction_is_whole(const uint8_t *bytes, size_t size)
{
    ZydisDecodedInstruction insn;
    ZydisDecoder decoder;

    ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
    return ZydisDecoderDecodeInstruction(&decoder, NULL, bytes, size, &insn) != ZYDIS_STATUS_NO_MORE_DATA;
}

static bool is_far(const ZydisDecodedInstruction *insn)
{
    return insn->meta.branch_type == ZYDIS_BRANCH_TYPE_FAR || insn->meta.category == ZYDIS_CATEGORY_SYSCALL ||
           insn->meta.category == ZYDIS_CATEGORY_SYSRET || insn->meta.category == ZYDIS_CATEGORY_INTERRUPT ||
           insn->mnemonic == ZYDIS_MNEMONIC_IRETQ || insn->mnemonic == ZYDIS_MNEMONIC_IRETD;
}

static bool is_repeated(const ZydisDecodedInstruction *insn)
{
    return (insn->attributes & (ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE | ZYDIS_ATTRIB_HAS_REPNE)) != 0;
}

static enum etch_vpt_ending ending_of(const ZydisDecodedInstruction *insn)
{
    bool direct = insn->raw.imm[0].is_relative;

    if (is_far(insn))
        return VPT_FAR;
    switch (insn->meta.category) {
    case ZYDIS_CATEGORY_COND_BR:
        return VPT_CONDITIONAL;
    case ZYDIS_CATEGORY_UNCOND_BR:
        return direct ? VPT_GOES_ON : VPT_JUMPS_INDIRECT;
    case ZYDIS_CATEGORY_CALL:
        return direct ? VPT_CALLS : VPT_CALLS_INDIRECT;
    case ZYDIS_CATEGORY_RET:
        return VPT_RETURN;
    default:
        return is_repeated(insn) ? VPT_REPEATS : VPT_GOES_ON;
    }
}

int etch_vpt_block_classify(struct etch_vpt_block *b, const uint8_t *bytes, size_t size)
{
    ZydisDecodedInstruction insn;

    b->ending = VPT_GOES_ON;
    b->target = b->end;
    if (!decode(bytes, size, &insn))
        return -1;
    b->ending = (uint8_t)ending_of(&insn);
    if (insn.raw.imm[0].is_relative)
        b->target = b->end + (uint64_t)insn.raw.imm[0].value.s;
    /* A call to the next instruction only fetches its address: no return is ever matched with it. */
    if (b->ending == VPT_CALLS && b->target == b->end)
        b->ending = VPT_GOES_ON;
    return 0;
}

struct etch_vpt_traits etch_vpt_instruction_traits(const uint8_t *bytes, size_t size)
{
    ZydisDecodedInstruction insn;

    if (!decode(bytes, size, &insn))
        return (struct etch_vpt_traits){0};
    return (struct etch_vpt_traits){
        .divides = insn.mnemonic == ZYDIS_MNEMONIC_DIV || insn.mnemonic == ZYDIS_MNEMONIC_IDIV,
        .atomic = (insn.attributes & ZYDIS_ATTRIB_HAS_LOCK) || insn.mnemonic == ZYDIS_MNEMONIC_XCHG,
        .repeats = is_repeated(&insn),
    };
}

bool etch_vpt_block_ends_rarely(struct etch_vpt_writer *w, const struct etch_vpt_block *b, uint64_t next)
{
    switch ((enum etch_vpt_ending)b->ending) {
    case VPT_CALLS:
        if (next != b->target)
            return false;
        etch_vpt_put_call(w, b->end);
        return true;
    case VPT_RETURN:
        etch_vpt_put_return(w, next);
        return true;
    case VPT_CALLS_INDIRECT:
        etch_vpt_put_call(w, b->end);
        etch_vpt_put_tip(w, next);
        return true;
    case VPT_REPEATS:
        return next == b->end || next == b->last;
    case VPT_JUMPS_INDIRECT:
    case VPT_FAR:
        etch_vpt_put_tip(w, next);
        return true;
    default:
        return false;
    }
}

bool etch_vpt_block_may_go_to(const struct etch_vpt_block *b, uint64_t next)
{
    switch ((enum etch_vpt_ending)b->ending) {
    case VPT_CONDITIONAL:
        return next == b->target || next == b->end;
    case VPT_GOES_ON:
    case VPT_CALLS:
        return next == b->target;
    case VPT_REPEATS:
        return next == b->end || next == b->last;
    default:
        return true;
    }
}
