/* SPDX-License-Identifier: MIT */
/* See pt_walk.h. */
#include "decoder/flow/pt_walk.h"

#define BUFFER_MAX ((size_t)16 << 20) /* blocks in one step buffer */

const char etch_pt_not_a_branch[] = "the packets and the code do not fit: a branch was expected";

/* ---- The step buffer ---- */

void etch_pt_walk_event(struct etch_pt_walk *f, enum etch_step_kind kind, uint64_t ip, uint64_t to)
{
    etch_step_buffer_event(
        f->buffer, &(struct etch_step_buffer_event){.kind = kind, .ip = ip, .to = to, .offset = f->in->offset + f->at});
}

void etch_pt_walk_loss(struct etch_pt_walk *f, Etch__LossCause cause, uint64_t ip, const char *detail)
{
    etch_step_buffer_event(
        f->buffer,
        &(struct etch_step_buffer_event){
            .kind = ETCH_STEP_LOSS, .cause = cause, .ip = ip, .offset = f->in->offset + f->at, .detail = detail});
    f->told = true;
}

/* ---- Where execution is ---- */

void etch_pt_walk_forget_calls(struct etch_pt_walk *f)
{
    f->n_calls = 0;
}

void etch_pt_walk_forget_all_calls(struct etch_pt_walk *f)
{
    etch_pt_walk_forget_calls(f);
    f->calls_unseen = false;
}

static void push_call(struct etch_pt_walk *f, struct etch_block *b)
{
    f->top = (f->top + 1) % ETCH_PT_CALLS_MAX;
    f->calls[f->top] = (struct etch_pt_call){b->end, b};
    if (f->n_calls < ETCH_PT_CALLS_MAX)
        f->n_calls++;
}

void etch_pt_walk_lose(struct etch_pt_walk *f, bool dirty)
{
    f->known = false;
    f->dirty = dirty;
    f->block = NULL;
    f->began = 0;
    etch_pt_walk_forget_calls(f);
}

void etch_pt_walk_go_to(struct etch_pt_walk *f, uint64_t ip)
{
    f->known = true;
    f->told = f->dirty = f->astray = f->leapt = false;
    f->ip = ip;
    f->block = NULL;
}

bool etch_pt_walk_gap(struct etch_pt_walk *f, uint64_t ip, const char *why, bool dirty)
{
    etch_pt_walk_loss(f, ETCH__LOSS_CAUSE__LOSS_UNMAPPED_CODE, ip, why);
    etch_pt_walk_lose(f, dirty);
    f->calls_unseen = true;
    return false;
}

bool etch_pt_walk_contradict(struct etch_pt_walk *f, size_t mark, const char *why)
{
    f->buffer->blocks.n = mark;
    f->wrong = f->wrong || f->leapt;
    etch_pt_walk_loss(f, ETCH__LOSS_CAUSE__LOSS_DECODE, f->ip, why);
    etch_pt_walk_lose(f, true);
    f->astray = true;
    return false;
}

struct etch_block *etch_pt_walk_block(struct etch_pt_walk *f, const char **why)
{
    if (!f->block)
        f->block = f->view ? etch_block_at(f->view, f->ip, why) : (*why = "out of memory", NULL);
    return f->block;
}

/* ---- Walking ---- */

bool etch_pt_walk_step(struct etch_pt_walk *f, struct etch_block *b, const char **why)
{
    switch (b->branch) {
    case ETCH_BRANCH_NONE:
        etch_step_buffer_block(f->buffer, b);
        f->ip = b->end;
        f->block = etch_block_fall(f->view, b, why);
        return true;
    case ETCH_BRANCH_CALL:
        if (b->target != b->end)
            push_call(f, b);
        /* fallthrough */
    case ETCH_BRANCH_JUMP:
        etch_step_buffer_block(f->buffer, b);
        f->ip = b->target;
        f->block = etch_block_taken(f->view, b, why);
        return true;
    default:
        return false;
    }
}

struct etch_block *etch_pt_walk_to_branch(struct etch_pt_walk *f, bool dirty)
{
    size_t mark = f->buffer->blocks.n;

    for (unsigned n = 0; n < ETCH_PT_WALK_MAX; n++) {
        const char *why = NULL;
        struct etch_block *b = etch_pt_walk_block(f, &why);

        if (!b) {
            etch_pt_walk_gap(f, f->ip, why, dirty);
            return NULL;
        }
        if (!etch_pt_walk_step(f, b, &why))
            return b;
    }
    etch_pt_walk_contradict(f, mark, "a loop without end that leaves no trace");
    return NULL;
}

bool etch_pt_walk_to_ip(struct etch_pt_walk *f, uint64_t ip)
{
    size_t mark = f->buffer->blocks.n;

    for (unsigned n = 0; n < ETCH_PT_WALK_MAX; n++) {
        const char *why = NULL;
        struct etch_block *b, *cut;

        if (f->ip == ip)
            return true;
        b = etch_pt_walk_block(f, &why);
        if (!b) {
            etch_pt_walk_gap(f, f->ip, why, false);
            return false;
        }
        cut = ip > b->first && ip < b->end ? etch_block_before(f->view, b, ip) : NULL;
        if (cut) {
            etch_step_buffer_block(f->buffer, cut);
            f->ip = ip;
            f->block = NULL;
            return true;
        }
        if (!etch_pt_walk_step(f, b, &why))
            break;
    }
    etch_pt_walk_contradict(f, mark, "the packets and the code do not fit: an address is out of reach");
    return false;
}

/* A TIP that was put off until a TNT was full: it must be right behind the TNT in hand. */
static bool take_deferred(struct etch_pt_walk *f, uint64_t *ip)
{
    struct etch_pt_packet packet;
    int n;

    do {
        n = etch_pt_packet_read(&f->reader, f->in->bytes + f->next, f->in->bytes + f->in->own, &packet);
        if (n <= 0 || (packet.kind != ETCH_PT_PAD && (packet.kind != ETCH_PT_TIP || !packet.has_ip)))
            return false;
        f->next += (size_t)n;
    } while (packet.kind == ETCH_PT_PAD);
    *ip = packet.value;
    f->order.deferred = true;
    return true;
}

void etch_pt_walk_indirect(struct etch_pt_walk *f, struct etch_block *b, uint64_t ip)
{
    etch_step_buffer_block(f->buffer, b);
    if (b->branch == ETCH_BRANCH_CALL_INDIRECT)
        push_call(f, b);
    f->ip = ip;
    /* The link of an indirect branch is where it went last. */
    if (!b->taken || b->taken->first != ip) {
        const char *why;

        b->taken = etch_block_at(f->view, ip, &why);
    }
    f->block = b->taken;
    f->began = 0;
}

static bool take_return(struct etch_pt_walk *f, struct etch_block *b, bool bit, size_t mark)
{
    struct etch_pt_call *call = &f->calls[f->top];
    const char *why;

    if (!bit)
        return etch_pt_walk_contradict(f, mark, "the packets and the code do not fit: a return that was not taken");
    if (f->n_calls == 0 && !f->calls_unseen)
        return etch_pt_walk_contradict(f, mark, "a compressed return whose call was not seen");
    etch_step_buffer_block(f->buffer, b);
    if (f->n_calls == 0)
        return etch_pt_walk_gap(f, 0, "a return to a caller that was not seen", false);
    f->ip = call->ip;
    f->block = call->from ? etch_block_fall(f->view, call->from, &why) : NULL;
    f->top = (f->top + ETCH_PT_CALLS_MAX - 1) % ETCH_PT_CALLS_MAX;
    f->n_calls--;
    return true;
}

/* Takes a TNT bit. If code is missing before its branch, the bit stays unread. */
static bool take_bit(struct etch_pt_walk *f, bool bit)
{
    for (;;) {
        size_t mark = f->buffer->blocks.n;
        struct etch_block *b = etch_pt_walk_to_branch(f, true);
        uint64_t ip;

        if (!b)
            return false;
        switch (b->branch) {
        case ETCH_BRANCH_CONDITIONAL:
            etch_step_buffer_block(f->buffer, b);
            f->ip = bit ? b->target : b->end;
            f->block = bit ? b->taken : b->fall;
            if (!f->block) {
                const char *why;

                f->block = bit ? etch_block_taken(f->view, b, &why) : etch_block_fall(f->view, b, &why);
            }
            return true;
        case ETCH_BRANCH_RETURN:
            return take_return(f, b, bit, mark);
        default:
            if (!take_deferred(f, &ip))
                return etch_pt_walk_contradict(f, mark, etch_pt_not_a_branch);
            etch_pt_walk_indirect(f, b, ip);
        }
    }
}

void etch_pt_walk_tnt(struct etch_pt_walk *f, const struct etch_pt_packet *packet)
{
    if (!f->known) {
        f->dirty = true;
        return;
    }
    f->began = 0;
    for (unsigned i = packet->count; i > 0; i--)
        if (!take_bit(f, packet->value >> (i - 1) & 1)) {
            /* The remaining bits belong behind the missing code. */
            f->dirty = f->dirty || i > 1;
            return;
        }
    if (f->buffer->blocks.n > BUFFER_MAX) {
        etch_pt_walk_loss(f, ETCH__LOSS_CAUSE__LOSS_DECODE, f->ip, "more blocks than so few bytes can mean");
        etch_pt_walk_lose(f, true);
    }
}
