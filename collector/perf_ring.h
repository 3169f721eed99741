/* SPDX-License-Identifier: MIT */
/* The two rings that perf shares with a reader, as memory: records (the data area) and raw bytes (the AUX area). No
 * system call is made here, so that a test, or a bench, can be the kernel. */
#ifndef ETCH_COLLECTOR_PERF_RING_H
#define ETCH_COLLECTOR_PERF_RING_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct etch_perf_ring {
    struct perf_event_mmap_page *page;
    const uint8_t *data;
    size_t size; /* of the data, a power of two */
};

/* One record, header included, in one piece; valid during the call. */
typedef void etch_perf_ring_visitor(void *context, const uint8_t *record, size_t size);

/* Hands out every record there is, and gives the room back. Bytes that are no records are passed over. */
void etch_perf_ring_drain(struct etch_perf_ring *ring, etch_perf_ring_visitor *visit, void *context);

struct etch_aux_ring {
    struct perf_event_mmap_page *page;
    const uint8_t *bytes;
    size_t size; /* a power of two */
};

/* Bytes of the ring, `offset` counted from the first that was ever written. */
typedef void etch_aux_visitor(void *context, uint64_t offset, const uint8_t *bytes, size_t size);

/* Of a ring that the kernel fills and the reader empties: bytes waiting. */
size_t etch_aux_ring_waiting(const struct etch_aux_ring *ring);

/* Hands out up to `limit` of those, oldest first, and gives the room back; without a visitor they are only passed over.
 * Returns how many. */
size_t etch_aux_ring_take(struct etch_aux_ring *ring, size_t limit, etch_aux_visitor *visit, void *context);

/* Of a ring that the kernel overwrites, and that it has stopped writing to: hands out what is in it, oldest first, with
 * offsets from 0. Returns true where older bytes were written over. The kernel tells only where in the ring it stands;
 * whether it came round shows by what lies ahead of it, which was zero at the start. */
bool etch_aux_ring_snapshot(const struct etch_aux_ring *ring, etch_aux_visitor *visit, void *context);

#endif
