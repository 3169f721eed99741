/* SPDX-License-Identifier: MIT */
/* A claim about orders put to the test: the orders are enforced in many runs, and each of them is turned round in as
 * many. In the lab, or natively by breakpoints. */
#ifndef ETCH_DIAGNOSE_CONFIRM_H
#define ETCH_DIAGNOSE_CONFIRM_H

#include "collector/lab_explore.h"
#include "diagnose/lab_cause.h"
#include "diagnose/lab_names.h"

struct etch_confirm_count {
    uint32_t failed, of; /* runs in which no order was broken */
    uint32_t unkept;  /* runs in which an order could not be kept, or that passed before it came to pass: not in `of` */
    uint32_t unended; /* runs without an end: not in `of` */
};

struct etch_confirmed {
    struct etch_confirm_count enforced, forbidden;
};

/* Where and how often. */
struct etch_confirm {
    const char *program;             /* the program itself, for native runs */
    struct etch_lab_request request; /* names the lab build; not used natively but for arguments, input and timeout */
    uint32_t runs;                   /* in each direction */
    uint64_t seed;
    double patience;                /* natively: seconds that a thread is held, at most */
    bool (*is_over)(void *context); /* asked between runs; NULL: never */
    void *context;
};

/* Names the orders of the claim by the lines of the program, and their opposites: for native runs. Returns 0, or -1
 * with `err` set. Both to be released in either case. */
int etch_confirm_name(struct etch_lab_script *script, struct etch_lab_script *turned,
                      const struct etch_lab_cause *cause, const struct etch_lab_request *like, const char *program,
                      struct etch_error *err);

/* The orders of a claim, or of a script, in the lab. Return 0, or -1 with `err` set. */
int etch_confirm_claim(struct etch_confirmed *confirmed, const struct etch_confirm *how,
                       const struct etch_lab_cause *cause, struct etch_error *err);
int etch_confirm_script(struct etch_confirmed *confirmed, const struct etch_confirm *how,
                        const struct etch_lab_script *script, struct etch_error *err);

/* The orders of a script natively. `turned` has the opposite of each; NULL: the second statement before the first. */
int etch_confirm_natively(struct etch_confirmed *confirmed, const struct etch_confirm *how,
                          const struct etch_lab_script *script, const struct etch_lab_script *turned,
                          struct etch_error *err);

/* At least 95 of 100 runs fail with the orders enforced, and at most 1 of 100 with one of them turned round; at least
 * half of the runs kept the orders. */
bool etch_confirmed_holds(const struct etch_confirmed *confirmed, uint32_t runs);

#endif
