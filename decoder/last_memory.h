/* SPDX-License-Identifier: MIT */
/* The memory of a process at its end, as far as it is known: from a core file, from the stacks that a failure record
 * has, and from the files that were mapped. It also says who else may have written a piece of memory. */
#ifndef ETCH_DECODER_LAST_MEMORY_H
#define ETCH_DECODER_LAST_MEMORY_H

#include "decoder/backward.h"
#include "decoder/recording.h"

struct etch_last_memory;

/* `state` is of the thread in question. `core` is the path of a core file of the same process; NULL: there is none.
 * Recording and state must outlive the memory. Returns 0, or -1 with `err` set: the core cannot be read, or it is not
 * of this process. */
int etch_last_memory_open(struct etch_last_memory **memory, const struct etch_recording *recording,
                          const Etch__ThreadState *state, const char *core, struct etch_error *err);

/* NULL is fine. */
void etch_last_memory_free(struct etch_last_memory *memory);

/* Copies memory. Returns how many bytes are known, from `address` on. `memory` is a struct etch_last_memory. */
size_t etch_last_memory_read(void *memory, uint64_t address, void *to, size_t size);

/* Who writes the memory at an address. */
enum etch_memory_kind etch_last_memory_kind(void *memory, uint64_t address);

/* The thread's registers at its end, by perf's x86 numbers; `*masked` has a bit for each that is not known. */
void etch_last_memory_registers(const struct etch_last_memory *memory, uint64_t registers[ETCH_BACKWARD_REGISTERS],
                                uint32_t *masked);

/* True if the process had other threads, or may have had some. */
bool etch_last_memory_is_threaded(const struct etch_last_memory *memory);

#endif
