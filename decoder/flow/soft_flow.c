/* SPDX-License-Identifier: MIT */
/* The chunks of a ring in their order, and the contexts of a thread; see soft_flow.h. */
#include "decoder/flow/soft_flow.h"
#include "decoder/flow/soft_replay.h"

#include <stdlib.h>

#define DEPTH_MAX 32u                 /* of signal handlers within each other */
#define BUFFER_MAX ((size_t)64 << 20) /* blocks */

static int compare_chunks(const void *a, const void *b)
{
    uint64_t x = ((const struct etch_replay_chunk *)a)->head.seq, y = ((const struct etch_replay_chunk *)b)->head.seq;

    return x < y ? -1 : x > y;
}

static bool find_chunks(struct etch_replay *r)
{
    for (size_t at = 0; r->in->size - at >= ETCH_SOFT_CHUNK; at += ETCH_SOFT_CHUNK) {
        struct etch_replay_chunk chunk = {.bytes = r->in->bytes + at};

        memcpy(&chunk.head, chunk.bytes, sizeof(chunk.head));
        if (chunk.head.magic == ETCH_SOFT_CHUNK_MAGIC && !etch_array_push(&r->chunks, chunk))
            return false;
    }
    if (r->chunks.n)
        qsort(r->chunks.v, r->chunks.n, sizeof(r->chunks.v[0]), compare_chunks);
    for (size_t i = 0; i < r->chunks.n; i++)
        if (r->chunks.v[i].head.kind == ETCH_SOFT_SIGNAL && !etch_array_push(&r->signals, i))
            return false;
    return true;
}

static void run_context(struct etch_replay *r, size_t from, unsigned depth);

/* Did the handler begin at this place of the chunk, or earlier? */
static bool interrupts(const struct etch_replay_chunk *handler, const struct etch_replay_chunk *chunk, size_t at)
{
    uint64_t where = handler->head.interrupted;

    return !handler->done && where >= chunk->head.seq * ETCH_SOFT_CHUNK + sizeof(struct etch_soft_chunk) &&
           where <= chunk->head.seq * ETCH_SOFT_CHUNK + at;
}

static void run_handlers(struct etch_replay *r, size_t chunk, size_t at, unsigned depth)
{
    for (size_t i = 0; i < r->signals.n && depth < DEPTH_MAX; i++)
        if (r->signals.v[i] > chunk && interrupts(&r->chunks.v[r->signals.v[i]], &r->chunks.v[chunk], at))
            run_context(r, r->signals.v[i], depth + 1);
}

/* A ring that makes no sense may mean endless steps. The rest of it is a loss, reported once. */
static bool is_full(struct etch_replay *r)
{
    if (r->buffer->blocks.n < BUFFER_MAX)
        return false;
    if (!r->full)
        etch_replay_loss(r, ETCH__LOSS_CAUSE__LOSS_DECODE, "more blocks than one step buffer may hold");
    r->full = true;
    return true;
}

static void run_chunk(struct etch_replay *r, size_t index, unsigned depth)
{
    struct etch_replay_chunk *chunk = &r->chunks.v[index];
    size_t at = sizeof(struct etch_soft_chunk), n;

    chunk->done = true;
    if (chunk->head.tsc) /* 0: the program might not read it */
        etch_replay_stamp_somewhere(r, chunk->head.tsc);
    r->stamps.taken = 0;
    while (at < ETCH_SOFT_CHUNK && !r->failed) {
        run_handlers(r, index, at, depth);
        r->offset = chunk->head.seq * ETCH_SOFT_CHUNK + at;
        n = etch_replay_record_size(chunk->bytes + at, ETCH_SOFT_CHUNK - at);
        if (!n || is_full(r))
            break;
        if (!r->stamps.taken)
            r->stamps.ahead = chunk->bytes + at + n;
        r->stamps.end = chunk->bytes + ETCH_SOFT_CHUNK;
        etch_replay_take(r, chunk->bytes + at);
        at += n;
    }
    run_handlers(r, index, ETCH_SOFT_CHUNK, depth);
}

/* Is no chunk missing between these two chunks of one context? Chunks of other contexts may lie between them. */
static bool follows(const struct etch_replay *r, size_t before, size_t next)
{
    uint64_t seq = r->chunks.v[before].head.seq;

    for (size_t i = before + 1; i <= next; i++) {
        if (r->chunks.v[i].head.seq > seq + 1)
            return false;
        seq = r->chunks.v[i].head.seq;
    }
    return true;
}

/* All chunks of a context from `from` on. An orphan in between is a handler of a chunk that is gone. */
static void run_chunks(struct etch_replay *r, size_t from, unsigned depth)
{
    uint64_t id = r->chunks.v[from].head.context;
    size_t before = from;

    for (size_t i = from; i < r->chunks.n && !r->failed; i++) {
        if (r->chunks.v[i].done || r->chunks.v[i].head.context != id)
            continue;
        r->offset = r->chunks.v[i].head.seq * ETCH_SOFT_CHUNK;
        if (i > from && !follows(r, before, i))
            etch_replay_lose(r, "chunks of the ring are missing");
        run_chunk(r, i, depth);
        before = i;
    }
}

static void run_context(struct etch_replay *r, size_t from, unsigned depth)
{
    struct etch_replay_context own = {.state = ETCH_REPLAY_LOST, .high = -1}, *outer = r->c;
    struct etch_replay_stamps stamps = r->stamps;
    uint64_t low = r->low, pending = r->pending;

    outer->signal_ip = r->chunks.v[from].head.ip;
    r->c = &own;
    r->stamps = (struct etch_replay_stamps){0};
    run_chunks(r, from, depth);
    etch_array_free(&own.frames);
    etch_array_free(&r->stamps.read);
    r->c = outer;
    r->stamps = stamps;
    r->pending = pending;
    etch_step_buffer_time(r->buffer, r->low = low, 0); /* some of the next steps ran before the handler */
}

static void replay_thread(struct etch_replay *r)
{
    struct etch_replay_context thread = {.state = ETCH_REPLAY_LOST, .high = -1};

    r->c = &thread;
    if (!r->map->functions.n)
        etch_replay_loss(r, ETCH__LOSS_CAUSE__LOSS_UNMAPPED_CODE,
                         "no binary of the build that ran is there, with its recorder's map");
    if (r->chunks.n && r->chunks.v[0].head.seq > 0)
        etch_replay_loss(r, ETCH__LOSS_CAUSE__LOSS_RING_WRAPPED, "older bytes were overwritten");
    for (size_t i = 0; i < r->chunks.n && !r->failed; i++) {
        if (r->chunks.v[i].done)
            continue;
        if (r->chunks.v[i].head.context == 0)
            run_chunks(r, i, 0);
        else
            run_context(r, i, 1); /* the interrupted chunk is gone */
    }
    if (!r->failed)
        etch_replay_finish(r);
    r->c = NULL;
    etch_array_free(&thread.frames);
}

void etch_soft_decode(const struct etch_soft_input *input, struct etch_blocks *blocks, struct etch_step_buffer *buffer)
{
    struct etch_replay r = {.in = input, .map = input->map, .buffer = buffer};

    r.walks = etch_soft_walks_new(input->map, blocks);
    if (r.walks && find_chunks(&r))
        replay_thread(&r);
    else
        r.failed = true;
    if (!r.failed)
        etch_step_buffer_end_at(buffer, etch_soft_walks_view(r.walks), &input->death);
    buffer->failed |= r.failed;
    buffer->bytes = input->size;
    etch_array_free(&r.chunks);
    etch_array_free(&r.signals);
    etch_array_free(&r.stamps.read);
    etch_soft_walks_free(r.walks);
}
