/* SPDX-License-Identifier: MIT OR GPL-2.0-or-later */
/* QEMU's user mode runs the program of an execve natively. To go on recording, the plugin runs it under QEMU itself. */
#ifndef ETCH_VPT_EXEC_H
#define ETCH_VPT_EXEC_H

#include <stdbool.h>
#include <stdint.h>

#define VPT_EXEC_TEXT 4096

struct etch_vpt_exec {
    char program[VPT_EXEC_TEXT];     /* the ELF file to run */
    char interpreter[VPT_EXEC_TEXT]; /* of a script: its #! line's program */
    char argument[256];              /* ...and argument, or empty */
};

/* Returns true if QEMU can run `path` as the kernel would: an x86-64 program, or a script for such a program, without
 * set-user-id. */
bool etch_vpt_exec_can_follow(const char *path, struct etch_vpt_exec *exec);

/* Replaces this process by QEMU with the plugin `plugin` on `folder`, running `path`. argv and envp are the guest's, at
 * `base`. Returns only where that failed. */
void etch_vpt_exec_follow(const struct etch_vpt_exec *exec, uint64_t base, uint64_t argv, uint64_t envp,
                          const char *folder, uint64_t tsc);

#endif
