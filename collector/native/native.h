/* SPDX-License-Identifier: MIT */
/* Recording a program that runs on this CPU itself: hardware watchpoints, synchronisation, failures, and control flow
 * where a recorder of it is given. The parts are in their own modules; here they meet one process and one bundle. */
#ifndef ETCH_COLLECTOR_NATIVE_NATIVE_H
#define ETCH_COLLECTOR_NATIVE_NATIVE_H

#include "base/array.h"
#include "calibrate/calibration.h"
#include "collector/native.h"
#include "collector/native/failure.h"
#include "collector/session/batch.h"
#include "collector/session/place.h"
#include "collector/session/recorder.h"
#include "collector/session/signals.h"
#include "collector/session/watchdog.h"
#include "collector/sync/batch.h"
#include "collector/target.h"
#include "collector/watch.h"
#include "proto/bundle.h"

struct native_watch {
    struct etch_place place;
    uint32_t id, set;
    uint64_t address, site;
    uint32_t size;
    bool armed;
    uint64_t found_at;       /* in the file: where runs before found the address; 0: nowhere */
    uint64_t added;          /* of its library; 0: it is in the program */
    bool deferred;           /* until that is loaded */
    bool further;            /* another of the same site is first */
    unsigned known;          /* arrivals at its site with one that is watched already */
    uint64_t hits, reported; /* seen; lost by perf's own word */
    uint64_t counted;        /* by the kernel, of events closed since */
    bool cut;
    uint64_t cut_tsc;
};

/* A library that the plan has addresses of. */
struct native_library {
    char path[4096];
    uint8_t id[64];
    size_t id_size;
    uint64_t added; /* to its addresses, in the plan */
};

struct native_image {
    uint64_t start, end, offset;
};

#define NATIVE_BATCH 256u

struct native {
    const struct etch_record_options *options;
    struct etch_record_summary *summary;
    struct etch_recorder recorder;
    struct etch_error *err; /* the caller's, for what happens within callbacks */
    struct etch_watches *watches;
    struct etch_sync_reader *sync;
    const struct etch_source *flow; /* NULL: none */
    void *flow_state;
    struct etch_target target;
    struct etch_signals *signals;
    uint64_t continue_due_ns;       /* when SIGCONT is passed on, if the program is still stopped then; 0: not */
    struct etch_watchdog *watchdog; /* NULL: none could be had */

    struct native_watch list[ETCH_RECORD_MAX_WATCHES];
    size_t n_list;
    size_t plan_build_id_size;
    ETCH_ARRAY(struct native_library) libraries;
    uint64_t entry;       /* where the program's code begins, while watches in libraries wait for that; 0: none do */
    uint32_t entry_index; /* the watch in whose name it is waited for */
    uint32_t set, sets;

    struct etch_clock_pair first_pair, pair; /* the first, and the latest */
    struct etch_calibration calibration;     /* before the run */

    struct etch_batch batch;
    uint64_t registers[NATIVE_BATCH][ETCH_HIT_REGISTERS];
    uint8_t stacks[NATIVE_BATCH][ETCH_HIT_STACK];
    struct etch_sync_batch syncs;
    ETCH_ARRAY(struct native_image) images;
    struct etch_mappings mapped; /* as last looked at */

    bool calibrated;
    bool flow_started;
    bool followed;       /* the program ran: there is something to keep */
    bool starved;        /* etch was stopped, and let go of the program */
    bool became_another; /* by exec */
    bool late;           /* watches were armed in several threads at once */
    bool busy;           /* at this rate a synchronisation ring would be full before the next look */
    bool program_written, failure_written;
    bool unknown_code;         /* an event came from code that no image is known for */
    bool looked;               /* for new mappings, since the last drain began */
    char path[4096];           /* of the program */
    uint8_t plan_build_id[64]; /* of the program that the plan is for */
};

/* From here on control flow is recorded, and there is something to keep. */
int etch_native_flow_start(struct native *n, struct etch_error *err);

/* Writes the first failure, with the state of thread `tid`; later ones are passed over. */
void etch_native_capture(struct native *n, Etch__FailureKind kind, pid_t tid, const siginfo_t *signal, bool hold,
                         const char *words);

void etch_native_write_program(struct native *n);
void etch_native_write_images(struct native *n);
void etch_native_write_clock(struct native *n, Etch__ClockPhase phase);
void etch_native_write_watch(struct native *n, const struct native_watch *watch, const char *skip_reason);
void etch_native_write_thread(struct native *n, const struct etch_target_thread *thread, bool ended);
void etch_native_write_loss(struct native *n, Etch__LossCause cause, uint32_t watch, uint32_t tid, uint64_t events,
                            const char *detail);
void etch_native_write_failure(struct native *n, struct etch_failure *failure);

/* The TSC at a time of the kernel's clock. */
uint64_t etch_native_tsc(const struct native *n, uint64_t ns);

/* Everything in the rings. `last`: the program is gone. */
void etch_native_drain(struct native *n, bool last);

#endif
