/* SPDX-License-Identifier: MIT */
/* The records that perf writes beside a trace (mappings, names, forks, exits, switches, what the AUX area got, what was
 * lost), as bytes in and values out. Nothing in the bytes is believed before it is checked. */
#ifndef ETCH_COLLECTOR_PT_SIDEBAND_H
#define ETCH_COLLECTOR_PT_SIDEBAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum etch_side_kind {
    ETCH_SIDE_OTHER,
    ETCH_SIDE_MAPPED,
    ETCH_SIDE_NAMED, /* COMM; `exec` where the process became another program */
    ETCH_SIDE_FORKED,
    ETCH_SIDE_EXITED,
    ETCH_SIDE_SWITCHED,
    ETCH_SIDE_STARTED, /* the trace of a thread began while it ran */
    ETCH_SIDE_AUX,
    ETCH_SIDE_LOST,
};

struct etch_side {
    enum etch_side_kind kind;
    uint64_t time; /* perf's clock, in nanoseconds */
    uint32_t cpu;
    uint32_t pid, tid;   /* whom it is about */
    uint32_t ppid, ptid; /* of a fork */
    bool exec, in, preempted;
    uint64_t start, size, offset; /* of a mapping; the last two of AUX bytes */
    uint32_t prot;
    uint64_t flags; /* PERF_AUX_FLAG_... */
    uint64_t lost;
    uint8_t build_id[20];
    uint8_t build_id_size; /* 0: none */
    const char *text;      /* path or name, within the record's bytes; NULL: none */
};

/* The perf_event_attr.sample_type, with sample_id_all, that the next function needs. */
extern const uint64_t etch_side_sample_type;

/* Reads one record, header included. False where it is not as the kernel writes it. */
bool etch_side_read(struct etch_side *side, const uint8_t *record, size_t size);

#endif
