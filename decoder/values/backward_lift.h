/* SPDX-License-Identifier: MIT */
/* One instruction on its way to equations. */
#ifndef ETCH_DECODER_VALUES_BACKWARD_LIFT_H
#define ETCH_DECODER_VALUES_BACKWARD_LIFT_H

#include "decoder/values/backward_model.h"

#include <Zydis/Zydis.h>

#define DEEPEST 1024u

/* A call that has not returned yet, and the registers before it. `next` is 0 for a call from unseen code. */
struct pending_call {
    uint64_t next;
    uint32_t registers[16];
    uint32_t activation; /* of the caller */
};

struct lift {
    struct model *m;
    ZydisDecoder decoder;
    ZydisDecodedInstruction i;
    ZydisDecodedOperand o[ZYDIS_MAX_OPERAND_COUNT];
    uint32_t index;         /* of the instruction */
    uint64_t address, next; /* of it, and behind it */
    bool followed;          /* by the instruction at `to`, with nothing in between */
    uint64_t to;
    bool ring;
    uint8_t frame;       /* enum etch_stack_frame */
    uint8_t why;         /* enum etch_why_unknown, of variables that are made now and get no value */
    bool at_frame;       /* the last address that was computed is that of the frame, and a number */
    bool at_stack;       /* it has the stack or frame pointer in it */
    bool own_push;       /* the push or pop at hand is of the function's private frame */
    uint32_t activation; /* of the function that runs */
    uint32_t activations;
    bool forward_only;     /* no instruction of the sequence changes the direction of string instructions */
    uint32_t now[R_COUNT]; /* the registers */
    uint32_t fs;
    struct {
        const struct etch_library_effect *effect;
        uint32_t var;
    } same[8]; /* results of functions that always return the same */
    struct pending_call calls[DEEPEST];
    size_t depth;
};

/* ---- backward_build.c ---- */

uint32_t etch_lift_fresh(struct lift *l); /* a variable of which nothing is known */
uint32_t etch_lift_constant(struct lift *l, uint64_t value);
void etch_lift_root(struct lift *l, uint32_t var, uint64_t value, uint64_t known, enum etch_how_known how);
uint32_t etch_lift_op(struct lift *l, enum op_kind kind, unsigned width, unsigned shift, uint32_t a, uint32_t b,
                      uint32_t c);
void etch_lift_access(struct lift *l, struct access access);
uint32_t etch_lift_load(struct lift *l, uint32_t address, unsigned bytes, bool implicit);
void etch_lift_store(struct lift *l, uint32_t address, uint32_t value, unsigned bytes, bool implicit);

/* The number of a general register, of any width, and where its bits are in the whole one; -1: it is no such register.
 */
int etch_lift_general(ZydisRegister reg, unsigned *shift, unsigned *width);
/* The number of xmm0 .. xmm15 (also ymm, zmm); -1: none. */
int etch_lift_vector(ZydisRegister reg);

uint32_t etch_lift_address(struct lift *l, const ZydisDecodedOperand *o);
/* An operand as a number of `width` bits. */
uint32_t etch_lift_read(struct lift *l, unsigned k, unsigned width);
void etch_lift_write(struct lift *l, unsigned k, uint32_t value);
/* As etch_lift_write(), for a memory operand whose address was taken already. */
void etch_lift_write_at(struct lift *l, unsigned k, uint32_t address, uint32_t value);

/* Says that two variables are the same. */
void etch_lift_equate(struct lift *l, uint32_t a, uint32_t b);

/* The calls that led here are not known any more. */
void etch_lift_lose_calls(struct lift *l);

/* Notes a call that returns to `next`; 0: a call from unseen code, to unseen code. */
void etch_lift_remember_call(struct lift *l, uint64_t next);

/* ---- The kinds of instructions. Each returns false for one that it does not know. ---- */

bool etch_lift_integer(struct lift *l); /* backward_integer.c */
bool etch_lift_stack(struct lift *l);   /* backward_stack.c: and branches, system calls, strings */
bool etch_lift_moves(struct lift *l);   /* backward_vector.c: copies through vector registers */

#endif
