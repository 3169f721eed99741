/* SPDX-License-Identifier: MIT */
/* Whether a TIP stands where it belongs. A CPU may put off TIPs until its TNT packet is full or another packet forces
 * both out (Intel SDM, volume 3, "Deferred TIPs"): the TNT comes first then, and its last bits belong behind the TIP.
 * Whoever walks the code sees that. Behind code that is missing nobody does, unless it is known that this CPU puts off
 * none. That shows where an indirect jump or call is known to have made a TIP, the TNT before it had room left, and the
 * next packet is a TNT: nothing forced the two out. (Returns do not tell: no CPU puts off theirs.) */
#ifndef ETCH_DECODER_FLOW_PT_ORDER_H
#define ETCH_DECODER_FLOW_PT_ORDER_H

#include "decoder/flow/pt_packet.h"

struct etch_pt_order {
    unsigned prompt; /* TIPs that were not put off where they could have been */
    bool deferred;   /* one was */
    bool partial;    /* the packet before was a TNT with room left */
};

/* Notes the packet before the next. */
static inline void etch_pt_order_note(struct etch_pt_order *order, const struct etch_pt_packet *packet)
{
    if (packet->kind != ETCH_PT_PAD && packet->kind != ETCH_PT_CYC)
        order->partial =
            packet->kind == ETCH_PT_TNT && packet->count != ETCH_PT_TNT_SHORT && packet->count != ETCH_PT_TNT_LONG;
}

/* Notes the TIP of an indirect jump or call; `next` is what stands behind it. */
void etch_pt_order_note_tip(struct etch_pt_order *order, const struct etch_pt_reader *reader, const uint8_t *next,
                            const uint8_t *end);

#endif
