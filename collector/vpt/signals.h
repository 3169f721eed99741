/* SPDX-License-Identifier: MIT OR GPL-2.0-or-later */
/* Signals that come in between two instructions of the guest. QEMU does not report them to plugins. A plugin sees the
 * handler's first block with a signal frame on the stack; the frame has the address of the next instruction. */
#ifndef ETCH_VPT_SIGNALS_H
#define ETCH_VPT_SIGNALS_H

#include "collector/vpt/thread.h"

void etch_vpt_signals_begin(uint64_t guest_base);

/* rt_sigaction(number, act): `act` is the guest's pointer. Returns the handler's address, 0 where it is none. */
uint64_t etch_vpt_signals_handler(uint64_t number, uint64_t act);

/* True if a handler begins at `address`. */
bool etch_vpt_signals_is_handler(uint64_t address);

/* The thread begins block `to`, a handler's first. Was it called by the kernel? Then `ip` is the guest's instruction
 * that would have been next, the outermost one where several signals came at once. */
bool etch_vpt_signals_entered(struct etch_vpt_self *self, const struct etch_vpt_block *to, uint64_t *ip);

/* True if execution stopped inside the block that runs, before `ip` was done. False: it stopped behind the block's end.
 */
bool etch_vpt_signals_inside(const struct etch_vpt_self *self, uint64_t ip);

/* True if the block that runs ended in a memory fault of the host. self->fault then has the address. */
bool etch_vpt_signals_faulted(const struct etch_vpt_self *self);

/* Watches the host's own memory faults, to distinguish a fault in a block from a signal behind the block. Once per
 * process. `find` gives the calling thread's state. */
void etch_vpt_signals_hook(struct etch_vpt_self *(*find)(void));

#endif
