/* SPDX-License-Identifier: MIT OR GPL-2.0-or-later */
/* What an instruction of 64-bit code does to control flow: enough to say which packet it makes. */
#ifndef ETCH_RIG_INSN_H
#define ETCH_RIG_INSN_H

#ifdef __KERNEL__
#include <linux/types.h>
#else
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
typedef uint8_t u8;
#endif

enum { RIG_INSN_MAX = 15 }; /* bytes of the longest instruction */

enum rig_insn_kind {
    RIG_OTHER,
    RIG_CONDITIONAL, /* length is set */
    RIG_JUMP,
    RIG_JUMP_INDIRECT,
    RIG_CALL,
    RIG_CALL_INDIRECT,
    RIG_RETURN,
    RIG_FAR,        /* into the kernel, or back from it: system calls, interrupts */
    RIG_PUSH_FLAGS, /* shows the program the trap flag */
    RIG_STRING,     /* with a repeat prefix: one instruction, however often it traps */
};

struct rig_insn {
    enum rig_insn_kind kind;
    unsigned length;
};

/* `n` bytes from the instruction's first on; fewer than RIG_INSN_MAX are fine where memory ends. */
struct rig_insn rig_insn_read(const u8 *bytes, size_t n);

#endif
