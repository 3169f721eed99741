/* SPDX-License-Identifier: MIT */
/* See step_buffer.h. */
#include "decoder/flow/step_buffer.h"

void etch_step_buffer_clear(struct etch_step_buffer *buffer)
{
    buffer->blocks.n = buffer->events.n = 0;
    buffer->next_ip = buffer->bytes = 0;
    buffer->failed = false;
}

void etch_step_buffer_release(struct etch_step_buffer *buffer)
{
    etch_array_free(&buffer->blocks);
    etch_array_free(&buffer->events);
}

void etch_step_buffer_event(struct etch_step_buffer *buffer, const struct etch_step_buffer_event *event)
{
    struct etch_step_buffer_event e = *event;

    e.at = buffer->blocks.n;
    if (!etch_array_push(&buffer->events, e))
        buffer->failed = true;
}

void etch_step_buffer_time(struct etch_step_buffer *buffer, uint64_t lo, uint64_t ticks)
{
    size_t n = buffer->events.n;

    if (n > 0 && buffer->events.v[n - 1].kind == ETCH_STEP_BUFFER_TIME &&
        buffer->events.v[n - 1].at == buffer->blocks.n) {
        buffer->events.v[n - 1].ip = lo;
        buffer->events.v[n - 1].ticks = ticks;
        buffer->events.v[n - 1].to = UINT64_MAX;
        return;
    }
    etch_step_buffer_event(buffer, &(struct etch_step_buffer_event){
                                       .kind = ETCH_STEP_BUFFER_TIME, .ip = lo, .to = UINT64_MAX, .ticks = ticks});
}

void etch_step_buffer_until(struct etch_step_buffer *buffer, uint64_t hi, uint64_t ticks)
{
    uint64_t after = ticks; /* the end of the interval under consideration */

    for (size_t i = buffer->events.n; i > 0; i--) {
        struct etch_step_buffer_event *e = &buffer->events.v[i - 1];

        if (e->kind != ETCH_STEP_BUFFER_TIME)
            continue;
        if (e->to != UINT64_MAX)
            break;
        /* Ticks count from one anchor on; an anchor in between starts them afresh. */
        e->to = after <= ticks && ticks - after < hi ? hi - (ticks - after) : hi;
        e->to = e->to < e->ip ? e->ip : e->to;
        after = e->ticks;
        if (e->ticks == 0)
            ticks = after = 0;
    }
}

/* The last event that tells more than time, if no block is behind it: its index + 1. 0: a block ends the buffer. */
static size_t last_event(const struct etch_step_buffer *buffer)
{
    size_t e = buffer->events.n, end = buffer->blocks.n;

    while (e > 0 && buffer->events.v[e - 1].at == end &&
           (buffer->events.v[e - 1].kind == ETCH_STEP_BUFFER_TIME || buffer->events.v[e - 1].kind == ETCH_STEP_END))
        e--;
    return e > 0 && buffer->events.v[e - 1].at == end ? e : 0;
}

void etch_step_buffer_end_at(struct etch_step_buffer *buffer, struct etch_block_view *view,
                             const struct etch_death *death)
{
    size_t e = death->known && view ? last_event(buffer) : 0;
    struct etch_block *b;
    const char *why;

    if (!e || buffer->events.v[e - 1].kind != ETCH_STEP_INTERRUPT || buffer->events.v[e - 1].ip != death->ip)
        return;
    b = etch_block_at(view, death->ip, &why);
    buffer->events.v[e - 1].nowhere = !b;
    b = b && death->fault ? etch_block_begun(view, b) : NULL;
    if (!b)
        return;
    etch_step_buffer_block(buffer, b);
    for (e--; e < buffer->events.n; e++)
        buffer->events.v[e].at++;
}

uint64_t etch_step_buffer_instructions(const struct etch_step_buffer *buffer)
{
    uint64_t n = 0;

    for (size_t i = 0; i < buffer->blocks.n; i++)
        n += buffer->blocks.v[i]->count;
    return n;
}

/* The address at which the block before went on, from event `e` and the next block; 0: not known. */
static uint64_t next_ip(const struct etch_step_buffer *buffer, size_t block, size_t e)
{
    for (; e < buffer->events.n && buffer->events.v[e].at == block; e++)
        if (buffer->events.v[e].kind != ETCH_STEP_BUFFER_TIME)
            return buffer->events.v[e].ip;
    return block < buffer->blocks.n ? buffer->blocks.v[block]->first : buffer->next_ip;
}

static bool is_outside(const struct etch_step_reader *r)
{
    return (r->from || r->to) && (r->step.time.hi < r->from || r->step.time.lo > r->to);
}

static int give(struct etch_step_reader *r)
{
    return is_outside(r) ? 0 : r->visit(r->context, &r->step);
}

static int give_event(struct etch_step_reader *r, const struct etch_step_buffer_event *e)
{
    struct etch_step *s = &r->step;

    if (e->kind == ETCH_STEP_BUFFER_TIME) {
        s->time = (struct etch_interval){e->ip, e->to};
        return 0;
    }
    if (r->skip)
        return 0;
    s->kind = (enum etch_step_kind)e->kind;
    s->first = s->last = s->end = 0;
    s->count = 0;
    s->branch = ETCH_BRANCH_NONE;
    s->image = NULL;
    s->sizes = NULL;
    s->ip = e->ip;
    s->to = e->to;
    s->cause = e->cause;
    s->offset = e->offset;
    s->detail = e->detail;
    s->nowhere = e->nowhere;
    if (e->kind == ETCH_STEP_LOSS) {
        r->count.losses++;
        r->count.lost[(unsigned)e->cause % ETCH_LOSS_CAUSES]++;
    }
    return give(r);
}

/* Drops the instructions that are still to be passed over. */
static bool skip_instructions(struct etch_step_reader *r)
{
    struct etch_step *s = &r->step;

    if (r->skip >= s->count) {
        r->skip -= s->count;
        return false;
    }
    for (; r->skip; r->skip--) {
        s->first += s->sizes[0];
        s->sizes++;
        s->count--;
    }
    return true;
}

static int give_block(struct etch_step_reader *r, const struct etch_block *b, uint64_t to)
{
    struct etch_step *s = &r->step;

    s->kind = ETCH_STEP_BLOCK;
    s->first = b->first;
    s->last = b->last;
    s->end = b->end;
    s->count = b->count;
    s->branch = b->branch;
    s->image = b->image;
    s->sizes = b->sizes;
    s->ip = 0;
    s->to = to;
    s->detail = NULL;
    s->nowhere = false;
    if (r->skip && !skip_instructions(r))
        return 0;
    r->count.blocks++;
    r->count.instructions += s->count;
    r->count.branches += b->branch != ETCH_BRANCH_NONE;
    return give(r);
}

int etch_step_buffer_read(const struct etch_step_buffer *buffer, struct etch_step_reader *r)
{
    size_t e = 0;
    int status = 0;

    r->step.time = (struct etch_interval){0, UINT64_MAX};
    r->count.bytes += buffer->bytes;
    for (size_t i = 0; i <= buffer->blocks.n && status == 0; i++) {
        for (; e < buffer->events.n && buffer->events.v[e].at == i && status == 0; e++)
            status = give_event(r, &buffer->events.v[e]);
        if (i < buffer->blocks.n && status == 0) {
            uint64_t to = e < buffer->events.n && buffer->events.v[e].at == i + 1 ? next_ip(buffer, i + 1, e)
                          : i + 1 < buffer->blocks.n                              ? buffer->blocks.v[i + 1]->first
                                                                                  : buffer->next_ip;

            status = give_block(r, buffer->blocks.v[i], to);
        }
    }
    return status;
}
