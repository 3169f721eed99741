/* SPDX-License-Identifier: MIT */
/* The source `vpt`, etch's half: what its parts share. Private to the collector. */
#ifndef ETCH_COLLECTOR_VPT_H
#define ETCH_COLLECTOR_VPT_H

#include "base/array.h"
#include "collector/folder.h"
#include "collector/session/guarded.h"
#include "collector/session/place.h"
#include "collector/source.h"
#include "collector/sync/preload.h"
#include "collector/sync/reader.h"
#include "collector/vpt/layout.h"
#include "collector/vpt/recover.h"

#define VPT_EVENT_RING (128u << 10)
#define VPT_ACCESSES_AT_ONCE 4096u
#define VPT_SYNCS_AT_ONCE 256u

enum slot_state { SLOT_AWAITED, SLOT_OPEN, SLOT_DONE };

/* One guest thread's shared memory. The program can write to the shared memory. Values that etch relies on are
 * therefore copied here once. */
struct vpt_slot {
    enum slot_state state;
    struct etch_guarded *mapping;
    struct vpt_thread *shared;
    const uint8_t *flow, *events;
    uint32_t pid, tid;
    uint64_t taken;       /* bytes of flow in the bundle */
    uint64_t event_taken; /* bytes of events */
    bool damaged;
};

struct vpt_child {
    uint32_t tid, parent;
};

struct vpt {
    struct etch_folder folder;
    char plugin[4096], qemu[4096];
    struct etch_guarded *control_mapping;
    struct vpt_control *control; /* written by the program too: what etch relies on is beside it */
    uint64_t flow_size;
    const struct etch_vpt_known *known; /* in a recovery; else NULL */
    char subject[VPT_MAX_PATH];         /* the program whose instructions are watched */
    ETCH_ARRAY(struct vpt_slot) slots;
    ETCH_ARRAY(struct vpt_child) children;
    ETCH_ARRAY(uint32_t) processes;
    ETCH_ARRAY(uint32_t) subjects; /* processes that run the program in question */
    struct etch_place watches[ETCH_RECORD_MAX_WATCHES];
    bool armed[ETCH_RECORD_MAX_WATCHES];
    Etch__Access accesses[VPT_ACCESSES_AT_ONCE];
    Etch__Access *access_list[VPT_ACCESSES_AT_ONCE];
    size_t n_accesses;
    struct etch_sync_reader *sync; /* NULL: no synchronisation events */
    struct etch_sync_words words;
    Etch__Sync syncs[VPT_SYNCS_AT_ONCE];
    size_t n_syncs;
    struct etch_error sync_error;
    bool sync_failed;
    _Alignas(8) uint8_t event[VPT_EVENT_RING / 2]; /* one, in a row */
    uint32_t gaps;
};

int vpt_out_of_memory(struct etch_error *err);

/* The control block: made and filled for a run, or read as a dead etch left it. */
int vpt_control_make(struct vpt *v, struct etch_error *err);
int vpt_control_fill(struct vpt *v, const struct etch_recorder *r, struct etch_error *err);
int vpt_control_read(struct vpt *v, struct etch_record_options *o);

/* QEMU and the plugin: where they are, how they are started, and what QEMU complains of. */
int vpt_find_parts(struct vpt *v, struct etch_error *err);
void vpt_launch(struct etch_recorder *r);
bool vpt_never_ran(struct etch_recorder *r, struct etch_error *err);

/* A thread's ring of events: takes all of them into the bundle. */
int vpt_events_take(struct etch_recorder *r, struct vpt_slot *s, struct etch_error *err);

/* A thread's shared memory. vpt_slot_open() leaves a slot that is not there yet as it is. */
int vpt_slot_open(struct etch_recorder *r, struct vpt_slot *s, size_t number, struct etch_error *err);
int vpt_slot_close(struct etch_recorder *r, struct vpt_slot *s, struct etch_error *err);
uint64_t vpt_slot_head(const struct vpt_slot *s);
int vpt_slot_take_flow(struct etch_recorder *r, struct vpt_slot *s, uint64_t head, uint64_t at_least,
                       struct etch_error *err);
void vpt_slot_wake(struct vpt_slot *s);

#endif
