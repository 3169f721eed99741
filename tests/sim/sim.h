/* SPDX-License-Identifier: MIT */
/* Machines that we do not have, and random programs on them, with the true order known: CPUs with skewed and drifting
 * clocks, threads that migrate and are preempted, a clock that changes in mid-run, records that get lost. */
#ifndef ETCH_TESTS_SIM_H
#define ETCH_TESTS_SIM_H

#include "calibrate/skew.h"
#include "decoder/order.h"
#include "decoder/timeline.h"

#include <stdbool.h>
#include <stdint.h>

/* A small generator, the same everywhere. */
struct sim_random {
    uint64_t state;
};

uint64_t sim_next(struct sim_random *random);
uint64_t sim_below(struct sim_random *random, uint64_t limit);
int64_t sim_between(struct sim_random *random, int64_t lo, int64_t hi);
bool sim_chance(struct sim_random *random, unsigned in_thousand);
double sim_normal(struct sim_random *random);

struct sim_options {
    uint64_t seed;
    uint32_t cpus, threads;
    uint32_t steps;    /* per thread, about */
    int64_t max_skew;  /* cycles, either way */
    int32_t drift_ppb; /* of a clock against the reference, at most */
    unsigned migrate;  /* in a thousand steps */
    unsigned preempt;  /* in a thousand: a long wait between event and stamp */
    unsigned lose;     /* in a thousand steps a run of records begins to be lost */
    unsigned mark;     /* in a thousand steps: also something with an interval of its own, in a second sequence */
    uint32_t mutexes, rwlocks, conditions, semaphores, variables;
    unsigned access;    /* in a hundred steps */
    unsigned barrier;   /* one every so many steps, in all threads; 0: none */
    bool unique_values; /* else from a small set */
    int64_t pace;       /* cycles between two steps of a thread, about */
    int64_t trap;       /* cycles from access to stamp, at most */
    uint32_t wrong_cpu; /* its clock is off by `wrong_by` from the part `wrong_from` of the run on, and the ranges do
                           not know */
    int64_t wrong_by;
    double wrong_from;
    bool clocks_refused; /* no range is known */
    bool spans;          /* calls that do not wait are stamped on both sides */
    bool signals_wake;   /* a wait that nobody signals times out; else it may return for no reason */
};

#define SIM_OPTIONS_DEFAULT                                                                                            \
    {.cpus = 4,                                                                                                        \
     .threads = 4,                                                                                                     \
     .steps = 30,                                                                                                      \
     .max_skew = 1000,                                                                                                 \
     .drift_ppb = 0,                                                                                                   \
     .migrate = 20,                                                                                                    \
     .preempt = 10,                                                                                                    \
     .mutexes = 2,                                                                                                     \
     .rwlocks = 1,                                                                                                     \
     .conditions = 1,                                                                                                  \
     .semaphores = 1,                                                                                                  \
     .variables = 2,                                                                                                   \
     .access = 30,                                                                                                     \
     .barrier = 0,                                                                                                     \
     .pace = 2000,                                                                                                     \
     .trap = 40000}

struct sim_run {
    struct etch_event *events;
    struct etch_event_stamp *stamps;
    uint64_t *truth; /* an event's place in the order in which things really happened */
    size_t n, capacity;
    struct etch_cpu_range *cpus;
    int64_t *skew; /* at the start, against CPU 0 */
    struct etch_watched *locations;
    uint32_t *tasks; /* of a sequence: thread t has its records in sequence t, its marks in t + threads */
    struct etch_order_input input;
    uint64_t lost;
};

/* Returns 0, or -1 when memory is short. */
int sim_run_new(struct sim_run *run, const struct sim_options *options);
void sim_run_free(struct sim_run *run);

/* One round of scheme 1 between two clocks with true skew `skew` (b - a). */
struct etch_skew_round sim_write_round(struct sim_random *random, int64_t skew);

/* One difference of scheme 2. `asymmetry`: cycles by which the line takes longer from a to b than back. */
int64_t sim_flag_round(struct sim_random *random, double skew, double asymmetry, bool a_sets);

#endif
