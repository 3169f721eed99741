/* SPDX-License-Identifier: MIT */
/* The backward walk that makes a slice. slice.c has the queue and the statements; calls.c, definitions.c and control.c
 * find what an instruction depends on and queue it. Private to slicer/. */
#ifndef ETCH_SLICER_SLICE_WALK_H
#define ETCH_SLICER_SLICE_WALK_H

#include "slicer/slice/slicing.h"

/* Why an instruction is visited: for its value, only because it ran, or for all its arguments.
 *
 * ANY_CALLER: the caller of its function is unknown, so every caller counts. Without the flag the walk entered the
 * function through a call, for the value that the call returned. Then only calls that are in the slice count, or each
 * use of a common function would bring in the whole program. */
enum { ETCH_FOR_VALUE = 1, ETCH_FOR_RUNNING = 2, ETCH_FOR_ARGUMENTS = 4, ETCH_ANY_CALLER = 8 };

/* One entry of the queue. */
struct etch_walk_item {
    uint32_t insn;
    uint32_t because; /* the statement that needs the instruction; ETCH_NONE for the criterion */
    uint8_t mode;
    uint8_t role;
};

struct etch_walk {
    struct etch_slice *slice;
    struct etch_model *m;
    const struct etch_slice_options *options;
    ETCH_ARRAY(struct etch_walk_item) now;  /* at the distance `level` */
    ETCH_ARRAY(struct etch_walk_item) next; /* one step further */
    uint32_t level;
    uint8_t *seen; /* by instruction: the modes of its visits */
    uint8_t
        *seen_block; /* by block: 1 if its control dependences for calls of the slice are queued, 2 for any caller */
    bool any_caller; /* ANY_CALLER of the current visit */
    bool *seen_function; /* by function: its callers are queued */
    struct etch_pointers seen_argument;
    struct etch_strings seen_keys;
    struct etch_strings places;   /* "file:line:function" -> statement */
    struct etch_pointers defs_of; /* local variable -> index in defs */
    ETCH_ARRAY(etch_defs) defs;
    uint32_t *stamp; /* by block: the last search that reached the block */
    uint32_t stamps; /* number of the current search */
    bool short_of_memory;
};

static inline bool etch_is_pointer(LLVMValueRef value)
{
    return LLVMGetTypeKind(LLVMTypeOf(value)) == LLVMPointerTypeKind;
}

/* In all functions below, `from` is the statement that depends on the queued instructions. Lack of memory sets
 * short_of_memory. */

/* ---- slice.c ---- */

/* Queues an instruction. */
void etch_walk_need(struct etch_walk *w, uint32_t from, uint32_t insn, uint8_t mode, Etch__StatementRole role);

/* ---- calls.c ---- */

/* Queues the instruction that makes a value. For a parameter these are the arguments of the callers. */
void etch_walk_value(struct etch_walk *w, uint32_t from, LLVMValueRef value, Etch__StatementRole role);

/* Queues the needs of a call: the result of its function, and its arguments if `mode` asks for them. */
void etch_walk_call(struct etch_walk *w, uint32_t from, uint32_t insn, uint8_t mode);

/* Queues the data that a call gives to a function that may call back: pointers, and the memory that they point to. */
void etch_walk_callback(struct etch_walk *w, uint32_t from, uint32_t call);

/* ---- definitions.c ---- */

/* Queues the instructions that may have written the value that an access of type `access` at instruction `at` reads
 * through `pointer`. `access` NULL: all of the memory that `pointer` points to. */
void etch_walk_memory(struct etch_walk *w, uint32_t from, uint32_t at, LLVMValueRef pointer, LLVMTypeRef access);

/* ---- control.c ---- */

/* Queues the branches, calls and throws that decide whether an instruction runs. */
void etch_walk_control(struct etch_walk *w, uint32_t from, uint32_t insn);

#endif
