/* SPDX-License-Identifier: MIT */
/* The slowest calls of a function, and what each did that its typical call did not: callees, paths, waits. */
#ifndef ETCH_REPORT_SLOWEST_H
#define ETCH_REPORT_SLOWEST_H

#include "report/profile.h"

#include <stdio.h>

/* A callee of one call, by its path from that call. */
struct etch_call_part {
    uint64_t key;    /* of the path: equal in two calls for the same path */
    uint32_t parent; /* of the parts; itself: the call */
    uint32_t function;
    uint64_t calls, instructions, wait; /* with what it called */
};

struct etch_call_wait {
    uint32_t wait; /* of profile.waits */
    uint64_t ticks, count;
};

/* One call with all that it called. */
struct etch_call_detail {
    struct etch_profile_call call;
    ETCH_ARRAY(struct etch_call_part) parts; /* [0] is the call itself */
    ETCH_ARRAY(struct etch_call_wait) waits;
    uint64_t pruned; /* calls on further paths, which count for their callers only */
};

enum etch_difference_kind {
    ETCH_DIFFERENCE_WAIT,     /* it waited at a place */
    ETCH_DIFFERENCE_PATH,     /* it called what no typical call does */
    ETCH_DIFFERENCE_RAN_MORE, /* a path that typical calls have too ran more instructions */
};

struct etch_difference {
    enum etch_difference_kind kind;
    uint32_t part, wait;  /* part of the slow call; wait of profile.waits */
    double more, typical; /* ticks for a wait, else instructions */
    double share;         /* of the difference between the calls, 0..1 */
};

struct etch_slow_call {
    struct etch_call_detail detail;
    struct etch_span more;                          /* than the typical call, in the unit */
    bool by_wait;                                   /* it is here for its waits */
    ETCH_ARRAY(struct etch_difference) differences; /* the greatest share first */
};

struct etch_slowest {
    struct etch_profile *profile; /* of the second pass: names in it belong to parts */
    uint32_t function;
    ETCH_ARRAY(struct etch_call_detail) typical;
    ETCH_ARRAY(struct etch_slow_call) slow;
    uint32_t uncertain; /* calls that may be as slow as those shown, or as quick as the typical one */
};

/* Reads a recording a second time: `first` has its profile, in which `function` is the one wanted. */
struct etch_slowest *etch_slowest_new(void);
int etch_slowest_add(struct etch_slowest *slowest, const struct etch_profile *first, uint32_t function,
                     struct etch_recording *recording, struct etch_symbols *symbols,
                     const struct etch_profile_options *options, struct etch_error *err);

/* When all recordings are added: finds the differences. Returns 0, or -1 when memory is short. */
int etch_slowest_explain(struct etch_slowest *slowest);
void etch_slowest_free(struct etch_slowest *slowest);

void etch_slowest_print(const struct etch_slowest *slowest, FILE *out);
void etch_slowest_json(const struct etch_slowest *slowest, FILE *out);

#endif
