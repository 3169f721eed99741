/* SPDX-License-Identifier: MIT */
/* Private: all schedules of a program with at most so many preemptions, one run after the other. A preemption is a
 * switch away from a thread that could go on and did not give way. Schedules with few preemptions come first
 * (Musuvathi and Qadeer 2007). Two beginnings of schedules that order all dependent operations in the same way lead to
 * the same state: only the first of them is continued. Nothing here does I/O. */
#ifndef ETCH_COLLECTOR_LAB_SYSTEMATIC_H
#define ETCH_COLLECTOR_LAB_SYSTEMATIC_H

#include "collector/lab/layout.h"

#include <stddef.h>

/* What a run did, from its shared memory. */
struct etch_lab_course {
    const struct etch_lab_segment *segments;
    size_t n_segments;
    const struct etch_lab_choice *choices; /* by point */
    size_t n_choices;
    const struct etch_lab_event *events;
    size_t n_events;
};

struct etch_lab_tree;

/* NULL if memory is short. */
struct etch_lab_tree *etch_lab_tree_new(unsigned preemptions);
void etch_lab_tree_free(struct etch_lab_tree *tree);

/* The begin of the next schedule; behind it each thread goes on as long as it can. False: there are no more. `prefix`
 * is valid until the next call. */
bool etch_lab_tree_next(struct etch_lab_tree *tree, const struct etch_lab_segment **prefix, uint32_t *n);

/* The run of that schedule. False if memory is short. */
bool etch_lab_tree_add(struct etch_lab_tree *tree, const struct etch_lab_course *course);

/* Begins again: there are new points. */
void etch_lab_tree_restart(struct etch_lab_tree *tree);

/* Preemptions of the schedule that etch_lab_tree_next() gave last. All schedules with fewer were tried. */
unsigned etch_lab_tree_level(const struct etch_lab_tree *tree);

/* Schedules that were not run, because another one led to the same state. */
uint64_t etch_lab_tree_skipped(const struct etch_lab_tree *tree);

#endif
