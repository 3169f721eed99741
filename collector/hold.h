/* SPDX-License-Identifier: MIT */
/* One native run of a program in which orders of statements are enforced: breakpoints at the statements, and a thread
 * is held at its statement until the other thread has left its own. For programs that the lab cannot run, and as the
 * last word on the real machine. Lines and threads are named as in the lab (lab/layout.h), with two differences: ranges
 * of code are offsets in the program's file, and a visit is an arrival of the thread at the statement. */
#ifndef ETCH_COLLECTOR_HOLD_H
#define ETCH_COLLECTOR_HOLD_H

#include "base/error.h"
#include "collector/lab_run.h"

struct etch_hold_request {
    const char *program;
    char *const *argv; /* NULL behind the last */
    const char *input; /* standard input; NULL: none */
    const struct etch_lab_rule *rules;
    uint32_t n_rules;
    const struct etch_lab_lines *lines;
    double patience; /* seconds that a thread is held, at most */
    double timeout;  /* seconds of the whole run */
};

enum etch_hold_end {
    ETCH_HOLD_EXITED,   /* `number` is the status */
    ETCH_HOLD_SIGNALED, /* `number` is the signal */
    ETCH_HOLD_HUNG,     /* all threads wait for each other */
    ETCH_HOLD_ENDLESS,  /* the time limit was reached */
    ETCH_HOLD_UNKEPT,   /* a thread was held longer than `patience` */
};

struct etch_hold_result {
    enum etch_hold_end end;
    int number;
    uint32_t kept; /* orders whose first statement is over */
};

/* Runs the program to its end. Returns 0, or -1 with `err` set if it could not be run under control. */
int etch_hold_run(struct etch_hold_result *result, const struct etch_hold_request *request, struct etch_error *err);

#endif
