/* SPDX-License-Identifier: MIT */
/* The records that perf writes into a ring for hardware watchpoints, as bytes in and values out. */
#ifndef ETCH_COLLECTOR_HITS_H
#define ETCH_COLLECTOR_HITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ETCH_HIT_STACK 640u    /* stack bytes in each sample: as many as libc needs from an access to its caller */
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

/* Values for perf_event_attr.sample_type and sample_regs_user. etch_hits_next() can read only samples of events with
 * these values. */
extern const uint64_t etch_hits_sample_type, etch_hits_registers;

enum etch_hits_item { ETCH_HITS_HIT, ETCH_HITS_LOST, ETCH_HITS_OTHER, ETCH_HITS_END, ETCH_HITS_BAD };

/* Reads the record at the start of `bytes` into `hit` (or into `hit->event` and `lost`) and sets `used` to its
 * length. */
enum etch_hits_item etch_hits_next(const uint8_t *bytes, size_t size, size_t *used, struct etch_hit *hit,
                                   uint64_t *lost);

#endif
