/* SPDX-License-Identifier: MIT */
/* The end of a thread's ring: from the last record on to where the thread was when the recording ended. */
#include "decoder/flow/soft_replay.h"

/* The function around an address, as far as the begins of functions tell. */
static uint32_t function_around(const struct etch_replay *r, uint64_t ip)
{
    size_t lo = 0, hi = r->map->functions.n;
    const char *why;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;

        if (r->map->functions.v[mid].address <= ip)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo > 0 && r->map->functions.v[lo - 1].address >= etch_soft_map_stub_before(r->map, ip) &&
                   r->map->functions.v[lo - 1].address >= etch_soft_map_plain_before(r->map, ip) &&
                   etch_block_at(etch_soft_walks_view(r->walks), ip, &why)
               ? (uint32_t)(lo - 1)
               : UINT32_MAX;
}

bool etch_replay_go_to_ip(struct etch_replay *r, uint64_t ip, bool returns)
{
    struct etch_replay_context *c = r->c;
    const struct etch_soft_way *way =
        etch_soft_walk(r->walks, c->position, ETCH_SOFT_TO_IP, c->function, returns ? ip - 1 : ip);

    if (!way || !way->found)
        return false;
    if (way->unsure) {
        etch_replay_report_rest(r);
        etch_replay_loss(r, ETCH__LOSS_CAUSE__LOSS_UNSPECIFIED, "several ways lead to where the thread stood");
        etch_replay_event(r, ETCH_STEP_BEGIN, ip, 0);
        c->position = etch_soft_position_at(r->walks, ip);
        return true;
    }
    etch_replay_report_way(r, way, way->n);
    c->position = way->end;
    c->position.now = ip;
    etch_replay_report_rest(r);
    return true;
}

/* Has the thread returned to this function, which has called others, directly or not? Its caller tells. */
static bool is_left(const struct etch_replay *r, uint32_t function)
{
    const struct etch_soft_input *in = r->in;
    const struct etch_replay_context *c = r->c;

    if (in->n_frames < 2)
        return false;
    for (size_t k = c->frames.n; k-- > 0 && c->frames.v[k].kind != ETCH_FRAME_OUTSIDE;) {
        if (c->frames.v[k].function != function)
            continue;
        if (k > 0 ? etch_replay_frame_is_at(r, k - 1, in->frames[1])
                  : function_around(r, in->frames[1] - 1) == UINT32_MAX)
            return true;
    }
    return false;
}

/* Has the thread returned from the code without a recorder? Yes, if the thread wrote a stamp behind the call. Yes, if
 * it is in the calling function, but not at the return address. Yes, if it is in a function further out. */
static bool came_back(const struct etch_replay *r, size_t frame)
{
    const struct etch_replay_context *c = r->c;
    uint64_t ip = r->in->frames[frame];
    bool returns = frame > 0;
    uint32_t function = function_around(r, ip - returns);

    if (c->state != ETCH_REPLAY_CALLED_OUT || c->node == ETCH_REPLAY_NO_NODE)
        return false;
    return r->stamps.passed < r->stamps.read.n || (function == c->function && !(returns && ip == c->position.now)) ||
           (!returns && is_left(r, function));
}

/* Goes on silently until the thread is in the function of its frame `i`, then to the instruction there. Returns whether
 * it came there. */
static bool go_to_frame(struct etch_replay *r, size_t i)
{
    struct etch_replay_context *c = r->c;
    uint64_t ip = r->in->frames[i];

    for (unsigned n = 0; n < ETCH_REPLAY_SILENT_MAX && etch_replay_in_segment(c); n++) {
        const struct etch_soft_map_edge *end;
        uint32_t node;

        if (function_around(r, ip - (i > 0)) == c->function && etch_replay_go_to_ip(r, ip, i > 0))
            return true;
        end = etch_replay_place(c) == ETCH_REPLAY_AT_TARGET ? NULL : etch_replay_only_end(r, &node);
        if (!end || !(end->flags & ETCH_SOFT_SILENT) || !etch_replay_go(r, 0))
            break;
    }
    return false;
}

void etch_replay_finish(struct etch_replay *r)
{
    const struct etch_soft_input *in = r->in;
    size_t i = 0;

    r->replaced = 0;
    if (r->c->state == ETCH_REPLAY_AT_GUARD && !etch_replay_pass_guard(r))
        return;
    while (i < in->n_frames && function_around(r, in->frames[i] - (i > 0)) == UINT32_MAX)
        i++;
    if (i < in->n_frames && came_back(r, i))
        etch_replay_come_back(r);
    if (i < in->n_frames && go_to_frame(r, i)) {
        if (in->failed && i == 0)
            etch_replay_event(r, ETCH_STEP_INTERRUPT, in->frames[0], 0);
        return;
    }
    if (etch_replay_in_segment(r->c))
        etch_replay_report_rest(r);
}
