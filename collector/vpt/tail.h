/* SPDX-License-Identifier: MIT */
/* The last packets of a thread that was killed: what it had not yet written out, and where it was. */
#ifndef ETCH_COLLECTOR_VPT_TAIL_H
#define ETCH_COLLECTOR_VPT_TAIL_H

#include <stddef.h>
#include <stdint.h>

#define ETCH_VPT_TAIL_MAX 24u

/* TNT with the pending bits, FUP at the block that had begun, TIP.PGD: "stopped before this instruction", which is all
 * that is certain. `tnt` and `at` as in struct etch_vpt_state. Returns how many bytes; 0 where nothing is missing. */
size_t etch_vpt_tail(uint8_t bytes[ETCH_VPT_TAIL_MAX], uint64_t tnt, uint64_t at);

#endif
