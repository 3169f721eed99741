/* SPDX-License-Identifier: MIT */
/* Return addresses from a copied stack. If the code keeps frame pointers, the addresses are found along the frame
 * pointers, and are right. Else every word that points behind a call is taken, and the true frames are mixed with
 * stale frames. The stack's addresses go into the bundle (stack_mask.h), so that a decoder with unwind tables can do
 * better. */
#ifndef ETCH_COLLECTOR_NATIVE_FRAMES_H
#define ETCH_COLLECTOR_NATIVE_FRAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Returns true if the address directly follows a call instruction in mapped code. */
typedef bool etch_frames_follows_call(void *context, uint64_t address);

struct etch_frames_stack {
    uint64_t ip, sp, bp;
    const uint8_t *bytes; /* memory from sp on */
    size_t size;
    etch_frames_follows_call *follows_call;
    void *context;
};

/* Fills `frames` with ip and up to `max` - 1 return addresses, innermost first. Returns how many; `scanned` says that
 * they are words of the stack rather than a walked chain. */
size_t etch_frames_find(const struct etch_frames_stack *stack, uint64_t *frames, size_t max, bool *scanned);

/* Returns true if the `before` bytes of code before `end` end in a call. At most 7 bytes are read. */
bool etch_code_ends_in_call(const uint8_t *end, size_t before);

#endif
