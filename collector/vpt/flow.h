/* SPDX-License-Identifier: MIT OR GPL-2.0-or-later */
/* Private to the plugin: follows the calling guest thread from block to block, and writes its packets. */
#ifndef ETCH_VPT_FLOW_H
#define ETCH_VPT_FLOW_H

#include "collector/vpt/qemu_plugin.h"
#include "collector/vpt/thread.h"

/* The process that is recorded. */
struct etch_vpt_process {
    uint64_t guest_base; /* of the guest's addresses in the host's memory */
    bool closing;        /* the process ends: what other threads still do is not part of the recording */
};

extern __attribute__((visibility("hidden"))) struct etch_vpt_process etch_vpt_process;

/* The calling thread; NULL: the thread has not begun, or has ended. */
extern __attribute__((visibility("hidden"))) __thread struct etch_vpt_self *etch_vpt_flow_self
    __attribute__((tls_model("initial-exec")));

/* Makes the calling thread's rings unless it has them. NULL: the thread has ended, or got no memory. */
struct etch_vpt_self *etch_vpt_flow_begin(void);

/* No more comes from the calling thread. */
void etch_vpt_flow_end(void);

/* The calling thread goes on after etch_vpt_flow_end(), in new rings. */
struct etch_vpt_self *etch_vpt_flow_resume(void);

/* In a child process: the calling thread gets rings of its own with its first block. */
void etch_vpt_flow_forked(void);

/* The block that runs was left for the kernel; `ip` is the first instruction that did not run to its end. */
void etch_vpt_flow_interrupt(struct etch_vpt_self *t, uint64_t ip);

/* A signal handler returns. */
void etch_vpt_flow_signal_returns(struct etch_vpt_self *t);

/* QEMU's callbacks. A watched block's accesses are reported with the time that the block began and the call they are
 * in. */
void etch_vpt_flow_on_block(unsigned cpu, void *block);
void etch_vpt_flow_on_watched_block(unsigned cpu, void *block);
void etch_vpt_flow_on_instruction(unsigned cpu, void *instruction);
void etch_vpt_flow_on_memory(unsigned cpu, qemu_plugin_meminfo_t info, uint64_t address, void *instruction);

#endif
