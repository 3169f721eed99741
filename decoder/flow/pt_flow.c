/* SPDX-License-Identifier: MIT */
/* See pt_flow.h. */
#include "decoder/flow/pt_flow.h"
#include "decoder/flow/pt_walk.h"

#define PROMPT_ENOUGH 2u /* TIPs that were not put off, to know that this CPU puts off none */

/* ---- Events ---- */

/* An FUP that was taken for the first half of an interrupt, and was not. */
static void settle_fup(struct etch_pt_walk *f)
{
    if (!f->fup_pending)
        return;
    f->fup_pending = false;
    if (!f->known || !etch_pt_walk_to_ip(f, f->fup_ip))
        etch_pt_walk_go_to(f, f->fup_ip);
}

static void take_async(struct etch_pt_walk *f, uint64_t to)
{
    f->fup_pending = false;
    if (f->known)
        etch_pt_walk_to_ip(f, f->fup_ip);
    etch_pt_walk_event(f, ETCH_STEP_INTERRUPT, f->fup_ip, to);
}

static void set_view(struct etch_pt_walk *f);

/* A MODE packet applies from the next address on. */
static void take_mode(struct etch_pt_walk *f)
{
    if (f->mode == f->next_mode)
        return;
    f->mode = f->next_mode;
    set_view(f);
}

/* A TIP out of code that is not known, to `ip`. Doubtful: TNT bits went by before it, and might belong behind it. */
static void resume_at(struct etch_pt_walk *f, uint64_t ip, bool doubtful)
{
    const char *why = "out of memory";

    if (!f->view || !etch_block_at(f->view, ip, &why)) {
        if (!f->told)
            etch_pt_walk_gap(f, ip, why, f->dirty);
    } else if (doubtful && (f->astray || !f->trusts)) {
        f->refused = f->refused || !f->astray;
    } else {
        etch_pt_walk_go_to(f, ip);
        f->leapt = doubtful;
    }
}

/* The TIP of the block `b`, whose branch it must be. */
static bool fits_tip(const struct etch_block *b)
{
    return b->branch != ETCH_BRANCH_CONDITIONAL;
}

static bool is_indirect(const struct etch_block *b)
{
    return b->branch == ETCH_BRANCH_JUMP_INDIRECT || b->branch == ETCH_BRANCH_CALL_INDIRECT;
}

static void note_order(struct etch_pt_walk *f, const struct etch_block *b)
{
    if (is_indirect(b) && f->order.prompt < PROMPT_ENOUGH)
        etch_pt_order_note_tip(&f->order, &f->reader, f->in->bytes + f->next, f->in->bytes + f->in->own);
}

/* The branch that the TIP is of, into the step buffer; false where none is known. */
static bool take_branch(struct etch_pt_walk *f, const struct etch_pt_packet *packet)
{
    size_t mark = f->buffer->blocks.n;
    struct etch_block *b = etch_pt_walk_to_branch(f, false);

    if (b && !fits_tip(b))
        return etch_pt_walk_contradict(f, mark, etch_pt_not_a_branch);
    if (!b)
        return false;
    note_order(f, b);
    etch_pt_walk_indirect(f, b, packet->value);
    return true;
}

static void take_tip(struct etch_pt_walk *f, const struct etch_pt_packet *packet)
{
    bool async = f->fup_pending, followed = false;

    if (!f->on) {
        etch_pt_walk_loss(f, ETCH__LOSS_CAUSE__LOSS_DECODE, packet->value, "a branch while tracing was off");
        f->on = true;
        etch_pt_walk_lose(f, false);
    }
    if (async)
        take_async(f, packet->has_ip ? packet->value : 0);
    else if (f->known)
        followed = take_branch(f, packet);
    take_mode(f);
    f->began = 0;
    if (!packet->has_ip) {
        if (!f->told)
            etch_pt_walk_loss(f, ETCH__LOSS_CAUSE__LOSS_DECODE, 0, "a branch whose target is not given");
        etch_pt_walk_lose(f, false);
    } else if (async) {
        etch_pt_walk_go_to(f, packet->value);
    } else if (!followed) {
        resume_at(f, packet->value, f->dirty);
    }
}

static void take_begin(struct etch_pt_walk *f, const struct etch_pt_packet *packet)
{
    settle_fup(f);
    take_mode(f);
    f->on = true;
    if (!packet->has_ip) {
        etch_pt_walk_loss(f, ETCH__LOSS_CAUSE__LOSS_DECODE, 0, "tracing begins at an address that is not given");
        etch_pt_walk_lose(f, false);
        return;
    }
    if (f->known && f->ip != packet->value) {
        etch_pt_walk_loss(f, ETCH__LOSS_CAUSE__LOSS_DECODE, packet->value, "tracing begins again and had not ended");
        etch_pt_walk_forget_calls(f);
    }
    etch_pt_walk_go_to(f, packet->value);
    etch_pt_walk_event(f, ETCH_STEP_BEGIN, packet->value, 0);
    f->began = packet->value;
}

static void take_end(struct etch_pt_walk *f, const struct etch_pt_packet *packet)
{
    if (f->fup_pending)
        take_async(f, packet->has_ip ? packet->value : 0);
    else if (f->known && packet->has_ip)
        etch_pt_end_towards(f, packet->value);
    else if (f->known)
        etch_pt_end_at_far(f);
    etch_pt_walk_event(f, ETCH_STEP_END, packet->has_ip ? packet->value : 0, 0);
    f->on = f->known = f->told = f->dirty = f->astray = false;
    f->block = NULL;
    f->began = 0;
}

static void end_psb(struct etch_pt_walk *f);

static void take_overflow(struct etch_pt_walk *f)
{
    end_psb(f);
    settle_fup(f);
    etch_pt_walk_loss(f, ETCH__LOSS_CAUSE__LOSS_OVERFLOW, 0, "the CPU's own buffer was full");
    etch_pt_walk_lose(f, false);
    etch_pt_walk_forget_all_calls(f);
    f->fup_use = ETCH_PT_FUP_RESUME;
    f->on = true; /* an FUP says so, a TIP.PGE will follow otherwise */
}

static void take_fup(struct etch_pt_walk *f, const struct etch_pt_packet *packet)
{
    enum etch_pt_fup_use use = f->fup_use;

    f->fup_use = ETCH_PT_FUP_ASYNC;
    if (!packet->has_ip)
        return;
    if (f->in_psb) {
        f->psb_has_ip = true;
        f->psb_ip = packet->value;
        return;
    }
    settle_fup(f);
    f->fup_ip = packet->value;
    f->fup_pending = true;
    if (use == ETCH_PT_FUP_ASYNC)
        return;
    f->on = true;
    settle_fup(f);
}

/* ---- PSB ---- */

static void end_psb(struct etch_pt_walk *f)
{
    if (!f->in_psb)
        return;
    f->in_psb = false;
    take_mode(f);
    if (f->psb_has_ip) {
        if (!f->known || !etch_pt_walk_to_ip(f, f->psb_ip))
            etch_pt_walk_go_to(f, f->psb_ip);
    } else if (f->known) {
        etch_pt_walk_loss(f, ETCH__LOSS_CAUSE__LOSS_DECODE, f->ip, "tracing was off at a PSB and had not ended");
        etch_pt_walk_lose(f, false);
    }
    /* From here on all is as if decoding began here, for it may. */
    f->on = f->psb_has_ip;
    f->dirty = false;
    f->began = 0;
    etch_pt_walk_forget_all_calls(f);
}

static void begin_psb(struct etch_pt_walk *f)
{
    settle_fup(f);
    f->in_psb = true;
    f->psb_has_ip = false;
    f->fup_use = ETCH_PT_FUP_ASYNC;
}

/* ---- Time, and which code was there ---- */

/* When the next TSC packet was; UINT64_MAX where there is none. */
static uint64_t next_tsc(const struct etch_pt_walk *f)
{
    struct etch_pt_reader reader = f->reader;
    size_t at = f->next;

    while (at < f->in->size) {
        struct etch_pt_packet packet;
        int n = etch_pt_packet_read(&reader, f->in->bytes + at, f->in->bytes + f->in->size, &packet);

        if (n <= 0)
            break;
        if (packet.kind == ETCH_PT_TSC)
            return packet.value;
        at += (size_t)n;
    }
    return f->in->last ? f->in->until : UINT64_MAX;
}

static void set_view(struct etch_pt_walk *f)
{
    struct etch_block_view *view = etch_block_view_of(f->blocks, f->in->pid, f->mode, f->age_lo, f->age_hi);

    if (view == f->view)
        return;
    f->view = view;
    f->block = NULL;
    for (unsigned i = 0; i < ETCH_PT_CALLS_MAX; i++)
        f->calls[i].from = NULL;
}

/* In a process whose mappings took each other's place, time tells which code was there. */
static void see_code_at(struct etch_pt_walk *f, uint64_t lo)
{
    size_t changes = etch_blocks_changes(f->blocks, f->in->pid);

    if (changes == 0)
        return;
    f->age_lo = etch_blocks_age(f->blocks, f->in->pid, lo);
    f->age_hi = f->age_lo < changes ? etch_blocks_age(f->blocks, f->in->pid, next_tsc(f)) : f->age_lo;
    set_view(f);
}

static void take_time(struct etch_pt_walk *f, const struct etch_pt_packet *packet)
{
    uint64_t ticks = f->clock.ticks_all;
    struct etch_interval at;

    switch (etch_pt_clock_feed(&f->clock, packet, &at)) {
    case ETCH_PT_CLOCK_ANCHOR:
        if (at.hi != UINT64_MAX)
            etch_step_buffer_until(f->buffer, at.hi, ticks);
        f->anchor_lo = at.lo;
        etch_step_buffer_time(f->buffer, at.lo, 0);
        see_code_at(f, at.lo);
        break;
    case ETCH_PT_CLOCK_PROGRESS:
        etch_step_buffer_time(f->buffer, f->anchor_lo + f->clock.ticks, f->clock.ticks_all);
        break;
    case ETCH_PT_CLOCK_NOTHING:
        break;
    }
}

/* ---- The packets ---- */

static enum etch_exec_mode exec_mode(uint64_t bits)
{
    return bits & 1 ? ETCH_EXEC_64 : bits & 2 ? ETCH_EXEC_32 : ETCH_EXEC_16;
}

static void take_flow(struct etch_pt_walk *f, const struct etch_pt_packet *packet)
{
    end_psb(f); /* a PSB whose end is missing ends where execution goes on */
    switch (packet->kind) {
    case ETCH_PT_TNT:
        settle_fup(f);
        if (!f->on && !f->dirty)
            etch_pt_walk_loss(f, ETCH__LOSS_CAUSE__LOSS_DECODE, 0, "branches while tracing was off");
        etch_pt_walk_tnt(f, packet);
        break;
    case ETCH_PT_TIP:
        take_tip(f, packet);
        break;
    case ETCH_PT_TIP_PGE:
        take_begin(f, packet);
        break;
    default:
        take_end(f, packet);
        break;
    }
}

static void take_packet(struct etch_pt_walk *f, const struct etch_pt_packet *packet)
{
    switch (packet->kind) {
    case ETCH_PT_TNT:
    case ETCH_PT_TIP:
    case ETCH_PT_TIP_PGE:
    case ETCH_PT_TIP_PGD:
        take_flow(f, packet);
        break;
    case ETCH_PT_FUP:
        take_fup(f, packet);
        break;
    case ETCH_PT_PSB:
        begin_psb(f);
        break;
    case ETCH_PT_PSBEND:
        end_psb(f);
        break;
    case ETCH_PT_OVF:
        take_time(f, packet);
        take_overflow(f);
        break;
    case ETCH_PT_MODE_EXEC:
        f->next_mode = exec_mode(packet->value);
        break;
    case ETCH_PT_MODE_TSX:
        if (!f->in_psb && !(packet->value & 2)) /* but an abort is followed by a TIP */
            f->fup_use = ETCH_PT_FUP_POSITION;
        break;
    case ETCH_PT_PTW:
    case ETCH_PT_EXSTOP:
    case ETCH_PT_BEP:
        if (packet->has_ip)
            f->fup_use = ETCH_PT_FUP_POSITION;
        break;
    case ETCH_PT_TSC:
    case ETCH_PT_MTC:
    case ETCH_PT_TMA:
    case ETCH_PT_CBR:
    case ETCH_PT_CYC:
        take_time(f, packet);
        break;
    default:
        break;
    }
}

/* ---- Whose it is ---- */

/* Enters and leaves the thread's regions as the packets go by. A region that begins with an FUP goes on there behind an
 * overflow. */
static void find_region(struct etch_pt_walk *f, const struct etch_pt_packet *packet)
{
    const struct etch_pt_region *r = f->in->regions;
    bool ours;

    while (f->region < f->in->n_regions && r[f->region].end <= f->at)
        f->region++;
    ours = f->region < f->in->n_regions && f->at >= r[f->region].begin;
    if (ours && f->at == r[f->region].begin && r[f->region].doubtful)
        etch_pt_walk_loss(f, ETCH__LOSS_CAUSE__LOSS_SIDEBAND, 0,
                          "another thread may have run this: the time does not tell");
    if (ours && r[f->region].doubtful)
        ours = false;
    if (ours == f->ours)
        return;
    f->ours = ours;
    f->known = f->told = f->dirty = f->astray = f->fup_pending = false;
    f->block = NULL;
    f->on = ours;
    f->fup_use = packet && packet->kind == ETCH_PT_FUP ? ETCH_PT_FUP_RESUME : ETCH_PT_FUP_ASYNC;
}

/* Takes the packets whose state is needed even while another thread runs. */
static void pass_by(struct etch_pt_walk *f, const struct etch_pt_packet *packet)
{
    switch (packet->kind) {
    case ETCH_PT_MODE_EXEC:
        f->next_mode = exec_mode(packet->value);
        break;
    case ETCH_PT_PSB:
        etch_pt_walk_forget_all_calls(f);
        break;
    default:
        take_time(f, packet);
        break;
    }
}

/* No packet stands here: goes on at the next PSB of this input, or at its end. */
static void resynchronise(struct etch_pt_walk *f, const char *why)
{
    const uint8_t *psb = etch_pt_psb_find(f->in->bytes + f->at + 1, f->in->bytes + f->in->own);

    if (!f->in->regions || f->ours)
        etch_pt_walk_loss(f, ETCH__LOSS_CAUSE__LOSS_DECODE, 0, why);
    etch_pt_walk_lose(f, false);
    f->in_psb = f->fup_pending = false;
    f->clock.ctc_known = false;
    f->next = psb ? (size_t)(psb - f->in->bytes) : f->in->own;
}

/* Looks into the successor's bytes. The PSB there gives the address at which execution went on. The first time behind
 * the PSB bounds the steps before. */
static void look_ahead(struct etch_pt_walk *f)
{
    bool placed = false, timed = false;

    for (f->at = f->in->own; f->at < f->in->size && !(placed && timed); f->at = f->next) {
        struct etch_pt_packet packet;
        int n = etch_pt_packet_read(&f->reader, f->in->bytes + f->at, f->in->bytes + f->in->size, &packet);

        if (n <= 0)
            break;
        f->next = f->at + (size_t)n;
        timed = timed || packet.kind == ETCH_PT_TSC;
        if (packet.kind == ETCH_PT_TSC)
            take_time(f, &packet);
        else if (!placed && (packet.kind == ETCH_PT_PSB || packet.kind == ETCH_PT_PSBEND ||
                             packet.kind == ETCH_PT_FUP || packet.kind == ETCH_PT_MODE_EXEC))
            take_packet(f, &packet);
        else if (!placed && (packet.kind == ETCH_PT_TNT || packet.kind == ETCH_PT_TIP || packet.kind == ETCH_PT_OVF ||
                             packet.kind == ETCH_PT_TIP_PGE || packet.kind == ETCH_PT_TIP_PGD))
            end_psb(f); /* without an end of its own */
        placed = placed || !f->in_psb;
    }
    end_psb(f);
}

static void run(struct etch_pt_walk *f)
{
    for (f->at = 0; f->at < f->in->own && !f->buffer->failed; f->at = f->next) {
        struct etch_pt_packet packet;
        int n = etch_pt_packet_read(&f->reader, f->in->bytes + f->at, f->in->bytes + f->in->size, &packet);

        if (f->in->regions)
            find_region(f, n > 0 ? &packet : NULL);
        f->next = f->at + (size_t)(n > 0 ? n : 0);
        if (n == ETCH_PT_CUT && f->in->last)
            resynchronise(f, "the last packet is cut");
        else if (n <= 0 || f->next > f->in->own)
            resynchronise(f, "no packet begins so");
        else if (!f->in->regions || f->ours)
            take_packet(f, &packet);
        else
            pass_by(f, &packet);
        if (n > 0)
            etch_pt_order_note(&f->order, &packet);
    }
}

/* Decodes all of it into the step buffer, once. */
static struct etch_pt_walk decode(const struct etch_pt_input *input, struct etch_blocks *blocks,
                                  struct etch_step_buffer *buffer, bool trusts)
{
    struct etch_pt_walk f = {.in = input, .blocks = blocks, .buffer = buffer, .trusts = trusts};

    etch_pt_clock_init(&f.clock, input->config);
    f.age_hi = etch_blocks_changes(blocks, input->pid);
    set_view(&f);
    run(&f);
    if (input->regions && !f.ours)
        f.known = false;
    settle_fup(&f);
    look_ahead(&f);
    if (input->last && input->until != UINT64_MAX)
        etch_step_buffer_until(buffer, input->until, f.clock.ticks_all);
    buffer->next_ip = f.known ? f.ip : 0;
    return f;
}

static void rewind_buffer(struct etch_step_buffer *buffer, size_t n_blocks, size_t n_events)
{
    buffer->blocks.n = n_blocks;
    buffer->events.n = n_events;
}

/* TIPs behind missing code are in doubt. If the whole input shows that this CPU defers no TIPs, the second decode uses
 * them. If something does not fit then, they are not used. */
void etch_pt_decode(const struct etch_pt_input *input, struct etch_blocks *blocks, struct etch_step_buffer *buffer)
{
    size_t n_blocks = buffer->blocks.n, n_events = buffer->events.n;
    struct etch_pt_walk f = decode(input, blocks, buffer, false);

    if (f.refused && f.order.prompt >= PROMPT_ENOUGH && !f.order.deferred) {
        rewind_buffer(buffer, n_blocks, n_events);
        f = decode(input, blocks, buffer, true);
        if (f.wrong || f.order.deferred) {
            rewind_buffer(buffer, n_blocks, n_events);
            f = decode(input, blocks, buffer, false);
        }
    }
    buffer->bytes = input->own;
    etch_step_buffer_end_at(buffer, f.view, &input->death);
}
