/* SPDX-License-Identifier: MIT */
/* A bundle that is being written: the sink of every recording. All records pass the policy, are bounded, and are
 * counted in the summary. If the bundle cannot be written any more, the recording goes on without it: the program is
 * not disturbed, and `broken` says that the bundle is not whole. */
#ifndef ETCH_COLLECTOR_SESSION_RECORDER_H
#define ETCH_COLLECTOR_SESSION_RECORDER_H

#include "collector/session/watchdog.h"
#include "collector/sink.h"

struct etch_recorder {
    struct etch_sink sink;
    struct etch_bundle_writer *bundle;
    uint64_t max_size;                    /* bytes of the bundle, about; 0: no bound */
    uint64_t bytes_beyond, events_beyond; /* left out because of max_size */
    uint64_t start_unix_ns, start_tsc, start_cpu_ns;
    bool broken; /* for the reason in `error` */
    struct etch_error error;
    struct etch_watchdog *watchdog; /* is told of each record; NULL: none */
};

/* Makes the sink, which has the address of `recorder`: the recorder must not move. Beyond `max_size` records of
 * frequent kinds are left out and counted; rare records, and the records about the end of the run, are still written.
 */
void etch_recorder_init(struct etch_recorder *recorder, uint64_t max_size, struct etch_record_summary *summary);

/* Creates the bundle. Returns 0, or -1 with `err` set. */
int etch_recorder_create(struct etch_recorder *recorder, const char *output, struct etch_privacy *privacy,
                         struct etch_error *err);

/* The run begins now. */
void etch_recorder_begin(struct etch_recorder *recorder);

void etch_recorder_write(struct etch_recorder *recorder, Etch__Record__BodyCase kind, void *message);

void etch_recorder_note(struct etch_recorder *recorder, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Writes the loss of what was left out because of the bound. */
void etch_recorder_write_beyond(struct etch_recorder *recorder);

/* Writes the last record. Nothing may follow. */
void etch_recorder_finish(struct etch_recorder *recorder);

/* Returns 0, or -1 with `err` set if the bundle is broken. */
int etch_recorder_check(const struct etch_recorder *recorder, struct etch_error *err);

/* Sums up, and closes the bundle. With `keep` false there is nothing to keep, and the file is removed. */
void etch_recorder_close(struct etch_recorder *recorder, bool keep);

#endif
