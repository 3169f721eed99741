/* SPDX-License-Identifier: MIT */
/* A recorder of control flow beside the native collector (native.h). The collector starts or joins the program, arms
 * watches and sees the failure; the recorder fills rings meanwhile and hands their bytes out. One interface, so that
 * control flow of whatever kind, watchpoints, synchronisation and the failure meet in one bundle. */
#ifndef ETCH_COLLECTOR_FLOW_H
#define ETCH_COLLECTOR_FLOW_H

#include "collector/record.h"
#include "proto/bundle.h"

#include <poll.h>
#include <sys/types.h>

/* Where a recorder's findings go: the bundle, and what the user is told. Nothing here fails as far as the recorder is
 * concerned: a bundle that cannot be written any more is the collector's affair. */
struct etch_flow_sink {
    void *context;
    void (*write)(void *context, Etch__Record__BodyCase kind, void *message);
    /* `hurry`: more comes than can be written with care. */
    void (*bytes)(void *context, uint32_t stream, uint64_t offset, const void *data, size_t size, bool hurry);
    void (*lost)(void *context, const Etch__Loss *loss);
    void (*note)(void *context, const char *text);
    struct etch_record_summary *summary;
};

struct etch_flow_recorder {
    const char *name;
    Etch__Source source;
    /* It writes the mappings that come after the start itself, with their times, and children's too. */
    bool tells_mappings;

    /* Gets ready before there is a program. `state` is set even where it fails, for close(). */
    int (*open)(void **state, const struct etch_record_options *options, const struct etch_flow_sink *sink,
                struct etch_error *err);
    /* Words for the program's environment, at most `max`, that live as long as the state; NULL: none. Returns how many.
     */
    size_t (*environment)(const void *state, char **words, size_t max);
    /* The program is in place and has not run an instruction, or was joined: from here on it is recorded. */
    int (*start)(void *state, pid_t pid, struct etch_error *err);
    /* Descriptors that become readable when it is time to drain. */
    size_t (*poll)(const void *state, struct pollfd *fds, size_t max);
    /* Takes what there is; never for long, the program may be waiting to be let go on. */
    void (*drain)(void *state);
    /* The program fails now: a recorder that keeps the newest only stops, so that they stay. */
    void (*freeze)(void *state);
    /* Nothing more is recorded; takes the rest. */
    void (*stop)(void *state);
    /* Releases all. NULL is fine. */
    void (*close)(void *state);
};

extern const struct etch_flow_recorder etch_flow_pt;
extern const struct etch_flow_recorder etch_flow_soft;

#endif
