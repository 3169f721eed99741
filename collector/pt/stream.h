/* SPDX-License-Identifier: MIT */
/* Private to the source `pt`: the streams of a recording, one for each CPU. A stream has the trace of its CPU and the
 * records beside the trace. The streams share the order of time, the process map, and the batch of context switches. */
#ifndef ETCH_COLLECTOR_PT_STREAM_H
#define ETCH_COLLECTOR_PT_STREAM_H

#include "calibrate/perfclock.h"
#include "collector/pt/process_map.h"
#include "collector/pt_events.h"
#include "collector/sink.h"

enum { ETCH_PT_SWITCHES = 512 }; /* in one record */

/* A thread that comes or goes. */
struct etch_pt_change {
    uint64_t time;
    uint32_t pid, tid;
    bool in, preempted;
};

/* Bytes that one or more AUX records speak of, [begin, end) as the kernel counts. Bytes without a record cannot be
 * trusted: the ring may have been full in between. */
struct etch_pt_piece {
    uint64_t begin, end, time;
    uint64_t flags; /* what went wrong at its end */
};

struct etch_pt_span {
    uint64_t begin, end;
};

struct etch_pt_stream {
    struct etch_pt_streams *all;
    struct etch_pt_cpu *ring;
    uint32_t id;
    ETCH_ARRAY(struct etch_pt_piece) pieces;
    ETCH_ARRAY(struct etch_pt_span) doubts; /* where the ring may have been full, of which the kernel says nothing */
    uint64_t shift;     /* from the kernel's offsets to the stream's: each cut is shown as a hole of one byte */
    uint64_t cut_at;    /* the last one, as the kernel counts */
    uint64_t lost_time; /* when records were lost, the last time */
    bool hurry;         /* the ring fills faster than it is emptied with care */
    bool off;           /* the events may have been switched off by a full ring */
    struct etch_pt_change *changes; /* the newest, in a ring, where the trace is one */
    size_t n_changes, max_changes;
    uint8_t *held; /* a copy of an overwritten ring; NULL: none */
    size_t n_held;
    bool held_wrapped;
};

struct etch_pt_streams {
    const struct etch_sink *sink;
    struct etch_process_map *processes;
    struct etch_clock_offered clock;
    bool full; /* emptied while they fill, rather than read once at the end */
    struct etch_pt_stream *list;
    size_t n;
    uint64_t turn_time, last_turn; /* when the last two turns began, by perf's clock */
    unsigned turns;
    Etch__Switch switches[ETCH_PT_SWITCHES];
    size_t n_switches;
};

/* Makes a stream for each CPU of `events`. The members above the list are set. Returns 0, or -1 with `err` set. */
int etch_pt_streams_make(struct etch_pt_streams *streams, struct etch_pt_events *events, struct etch_error *err);

/* The recording begins now. */
void etch_pt_streams_begin(struct etch_pt_streams *streams);

/* One turn of every CPU: takes what has come; `last`: all of it, since nothing more comes. Returns whether a full ring
 * may have switched events off. */
bool etch_pt_streams_drain(struct etch_pt_streams *streams, bool last);

/* After a turn: applies the records of processes and mappings that no other CPU's records can precede. */
void etch_pt_streams_settle(struct etch_pt_streams *streams, bool last);

/* Copies rings that are overwritten, so that the trace can go on before they are read. The events are off. Returns
 * false if memory is short: then nothing is copied. */
bool etch_pt_streams_hold(struct etch_pt_streams *streams);

/* Reads rings that are overwritten, or their copies, which are released. Without copies the events are off. */
void etch_pt_streams_snapshot(struct etch_pt_streams *streams);

void etch_pt_streams_release(struct etch_pt_streams *streams);

#endif
