/* SPDX-License-Identifier: MIT */
/* The inside of a slice, for the files of slice/ and plan/. Private to slicer/. */
#ifndef ETCH_SLICER_SLICE_SLICING_H
#define ETCH_SLICER_SLICE_SLICING_H

#include "slicer/model/model.h"
#include "slicer/slice.h"

#include <llvm-c/Target.h>

struct etch_criterion {
    etch_numbers insns;
    bool ends_without_value; /* `insns` is the trap at the end of a function that returns a value on its other paths */
};

struct etch_statement {
    uint32_t file, line, column;
    uint32_t function;
    uint32_t distance;
    uint32_t roles; /* a bit for each StatementRole */
    bool branch, call;
    etch_numbers insns;
    etch_numbers because; /* statements nearer to the failure that need this statement */
};

struct etch_slice {
    struct etch_model *model;
    ETCH_ARRAY(struct etch_statement) statements;
    uint32_t *order;         /* statements, nearest first */
    uint32_t *rank;          /* statement -> place in the order */
    uint32_t failure;        /* the statement of the criterion that is nearest */
    bool ends_without_value; /* from the criterion */
};

/* ---- access_site.c: where an access of the bitcode is in the machine code ---- */

struct etch_access_site {
    uint64_t address;     /* of the instruction; 0: there is none, and `unmapped` says why */
    const char *unmapped; /* NULL if there is an address */
    char operand[64];     /* address expression of the operand: base,index,scale,displacement */
    uint32_t size;
    bool call;       /* `address` is the address of a call of library code */
    uint64_t inner;  /* of a call: the instruction of the called code that makes the access; 0: not known */
    uint64_t global; /* static address of the location; 0: it has none */
    bool seen;       /* `global` comes from earlier runs, not from the bitcode */
};

/* One memory access of an instruction of the bitcode. */
struct etch_mention {
    uint32_t insn;
    LLVMValueRef pointer;
    bool write;
    bool shared; /* other threads may reach the location */
    uint32_t size;
    /* Library code that `insn` calls makes the access: by its instruction `inner`, `offset` bytes behind the pointer
     * that it gets as argument `parameter`. `inner` ETCH_NONE: the code is not in the program. */
    bool library;
    uint32_t parameter, inner;
    int64_t offset;
    char name[256];
};
typedef ETCH_ARRAY(struct etch_mention) etch_mentions;

void etch_access_site_find(struct etch_model *m, const struct etch_mention *mention, struct etch_access_site *site);

/* ---- mentions.c ---- */

/* Adds the accesses of an instruction. Accesses to temporaries of the compiler are left out. False when memory is
 * short. */
bool etch_mentions_of(struct etch_model *m, uint32_t insn, etch_mentions *mentions);

/* The data layout of the module that an instruction is in. */
LLVMTargetDataRef etch_layout_of(const struct etch_model *m, uint32_t insn);

/* Takes constant offsets off a pointer. Returns the base, and in `offset` their sum. `constant` is false if an offset
 * is not constant. */
LLVMValueRef etch_constant_offset(const struct etch_model *m, uint32_t insn, LLVMValueRef pointer, int64_t *offset,
                                  bool *constant);

#endif
