/* SPDX-License-Identifier: MIT */
/* The inside of a slice, between slice.c, sites.c and plan.c. Private to slicer/. */
#ifndef ETCH_SLICER_SLICE_SLICING_H
#define ETCH_SLICER_SLICE_SLICING_H

#include "slicer/model/model.h"
#include "slicer/slice.h"

#include <llvm-c/Target.h>

struct etch_criterion {
    etch_numbers insns;
    bool ends_without_value; /* they are the trap that the compiler put at the end of a function that returns a value */
};

struct etch_statement {
    uint32_t file, line, column;
    uint32_t function;
    uint32_t distance;
    uint32_t roles; /* a bit for each StatementRole */
    bool branch, call;
    etch_numbers insns;
    etch_numbers because;
};

struct etch_slice {
    struct etch_model *model;
    ETCH_ARRAY(struct etch_statement) statements;
    uint32_t *order;         /* statements, nearest first */
    uint32_t *rank;          /* statement -> place in the order */
    uint32_t failure;        /* statement; the nearest of the criterion's */
    bool ends_without_value; /* as of the criterion */
};

/* ---- sites.c: where an access of the bitcode is in the machine code ---- */

struct etch_site {
    uint64_t address; /* of the instruction; 0 with the reason in `unmapped` */
    const char *unmapped;
    char operand[64]; /* its address expression: base,index,scale,displacement */
    uint32_t size;
    bool call;       /* `address` is that of a call */
    uint64_t inner;  /* then: the instruction of the called code that makes the access; 0: not known */
    uint64_t global; /* static address of the location, where it is one */
    bool seen;       /* it is one by what runs have shown */
};

/* One memory access of an instruction of the bitcode. */
struct etch_mention {
    uint32_t insn;
    LLVMValueRef pointer;
    bool write;
    bool shared;
    uint32_t size;
    /* Made by library code that `insn` calls: `offset` bytes behind where its argument `parameter`, the pointer,
     * points, by the instruction `inner`. */
    bool library;
    uint32_t parameter, inner;
    int64_t offset;
    char name[256];
};
typedef ETCH_ARRAY(struct etch_mention) etch_mentions;

/* The accesses of an instruction, by name; those without a name are left out. False when memory is short. */
bool etch_mentions_of(struct etch_model *m, uint32_t insn, etch_mentions *mentions);

LLVMTargetDataRef etch_layout_of(const struct etch_model *m, uint32_t insn);

/* What a pointer is made of without the constant offsets that are added to it, and their sum. `constant` is false where
 * an offset is not constant. */
LLVMValueRef etch_constant_offset(const struct etch_model *m, uint32_t insn, LLVMValueRef pointer, int64_t *offset,
                                  bool *constant);

void etch_site_find(struct etch_model *m, const struct etch_mention *mention, struct etch_site *site);

#endif
