/* SPDX-License-Identifier: MIT */
/* perf's rings; see perf_ring.h. */
#include "collector/perf_ring.h"

#include <string.h>

#define RECORD_MAX (1u << 16) /* a record's size has 16 bits */

static uint16_t size_at(const struct etch_perf_ring *ring, uint64_t at)
{
    struct perf_event_header header;

    /* Records are multiples of 8 long, and so is the header: it never wraps. */
    memcpy(&header, ring->data + (at & (ring->size - 1)), sizeof(header));
    return header.size;
}

void etch_perf_ring_drain(struct etch_perf_ring *ring, etch_perf_ring_visitor *visit, void *context)
{
    /* Pairs with the kernel's release of data_head: the records before it are whole. */
    uint64_t head = __atomic_load_n(&ring->page->data_head, __ATOMIC_ACQUIRE);
    uint64_t tail = ring->page->data_tail;
    uint8_t linear[RECORD_MAX]; /* for a record that goes round the end */

    if (head - tail > ring->size || head % 8 || tail % 8)
        tail = head; /* not what the kernel writes */
    while (tail < head) {
        size_t at = tail & (ring->size - 1), straight = ring->size - at, size = size_at(ring, tail);

        if (size < sizeof(struct perf_event_header) || size % 8 || size > head - tail)
            break;
        if (size <= straight) {
            visit(context, ring->data + at, size);
        } else {
            memcpy(linear, ring->data + at, straight);
            memcpy(linear + straight, ring->data, size - straight);
            visit(context, linear, size);
        }
        tail += size;
    }
    /* Pairs with the kernel's acquire of data_tail: we are done reading before it writes over. */
    __atomic_store_n(&ring->page->data_tail, head, __ATOMIC_RELEASE);
}

static void visit_round(const struct etch_aux_ring *ring, uint64_t from, size_t n, uint64_t offset,
                        etch_aux_visitor *visit, void *context)
{
    size_t at = from & (ring->size - 1), straight = ring->size - at;

    straight = straight < n ? straight : n;
    if (straight)
        visit(context, offset, ring->bytes + at, straight);
    if (n > straight)
        visit(context, offset + straight, ring->bytes, n - straight);
}

size_t etch_aux_ring_waiting(const struct etch_aux_ring *ring)
{
    /* Pairs with the kernel's release of aux_head: the bytes before it are written. */
    uint64_t head = __atomic_load_n(&ring->page->aux_head, __ATOMIC_ACQUIRE);
    uint64_t waiting = head - ring->page->aux_tail;

    return waiting <= ring->size ? (size_t)waiting : 0;
}

size_t etch_aux_ring_take(struct etch_aux_ring *ring, size_t limit, etch_aux_visitor *visit, void *context)
{
    size_t n = etch_aux_ring_waiting(ring);
    uint64_t tail = ring->page->aux_tail;

    n = n < limit ? n : limit;
    if (visit)
        visit_round(ring, tail, n, tail, visit, context);
    /* Pairs with the kernel's read of aux_tail, which its own writing depends on: we are done before it writes over. */
    __atomic_store_n(&ring->page->aux_tail, tail + n, __ATOMIC_RELEASE);
    return n;
}

static bool all_zero(const uint8_t *bytes, size_t n)
{
    return n == 0 || (bytes[0] == 0 && memcmp(bytes, bytes + 1, n - 1) == 0);
}

bool etch_aux_ring_snapshot(const struct etch_aux_ring *ring, etch_aux_visitor *visit, void *context)
{
    /* Pairs with the kernel's release of aux_head, as above. */
    uint64_t head = __atomic_load_n(&ring->page->aux_head, __ATOMIC_ACQUIRE);
    size_t at = head & (ring->size - 1);
    bool wrapped = head >= ring->size || !all_zero(ring->bytes + at, ring->size - at);

    if (wrapped)
        visit_round(ring, at, ring->size, 0, visit, context);
    else
        visit_round(ring, 0, at, 0, visit, context);
    return wrapped;
}
