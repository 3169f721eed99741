/* SPDX-License-Identifier: MIT */
/* Steps as calls: which function was entered and left when, per thread. Well nested by construction, whatever the
 * program does with its stack: longjmp, exceptions, tail calls, signals, a trace that begins in the middle or has
 * holes. */
#ifndef ETCH_DECODER_CALLS_H
#define ETCH_DECODER_CALLS_H

#include "binary/symbols.h"
#include "decoder/steps.h"

enum etch_call_kind {
    ETCH_CALL_THREAD, /* the following calls are of thread `pid`, `tid` */
    ETCH_CALL_ENTER,
    ETCH_CALL_LEAVE,   /* of the innermost function that was entered and not yet left */
    ETCH_CALL_BELOW,   /* nothing is open: the code returned into `name`, which was called before the trace (or the part
                          since ETCH_CALL_PART) began and so encloses all of it; it is open now */
    ETCH_CALL_PART,    /* nothing is open; later frames have no known relation to the frames before */
    ETCH_CALL_LOSS,    /* `step` says what is missing */
    ETCH_CALL_NOWHERE, /* the thread died at `step`->ip, where no code is known: the innermost function went there */
    ETCH_CALL_THREAD_END, /* nothing is open */
};

enum etch_call_why {
    ETCH_WHY_CALL,    /* by a call instruction; the reverse by a return */
    ETCH_WHY_BEGAN,   /* it was running when the trace began */
    ETCH_WHY_TAIL,    /* a jump to another function's entry */
    ETCH_WHY_SIGNAL,  /* a signal handler */
    ETCH_WHY_JUMP,    /* into the middle of a function that is not on the stack: swapcontext and the like */
    ETCH_WHY_UNWOUND, /* left by longjmp, an exception, or a return past it */
    ETCH_WHY_LOST,    /* somewhere within a loss */
    ETCH_WHY_END,     /* still running where the trace ends */
};

struct etch_call {
    enum etch_call_kind kind;
    enum etch_call_why why;
    uint32_t pid, tid;
    /* 0 for the outermost function at the beginning; below that negative. */
    int depth;
    const char *name; /* NULL: not known */
    const char *module;
    uint64_t module_offset; /* of the entry seen */
    struct etch_interval time;
    uint64_t instructions; /* of the thread, before this */
    const struct etch_step *step;
};

typedef int etch_call_visitor(void *context, const struct etch_call *call);

struct etch_calls;

/* Returns NULL when memory is short. */
struct etch_calls *etch_calls_new(struct etch_symbols *symbols, etch_call_visitor *visit, void *context);
void etch_calls_free(struct etch_calls *calls);

/* An etch_step_visitor; `calls` is a struct etch_calls. Returns what the visitor returns, -1 when memory is short. */
int etch_calls_step(void *calls, const struct etch_step *step);

/* Leaves the functions that are still open in the last thread. */
int etch_calls_finish(struct etch_calls *calls);

#endif
