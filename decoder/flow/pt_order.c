/* SPDX-License-Identifier: MIT */
/* See pt_order.h. */
#include "decoder/flow/pt_order.h"

/* A CYC belongs to the packet behind it. Any other packet may have forced out the packets before. */
static bool tnt_follows(struct etch_pt_reader reader, const uint8_t *next, const uint8_t *end)
{
    struct etch_pt_packet packet;
    int n;

    while ((n = etch_pt_packet_read(&reader, next, end, &packet)) > 0) {
        if (packet.kind != ETCH_PT_PAD && packet.kind != ETCH_PT_CYC)
            return packet.kind == ETCH_PT_TNT;
        next += n;
    }
    return false;
}

void etch_pt_order_note_tip(struct etch_pt_order *order, const struct etch_pt_reader *reader, const uint8_t *next,
                            const uint8_t *end)
{
    if (order->partial && tnt_follows(*reader, next, end))
        order->prompt++;
}
