/* SPDX-License-Identifier: MIT */
/* The proven order of a run's accesses: the decoder's partial order, with the timeline that it refers to. */
#ifndef ETCH_SKETCH_RUNS_ORDER_H
#define ETCH_SKETCH_RUNS_ORDER_H

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

struct etch_recording;
struct etch_run;
struct etch_timeline_options;
struct etch_run_order;

/* Orders the accesses and sync events of a recording; `options`: what else is known of them, or NULL. Returns 0, or -1
 * with `err` set. */
int etch_run_order_build(struct etch_run_order **order, const struct etch_recording *recording,
                         const struct etch_timeline_options *options, struct etch_error *err);

void etch_run_order_free(struct etch_run_order *order);

/* The event of the recording's access or sync number `index`; UINT32_MAX: none. */
uint32_t etch_run_order_event(const struct etch_run_order *order, size_t index, int sync);

/* The position of an event in a total order of all events that contradicts no proven pair. */
uint32_t etch_run_order_position(const struct etch_run_order *order, uint32_t event);

/* -1: a is before b, 1: a is after b, 0: not known, or an event is UINT32_MAX. */
int etch_run_order_compare(const struct etch_run_order *order, uint32_t a, uint32_t b);

void etch_run_order_why(const struct etch_run_order *order, uint32_t a, uint32_t b, char *text, size_t size);

/* The measured bounds of an event, in TSC of any CPU. 0 and UINT64_MAX: no bound. */
void etch_run_order_bounds(const struct etch_run_order *order, uint32_t event, uint64_t *lo, uint64_t *hi);

/* Sets what `run` knows of the clocks of its recording. Call it after the order was built. Returns 0, or -1 with `err`
 * set. */
int etch_run_order_clocks(struct etch_run *run, const struct etch_recording *recording, struct etch_error *err);

struct etch_conflict;

/* The contradictions that the order found: `n` of them. Valid as long as the order. */
const struct etch_conflict *etch_run_order_conflicts(const struct etch_run_order *order, size_t *n);

/* Locks, critical sections and reads that were not compared with all others. An order that they would show may be
 * missing. No order that is shown depends on them. */
uint64_t etch_run_order_bounded(const struct etch_run_order *order);

/* A contradiction in whole sentences. It names the clock or the records that were not used. */
void etch_run_order_conflict_text(const struct etch_conflict *conflict, char *text, size_t size);

#endif
