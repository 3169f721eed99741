/* SPDX-License-Identifier: MIT */
/* The end of tracing (TIP.PGD): which code ran between the last branch and the end. */
#include "decoder/flow/pt_walk.h"

/* The begin of the thread's next region, if the current region is over at the next packet. */
static size_t next_region(const struct etch_pt_walk *f)
{
    const struct etch_pt_region *r = f->in->regions;
    size_t i = f->region;

    if (!r)
        return f->next;
    while (i < f->in->n_regions && r[i].end <= f->next)
        i++;
    if (i == f->in->n_regions || r[i].doubtful)
        return SIZE_MAX;
    return r[i].begin > f->next ? r[i].begin : f->next;
}

/* The address of the thread's next TIP.PGE if nothing but timing lies before it, else 0. */
static uint64_t next_begin(const struct etch_pt_walk *f)
{
    struct etch_pt_reader reader = f->reader;
    size_t at = f->next, from = next_region(f);

    while (at < f->in->size) {
        struct etch_pt_packet packet;
        int n = etch_pt_packet_read(&reader, f->in->bytes + at, f->in->bytes + f->in->size, &packet);

        if (n <= 0)
            return 0;
        at += (size_t)n;
        if (at <= from) /* another thread's */
            continue;
        switch (packet.kind) {
        case ETCH_PT_TIP_PGE:
            return packet.has_ip ? packet.value : 0;
        case ETCH_PT_TNT:
        case ETCH_PT_TIP:
        case ETCH_PT_TIP_PGD:
        case ETCH_PT_OVF:
            return 0;
        default:
            break;
        }
    }
    return 0;
}

/* Tracing ended without saying where. As a rule an instruction did that leaves for the kernel or, with address filters,
 * any branch. None is in reach where a debugger's breakpoint stood in the code's place, or something cut the trace: if
 * tracing had just begun, and the thread is still there when it begins again, nothing ran. */
void etch_pt_end_at_far(struct etch_pt_walk *f)
{
    uint64_t began = f->began;
    size_t mark = f->buffer->blocks.n;
    struct etch_block *b = etch_pt_walk_to_branch(f, false);

    if (!b)
        return;
    if (b->branch != ETCH_BRANCH_FAR && !(f->in->config && f->in->config->filters)) {
        if (began && next_begin(f) == began)
            f->buffer->blocks.n = mark;
        else
            etch_pt_walk_contradict(f, mark,
                                    "tracing was cut: whether anything ran since the last branch is not known");
        return;
    }
    /* Cut before its first instruction ran, then resumed there, looks the same as a system call that returned to where
     * tracing had begun; only an instruction that is itself the system call can be told. */
    if (began && b->last != began && next_begin(f) == began) {
        f->ip = began;
        etch_pt_walk_contradict(f, mark, "tracing was cut: whether anything ran since it began is not known");
        return;
    }
    etch_step_buffer_block(f->buffer, b);
}

void etch_pt_end_towards(struct etch_pt_walk *f, uint64_t ip)
{
    size_t mark = f->buffer->blocks.n;

    for (unsigned n = 0; n < ETCH_PT_WALK_MAX; n++) {
        const char *why = NULL;
        struct etch_block *b = etch_pt_walk_block(f, &why), *cut;

        if (!b) {
            etch_pt_walk_gap(f, f->ip, why, false);
            return;
        }
        cut = ip > b->first && ip < b->end ? etch_block_before(f->view, b, ip) : NULL;
        if (cut) {
            etch_step_buffer_block(f->buffer, cut);
            return;
        }
        if (!etch_pt_walk_step(f, b, &why)) {
            if (b->branch == ETCH_BRANCH_CONDITIONAL && b->target != ip && b->end != ip)
                break;
            etch_step_buffer_block(f->buffer, b);
            return;
        }
        if (f->ip == ip)
            return;
    }
    etch_pt_walk_contradict(f, mark, "the packets and the code do not fit: tracing ended out of reach");
}
