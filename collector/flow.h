/* SPDX-License-Identifier: MIT */
/* A recorder of control flow beside the native collector (native.h). The collector starts or joins the program, arms
 * watches and sees the failure; the recorder fills rings meanwhile and hands their bytes out. All recorders have the
 * same interface. Control flow of any kind, watchpoints, synchronisation and the failure therefore end up in the same
 * bundle. */
#ifndef ETCH_COLLECTOR_FLOW_H
#define ETCH_COLLECTOR_FLOW_H

#include "collector/record.h"
#include "proto/bundle.h"

#include <poll.h>
#include <sys/types.h>

/* The receiver of a recorder's findings: the bundle, and the notes for the user. The recorder sees no write errors: the
 * collector handles a bundle that cannot be written any more. */
struct etch_flow_sink {
    void *context;
    void (*write)(void *context, Etch__Record__BodyCase kind, void *message);
    /* `hurry`: the recorder delivers more bytes than can be written with care. */
    void (*bytes)(void *context, uint32_t stream, uint64_t offset, const void *data, size_t size, bool hurry);
    void (*lost)(void *context, const Etch__Loss *loss);
    void (*note)(void *context, const char *text);
    struct etch_record_summary *summary;
};

struct etch_flow_recorder {
    const char *name;
    Etch__Source source;
    /* The recorder itself writes the mappings that appear after the start, with their times, also those of child
     * processes. */
    bool tells_mappings;

    /* Gets ready before the program exists. `state` is set even if open() fails, for close(). */
    int (*open)(void **state, const struct etch_record_options *options, const struct etch_flow_sink *sink,
                struct etch_error *err);
    /* Words for the program's environment, at most `max`, that live as long as the state; NULL: none. Returns how many.
     */
    size_t (*environment)(const void *state, char **words, size_t max);
    /* The program is in place and has not run an instruction, or was joined: from here on the program is recorded. */
    int (*start)(void *state, pid_t pid, struct etch_error *err);
    /* Descriptors that become readable when it is time to drain. */
    size_t (*poll)(const void *state, struct pollfd *fds, size_t max);
    /* Takes the bytes in the rings. Must return soon: the program may be waiting to be resumed. */
    void (*drain)(void *state);
    /* The program fails now. A recorder that keeps only the newest bytes stops and preserves these bytes. */
    void (*freeze)(void *state);
    /* Ends the recording and takes the rest of the bytes. */
    void (*stop)(void *state);
    /* Releases all. NULL is fine. */
    void (*close)(void *state);
};

extern const struct etch_flow_recorder etch_flow_pt;
extern const struct etch_flow_recorder etch_flow_soft;

#endif
