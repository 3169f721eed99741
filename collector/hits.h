/* SPDX-License-Identifier: MIT */
/* The records that perf writes into a ring for hardware watchpoints, as bytes in and values out. */
#ifndef ETCH_COLLECTOR_HITS_H
#define ETCH_COLLECTOR_HITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ETCH_HIT_STACK 640u    /* bytes of the stack in each sample: what libc needs between an access and its caller */
#define ETCH_HIT_REGISTERS 24u /* by Linux's perf x86 register numbers; ds, es, fs and gs are not sampled and 0 */

struct etch_hit {
    uint64_t event; /* perf's id of the event */
    uint64_t ip, address;
    uint64_t perf_ns;
    uint32_t pid, tid, cpu;
    bool registers_known;
    uint64_t registers[ETCH_HIT_REGISTERS];
    const uint8_t *stack; /* the thread's, from its stack pointer up; within the bytes that the hit was read from */
    size_t stack_size;
};

/* What the attributes of the events must ask for, so that the next function can read the answers. */
extern const uint64_t etch_hits_sample_type, etch_hits_registers;

enum etch_hits_item { ETCH_HITS_HIT, ETCH_HITS_LOST, ETCH_HITS_OTHER, ETCH_HITS_END, ETCH_HITS_BAD };

/* Reads the record at the start of `bytes` into `hit` (or `event` and `lost` of it) and says in `used` how long it is.
 */
enum etch_hits_item etch_hits_next(const uint8_t *bytes, size_t size, size_t *used, struct etch_hit *hit,
                                   uint64_t *lost);

#endif
