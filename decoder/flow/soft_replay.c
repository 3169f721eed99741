/* SPDX-License-Identifier: MIT */
/* The output of a ring's replay into the step buffer: executed blocks, events between them, losses. */
#include "decoder/flow/soft_replay.h"

const char etch_replay_no_way[] = "the machine code has no way to where the recorder says that it went";
const char etch_replay_went_on[] = "the thread went on in a function that called before the ring begins";
const char etch_replay_disagrees[] = "the replay and the recorder disagree on where the thread is";

enum etch_replay_state etch_replay_place(const struct etch_replay_context *c)
{
    return c->state == ETCH_REPLAY_RETURNED ? c->after_left : c->state;
}

bool etch_replay_in_segment(const struct etch_replay_context *c)
{
    enum etch_replay_state place = etch_replay_place(c);

    return place == ETCH_REPLAY_AT_NODE || place == ETCH_REPLAY_AT_TARGET;
}

bool etch_replay_is_unplaced(const struct etch_replay_context *c)
{
    enum etch_replay_state place = etch_replay_place(c);

    return place == ETCH_REPLAY_LOST || place == ETCH_REPLAY_OUTSIDE;
}

void etch_replay_event(struct etch_replay *r, enum etch_step_kind kind, uint64_t ip, uint64_t to)
{
    etch_step_buffer_event(r->buffer,
                           &(struct etch_step_buffer_event){.kind = kind, .ip = ip, .to = to, .offset = r->offset});
}

void etch_replay_loss(struct etch_replay *r, Etch__LossCause cause, const char *detail)
{
    etch_step_buffer_event(r->buffer,
                           &(struct etch_step_buffer_event){
                               .kind = ETCH_STEP_LOSS, .cause = cause, .offset = r->offset, .detail = detail});
}

void etch_replay_report_rest(struct etch_replay *r)
{
    struct etch_soft_position *p = &r->c->position;
    const char *why;
    struct etch_block *b, *part;

    if (p->now <= p->from || !(b = etch_block_at(etch_soft_walks_view(r->walks), p->from, &why)))
        return;
    part = etch_block_before(etch_soft_walks_view(r->walks), b, p->now);
    if (part)
        etch_step_buffer_block(r->buffer, part);
    *p = etch_soft_position_at(r->walks, p->now);
}

bool etch_replay_lose(struct etch_replay *r, const char *detail)
{
    etch_replay_drop_stamps(r);
    if (etch_replay_in_segment(r->c))
        etch_replay_report_rest(r);
    if (r->c->state != ETCH_REPLAY_LOST)
        etch_replay_loss(r, ETCH__LOSS_CAUSE__LOSS_DECODE, detail);
    r->c->state = ETCH_REPLAY_LOST;
    r->c->frames.n = 0;
    return false;
}

bool etch_replay_passes_call(const struct etch_block *b)
{
    return b->branch == ETCH_BRANCH_CALL || b->branch == ETCH_BRANCH_CALL_INDIRECT;
}

void etch_replay_report_way(struct etch_replay *r, const struct etch_soft_way *way, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct etch_block *b = way->blocks[i];
        uint8_t record;

        etch_step_buffer_block(r->buffer, b);
        if (!etch_replay_passes_call(b))
            continue;
        etch_replay_event(r, ETCH_STEP_END, b->branch == ETCH_BRANCH_CALL ? b->target : 0, 0);
        record = b->branch == ETCH_BRANCH_CALL ? etch_soft_map_stamp(r->map, b->target) : 0;
        if (record)
            etch_replay_pass_stamp(r, record);
        etch_replay_event(r, ETCH_STEP_BEGIN, b->end, 0);
    }
}

const struct etch_soft_way *etch_replay_find_way(struct etch_replay *r, enum etch_soft_goal goal, uint64_t goal_at)
{
    const struct etch_soft_way *way = etch_soft_walk(r->walks, r->c->position, goal, r->c->function, goal_at);

    if (!way)
        r->failed = true;
    else if (!way->found)
        etch_replay_lose(r, etch_replay_no_way);
    return way && way->found ? way : NULL;
}

bool etch_replay_walk(struct etch_replay *r, enum etch_soft_goal goal, uint64_t goal_at)
{
    const struct etch_soft_way *way = etch_replay_find_way(r, goal, goal_at);

    if (!way)
        return false;
    etch_replay_report_way(r, way, way->n);
    r->c->position = way->end;
    return true;
}
