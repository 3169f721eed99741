/* SPDX-License-Identifier: MIT */
/* The walk through the code of a thread that Intel PT recorded. The packets lead it: pt_flow.c. Private to
 * decoder/flow/pt_*.c. */
#ifndef ETCH_DECODER_FLOW_PT_WALK_H
#define ETCH_DECODER_FLOW_PT_WALK_H

#include "decoder/flow/pt_clock.h"
#include "decoder/flow/pt_flow.h"
#include "decoder/flow/pt_order.h"

#define ETCH_PT_WALK_MAX 4096u /* blocks without a packet: more is a loop that leaves no trace */
#define ETCH_PT_CALLS_MAX 64u  /* the CPU remembers as many for compressed returns */

/* The meaning of the next FUP. */
enum etch_pt_fup_use {
    ETCH_PT_FUP_ASYNC,    /* an interrupt or fault: a TIP or TIP.PGD follows */
    ETCH_PT_FUP_POSITION, /* only says where execution is */
    ETCH_PT_FUP_RESUME,   /* after an overflow: says where it goes on */
};

struct etch_pt_call {
    uint64_t ip;
    struct etch_block *from; /* the call's own block; NULL when it is of another view */
};

struct etch_pt_walk {
    const struct etch_pt_input *in;
    struct etch_blocks *blocks;
    struct etch_step_buffer *buffer;
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
    bool told;  /* while not known: a loss in the step buffer says so */
    bool dirty; /* while not known: TNT bits went by unread, and a deferred TIP may belong before them */
    uint64_t ip;
    struct etch_block *block; /* at `ip`; NULL: not looked up yet */
    uint64_t began;           /* address of the TIP.PGE if no branch was seen since, else 0 */

    struct etch_pt_call calls[ETCH_PT_CALLS_MAX];
    unsigned n_calls, top;
    bool calls_unseen; /* code that is missing may have made more, which the CPU remembers */

    struct etch_pt_order order; /* the packets' evidence of this CPU's packet order */
    bool trusts;                /* a TIP behind unread TNT bits is taken as in its place */
    bool refused;               /* such a TIP was not taken, and would have been of use */
    bool leapt;                 /* went to the address of such a TIP; no other packet has confirmed it yet */
    bool wrong;                 /* the packets after such a leap did not fit */
    bool astray;                /* while `ip` is not known: packets and code did not fit, so no TIP is trusted */

    enum etch_pt_fup_use fup_use;
    bool fup_pending;
    uint64_t fup_ip;

    bool in_psb, psb_has_ip;
    uint64_t psb_ip;

    size_t region; /* index into in->regions */
    bool ours;
};

extern const char etch_pt_not_a_branch[];

void etch_pt_walk_event(struct etch_pt_walk *f, enum etch_step_kind kind, uint64_t ip, uint64_t to);
void etch_pt_walk_loss(struct etch_pt_walk *f, Etch__LossCause cause, uint64_t ip, const char *detail);

/* Forgets the calls that the walk has seen. */
void etch_pt_walk_forget_calls(struct etch_pt_walk *f);
/* Forgets all calls, as the CPU does at a PSB and at an overflow: from here on it compresses only returns of calls that
 * it shows. */
void etch_pt_walk_forget_all_calls(struct etch_pt_walk *f);

/* `ip` is not known any more. */
void etch_pt_walk_lose(struct etch_pt_walk *f, bool dirty);
/* `ip` is known. */
void etch_pt_walk_go_to(struct etch_pt_walk *f, uint64_t ip);
/* Code is missing at `ip`. The blocks up to there did run. Returns false. */
bool etch_pt_walk_gap(struct etch_pt_walk *f, uint64_t ip, const char *why, bool dirty);
/* Packets and code contradict each other: the blocks since `mark` are not proven. Returns false. */
bool etch_pt_walk_contradict(struct etch_pt_walk *f, size_t mark, const char *why);

/* The block at `ip`; NULL, with the reason, where no code is known. */
struct etch_block *etch_pt_walk_block(struct etch_pt_walk *f, const char **why);
/* Steps over a block that needs no packet to go on. Returns false if the block needs a packet. */
bool etch_pt_walk_step(struct etch_pt_walk *f, struct etch_block *b, const char **why);
/* Walks to the next block that needs a packet. Returns NULL, with the loss reported, if there is no such block. */
struct etch_block *etch_pt_walk_to_branch(struct etch_pt_walk *f, bool dirty);
/* Walks to the instruction at `ip` without the help of packets, and stops before the instruction. Returns false, with
 * the loss reported, if the walk does not reach `ip`. */
bool etch_pt_walk_to_ip(struct etch_pt_walk *f, uint64_t ip);
/* Steps over a block whose branch led to `ip`, as a TIP said. */
void etch_pt_walk_indirect(struct etch_pt_walk *f, struct etch_block *b, uint64_t ip);
/* Follows the bits of a TNT. */
void etch_pt_walk_tnt(struct etch_pt_walk *f, const struct etch_pt_packet *packet);

/* ---- pt_end.c ---- */

/* Tracing ended at a system call or another far branch, or because it was cut. */
void etch_pt_end_at_far(struct etch_pt_walk *f);
/* With address filters: tracing ended because execution went to `ip`. */
void etch_pt_end_towards(struct etch_pt_walk *f, uint64_t ip);

#endif
