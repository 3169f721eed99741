/* SPDX-License-Identifier: MIT */
/* A source of control flow: one interface, several implementations. The recorder (session/run.c) launches the program,
 * waits, writes the records that all sources have in common, and sums up. A source starts the program and takes the
 * bytes out while the program runs. */
#ifndef ETCH_COLLECTOR_SOURCE_H
#define ETCH_COLLECTOR_SOURCE_H

#include "collector/record.h"
#include "collector/session/limit.h"
#include "collector/session/signals.h"
#include "proto/bundle.h"

#include <sys/types.h>

/* Facts about the program's death that only the source can see, not the recorder from outside. */
struct etch_source_failure {
    bool seen, address_known;
    bool caught; /* a handler of the program got the signal and has not returned */
    bool deadly; /* the process died of this signal, or of a signal in its handler */
    uint32_t pid, tid, signal;
    uint64_t ip, address, tsc;
    int code; /* the signal's si_code; 0: not known */
};

struct etch_recorder {
    const struct etch_record_options *options;
    char program[4096];     /* the file to run, found */
    char interpreter[4096]; /* of a script: the file that runs instead; empty: no script */
    char interpreter_argument[256];
    struct etch_elf elf; /* of the file that runs */
    struct etch_bundle_writer *bundle;
    pid_t pid; /* 0: not yet launched */
    struct etch_source_failure failure;
    Etch__Exception *exception; /* that ended the failing thread; NULL: none */
    struct etch_record_summary *summary;
    struct etch_limit limit;
    struct etch_signals signals;
    const struct etch_source *source;
    void *state; /* the source's own */
};

struct etch_source {
    const char *name;
    Etch__Source id;

    /* Gets ready: checks that the source can work here, and finds the watches. */
    int (*open)(struct etch_recorder *recorder, struct etch_error *err);
    /* In the child: becomes the program. Returns only on failure, with errno set. */
    void (*launch)(struct etch_recorder *recorder);
    /* In etch: takes the waiting bytes into the bundle, and waits up to `milliseconds` for more. */
    int (*drain)(struct etch_recorder *recorder, unsigned milliseconds, struct etch_error *err);
    /* After the program's end: takes the rest. */
    int (*finish)(struct etch_recorder *recorder, struct etch_error *err);
    /* If the program never ran: returns true with the reason in `err`. Returns false if the program ran. */
    bool (*never_ran)(struct etch_recorder *recorder, struct etch_error *err);
    /* Releases all; also after a failed open. */
    void (*close)(struct etch_recorder *recorder);
};

extern const struct etch_source etch_source_vpt;

/* For sources: these work like the bundle's functions, and also count in the summary. */
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
