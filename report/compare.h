/* SPDX-License-Identifier: MIT */
/* Two sets of runs, compared: which functions and paths became slower, by how much, with an interval. Functions are
 * matched by name and by the path of callers, not by address. A difference is claimed only if the interval excludes 0
 * and the shift is greater than what runs of one set differ among themselves. */
#ifndef ETCH_REPORT_COMPARE_H
#define ETCH_REPORT_COMPARE_H

#include "report/profile.h"
#include "report/shift.h"

#include <stdio.h>

enum etch_measure_kind {
    ETCH_MEASURE_CPU,          /* of the whole run, as the kernel counted it: nanoseconds */
    ETCH_MEASURE_WALL,         /* of the whole run: nanoseconds */
    ETCH_MEASURE_INSTRUCTIONS, /* of a function itself */
    ETCH_MEASURE_CALLS,
    ETCH_MEASURE_TIME, /* total, ticks; compared where its bounds are narrow in every run */
    ETCH_MEASURE_WAIT, /* ticks */
    ETCH_MEASURES,
};

enum etch_verdict_kind { ETCH_COMPARED_SAME, ETCH_COMPARED_DIFFERENT, ETCH_COMPARED_UNKNOWN };

struct etch_compared {
    enum etch_verdict_kind verdict;
    double a, b;             /* medians */
    struct etch_shift shift; /* b minus a */
    double noise;            /* the shift between halves of one set */
};

/* A function, a path of functions, or the whole run. */
struct etch_compared_row {
    char *name;    /* "": the whole run */
    bool is_path;  /* name: functions separated by ';' */
    double *a, *b; /* [measure * runs + run] */
    struct etch_compared of[ETCH_MEASURES];
    bool loose; /* the time of some run has wide bounds */
};

struct etch_comparison {
    ETCH_ARRAY(struct etch_compared_row) rows; /* [0]: the whole run */
    struct etch_index by_name;
    size_t n_a, n_b;
    double risk; /* of a wrong claim anywhere, at most */
    double ns_per_tick;
    bool decided;  /* there are enough runs to claim anything */
    size_t tests;  /* intervals that share the risk */
    uint64_t lost; /* runs whose recording lost something: their functions are not compared */
    bool apart; /* the sides ran at different times: no difference of times is claimed where functions are compared */
};

/* What a run took by the kernel's count; in its recording. */
struct etch_comparison *etch_comparison_new(size_t n_a, size_t n_b);
void etch_comparison_free(struct etch_comparison *c);

/* Adds run `run` of side a or b. */
int etch_comparison_add(struct etch_comparison *c, bool b, size_t run, const struct etch_profile *profile,
                        const struct etch_recording *recording, struct etch_error *err);

/* When all runs are added. Returns 0, or -1 when memory is short. */
int etch_comparison_decide(struct etch_comparison *c);

/* Did anything become slower (more CPU, instructions, time or waiting)? */
bool etch_comparison_is_slower(const struct etch_comparison *c);

void etch_comparison_print(const struct etch_comparison *c, const char *a, const char *b, FILE *out);
void etch_comparison_json(const struct etch_comparison *c, FILE *out);

#endif
