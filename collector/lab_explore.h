/* SPDX-License-Identifier: MIT */
/* The search for a failing schedule: runs of one program in the lab, each with another schedule. A run uses facts that
 * earlier runs learnt: the instructions that share memory, and the number of operations of each thread. */
#ifndef ETCH_COLLECTOR_LAB_EXPLORE_H
#define ETCH_COLLECTOR_LAB_EXPLORE_H

#include "base/array.h"
#include "collector/lab_run.h"

/* All inputs and decisions of a run, so that the run can be repeated. */
struct etch_lab_schedule {
    ETCH_ARRAY(struct etch_lab_segment) segments;
    uint64_t *sites; /* ETCH_LAB_SITES */
    struct etch_lab_spec spec;
    uint64_t points, hash;
    enum etch_lab_end end;
    int number;
    uint32_t asked;               /* as in the request */
    ETCH_ARRAY(uint64_t) journal; /* answers from outside */
    uint64_t answers;             /* in it */
    ETCH_ARRAY(uint32_t) flows;   /* a hash for each of the first points */
    bool cut;                     /* the journal was full: the run cannot be repeated without the world outside */
};

struct etch_lab_explore {
    struct etch_lab_request request; /* the search fills in its schedule and the learnt facts */
    bool given;                      /* `request.spec` is the strategy; else a mixture */
    bool whole;         /* surw: all shared accesses are interesting in each run, not only those to one object */
    bool exhaustive;    /* after learning, all schedules with at most `preemptions` */
    unsigned preemptions;
    uint64_t seed;      /* of the first schedule */
    uint64_t schedules; /* at most */
    unsigned jobs;      /* runs at once; 0: one. The result is the same */
    double seconds;     /* at most; 0: no limit */
    bool all;           /* goes on after the first failure */
    bool latest;        /* keeps the schedule of the last failure instead of the first */

    /* Called after each run; false ends the search. May be NULL. */
    bool (*observe)(void *context, uint64_t done, const struct etch_lab_result *result);
    /* True if a failing run is one that is looked for; NULL: every one is. */
    bool (*accept)(void *context, const struct etch_lab_result *result);
    void *context;
};

/* The instruction at which a run failed by a signal or by misuse; 0: it failed otherwise. */
uint64_t etch_lab_failing_site(const struct etch_lab_result *result);

struct etch_lab_found {
    uint64_t schedules;             /* that ran */
    uint64_t failing;               /* of them */
    uint64_t first;                 /* number of the first that failed, from 1; 0: none */
    uint64_t unended;               /* reached the limit of points or time: neither passed nor failed */
    uint64_t partly;                /* reached a bound of the lab's tables: events beyond the bound were not followed */
    bool complete;                  /* exhaustive: all schedules passed; else all with fewer preemptions than `level` */
    unsigned level;                 /* of the last schedule */
    uint64_t covered;               /* schedules of the exhaustive search, from its last begin on */
    uint64_t equal;                 /* that were left out: another one leads to the same state */
    uint64_t gaps;                  /* runs whose choices are not all known, so that the search is not complete */
    uint64_t sites;                 /* instructions that share memory */
    uint64_t points;                /* of the last run that passed */
    uint64_t hash;                  /* over all points of all runs: equal for equal searches */
    uint32_t distinct;              /* failures that ended differently */
    uint64_t *learnt;               /* ETCH_LAB_SITES: instructions that make points, as the last run knew them */
    struct etch_lab_event *passing; /* of the last run that passed; NULL: none did */
    uint32_t n_passing;
    struct etch_lab_schedule schedule; /* of the first failure */
};

/* Runs until something fails, or to the limit. Returns 0, or -1 with `err` set. */
int etch_lab_explore(struct etch_lab_found *found, const struct etch_lab_explore *explore, struct etch_error *err);

void etch_lab_found_release(struct etch_lab_found *found);

/* Keeps the input of a run and the hashes of its points. False: no memory. */
bool etch_lab_schedule_keep_input(struct etch_lab_schedule *schedule, const struct etch_lab_shared *shared);

void etch_lab_schedule_release(struct etch_lab_schedule *schedule);

/* Repeats a run with the same answers from outside. Sets `same` if the repeated run ended in the same way, at the same
 * points, with the same control flow between them. Returns 0, or -1 with `err` set. */
int etch_lab_repeat(struct etch_lab_result *result, const struct etch_lab_schedule *schedule,
                    const struct etch_lab_request *like, bool *same, struct etch_error *err);

#endif
