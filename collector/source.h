/* SPDX-License-Identifier: MIT */
/* A source of control flow: one interface, several implementations. The recorder (record.c) launches, waits, writes
 * what is common to all and sums up; a source says how the program is started and takes the bytes out while it runs. */
#ifndef ETCH_COLLECTOR_SOURCE_H
#define ETCH_COLLECTOR_SOURCE_H

#include "collector/record.h"
#include "collector/session/limit.h"
#include "collector/session/signals.h"
#include "proto/bundle.h"

#include <sys/types.h>

/* What a source learns of the program's death and the recorder cannot see from outside. */
struct etch_source_failure {
    bool seen, address_known;
    bool caught; /* a handler of the program's has it, and has not returned */
    bool deadly; /* the process died of a signal, of this one or in its handler */
    uint32_t pid, tid, signal;
    uint64_t ip, address, tsc;
    int code; /* the signal's; 0 where not known */
};

struct etch_recorder {
    const struct etch_record_options *options;
    char program[4096];     /* the file to run, found */
    char interpreter[4096]; /* of a script; then this is what runs */
    char interpreter_argument[256];
    struct etch_elf elf; /* of what runs */
    struct etch_bundle_writer *bundle;
    pid_t pid; /* 0: not yet launched */
    struct etch_source_failure failure;
    Etch__Exception *exception; /* that the failing thread ended with; NULL: none */
    struct etch_record_summary *summary;
    struct etch_limit limit;
    struct etch_signals signals;
    const struct etch_source *source;
    void *state; /* the source's own */
};

struct etch_source {
    const char *name;
    Etch__Source id;

    /* Gets ready: checks that it can work here, finds the watches. */
    int (*open)(struct etch_recorder *recorder, struct etch_error *err);
    /* In the child: becomes the program. Returns only where that failed, with errno. */
    void (*launch)(struct etch_recorder *recorder);
    /* In etch: takes what there is into the bundle, and waits up to `milliseconds` for more. */
    int (*drain)(struct etch_recorder *recorder, unsigned milliseconds, struct etch_error *err);
    /* After the program's end: takes the rest. */
    int (*finish)(struct etch_recorder *recorder, struct etch_error *err);
    /* Where the program never got to run: why, in `err`. Returns false where it did run. */
    bool (*never_ran)(struct etch_recorder *recorder, struct etch_error *err);
    /* Releases all; also after a failed open. */
    void (*close)(struct etch_recorder *recorder);
};

extern const struct etch_source etch_source_vpt;

/* For sources: the same as the bundle's functions, and the summary counts along. */
int etch_recorder_write_loss(struct etch_recorder *recorder, const Etch__Loss *loss, struct etch_error *err);
int etch_recorder_write_flow(struct etch_recorder *recorder, uint32_t stream, uint64_t offset, const void *data,
                             size_t size, struct etch_error *err);
int etch_recorder_write_accesses(struct etch_recorder *recorder, Etch__Accesses *accesses, struct etch_error *err);
int etch_recorder_write_syncs(struct etch_recorder *recorder, Etch__Syncs *syncs, struct etch_error *err);
int etch_recorder_write_thread(struct etch_recorder *recorder, Etch__Thread *thread, struct etch_error *err);
int etch_recorder_write_image(struct etch_recorder *recorder, Etch__Image *image, struct etch_error *err);
int etch_recorder_write_stream(struct etch_recorder *recorder, Etch__Stream *stream, struct etch_error *err);
int etch_recorder_write_watch(struct etch_recorder *recorder, Etch__Watch *watch, struct etch_error *err);

#endif
