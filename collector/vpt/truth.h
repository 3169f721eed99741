/* SPDX-License-Identifier: MIT OR GPL-2.0-or-later */
/* The truth log, for tests: what ran, instruction by instruction, from a callback before each instruction that knows
 * nothing of packets.
 *
 * A file for each thread, PID.TID.truth: the addresses in the order in which the instructions began, one lower-case
 * hexadecimal number a line without 0x, as `etch decode --as insn --fields ip --thread TID` prints them. An instruction
 * that began and did not finish, because it faulted, has the word "fault" behind it. A string instruction with its
 * repeat prefix is one instruction, as on a CPU. After exec the same thread goes on in the same file.
 *
 * The log is mapped memory, so it is complete also after SIGKILL; zero bytes behind the last line are room not used. */
#ifndef ETCH_VPT_TRUTH_H
#define ETCH_VPT_TRUTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct etch_vpt_truth {
    int fd; /* 0: no log */
    uint8_t *window;
    uint64_t offset; /* of the window in the file */
    size_t used;
    uint64_t last; /* the newest instruction */
    bool again;    /* ...was a repeated string instruction */
};

/* Without a log (no such folder, no space) the rest does nothing. */
void etch_vpt_truth_open(struct etch_vpt_truth *truth, const char *folder, uint32_t pid, uint32_t tid);
void etch_vpt_truth_add(struct etch_vpt_truth *truth, uint64_t ip, bool repeats);
void etch_vpt_truth_fault(struct etch_vpt_truth *truth);
void etch_vpt_truth_close(struct etch_vpt_truth *truth);
void etch_vpt_truth_abandon(struct etch_vpt_truth *truth); /* after fork: leaves the file to the parent */

#endif
