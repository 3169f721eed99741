/* SPDX-License-Identifier: MIT */
/* Private to report/: the reader that turns the steps of one recording into a profile. */
#ifndef ETCH_REPORT_MEASURE_H
#define ETCH_REPORT_MEASURE_H

#include "decoder/calls.h"
#include "report/profile.h"

/* A call that runs. */
struct etch_measure_frame {
    uint32_t path, function;
    struct etch_interval entered;
    uint64_t instructions, wait; /* of the thread, when it was entered */
    uint64_t number;
    int depth;
    bool tailed; /* it jumped to another function, which returns for it */
    bool cut;    /* its duration is not known: a loss, or an end of the trace */
};

/* A path that the symbols' names lead to. Direct-mapped: an older entry gives way. */
struct etch_measure_known {
    const char *name, *module;
    uint64_t module_offset;
    uint32_t parent, path;
};

#define ETCH_MEASURE_KNOWN 4096u

struct etch_measure_site {
    const Etch__Image *image;
    uint64_t address;
    const char *what;
    uint32_t function, wait;
};

struct etch_measure {
    struct etch_profile *profile;
    struct etch_recording *recording;
    struct etch_symbols *symbols;
    struct etch_calls *calls;
    uint32_t file, tid;
    uint64_t begin, end; /* of the recorded run; 0: not known */
    ETCH_ARRAY(struct etch_measure_frame) frames;
    struct etch_measure_known *known;
    ETCH_ARRAY(struct etch_measure_site) sites;
    struct etch_index by_site;
    ETCH_ARRAY(uint32_t) of_thread; /* numbers of the thread's syncs, in order */
    size_t next_sync;

    /* The thread. */
    size_t thread; /* of profile->threads */
    bool in_thread;
    bool no_begin;              /* no stamp was seen yet */
    struct etch_interval last;  /* of the last step */
    struct etch_interval first; /* of the thread's first step */
    const Etch__Image *image;   /* of the last block */
    uint64_t address;
    uint64_t instructions, run; /* so far; when the innermost function began to run */
    uint64_t waited;

    /* The window. */
    uint64_t window, start, window_instructions;
    uint64_t paced_ticks, paced_instructions; /* of all windows between stamps that were no waits */
    bool stamped;                             /* it began at a stamp */
    bool lost, behind_loss;                   /* in this window; just before the next block */
    uint32_t outside; /* the path whose innermost function left recorded code in this window; 0: none */
    const Etch__Image *outside_image;
    uint64_t outside_address;
    bool crossing; /* a stamp lies between the last step and the next one, at `next` */
    uint64_t next;
    ETCH_ARRAY(uint32_t) touched_paths;
    ETCH_ARRAY(uint32_t) touched_functions;

    /* For the views that look at single calls. May be NULL. */
    void (*on_enter)(void *watcher, const struct etch_measure_frame *frame);
    void (*on_leave)(void *watcher, const struct etch_measure_frame *frame, const struct etch_profile_call *call);
    void (*on_wait)(void *watcher, uint32_t wait, uint64_t ticks);
    void *watcher;
    bool failed; /* memory is short */
};

/* As etch_profile_add(), with profile, recording and symbols of `m` set, and a watcher. */
int etch_measure_run(struct etch_measure *m, const struct etch_profile_options *options, struct etch_error *err);

#endif
