/* SPDX-License-Identifier: MIT */
/* From stamps to events with bounds: what a record's time says about when the thing itself happened, on whose clock,
 * and how far off at most. What comes out is what order.h takes in. */
#ifndef ETCH_DECODER_TIMELINE_H
#define ETCH_DECODER_TIMELINE_H

#include "base/array.h"
#include "base/error.h"
#include "decoder/order.h"
#include "decoder/recording.h"
#include "decoder/steps.h"

/* Where a stamp lies to what it stamps. */
enum etch_stamping {
    ETCH_STAMPED_AFTER,  /* taken after it: a trap, an acquire, a start, a join */
    ETCH_STAMPED_BEFORE, /* taken before it: a release, a create, a signal, a post */
    ETCH_STAMPED_NOT,    /* no stamp */
};

struct etch_event_stamp {
    uint64_t tsc;
    uint32_t cpu;
    uint32_t error;      /* cycles by which the stamp itself may be off, either way: conversion from perf's clock */
    uint32_t visibility; /* cycles that may pass between the instruction and its effect on others: the store buffer */
    uint32_t latency;    /* the longest time from event to stamp, where that can be relied on; 0: not known */
    uint8_t stamping;    /* enum etch_stamping */
};

/* Sets lo and hi of n events from their stamps. An event lies between two stamps of its own thread: its own and the one
 * before, or its own and the one behind. That holds whatever delays the thread: an interrupt, another thread, another
 * guest. */
void etch_timeline_bounds(struct etch_event *events, const struct etch_event_stamp *stamps, size_t n, uint32_t threads);

/* When a sync operation is stamped. */
enum etch_stamping etch_timeline_stamping(Etch__SyncOp op);

/* ---- Clocks of a recording ---- */

struct etch_timeline_clocks {
    struct etch_cpu_range *cpus;
    uint32_t n_cpus;
    uint32_t reference;
    bool refused; /* no order across CPUs by clocks at all; `why` says why */
    char why[160];
    uint32_t changed;  /* CPUs whose clock changed during the recording: left out */
    uint32_t shifted;  /* whose mean moved although the bounds before and after agree: both are allowed for */
    double tsc_per_ns; /* of perf's clock; 0: not known */
    uint64_t ns_zero, tsc_zero;
    uint64_t conversion_error; /* cycles */
};

/* From the clock records before and after the run: for each CPU the hull of the bounds before and after, plus `margin`
 * cycles on either side (for a guest, whose host may move a virtual CPU). A CPU not measured before, or whose bounds
 * exclude each other, is not known. Returns 0, or -1 with `err` set. */
int etch_timeline_clocks(struct etch_timeline_clocks *clocks, Etch__Clock *const *records, size_t n, int64_t margin,
                         struct etch_error *err);
void etch_timeline_clocks_free(struct etch_timeline_clocks *clocks);

/* A stamp of perf's clock as TSC of the reference CPU. False where no conversion is known. */
bool etch_timeline_from_perf(const struct etch_timeline_clocks *clocks, uint64_t ns, uint64_t *tsc, uint32_t *error);

/* ---- Events of a recording ---- */

struct etch_timeline {
    ETCH_ARRAY(struct etch_event) events;
    ETCH_ARRAY(struct etch_event_stamp) stamps;
    ETCH_ARRAY(struct etch_watched) locations;
    ETCH_ARRAY(uint32_t) tids;   /* of a thread number */
    ETCH_ARRAY(uint64_t) source; /* of an event: index << 2 | 0 access, 1 sync, 2 switch; 3: loss */
    struct etch_timeline_clocks clocks;
    bool perf_is_tsc;              /* perf's clock is made from the TSC of the CPU that stamps */
    struct etch_order_input input; /* of all this, for etch_order_build() */
};

struct etch_timeline_options {
    int64_t margin;      /* see etch_timeline_clocks() */
    bool trust_latency;  /* take the calibrated trap latency as the longest there is; wrong if a host or firmware stops
                            the CPU  between access and stamp, so off unless the user says so */
    uint32_t visibility; /* of plain stores */
};

/* The accesses, sync events and context switches of a recording. Returns 0, or -1 with `err` set. */
int etch_timeline_build(struct etch_timeline *timeline, const struct etch_recording *recording,
                        const struct etch_timeline_options *options, struct etch_error *err);
void etch_timeline_free(struct etch_timeline *timeline);

#endif
