/* SPDX-License-Identifier: MIT */
/* The state of a failing process before its end: registers and frames of every thread, the message, and the parts of
 * the stacks that unwind tables need (stack_mask.h). */
#ifndef ETCH_COLLECTOR_NATIVE_FAILURE_H
#define ETCH_COLLECTOR_NATIVE_FAILURE_H

#include "collector/session/process.h"
#include "collector/target.h"
#include "proto/etch.pb-c.h"

#define ETCH_FAILURE_THREADS_MAX 128u /* a record has a limit; further threads are counted in the message */

/* A failure under construction; release it with etch_failure_release(). */
struct etch_failure {
    Etch__Failure record;
    Etch__ThreadState *states; /* what record.threads points to */
    struct etch_mappings mappings;
    uint64_t arguments;    /* where the first stack ends, and arguments and environment begin; 0: not known */
    uint64_t masked_words; /* of all stacks */
    bool keep_stack;
};

/* Fills in everything. `tid` is the failing thread (0: none in particular) and is stopped; with `hold` the others are
 * stopped as well for the time of the call, else they are looked at as they run. `words` are the message where the
 * program left none of its own. With `keep_stack` the stacks stay as they are. */
int etch_failure_capture(struct etch_failure *failure, struct etch_target *target, Etch__FailureKind kind, pid_t tid,
                         const siginfo_t *signal, bool hold, bool keep_stack, const char *words,
                         struct etch_error *err);

void etch_failure_release(struct etch_failure *failure);

#endif
