/* SPDX-License-Identifier: MIT */
/* The functions of a module that get a recorder. Private to instrument/. */
#ifndef ETCH_SLICER_INSTRUMENT_RECORDED_H
#define ETCH_SLICER_INSTRUMENT_RECORDED_H

#include "slicer/instrument/model.h"

/* A function that gets a recorder. */
struct recorded {
    LLVMValueRef body;
    LLVMValueRef before; /* the function as it was; without code if the body has the cursor ABI, else the body itself */
    LLVMValueRef entry;  /* the symbol that other code sees; NULL: no other code sees the function */
    LLVMValueRef reporter; /* reports that the function was entered from outside, and calls the body */
    LLVMValueRef plain;    /* the copy without a recorder; NULL: there is none */
    LLVMValueRef rest;     /* see rest.h; NULL: there is none */
    LLVMValueRef lit;      /* its entry of the section etch_soft_lit; NULL: it cannot go dark */
    LLVMValueRef guard;    /* leads to the body, unless another module replaced the function; NULL: there is none */
    LLVMValueRef plain_guard;
    LLVMValueRef here; /* the entry in this module, even if the function was replaced; NULL: there is no guard */
    bool enters;       /* the body itself reports its entry */
    bool replaceable;  /* another file or module may have a function that takes its place */
    bool direct;       /* calls within this module go to the body, or from plain code to the plain copy */
};

/* A module while it gets its recorder. */
struct instrument {
    struct emitter emitter;
    const struct etch_instrument_options *options;
    ETCH_ARRAY(struct recorded) all;
    struct etch_pointers index; /* body or entry -> number in `all` */
    struct etch_pointers stubs; /* functions that are called in place of functions of other files */
    struct etch_instrument_count count;
};

inline const char *etch_value_name(LLVMValueRef value)
{
    size_t n;

    return LLVMGetValueName2(value, &n);
}

/* All functions below return false if memory is short. */

/* ---- selection.c ---- */

/* Fills `all`. */
bool etch_recorded_choose(struct instrument *in);

/* ---- symbols.c ---- */

/* Gives each function of `all` its symbols, and fills `index`. */
bool etch_recorded_separate(struct instrument *in);

/* True if the name can be between quotes in assembly, and fits a buffer of 512 bytes with an ending. */
bool etch_is_simple_name(const char *name);

/* ---- calls.c ---- */

/* A call_classifier; the context is a struct instrument. */
enum call_kind etch_call_classify(void *context, LLVMValueRef call);

/* Leads the calls of a body to code with a recorder, and stamps the time around calls that may wait. `calls` is room
 * for a list. */
bool etch_calls_prepare(struct instrument *in, LLVMValueRef function, values *calls);

/* Leads the calls of a plain copy to plain copies, in other files too. */
bool etch_calls_prepare_plain(struct instrument *in, LLVMValueRef function, values *calls);

#endif
