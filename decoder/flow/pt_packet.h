/* SPDX-License-Identifier: MIT */
/* Intel PT packets out of bytes, and the two small states without which a packet cannot be read: the last IP, against
 * which addresses are compressed, and the width of the items in a PEBS block. Pure, and never reads behind the end. */
#ifndef ETCH_DECODER_FLOW_PT_PACKET_H
#define ETCH_DECODER_FLOW_PT_PACKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ETCH_PT_PSB_SIZE 16u
#define ETCH_PT_TNT_SHORT 6u /* bits of a full one */
#define ETCH_PT_TNT_LONG 47u

enum etch_pt_packet_kind {
    ETCH_PT_PAD,
    ETCH_PT_TNT,
    ETCH_PT_TIP,
    ETCH_PT_TIP_PGE,
    ETCH_PT_TIP_PGD,
    ETCH_PT_FUP,
    ETCH_PT_PSB,
    ETCH_PT_PSBEND,
    ETCH_PT_OVF,
    ETCH_PT_STOP,
    ETCH_PT_MODE_EXEC,
    ETCH_PT_MODE_TSX,
    ETCH_PT_TSC,
    ETCH_PT_MTC,
    ETCH_PT_TMA,
    ETCH_PT_CBR,
    ETCH_PT_CYC,
    ETCH_PT_PTW,
    ETCH_PT_EXSTOP,
    ETCH_PT_BEP,
    ETCH_PT_CFE,
    ETCH_PT_OTHER, /* read and passed over: PIP, VMCS, MNT, MWAIT, PWRE, PWRX, BBP, BIP, EVD */
};

struct etch_pt_packet {
    enum etch_pt_packet_kind kind;
    uint8_t size;
    bool has_ip;   /* of the TIP family: the IP is there; of PTW, EXSTOP, BEP, CFE: an FUP that belongs to it follows */
    uint8_t count; /* TNT: bits, 1 to 47 */
    uint64_t value; /* TNT: bits, the oldest is bit count-1; IP; TSC; MTC, CBR; MODE bits; CYC cycles; TMA: CTC | fast
                       << 16 */
};

struct etch_pt_reader {
    uint64_t last_ip;
    uint8_t pebs_item; /* payload bytes of an item while in a PEBS block, else 0 */
};

enum { ETCH_PT_CUT = 0, ETCH_PT_BAD = -1 };

/* Reads the packet at `p`, updating `reader`. Returns its size, ETCH_PT_CUT where `end` cuts it, ETCH_PT_BAD where no
 * packet begins so. */
int etch_pt_packet_read(struct etch_pt_reader *reader, const uint8_t *p, const uint8_t *end,
                        struct etch_pt_packet *packet);

/* The first PSB in the bytes, or NULL. A PSB is sixteen bytes that no other packet can hold. */
const uint8_t *etch_pt_psb_find(const uint8_t *p, const uint8_t *end);

#endif
