/* SPDX-License-Identifier: MIT */
/* The two rings that perf shares with a reader: records (the data area) and raw bytes (the AUX area). This module only
 * reads and writes memory and makes no system call, so that a test or a bench can play the kernel. */
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

/* Hands out every record in the ring, and returns the space to the kernel. Bytes that are no records are skipped. */
void etch_perf_ring_drain(struct etch_perf_ring *ring, etch_perf_ring_visitor *visit, void *context);

struct etch_aux_ring {
    struct perf_event_mmap_page *page;
    const uint8_t *bytes;
    size_t size; /* a power of two */
};

/* Gets bytes of the ring. `offset` counts from the first byte that was ever written. */
typedef void etch_aux_visitor(void *context, uint64_t offset, const uint8_t *bytes, size_t size);

/* For a ring that the kernel fills and the reader empties. Returns the number of waiting bytes. */
size_t etch_aux_ring_waiting(const struct etch_aux_ring *ring);

/* Hands out up to `limit` waiting bytes, oldest first, and returns the space to the kernel. Without a visitor the bytes
 * are only skipped. Returns the number of bytes taken. */
size_t etch_aux_ring_take(struct etch_aux_ring *ring, size_t limit, etch_aux_visitor *visit, void *context);

/* For an overwriting ring after the kernel has stopped writing. Hands out the bytes of the ring, oldest first, with
 * offsets from 0. Returns true if older bytes were overwritten. The kernel reports only its position in the ring. The
 * bytes ahead of this position were zero at the start: a non-zero byte there shows that the ring wrapped. */
bool etch_aux_ring_snapshot(const struct etch_aux_ring *ring, etch_aux_visitor *visit, void *context);

#endif
