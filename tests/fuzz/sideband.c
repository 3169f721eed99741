/* SPDX-License-Identifier: MIT */
/* perf's records beside a trace, as no kernel would write them: through the ring, the reader, and the processes built
 * from them. */
#include "collector/perf_ring.h"
#include "collector/pt/process_map.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define RING 4096u

static void ignore(void *context, Etch__Record__BodyCase kind, void *message)
{
    size_t *sum = context;

    (void)kind;
    *sum += protobuf_c_message_get_packed_size(message); /* reads all of it */
}

static void take(void *context, const uint8_t *record, size_t size)
{
    struct etch_side side;

    if (etch_side_read(&side, record, size))
        etch_process_map_take(context, &side, side.time);
}

/* The first eight bytes say where in the ring the records stand; of a process that may exist nothing is looked up. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static uint8_t memory[RING];
    struct perf_event_mmap_page page;
    struct etch_perf_ring ring = {&page, memory, RING};
    size_t sum = 0;
    struct etch_sink sink = {.context = &sum, .write = ignore};
    struct etch_process_map *spaces;
    uint64_t tail;

    if (size < 8)
        return 0;
    memcpy(&tail, data, 8);
    memset(&page, 0, sizeof(page));
    page.data_tail = tail % (UINT64_MAX - RING) / 8 * 8;
    size = size - 8 < RING ? size - 8 : RING;
    page.data_head = page.data_tail + size;
    for (size_t i = 0; i < size; i++)
        memory[(page.data_tail + i) % RING] = data[8 + i];
    spaces = etch_process_map_new(&sink);
    if (!spaces)
        return 0;
    etch_perf_ring_drain(&ring, take, spaces);
    etch_process_map_apply(spaces, tail);
    etch_process_map_apply(spaces, UINT64_MAX);
    etch_process_map_conclude(spaces);
    etch_process_map_free(spaces);
    return 0;
}
