/* SPDX-License-Identifier: MIT OR GPL-2.0-or-later */
/* A guest thread as the plugin sees it: its rings and its packet writer. A guest thread is a host thread, so each one
 * touches only its own; the memory is shared with etch alone. */
#ifndef ETCH_VPT_THREAD_H
#define ETCH_VPT_THREAD_H

#include "collector/vpt/block.h"
#include "collector/vpt/layout.h"
#include "collector/vpt/packets.h"
#include "collector/vpt/truth.h"

#include <x86intrin.h>

/* The time of a packet: after all before it has run, which rdtsc does not wait for. */
static inline uint64_t etch_vpt_now(void)
{
    unsigned cpu;

    return __rdtscp(&cpu);
}

struct etch_vpt_self {
    struct etch_vpt_writer writer;
    const struct etch_vpt_block *block; /* the one that runs; NULL: in the kernel */
    uint64_t attention;                 /* when the head gets here, something is due */
    uint64_t next_psb, next_tsc, next_wake, limit;
    struct { /* when the host last took a memory fault, in the block that runs or in an earlier one */
        bool seen;
        uint32_t current;
        uint64_t tnt;
        const struct etch_vpt_block *block;
        uint64_t address;
        int code; /* si_code */
    } fault;
    bool starved;            /* not recorded any further: etch took nothing out */
    bool first;              /* nothing was written yet */
    uint64_t signal_context; /* of the newest signal frame that a handler was entered with */
    uint64_t caught_context; /* the same of a fault; 0: none, or its handler has returned */
    uint64_t code_changed;   /* when, if the next block is new code where other code was; 0: it is not */
    uint64_t syscall_tsc;
    uint64_t syscall_arguments[6];
    unsigned cpu;       /* QEMU's index */
    uint64_t block_tsc; /* where something is watched: when the block that runs began, and on which CPU */
    uint32_t block_cpu;
    uint32_t depth; /* and the calls that led here; those deeper than are kept are only counted */
    uint64_t calls[VPT_CALLS_KEPT];
    struct etch_vpt_thread *shared;
    uint8_t *flow, *events; /* each mapped twice in a row */
    uint64_t event_head;
    size_t mapped;
    struct etch_vpt_truth truth;
};

extern struct etch_vpt_control *etch_vpt_control;

/* Maps the control block in `folder`. Returns 0 or -errno. */
int etch_vpt_control_open(const char *folder);

/* Makes the calling thread's rings. NULL where there is no memory for them; that is counted in the control block. */
struct etch_vpt_self *etch_vpt_self_begin(uint32_t parent_pid, uint32_t parent_tid);

/* After fork: gives back what belongs to the parent, untouched. */
void etch_vpt_self_abandon(struct etch_vpt_self *self);

/* No more comes from this thread. */
void etch_vpt_self_end(struct etch_vpt_self *self);

/* At the edge of block `at`, after a commit that reached `attention`: a PSB or a TSC if one is due, and room. */
void etch_vpt_self_attend(struct etch_vpt_self *self, uint64_t at);

/* Room for one event of `size` bytes, waiting for etch if need be; NULL where etch is gone. Publish with the other. */
void *etch_vpt_event_reserve(struct etch_vpt_self *self, uint32_t size, enum etch_vpt_event_type type, uint64_t tsc);
void etch_vpt_event_publish(struct etch_vpt_self *self);

/* A struct etch_vpt_note in one go. `text` may be NULL. */
void etch_vpt_event_note(struct etch_vpt_self *self, enum etch_vpt_event_type type, uint64_t tsc, uint64_t number,
                         uint64_t address, uint64_t value, uint32_t flags, const char *text);

#endif
