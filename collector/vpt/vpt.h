/* SPDX-License-Identifier: MIT */
/* The source `vpt`, etch's half: what its parts share. Private to the collector. */
#ifndef ETCH_COLLECTOR_VPT_VPT_H
#define ETCH_COLLECTOR_VPT_VPT_H

#include "base/array.h"
#include "collector/folder.h"
#include "collector/session/batch.h"
#include "collector/session/guarded.h"
#include "collector/session/place.h"
#include "collector/source.h"
#include "collector/sync/batch.h"
#include "collector/sync/preload.h"
#include "collector/vpt/layout.h"
#include "collector/vpt_recover.h"

#define VPT_EVENT_RING (128u << 10)

enum slot_state { SLOT_AWAITED, SLOT_OPEN, SLOT_DONE };

/* One guest thread's shared memory. The program can write to the shared memory. Values that etch relies on are
 * therefore copied here once. */
struct etch_vpt_slot {
    enum slot_state state;
    struct etch_guarded *mapping;
    struct etch_vpt_thread *shared;
    const uint8_t *flow, *events;
    uint32_t pid, tid;
    uint64_t taken;       /* bytes of flow in the bundle */
    uint64_t event_taken; /* bytes of events */
    bool damaged;
};

struct etch_vpt_child {
    uint32_t tid, parent;
};

/* A fault that ended a process, or may end it. */
struct etch_vpt_fault {
    bool seen, address_known;
    bool caught; /* a handler of the program got the signal and has not returned */
    bool deadly; /* the process died of this signal, or of a signal in its handler */
    uint32_t pid, tid, signal;
    uint64_t ip, address, tsc;
    int code; /* the signal's si_code; 0: not known */
};

struct vpt {
    const struct etch_record_options *options;
    struct etch_sink sink;
    char program[4096];     /* the file to run, found */
    char interpreter[4096]; /* of a script: the file that runs instead; empty: no script */
    char interpreter_argument[256];
    struct etch_elf elf; /* of the file that runs */
    pid_t pid;           /* 0: not yet launched */
    struct etch_folder folder;
    char plugin[4096], qemu[4096];
    struct etch_guarded *control_mapping;
    struct etch_vpt_control *control; /* written by the program too: what etch relies on is beside it */
    uint64_t flow_size;
    const struct etch_vpt_known *known; /* in a recovery; else NULL */
    char subject[VPT_MAX_PATH];         /* the program whose instructions are watched */
    ETCH_ARRAY(struct etch_vpt_slot) slots;
    ETCH_ARRAY(struct etch_vpt_child) children;
    ETCH_ARRAY(uint32_t) processes;
    ETCH_ARRAY(uint32_t) subjects; /* processes that run the program in question */
    struct etch_place watches[ETCH_RECORD_MAX_WATCHES];
    bool armed[ETCH_RECORD_MAX_WATCHES];
    struct etch_batch batch;
    struct etch_sync_reader *sync; /* NULL: no synchronisation events */
    struct etch_sync_words words;
    struct etch_sync_batch syncs;
    _Alignas(8) uint8_t event[VPT_EVENT_RING / 2]; /* one, in a row */
    uint32_t wake;                                 /* as the control block had it when the last turn began */
    uint64_t no_memory;                            /* what etch had no memory for */
    struct etch_vpt_fault fault;
    Etch__Exception *exception; /* that ended the failing thread; NULL: none */
    Etch__Failure failure;
    char failure_message[80];
};

/* The control block: made and filled for a run, or read as a dead etch left it. */
int etch_vpt_control_make(struct vpt *v, struct etch_error *err);
int etch_vpt_control_fill(struct vpt *v, struct etch_error *err);
int etch_vpt_control_read(struct vpt *v, struct etch_record_options *o);

/* QEMU and the plugin: where they are, how they are started, and what QEMU complains of. */
int etch_vpt_find_parts(struct vpt *v, struct etch_error *err);
int etch_vpt_find_program(struct vpt *v, struct etch_error *err);
void etch_vpt_launch(void *state);
bool etch_vpt_never_ran(void *state, struct etch_error *err);
void etch_vpt_program(const void *state, Etch__Program *program);

/* A thread's ring of events: takes all of them into the bundle. */
void etch_vpt_events_take(struct vpt *v, struct etch_vpt_slot *s);

/* The failure: takes note of a fault, and makes the record of the whole. */
void etch_vpt_fault_take(struct vpt *v, const struct etch_vpt_slot *s, const struct etch_vpt_note *note);
Etch__Failure *etch_vpt_failure(void *state, int wait_status, bool *address_known);

/* A thread's shared memory. etch_vpt_slot_open() leaves a slot that is not there yet as it is. */
void etch_vpt_slot_open(struct vpt *v, struct etch_vpt_slot *s, size_t number);
void etch_vpt_slot_close(struct vpt *v, struct etch_vpt_slot *s);
uint64_t etch_vpt_slot_head(const struct etch_vpt_slot *s);
void etch_vpt_slot_take_flow(struct vpt *v, struct etch_vpt_slot *s, uint64_t head, uint64_t at_least);
void etch_vpt_slot_wake(struct etch_vpt_slot *s);

/* From where on a ring's bytes are wanted: its tail, unless the bundle has more. */
uint64_t etch_vpt_known_end(const struct etch_vpt_known *known, uint32_t stream, uint64_t tail);
bool etch_vpt_known_stream(const struct etch_vpt_known *known, uint32_t stream);
bool etch_vpt_known_access(const struct etch_vpt_known *known, uint32_t tid, uint64_t tsc);

#endif
