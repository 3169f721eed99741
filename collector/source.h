/* SPDX-License-Identifier: MIT */
/* A source of control flow. The session starts or joins the program, handles signals and limits, and writes the records
 * that all recordings have. The source fills rings meanwhile, and hands their bytes to the sink.
 *
 * Most programs run on this CPU itself: the native collector traces them, sets watchpoints and sees the failure. A
 * source with a `runner` runs the program inside another program instead, as vpt does in QEMU. A tracer would then see
 * the other program. So the program runs untraced, and the source reports watched accesses and the failure itself. */
#ifndef ETCH_COLLECTOR_SOURCE_H
#define ETCH_COLLECTOR_SOURCE_H

#include "collector/sink.h"

#include <poll.h>
#include <sys/types.h>

struct etch_target;

/* What differs if the source runs the program. No member is NULL. */
struct etch_source_runner {
    /* In the child: becomes the program. Returns only on failure, with errno set. */
    void (*launch)(void *state);
    /* Waits up to `milliseconds` for bytes to drain. */
    void (*wait)(void *state, unsigned milliseconds);
    /* The bundle cannot be written any more: the program must not wait for etch. */
    void (*let_go)(void *state);
    /* After the end. If the program never ran: returns true with the reason in `err`. */
    bool (*never_ran)(void *state, struct etch_error *err);
    /* Fills in the program's file and its build-id, which live as long as the state. */
    void (*program)(const void *state, Etch__Program *program);
    /* After stop(): the failure of a program that ended with `wait_status`, in waitpid's format. The failure lives as
     * long as the state. NULL: the program did not fail. */
    Etch__Failure *(*failure)(void *state, int wait_status, bool *address_known);
};

struct etch_source {
    const char *name;
    Etch__Source id;
    /* The source itself writes the mappings that appear after the start, with their times, also those of child
     * processes. */
    bool tells_mappings;
    const struct etch_source_runner *runner; /* NULL: the program runs on this CPU itself */

    /* Gets ready before the program exists: checks that the source can work here. `state` is set even if open() fails,
     * for close(). */
    int (*open)(void **state, const struct etch_record_options *options, const struct etch_sink *sink,
                struct etch_error *err);
    /* Words for the program's environment, at most `max`, that live as long as the state. Returns how many. NULL: none.
     */
    size_t (*environment)(const void *state, char **words, size_t max);
    /* The program is in place and has not run an instruction, or was joined: from here on the program is recorded. */
    int (*start)(void *state, pid_t pid, struct etch_error *err);
    /* In place of start(), for a process that was joined: the calling thread traces all its threads. NULL: start(). */
    int (*join)(void *state, struct etch_target *target, struct etch_error *err);
    /* The tracer is about to let go of a joined process, which still runs. NULL: nothing to do. */
    void (*leave)(void *state, struct etch_target *target);
    /* Descriptors that become readable when it is time to drain. NULL: none. */
    size_t (*poll)(const void *state, struct pollfd *fds, size_t max);
    /* Takes the bytes in the rings. Must return soon: the program may be waiting to be resumed. NULL: the rings keep
     * the newest bytes until stop(). */
    void (*drain)(void *state);
    /* The program fails now. A source that keeps only the newest bytes stops and preserves these bytes. NULL: nothing
     * to do. */
    void (*freeze)(void *state);
    /* True if the source knows that no thread of the program can run any more. NULL: it does not know. */
    bool (*hung)(const void *state);
    /* Ends the recording and takes the rest of the bytes. */
    void (*stop)(void *state);
    /* Releases all. NULL is fine. */
    void (*close)(void *state);
};

extern const struct etch_source etch_source_pt;
extern const struct etch_source etch_source_soft;
extern const struct etch_source etch_source_vpt;
extern const struct etch_source etch_source_lab;

#endif
