/* SPDX-License-Identifier: MIT */
/* See tape.h. */
#include "decoder/flow/step_buffer.h"

void etch_step_buffer_clear(struct etch_step_buffer *tape)
{
    tape->blocks.n = tape->events.n = 0;
    tape->next_ip = tape->bytes = 0;
    tape->failed = false;
}

void etch_step_buffer_release(struct etch_step_buffer *tape)
{
    etch_array_free(&tape->blocks);
    etch_array_free(&tape->events);
}

void etch_step_buffer_event(struct etch_step_buffer *tape, const struct etch_step_buffer_event *event)
{
    struct etch_step_buffer_event e = *event;

    e.at = tape->blocks.n;
    if (!etch_array_push(&tape->events, e))
        tape->failed = true;
}

void etch_step_buffer_time(struct etch_step_buffer *tape, uint64_t lo, uint64_t ticks)
{
    size_t n = tape->events.n;

    if (n > 0 && tape->events.v[n - 1].kind == ETCH_TAPE_TIME && tape->events.v[n - 1].at == tape->blocks.n) {
        tape->events.v[n - 1].ip = lo;
        tape->events.v[n - 1].ticks = ticks;
        tape->events.v[n - 1].to = UINT64_MAX;
        return;
    }
    etch_step_buffer_event(
        tape, &(struct etch_step_buffer_event){.kind = ETCH_TAPE_TIME, .ip = lo, .to = UINT64_MAX, .ticks = ticks});
}

void etch_step_buffer_until(struct etch_step_buffer *tape, uint64_t hi, uint64_t ticks)
{
    uint64_t after = ticks; /* where the stretch under consideration ends */

    for (size_t i = tape->events.n; i > 0; i--) {
        struct etch_step_buffer_event *e = &tape->events.v[i - 1];

        if (e->kind != ETCH_TAPE_TIME)
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

/* The event that ends the tape, of those that tell more than time: its index + 1, 0 where a block does. */
static size_t last_event(const struct etch_step_buffer *tape)
{
    size_t e = tape->events.n, end = tape->blocks.n;

    while (e > 0 && tape->events.v[e - 1].at == end &&
           (tape->events.v[e - 1].kind == ETCH_TAPE_TIME || tape->events.v[e - 1].kind == ETCH_STEP_END))
        e--;
    return e > 0 && tape->events.v[e - 1].at == end ? e : 0;
}

void etch_step_buffer_end_at(struct etch_step_buffer *tape, struct etch_block_view *view,
                             const struct etch_death *death)
{
    size_t e = death->known && view ? last_event(tape) : 0;
    struct etch_block *b;
    const char *why;

    if (!e || tape->events.v[e - 1].kind != ETCH_STEP_INTERRUPT || tape->events.v[e - 1].ip != death->ip)
        return;
    b = etch_block_at(view, death->ip, &why);
    tape->events.v[e - 1].nowhere = !b;
    b = b && death->fault ? etch_block_begun(view, b) : NULL;
    if (!b)
        return;
    etch_step_buffer_block(tape, b);
    for (e--; e < tape->events.n; e++)
        tape->events.v[e].at++;
}

uint64_t etch_step_buffer_instructions(const struct etch_step_buffer *tape)
{
    uint64_t n = 0;

    for (size_t i = 0; i < tape->blocks.n; i++)
        n += tape->blocks.v[i]->count;
    return n;
}

/* Where the block before went, as far as what stands from event `e` on tells. */
static uint64_t next_ip(const struct etch_step_buffer *tape, size_t block, size_t e)
{
    for (; e < tape->events.n && tape->events.v[e].at == block; e++)
        if (tape->events.v[e].kind != ETCH_TAPE_TIME)
            return tape->events.v[e].ip;
    return block < tape->blocks.n ? tape->blocks.v[block]->first : tape->next_ip;
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

    if (e->kind == ETCH_TAPE_TIME) {
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

int etch_step_buffer_read(const struct etch_step_buffer *tape, struct etch_step_reader *r)
{
    size_t e = 0;
    int status = 0;

    r->step.time = (struct etch_interval){0, UINT64_MAX};
    r->count.bytes += tape->bytes;
    for (size_t i = 0; i <= tape->blocks.n && status == 0; i++) {
        for (; e < tape->events.n && tape->events.v[e].at == i && status == 0; e++)
            status = give_event(r, &tape->events.v[e]);
        if (i < tape->blocks.n && status == 0) {
            uint64_t to = e < tape->events.n && tape->events.v[e].at == i + 1 ? next_ip(tape, i + 1, e)
                          : i + 1 < tape->blocks.n                            ? tape->blocks.v[i + 1]->first
                                                                              : tape->next_ip;

            status = give_block(r, tape->blocks.v[i], to);
        }
    }
    return status;
}
