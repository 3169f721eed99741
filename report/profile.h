/* SPDX-License-Identifier: MIT */
/* Where the time of recorded runs went: functions, call paths, distributions of calls, waits. Built from steps in one
 * pass. Its memory depends on the number of functions and paths, not on the length of the trace.
 *
 * No duration is invented. A recorder stamps now and then, so a duration is a span: at least lo, at most hi. The times
 * between two stamps are a window. A function that ran in a window took between nothing and all of it, and all windows
 * together bound its sum: the calls of one window are not bounded by the whole window each. A gap between the stamp
 * before and the stamp behind a call that may wait is time in which no recorded code of the thread ran: a wait. */
#ifndef ETCH_REPORT_PROFILE_H
#define ETCH_REPORT_PROFILE_H

#include "base/array.h"
#include "base/error.h"
#include "base/index.h"
#include "binary/symbols.h"
#include "decoder/recording.h"
#include "proto/ledger.h"
#include "report/distribution.h"

#include <stdbool.h>
#include <stdint.h>

/* An amount that is not known exactly. */
struct etch_span {
    uint64_t lo, hi;
};

/* The unit of durations. Under an emulator or in the lab time says nothing about the program, so instructions are
 * counted. Waits are always in time. */
enum etch_profile_unit { ETCH_UNIT_TICKS, ETCH_UNIT_INSTRUCTIONS };

struct etch_profile_function {
    char *name;
    char *module;
    uint64_t calls;
    uint64_t left_out;     /* of them: cut by a loss or by an end of the trace, so not in the distributions */
    uint64_t instructions; /* of the function itself */
    uint64_t total_instructions;
    struct etch_span self, total; /* ticks, without the waits of others; total with everything it called */
    uint64_t wait;                /* ticks in waits that the function itself made; part of self */
    uint64_t total_wait;
    bool unbounded; /* some of its windows have an end that no stamp bounds: not in self and total */
    /* The reader's own, while a thread is read. */
    uint32_t active;
    uint64_t window, self_window;
    uint64_t full_from, instructions_from, wait_from;
};

/* A function, as called from another one. */
struct etch_profile_edge {
    uint32_t caller; /* ETCH_FUNCTION_NONE: not known */
    uint32_t function;
    uint64_t calls;
    struct etch_distribution lo, hi; /* of the calls' durations, in the unit; equal for instructions: only lo then */
    struct etch_distribution wait;   /* ticks that a call spent waiting, of those that waited */
};

#define ETCH_FUNCTION_NONE UINT32_MAX

/* A call path: the functions from the outermost to this one. */
struct etch_profile_path {
    uint32_t parent; /* itself: the root */
    uint32_t function;
    uint32_t edge;
    uint64_t calls, instructions;
    uint64_t wait;
    struct etch_span self; /* ticks */
    double estimate;       /* ticks: within a window by instructions. For the width of pictures only */
    /* The reader's own. */
    uint64_t window, window_instructions;
};

/* A place that waited. */
struct etch_profile_wait {
    uint32_t function;
    char *place; /* file:line, or an address */
    char *what;  /* the operation, where it was recorded; else NULL */
    uint64_t count, ticks, longest;
};

#define ETCH_SLOWEST_KEPT 8

/* One call. */
struct etch_profile_call {
    uint32_t file; /* of etch_profile.files */
    uint32_t pid, tid;
    uint64_t instructions_before; /* of the thread, when it was entered: with file, tid and function it names a call */
    uint64_t number;              /* the thread's so manieth call of the function, from 1 */
    uint64_t entered;             /* ticks, not before */
    uint32_t depth;
    struct etch_span cost; /* in the unit */
    uint64_t wait;
};

struct etch_profile_slowest {
    uint32_t n, n_waits;
    struct etch_profile_call calls[ETCH_SLOWEST_KEPT]; /* by cost, the greatest first */
    struct etch_profile_call waits[ETCH_SLOWEST_KEPT]; /* by wait */
};

struct etch_profile_thread {
    uint32_t file, pid, tid;
    char *name;
    struct etch_span elapsed;
    uint64_t instructions, wait, losses;
};

struct etch_profile {
    enum etch_profile_unit unit;
    double ns_per_tick; /* 0: not known */
    ETCH_ARRAY(char *) files;
    ETCH_ARRAY(struct etch_profile_function) functions;
    ETCH_ARRAY(struct etch_profile_edge) edges;
    ETCH_ARRAY(struct etch_profile_path) paths; /* [0] is the root */
    ETCH_ARRAY(struct etch_profile_wait) waits;
    ETCH_ARRAY(struct etch_profile_slowest) slowest; /* of each function */
    ETCH_ARRAY(struct etch_profile_thread) threads;
    uint64_t branches, instructions;
    uint64_t losses;                 /* met in the control flow */
    uint64_t lost[ETCH_LOSS_CAUSES]; /* of the recordings as a whole */
    uint64_t merged_paths; /* calls whose path was one too many: counted at the path "..." of their function */
    uint64_t windows;      /* so far */
    struct etch_index by_name, by_edge, by_path;
};

struct etch_profile_options {
    unsigned jobs;
    uint32_t tid; /* only this thread; 0: all */
    const char *sysroot;
    bool instructions; /* count instructions, whatever the source is */
};

struct etch_profile *etch_profile_new(void);
void etch_profile_free(struct etch_profile *profile);

/* Adds a recording. All recordings of a profile must have the same unit. Returns 0, or -1 with `err` set. */
int etch_profile_add(struct etch_profile *profile, struct etch_recording *recording, struct etch_symbols *symbols,
                     const struct etch_profile_options *options, struct etch_error *err);

/* What is in the tables, made if need be; ETCH_FUNCTION_NONE when memory is short. */
uint32_t etch_profile_function(struct etch_profile *profile, const char *name, const char *module);
uint32_t etch_profile_edge(struct etch_profile *profile, uint32_t caller, uint32_t function);
uint32_t etch_profile_path(struct etch_profile *profile, uint32_t parent, uint32_t function);

/* The function of that name; ETCH_FUNCTION_NONE: none, or with `many` set several. Matches whole names, and names
 * without their parameters. */
uint32_t etch_profile_find(const struct etch_profile *profile, const char *name, bool *many);

/* Bounds of a quantile of the function's calls, by one caller (ETCH_FUNCTION_NONE - 1: by any). False without calls. */
#define ETCH_ANY_CALLER (UINT32_MAX - 1)
bool etch_profile_quantile(const struct etch_profile *profile, uint32_t function, uint32_t caller, double share,
                           struct etch_span *span);

/* The distributions of the function's calls. False when memory is short. */
bool etch_profile_distribution(const struct etch_profile *profile, uint32_t function, uint32_t caller,
                               struct etch_distribution *lo, struct etch_distribution *hi,
                               struct etch_distribution *wait);

#endif
