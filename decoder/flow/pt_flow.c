/* SPDX-License-Identifier: MIT */
/* See pt_flow.h. */
#include "decoder/flow/pt_flow.h"
#include "decoder/flow/pt_clock.h"
#include "decoder/flow/pt_order.h"

#include <string.h>

#define WALK_MAX 4096u              /* blocks without a packet: more is a loop that leaves no trace */
#define TAPE_MAX ((size_t)16 << 20) /* blocks on one tape */
#define CALLS_MAX 64u               /* what the CPU remembers for compressed returns */
#define PROMPT_ENOUGH 2u            /* TIPs that were not put off, to know that this CPU puts off none */

/* What the next FUP is for. */
enum fup_use {
    FUP_ASYNC,    /* an interrupt or fault: a TIP or TIP.PGD follows */
    FUP_POSITION, /* only says where execution is */
    FUP_RESUME,   /* after an overflow: says where it goes on */
};

struct call {
    uint64_t ip;
    struct etch_block *from; /* the call's own block; NULL when it is of another view */
};

struct flow {
    const struct etch_pt_input *in;
    struct etch_blocks *blocks;
    struct etch_step_buffer *tape;
    struct etch_pt_reader reader;
    struct etch_pt_clock clock;
    uint64_t anchor_lo;
    size_t at;   /* of the packet in hand */
    size_t next; /* of the one after it */

    struct etch_block_view *view;
    enum etch_exec_mode mode, next_mode;
    size_t age_lo, age_hi; /* of the code */

    bool on;    /* tracing is enabled, as far as packets told */
    bool known; /* `ip` is the next instruction to run */
    bool told;  /* while not known: a loss on the tape says so */
    bool dirty; /* while not known: TNT bits went by unread, and a deferred TIP may belong before them */
    uint64_t ip;
    struct etch_block *block; /* at `ip`; NULL: not looked up yet */
    uint64_t began;           /* address of the TIP.PGE if no branch was seen since, else 0 */

    struct call calls[CALLS_MAX];
    unsigned n_calls, top;
    bool calls_unseen; /* code that is missing may have made more, which the CPU remembers */

    struct etch_pt_order order; /* what the packets tell about how this CPU orders them */
    bool trusts;                /* a TIP behind unread TNT bits is taken for where it stands */
    bool refused;               /* one was not, and would have been of use */
    bool leapt;                 /* to where such a TIP said; no other packet has confirmed it yet */
    bool wrong;                 /* what followed such a leap did not fit */
    bool astray;                /* while not known: packets and code did not fit, no TIP is to be trusted */

    enum fup_use fup_use;
    bool fup_pending;
    uint64_t fup_ip;

    bool in_psb, psb_has_ip;
    uint64_t psb_ip;

    size_t region; /* index into in->regions */
    bool ours;
};

static const char not_a_branch[] = "the packets and the code do not fit: a branch was expected";

/* ---- The tape ---- */

static void event(struct flow *f, enum etch_step_kind kind, uint64_t ip, uint64_t to)
{
    etch_step_buffer_event(
        f->tape, &(struct etch_step_buffer_event){.kind = kind, .ip = ip, .to = to, .offset = f->in->offset + f->at});
}

static void loss(struct flow *f, Etch__LossCause cause, uint64_t ip, const char *detail)
{
    etch_step_buffer_event(
        f->tape,
        &(struct etch_step_buffer_event){
            .kind = ETCH_STEP_LOSS, .cause = cause, .ip = ip, .offset = f->in->offset + f->at, .detail = detail});
    f->told = true;
}

/* ---- Where execution is ---- */

static void forget_calls(struct flow *f)
{
    f->n_calls = 0;
}

/* As the CPU does at a PSB and at an overflow: from here on it compresses only returns of calls that it shows. */
static void forget_all_calls(struct flow *f)
{
    forget_calls(f);
    f->calls_unseen = false;
}

static void push_call(struct flow *f, struct etch_block *b)
{
    f->top = (f->top + 1) % CALLS_MAX;
    f->calls[f->top] = (struct call){b->end, b};
    if (f->n_calls < CALLS_MAX)
        f->n_calls++;
}

static void lose(struct flow *f, bool dirty)
{
    f->known = false;
    f->dirty = dirty;
    f->block = NULL;
    f->began = 0;
    forget_calls(f);
}

static void go_to(struct flow *f, uint64_t ip)
{
    f->known = true;
    f->told = f->dirty = f->astray = f->leapt = false;
    f->ip = ip;
    f->block = NULL;
}

/* Code is missing at `ip`. What was walked over up to there did run. Returns false, for the walk. */
static bool gap(struct flow *f, uint64_t ip, const char *why, bool dirty)
{
    loss(f, ETCH__LOSS_CAUSE__LOSS_UNMAPPED_CODE, ip, why);
    lose(f, dirty);
    f->calls_unseen = true;
    return false;
}

/* Packets and code contradict each other: what was walked over since `mark` is not proven. */
static bool contradiction(struct flow *f, size_t mark, const char *why)
{
    f->tape->blocks.n = mark;
    f->wrong = f->wrong || f->leapt;
    loss(f, ETCH__LOSS_CAUSE__LOSS_DECODE, f->ip, why);
    lose(f, true);
    f->astray = true;
    return false;
}

static struct etch_block *block_here(struct flow *f, const char **why)
{
    if (!f->block)
        f->block = f->view ? etch_block_at(f->view, f->ip, why) : (*why = "out of memory", NULL);
    return f->block;
}

/* ---- Walking ---- */

/* Steps over a block whose way on needs no packet. Returns false where it does need one. */
static bool step_direct(struct flow *f, struct etch_block *b, const char **why)
{
    switch (b->branch) {
    case ETCH_BRANCH_NONE:
        etch_step_buffer_block(f->tape, b);
        f->ip = b->end;
        f->block = etch_block_fall(f->view, b, why);
        return true;
    case ETCH_BRANCH_CALL:
        if (b->target != b->end)
            push_call(f, b);
        /* fallthrough */
    case ETCH_BRANCH_JUMP:
        etch_step_buffer_block(f->tape, b);
        f->ip = b->target;
        f->block = etch_block_taken(f->view, b, why);
        return true;
    default:
        return false;
    }
}

/* Walks to the next block that needs a packet. NULL where there is no way: the loss is on the tape then. */
static struct etch_block *walk_to_branch(struct flow *f, bool dirty)
{
    size_t mark = f->tape->blocks.n;

    for (unsigned n = 0; n < WALK_MAX; n++) {
        const char *why = NULL;
        struct etch_block *b = block_here(f, &why);

        if (!b) {
            gap(f, f->ip, why, dirty);
            return NULL;
        }
        if (!step_direct(f, b, &why))
            return b;
    }
    contradiction(f, mark, "a loop without end that leaves no trace");
    return NULL;
}

enum arrival { ARRIVED, MISSED };

/* Walks to the instruction at `ip` without the help of packets, and stops before it. */
static enum arrival walk_to_ip(struct flow *f, uint64_t ip)
{
    size_t mark = f->tape->blocks.n;

    for (unsigned n = 0; n < WALK_MAX; n++) {
        const char *why = NULL;
        struct etch_block *b, *cut;

        if (f->ip == ip)
            return ARRIVED;
        b = block_here(f, &why);
        if (!b) {
            gap(f, f->ip, why, false);
            return MISSED;
        }
        cut = ip > b->first && ip < b->end ? etch_block_before(f->view, b, ip) : NULL;
        if (cut) {
            etch_step_buffer_block(f->tape, cut);
            f->ip = ip;
            f->block = NULL;
            return ARRIVED;
        }
        if (!step_direct(f, b, &why))
            break;
    }
    contradiction(f, mark, "the packets and the code do not fit: an address is out of reach");
    return MISSED;
}

/* A TIP that was put off until a TNT was full: it must stand right behind the TNT in hand. */
static bool take_deferred(struct flow *f, uint64_t *ip)
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

static void take_indirect(struct flow *f, struct etch_block *b, uint64_t ip)
{
    etch_step_buffer_block(f->tape, b);
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

static bool take_return(struct flow *f, struct etch_block *b, bool bit, size_t mark)
{
    struct call *call = &f->calls[f->top];
    const char *why;

    if (!bit)
        return contradiction(f, mark, "the packets and the code do not fit: a return that was not taken");
    if (f->n_calls == 0 && !f->calls_unseen)
        return contradiction(f, mark, "a compressed return whose call was not seen");
    etch_step_buffer_block(f->tape, b);
    if (f->n_calls == 0)
        return gap(f, 0, "a return to a caller that was not seen", false);
    f->ip = call->ip;
    f->block = call->from ? etch_block_fall(f->view, call->from, &why) : NULL;
    f->top = (f->top + CALLS_MAX - 1) % CALLS_MAX;
    f->n_calls--;
    return true;
}

/* One TNT bit. Where code is missing before its branch, it stays unread. */
static bool take_bit(struct flow *f, bool bit)
{
    for (;;) {
        size_t mark = f->tape->blocks.n;
        struct etch_block *b = walk_to_branch(f, true);
        uint64_t ip;

        if (!b)
            return false;
        switch (b->branch) {
        case ETCH_BRANCH_CONDITIONAL:
            etch_step_buffer_block(f->tape, b);
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
                return contradiction(f, mark, not_a_branch);
            take_indirect(f, b, ip);
        }
    }
}

static void take_tnt(struct flow *f, const struct etch_pt_packet *packet)
{
    if (!f->known) {
        f->dirty = true;
        return;
    }
    f->began = 0;
    for (unsigned i = packet->count; i > 0; i--)
        if (!take_bit(f, packet->value >> (i - 1) & 1)) {
            /* Bits are left that belong behind what is missing. */
            f->dirty = f->dirty || i > 1;
            return;
        }
    if (f->tape->blocks.n > TAPE_MAX) {
        loss(f, ETCH__LOSS_CAUSE__LOSS_DECODE, f->ip, "more blocks than so few bytes can mean");
        lose(f, true);
    }
}

/* ---- Events ---- */

/* An FUP that was taken for the first half of an interrupt, and was not. */
static void settle_fup(struct flow *f)
{
    if (!f->fup_pending)
        return;
    f->fup_pending = false;
    if (!f->known || walk_to_ip(f, f->fup_ip) == MISSED)
        go_to(f, f->fup_ip);
}

static void take_async(struct flow *f, uint64_t to)
{
    f->fup_pending = false;
    if (f->known)
        walk_to_ip(f, f->fup_ip);
    event(f, ETCH_STEP_INTERRUPT, f->fup_ip, to);
}

static void set_view(struct flow *f);

/* What a MODE packet said holds from the next address on. */
static void take_mode(struct flow *f)
{
    if (f->mode == f->next_mode)
        return;
    f->mode = f->next_mode;
    set_view(f);
}

/* A TIP out of code that is not known, to `ip`. Doubtful: TNT bits went by before it, and might belong behind it. */
static void land(struct flow *f, uint64_t ip, bool doubtful)
{
    const char *why = "out of memory";

    if (!f->view || !etch_block_at(f->view, ip, &why)) {
        if (!f->told)
            gap(f, ip, why, f->dirty);
    } else if (doubtful && (f->astray || !f->trusts)) {
        f->refused = f->refused || !f->astray;
    } else {
        go_to(f, ip);
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

static void note_order(struct flow *f, const struct etch_block *b)
{
    if (is_indirect(b) && f->order.prompt < PROMPT_ENOUGH)
        etch_pt_order_note_tip(&f->order, &f->reader, f->in->bytes + f->next, f->in->bytes + f->in->own);
}

/* The branch that the TIP is of, onto the tape; false where none is known. */
static bool take_branch(struct flow *f, const struct etch_pt_packet *packet)
{
    size_t mark = f->tape->blocks.n;
    struct etch_block *b = walk_to_branch(f, false);

    if (b && !fits_tip(b))
        return contradiction(f, mark, not_a_branch);
    if (!b)
        return false;
    note_order(f, b);
    take_indirect(f, b, packet->value);
    return true;
}

static void take_tip(struct flow *f, const struct etch_pt_packet *packet)
{
    bool async = f->fup_pending, followed = false;

    if (!f->on) {
        loss(f, ETCH__LOSS_CAUSE__LOSS_DECODE, packet->value, "a branch while tracing was off");
        f->on = true;
        lose(f, false);
    }
    if (async)
        take_async(f, packet->has_ip ? packet->value : 0);
    else if (f->known)
        followed = take_branch(f, packet);
    take_mode(f);
    f->began = 0;
    if (!packet->has_ip) {
        if (!f->told)
            loss(f, ETCH__LOSS_CAUSE__LOSS_DECODE, 0, "a branch whose target is not given");
        lose(f, false);
    } else if (async) {
        go_to(f, packet->value);
    } else if (!followed) {
        land(f, packet->value, f->dirty);
    }
}

static void take_begin(struct flow *f, const struct etch_pt_packet *packet)
{
    settle_fup(f);
    take_mode(f);
    f->on = true;
    if (!packet->has_ip) {
        loss(f, ETCH__LOSS_CAUSE__LOSS_DECODE, 0, "tracing begins at an address that is not given");
        lose(f, false);
        return;
    }
    if (f->known && f->ip != packet->value) {
        loss(f, ETCH__LOSS_CAUSE__LOSS_DECODE, packet->value, "tracing begins again and had not ended");
        forget_calls(f);
    }
    go_to(f, packet->value);
    event(f, ETCH_STEP_BEGIN, packet->value, 0);
    f->began = packet->value;
}

/* Where the thread's next region begins, as far as the one in hand is over at the next packet. */
static size_t next_region(const struct flow *f)
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
static uint64_t next_begin(const struct flow *f)
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
static void end_at_far(struct flow *f)
{
    uint64_t began = f->began;
    size_t mark = f->tape->blocks.n;
    struct etch_block *b = walk_to_branch(f, false);

    if (!b)
        return;
    if (b->branch != ETCH_BRANCH_FAR && !(f->in->config && f->in->config->filters)) {
        if (began && next_begin(f) == began)
            f->tape->blocks.n = mark;
        else
            contradiction(f, mark, "tracing was cut: whether anything ran since the last branch is not known");
        return;
    }
    /* Cut before its first instruction ran, then resumed there, looks the same as a system call that returned to where
     * tracing had begun; only an instruction that is itself the system call can be told. */
    if (began && b->last != began && next_begin(f) == began) {
        f->ip = began;
        contradiction(f, mark, "tracing was cut: whether anything ran since it began is not known");
        return;
    }
    etch_step_buffer_block(f->tape, b);
}

/* With address filters: tracing ended because execution went to `ip`. */
static void end_towards(struct flow *f, uint64_t ip)
{
    size_t mark = f->tape->blocks.n;

    for (unsigned n = 0; n < WALK_MAX; n++) {
        const char *why = NULL;
        struct etch_block *b = block_here(f, &why), *cut;

        if (!b) {
            gap(f, f->ip, why, false);
            return;
        }
        cut = ip > b->first && ip < b->end ? etch_block_before(f->view, b, ip) : NULL;
        if (cut) {
            etch_step_buffer_block(f->tape, cut);
            return;
        }
        if (!step_direct(f, b, &why)) {
            if (b->branch == ETCH_BRANCH_CONDITIONAL && b->target != ip && b->end != ip)
                break;
            etch_step_buffer_block(f->tape, b);
            return;
        }
        if (f->ip == ip)
            return;
    }
    contradiction(f, mark, "the packets and the code do not fit: tracing ended out of reach");
}

static void take_end(struct flow *f, const struct etch_pt_packet *packet)
{
    if (f->fup_pending)
        take_async(f, packet->has_ip ? packet->value : 0);
    else if (f->known && packet->has_ip)
        end_towards(f, packet->value);
    else if (f->known)
        end_at_far(f);
    event(f, ETCH_STEP_END, packet->has_ip ? packet->value : 0, 0);
    f->on = f->known = f->told = f->dirty = f->astray = false;
    f->block = NULL;
    f->began = 0;
}

static void end_psb(struct flow *f);

static void take_overflow(struct flow *f)
{
    end_psb(f);
    settle_fup(f);
    loss(f, ETCH__LOSS_CAUSE__LOSS_OVERFLOW, 0, "the CPU's own buffer was full");
    lose(f, false);
    forget_all_calls(f);
    f->fup_use = FUP_RESUME;
    f->on = true; /* an FUP says so, a TIP.PGE will follow otherwise */
}

static void take_fup(struct flow *f, const struct etch_pt_packet *packet)
{
    enum fup_use use = f->fup_use;

    f->fup_use = FUP_ASYNC;
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
    if (use == FUP_ASYNC)
        return;
    f->on = true;
    settle_fup(f);
}

/* ---- PSB ---- */

static void end_psb(struct flow *f)
{
    if (!f->in_psb)
        return;
    f->in_psb = false;
    take_mode(f);
    if (f->psb_has_ip) {
        if (!f->known || walk_to_ip(f, f->psb_ip) == MISSED)
            go_to(f, f->psb_ip);
    } else if (f->known) {
        loss(f, ETCH__LOSS_CAUSE__LOSS_DECODE, f->ip, "tracing was off at a PSB and had not ended");
        lose(f, false);
    }
    /* From here on all is as if decoding began here, for it may. */
    f->on = f->psb_has_ip;
    f->dirty = false;
    f->began = 0;
    forget_all_calls(f);
}

static void begin_psb(struct flow *f)
{
    settle_fup(f);
    f->in_psb = true;
    f->psb_has_ip = false;
    f->fup_use = FUP_ASYNC;
}

/* ---- Time, and which code was there ---- */

/* When the next TSC packet was; UINT64_MAX where there is none. */
static uint64_t next_tsc(const struct flow *f)
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

static void set_view(struct flow *f)
{
    struct etch_block_view *view = etch_block_view_of(f->blocks, f->in->pid, f->mode, f->age_lo, f->age_hi);

    if (view == f->view)
        return;
    f->view = view;
    f->block = NULL;
    for (unsigned i = 0; i < CALLS_MAX; i++)
        f->calls[i].from = NULL;
}

/* In a process whose mappings took each other's place, time tells which code was there. */
static void see_code_at(struct flow *f, uint64_t lo)
{
    size_t changes = etch_blocks_changes(f->blocks, f->in->pid);

    if (changes == 0)
        return;
    f->age_lo = etch_blocks_age(f->blocks, f->in->pid, lo);
    f->age_hi = f->age_lo < changes ? etch_blocks_age(f->blocks, f->in->pid, next_tsc(f)) : f->age_lo;
    set_view(f);
}

static void take_time(struct flow *f, const struct etch_pt_packet *packet)
{
    uint64_t ticks = f->clock.ticks_all;
    struct etch_interval at;

    switch (etch_pt_clock_feed(&f->clock, packet, &at)) {
    case ETCH_PT_CLOCK_ANCHOR:
        if (at.hi != UINT64_MAX)
            etch_step_buffer_until(f->tape, at.hi, ticks);
        f->anchor_lo = at.lo;
        etch_step_buffer_time(f->tape, at.lo, 0);
        see_code_at(f, at.lo);
        break;
    case ETCH_PT_CLOCK_PROGRESS:
        etch_step_buffer_time(f->tape, f->anchor_lo + f->clock.ticks, f->clock.ticks_all);
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

static void take_flow(struct flow *f, const struct etch_pt_packet *packet)
{
    end_psb(f); /* a PSB whose end is missing ends where execution goes on */
    switch (packet->kind) {
    case ETCH_PT_TNT:
        settle_fup(f);
        if (!f->on && !f->dirty)
            loss(f, ETCH__LOSS_CAUSE__LOSS_DECODE, 0, "branches while tracing was off");
        take_tnt(f, packet);
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

static void take_packet(struct flow *f, const struct etch_pt_packet *packet)
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
            f->fup_use = FUP_POSITION;
        break;
    case ETCH_PT_PTW:
    case ETCH_PT_EXSTOP:
    case ETCH_PT_BEP:
        if (packet->has_ip)
            f->fup_use = FUP_POSITION;
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
static void find_region(struct flow *f, const struct etch_pt_packet *packet)
{
    const struct etch_pt_region *r = f->in->regions;
    bool ours;

    while (f->region < f->in->n_regions && r[f->region].end <= f->at)
        f->region++;
    ours = f->region < f->in->n_regions && f->at >= r[f->region].begin;
    if (ours && f->at == r[f->region].begin && r[f->region].doubtful)
        loss(f, ETCH__LOSS_CAUSE__LOSS_SIDEBAND, 0, "another thread may have run this: the time does not tell");
    if (ours && r[f->region].doubtful)
        ours = false;
    if (ours == f->ours)
        return;
    f->ours = ours;
    f->known = f->told = f->dirty = f->astray = f->fup_pending = false;
    f->block = NULL;
    f->on = ours;
    f->fup_use = packet && packet->kind == ETCH_PT_FUP ? FUP_RESUME : FUP_ASYNC;
}

/* What keeps the packet level going while another thread runs. */
static void pass_by(struct flow *f, const struct etch_pt_packet *packet)
{
    switch (packet->kind) {
    case ETCH_PT_MODE_EXEC:
        f->next_mode = exec_mode(packet->value);
        break;
    case ETCH_PT_PSB:
        forget_all_calls(f);
        break;
    default:
        take_time(f, packet);
        break;
    }
}

/* No packet stands here: goes on at the next PSB of this input, or at its end. */
static void resynchronise(struct flow *f, const char *why)
{
    const uint8_t *psb = etch_pt_psb_find(f->in->bytes + f->at + 1, f->in->bytes + f->in->own);

    if (!f->in->regions || f->ours)
        loss(f, ETCH__LOSS_CAUSE__LOSS_DECODE, 0, why);
    lose(f, false);
    f->in_psb = f->fup_pending = false;
    f->clock.ctc_known = false;
    f->next = psb ? (size_t)(psb - f->in->bytes) : f->in->own;
}

/* How it went on: the successor's PSB says where execution was then; the first time behind it bounds what was before.
 */
static void look_ahead(struct flow *f)
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

static void run(struct flow *f)
{
    for (f->at = 0; f->at < f->in->own && !f->tape->failed; f->at = f->next) {
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

/* Decodes all of it onto the tape, once. */
static struct flow decode(const struct etch_pt_input *input, struct etch_blocks *blocks, struct etch_step_buffer *tape,
                          bool trusts)
{
    struct flow f = {.in = input, .blocks = blocks, .tape = tape, .trusts = trusts};

    etch_pt_clock_init(&f.clock, input->config);
    f.age_hi = etch_blocks_changes(blocks, input->pid);
    set_view(&f);
    run(&f);
    if (input->regions && !f.ours)
        f.known = false;
    settle_fup(&f);
    look_ahead(&f);
    if (input->last && input->until != UINT64_MAX)
        etch_step_buffer_until(tape, input->until, f.clock.ticks_all);
    tape->next_ip = f.known ? f.ip : 0;
    return f;
}

static void rewind_tape(struct etch_step_buffer *tape, size_t n_blocks, size_t n_events)
{
    tape->blocks.n = n_blocks;
    tape->events.n = n_events;
}

/* Where code is missing, TIPs behind it are in doubt. If all of the input shows that this CPU puts off none, they are
 * used; if something does not fit then, they are not. */
void etch_pt_decode(const struct etch_pt_input *input, struct etch_blocks *blocks, struct etch_step_buffer *tape)
{
    size_t n_blocks = tape->blocks.n, n_events = tape->events.n;
    struct flow f = decode(input, blocks, tape, false);

    if (f.refused && f.order.prompt >= PROMPT_ENOUGH && !f.order.deferred) {
        rewind_tape(tape, n_blocks, n_events);
        f = decode(input, blocks, tape, true);
        if (f.wrong || f.order.deferred) {
            rewind_tape(tape, n_blocks, n_events);
            f = decode(input, blocks, tape, false);
        }
    }
    tape->bytes = input->own;
    etch_step_buffer_end_at(tape, f.view, &input->death);
}
