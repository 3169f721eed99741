/* SPDX-License-Identifier: MIT */
/* From stamps to events with bounds: what a record's stamp says about the time of the event itself, on which clock, and
 * with which largest error. The result is the input of order.h. */
#ifndef ETCH_DECODER_TIMELINE_H
#define ETCH_DECODER_TIMELINE_H

#include "base/array.h"
#include "base/error.h"
#include "decoder/order.h"
#include "decoder/recording.h"
#include "decoder/steps.h"

/* Is a stamp taken before or after its event? */
enum etch_stamping {
    ETCH_STAMPED_AFTER,  /* after the event: a trap, an acquire, a start, a join */
    ETCH_STAMPED_BEFORE, /* before the event: a release, a create, a signal, a post */
    ETCH_STAMPED_NOT,    /* no stamp */
};

struct etch_event_stamp {
    uint64_t tsc;
    uint32_t cpu;
    uint32_t error;   /* cycles by which the stamp itself may be off, either way: conversion from perf's clock */
    uint32_t latency; /* the longest time between event and stamp, if a reliable bound exists; 0: not known */
    uint8_t stamping; /* enum etch_stamping */
    bool buffered;    /* a plain store: others see it when it leaves the store buffer, maybe after the next stamp */
    bool drained;     /* the store buffer was empty when this stamp was taken */
};

/* Sets lo and hi of n events from their stamps. An event lies between two stamps of its own thread: its own stamp and
 * the stamp before, or its own stamp and the stamp behind (for a plain store, the next stamp at which the store buffer
 * was empty). The bounds hold whatever delays the thread: an interrupt, another thread, another guest. */
void etch_timeline_bounds(struct etch_event *events, const struct etch_event_stamp *stamps, size_t n, uint32_t threads);

/* Is the stamp of a sync operation taken before or after the operation? */
enum etch_stamping etch_timeline_stamping(Etch__SyncOp op);

/* ---- Clocks of a recording ---- */

struct etch_timeline_clocks {
    struct etch_cpu_range *cpus;
    struct etch_cpu_range any; /* of all of them */
    uint32_t n_cpus;
    uint32_t reference;
    bool refused; /* no order across CPUs by clocks at all; `why` says why */
    char why[160];
    uint32_t changed;  /* CPUs whose clock changed during the recording: left out */
    uint32_t shifted;  /* CPUs whose mean moved although the bounds before and after agree: the range holds both */
    int64_t margin;    /* that was added, of the CPU with the largest */
    double tsc_per_ns; /* of perf's clock; 0: not known */
    uint64_t ns_zero, tsc_zero;
    uint64_t conversion_error; /* cycles, between the ends of what was fitted */
    uint64_t span_ns;          /* from one end to the other; 0: not known */
};

/* From the clock records before and after the run: for each CPU the hull of the bounds before and after, plus `margin`
 * cycles on either side. A CPU not measured before, or whose bounds exclude each other, is not known. Returns 0, or -1
 * with `err` set.
 *
 * margin = 0: the margin follows from the measurement. A physical machine needs no margin: the bounds cannot be wrong,
 * and a constant, nonstop TSC does not drift. A guest's virtual CPUs may run on other CPUs of the host between the two
 * measurements. The host compared its clocks as we compare ours, through a cache line, and would not use the TSC if it
 * had seen a difference. A difference that the host missed is therefore below the resolution of this method, which is
 * half the width of our bounds. */
int etch_timeline_clocks(struct etch_timeline_clocks *clocks, Etch__Clock *const *records, size_t n, bool guest,
                         int64_t margin, struct etch_error *err);
void etch_timeline_clocks_free(struct etch_timeline_clocks *clocks);

/* A stamp of perf's clock as TSC of the reference CPU. False where no conversion is known. */
bool etch_timeline_from_perf(const struct etch_timeline_clocks *clocks, uint64_t ns, uint64_t *tsc, uint32_t *error);

/* ---- Events of a recording ---- */

/* Something that a thread did, with bounds of its own rather than a stamp: a step of Intel PT or vpt, a stamp of the
 * software recorder. The mark is over by `hi`. */
struct etch_mark {
    uint32_t tid;
    struct etch_bound lo, hi;
};

/* The mark of a step: the moment at which its last instruction had run. */
struct etch_mark etch_mark_of_step(const struct etch_step *step);

/* A record of the recording that is known to lie before or behind a mark of its thread (by its instruction, say). */
struct etch_mark_tie {
    size_t mark;
    size_t record; /* index among the accesses, or among the syncs */
    bool sync;
    bool mark_first;
};

struct etch_timeline {
    ETCH_ARRAY(struct etch_event) events;
    ETCH_ARRAY(struct etch_event_stamp) stamps;
    ETCH_ARRAY(struct etch_watched) locations;
    ETCH_ARRAY(uint32_t) tids;    /* of a thread number; what each source knows of a thread is a sequence of its own */
    ETCH_ARRAY(uint32_t) tasks;   /* of a thread number: that of the thread's first sequence */
    ETCH_ARRAY(uint64_t) source;  /* of an event: index << 2 | 0 access, 1 sync, 2 switch; 3: loss or mark */
    ETCH_ARRAY(uint32_t) of_mark; /* its event */
    ETCH_ARRAY(struct etch_order_link) links;
    struct etch_timeline_clocks clocks;
    bool perf_is_tsc;              /* perf's clock is made from the TSC of the CPU that stamps */
    struct etch_order_input input; /* of all this, for etch_order_build() */
};

struct etch_timeline_options {
    int64_t margin;     /* see etch_timeline_clocks() */
    bool trust_latency; /* take the calibrated trap latency as the longest there is; wrong if a host or firmware stops
                           the CPU  between access and stamp, so off unless the user says so */
    bool signals_wake;  /* see etch_order_input */
    const struct etch_mark *marks; /* marks of one thread are in the order of their execution */
    size_t n_marks;
    const struct etch_mark_tie *ties;
    size_t n_ties;
};

/* The accesses, sync events and context switches of a recording, and the marks. Within a thread, records of one kind
 * are in the order in which they were made. Records of different kinds are linked if their stamps tell which came
 * first. Returns 0, or -1 with `err` set. */
int etch_timeline_build(struct etch_timeline *timeline, const struct etch_recording *recording,
                        const struct etch_timeline_options *options, struct etch_error *err);
void etch_timeline_free(struct etch_timeline *timeline);

#endif
