/* SPDX-License-Identifier: MIT */
/* The stack of a thread for the bundle: its bytes, masked, and its frames. The memory may be that of a running process,
 * or that of a core. */
#ifndef ETCH_COLLECTOR_NATIVE_STACK_H
#define ETCH_COLLECTOR_NATIVE_STACK_H

#include "collector/session/process.h"
#include "proto/etch.pb-c.h"

#define ETCH_FAILURE_STACK_MAX (64u << 10) /* bytes of each thread */
#define ETCH_FAILURE_FRAMES_MAX 64u

struct etch_stack_memory {
    /* Copies memory. Returns how many bytes could be read, from `address` on. */
    size_t (*read)(void *context, uint64_t address, void *buffer, size_t size);
    void *context;
    const struct etch_mappings *mappings;
    uint64_t arguments; /* where the first stack ends, and arguments and environment begin; 0: not known */
    bool keep;          /* the stacks stay as they are */
};

/* Puts stack and frames into `state`. Returns the number of masked words. */
uint64_t etch_stack_take(const struct etch_stack_memory *memory, Etch__ThreadState *state, uint64_t ip, uint64_t sp,
                         uint64_t bp);

/* The message of assert() or libc before abort(), for free(); NULL: none. `root` stands before the path of libc. */
char *etch_abort_message(const struct etch_stack_memory *memory, const char *root);

#endif
