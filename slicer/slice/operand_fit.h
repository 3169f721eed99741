/* SPDX-License-Identifier: MIT */
/* How well an operand of the machine code fits an access of the bitcode. Private to slicer/. */
#ifndef ETCH_SLICER_SLICE_OPERAND_FIT_H
#define ETCH_SLICER_SLICE_OPERAND_FIT_H

#include "slicer/slice/slicing.h"

#include <Zydis/Zydis.h>

/* The access that an operand is looked for. */
struct etch_operand_fit {
    const struct etch_mention *mention;
    int64_t offset; /* of the field */
    bool constant;  /* `offset` is all that is added to the base */
    bool frame_pointer;
    const struct etch_ir_slot *slot; /* of a variable on the stack; NULL: any slot */
    uint64_t global;                 /* address of the variable; 0: it is not global */
    int best;                        /* etch_operand_fitness of the best operand so far; 0: none */
};

/* 0: the operand is not of this access. Otherwise a larger number is a better fit. */
int etch_operand_fitness(const struct etch_operand_fit *fit, const ZydisDecodedInstruction *insn,
                         const ZydisDecodedOperand *op, uint64_t address);

#endif
