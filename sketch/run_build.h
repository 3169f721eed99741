/* SPDX-License-Identifier: MIT */
/* From a recording to a run. */
#ifndef ETCH_SKETCH_RUN_BUILD_H
#define ETCH_SKETCH_RUN_BUILD_H

#include "binary/symbols.h"
#include "decoder/kept_steps.h"
#include "decoder/recording.h"
#include "sketch/run.h"
#include "sketch/verdict.h"

struct etch_run_options {
    const Etch__Slice *slice;            /* NULL: only threads, where they stood, and the failure */
    const Etch__Slice *layout;           /* without a slice: which libraries are the program's own; NULL: none */
    const ProtobufCBinaryData *build_id; /* of the program in question; NULL, or empty: the program that was recorded */
    enum etch_verdict verdict;           /* the caller's verdict on the run */
    /* The statements that can have given the exit status, see slicer/slice.h; NULL: not known. */
    const Etch__Slice *exits;
    unsigned jobs;                /* threads to decode with; 0: as many as CPUs */
    struct etch_symbols *symbols; /* shared by many recordings; NULL: loaded for this recording only */
    const char *core;             /* a core file of the recording's end; NULL: none */
    /* True if a value must not be shown, by the policy; NULL: all may be. */
    bool (*is_hidden)(void *context, const char *name, uint64_t value);
    void *hidden_context;
    struct etch_kept_steps *kept; /* the recording's steps, if the recording is read more than once; else NULL */
};

/* Returns 0, or -1 with `err` set: not a recording of the slice's program, or nothing that can be used. Loss is no
 * error. */
int etch_run_build(struct etch_run **run, struct etch_names *names, struct etch_recording *recording,
                   const struct etch_run_options *options, struct etch_error *err);

/* True if a process of the recording ran the program with this build-id, or if the recording does not show it. */
bool etch_recording_runs(struct etch_recording *recording, const ProtobufCBinaryData *build_id);

/* True if a recording ended in a failure or with an exit status other than 0. An end from outside (SIGTERM, SIGINT,
 * SIGKILL) counts as a hang. */
bool etch_recording_failed(const struct etch_recording *recording, bool *hang);

#endif
