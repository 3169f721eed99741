/* SPDX-License-Identifier: MIT */
/* A process that reads untrusted files gives up the rights that reading does not need, so that a fault in a reader is
 * no way in. With Landlock (Linux 5.13), the process writes only its results and makes no connection. With seccomp, the
 * process runs no program, traces and signals no process, opens no socket, changes nothing in the kernel. The process
 * can still read all files of its user. Without Landlock and seccomp in the kernel, the reader goes on without a
 * sandbox. */
#ifndef ETCH_BASE_SANDBOX_H
#define ETCH_BASE_SANDBOX_H

#include <stdbool.h>
#include <stddef.h>

struct etch_sandbox {
    int landlock; /* version of its interface; 0: the kernel has none, or does not let us */
    bool seccomp;
};

/* Says which of the two the kernel offers. It changes nothing. */
void etch_sandbox_probe(struct etch_sandbox *sandbox);

/* Enters it, for good. `outputs` are the files that will be written, which need not be there; temporary files may be
 * made where TMPDIR says, in /tmp and in /var/tmp. Call it before the first thread is made. */
void etch_sandbox_enter(struct etch_sandbox *sandbox, const char *const *outputs, size_t n);

#endif
