/* SPDX-License-Identifier: MIT */
/* Tells if TIPs stand in their place. A CPU may defer TIPs until its TNT packet is full or another packet forces both
 * out (Intel SDM, volume 3, "Deferred TIPs"). The TNT then comes first, and its last bits belong behind the TIP. The
 * walk through the code sees the deferral, but not behind missing code, unless the CPU is known to defer no TIPs. A
 * prompt TIP is the evidence: an indirect jump or call made the TIP, the TNT before had room left, and the next packet
 * is a TNT, so nothing forced the TNT and the TIP out. (Returns are no evidence: no CPU defers their TIPs.) */
#ifndef ETCH_DECODER_FLOW_PT_ORDER_H
#define ETCH_DECODER_FLOW_PT_ORDER_H

#include "decoder/flow/pt_packet.h"

struct etch_pt_order {
    unsigned prompt; /* TIPs that could have been deferred and were not */
    bool deferred;   /* a TIP was deferred */
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
