/* SPDX-License-Identifier: MIT */
/* Private to the loader of perf.data: a recording in the making, and the parts that fill it. */
#ifndef ETCH_DECODER_RECORDING_PERF_LOADER_H
#define ETCH_DECODER_RECORDING_PERF_LOADER_H

#include "base/array.h"
#include "decoder/recording.h"
#include "decoder/recording/perf_data.h"

#define ETCH_PERF_IMAGES_MAX (1u << 22)

/* A record of the side-band, kept until all are there. */
struct etch_perf_event {
    uint64_t time;
    size_t order; /* in the file, for those of equal time */
    uint32_t type;
    uint16_t misc;
    struct etch_perf_sample_id sample;
    union {
        struct etch_perf_mmap mmap; /* path is `name` */
        struct etch_perf_task task;
        struct {
            uint32_t pid, tid;
        } pair;
        struct {
            uint64_t offset, size, flags;
        } aux;
        uint64_t lost;
    };
    char *name;
    uint8_t build_id[PERF_BUILD_ID_BYTES];
};

/* A snapshot's bytes in the file, with those that the one before it had too. */
struct etch_perf_copy {
    uint64_t where, size;
};

/* What a process has mapped now, while the events are applied: indices of the recording's images. */
struct etch_perf_process {
    uint32_t pid;
    ETCH_ARRAY(size_t) live;
};

struct etch_perf_loader {
    struct etch_recording *recording;
    struct etch_perf_source source;
    struct etch_perf_file file;
    const char *name;
    struct etch_error *err;
    int fd; /* -1 where the source is the caller's */
    bool has_info, has_conv;
    struct etch_perf_auxtrace_info info;
    uint32_t filters;
    struct etch_perf_time_conv conv;
    ETCH_ARRAY(struct etch_perf_event) events;
    ETCH_ARRAY(struct etch_perf_auxtrace) auxtraces;
    ETCH_ARRAY(struct etch_perf_copy) copies; /* by stream id: the last snapshot's */
    ETCH_ARRAY(struct etch_perf_process) processes;
    size_t last_process; /* the one that was asked for last */
    uint64_t first_ns;
};

int etch_perf_loader_no_memory(struct etch_perf_loader *l);

/* 0 for a time that is not known. */
uint64_t etch_perf_loader_tsc(const struct etch_perf_loader *l, uint64_t ns);

/* ---- perf_streams.c: the bytes of the trace ---- */

struct etch_stream *etch_perf_streams_find(struct etch_recording *recording, bool by_cpu, uint32_t number);
int etch_perf_streams_build(struct etch_perf_loader *l);

/* ---- perf_images.c: which code was mapped when ---- */

/* Each returns false when memory is short. */
bool etch_perf_images_map(struct etch_perf_loader *l, const struct etch_perf_event *e);
bool etch_perf_images_unmap_all(struct etch_perf_loader *l, uint32_t pid, uint64_t tsc);
bool etch_perf_images_inherit(struct etch_perf_loader *l, uint32_t parent, uint32_t child, uint64_t tsc);

void etch_perf_images_drop_empty(struct etch_recording *recording);

/* ---- perf_events.c: threads, switches, losses, in order of time ---- */

int etch_perf_events_apply(struct etch_perf_loader *l);

#endif
