/* SPDX-License-Identifier: MIT OR GPL-2.0-or-later */
/* Emulated watchpoints: every load and store of the guest is looked at, where there is something to watch. Accesses
 * that the kernel makes for a system call are not seen, as with debug registers. */
#ifndef ETCH_VPT_WATCH_H
#define ETCH_VPT_WATCH_H

#include "collector/vpt/thread.h"

struct etch_vpt_instruction {
    uint64_t ip;
    bool atomic, repeats;
    bool outside;  /* of the program */
    uint16_t site; /* number of the watch + 1; 0: none */
};

/* Finds the watched addresses of this process. Once, when the program is mapped. */
void etch_vpt_watch_arm(struct etch_vpt_self *self, uint64_t guest_base);

static inline bool etch_vpt_watch_any(void)
{
    return etch_vpt_control->n_watches != 0;
}

/* Sets `site` if a watch takes its address from this instruction, and `outside` if the instruction is not in the
 * program. */
void etch_vpt_watch_site(struct etch_vpt_instruction *instruction, uint64_t guest_base);

/* The way of calls, as far as accesses need it: block `from` ended and execution goes on at `next`. */
void etch_vpt_watch_follow(struct etch_vpt_self *self, const struct etch_vpt_block *from, uint64_t next);

/* An access that is done. */
void etch_vpt_watch_access(struct etch_vpt_self *self, const struct etch_vpt_instruction *by, uint64_t address,
                           uint32_t size, bool store);

#endif
