/* SPDX-License-Identifier: MIT */
/* See pt_packet.h. The layouts are those of the Intel SDM, volume 3, "Intel Processor Trace", "Packet Definitions". */
#include "decoder/flow/pt_packet.h"

#include <string.h>

static uint64_t little_endian(const uint8_t *p, size_t n)
{
    uint64_t v = 0;

    memcpy(&v, p, n);
    return v;
}

/* The bits stand below the highest set bit, which only marks the end. */
static bool take_tnt(struct etch_pt_packet *packet, uint64_t raw)
{
    unsigned top;

    if (raw < 2)
        return false;
    top = 63u - (unsigned)__builtin_clzll(raw);
    packet->kind = ETCH_PT_TNT;
    packet->count = (uint8_t)top;
    packet->value = raw & (((uint64_t)1 << top) - 1);
    return true;
}

static int fixed(struct etch_pt_packet *packet, enum etch_pt_packet_kind kind, size_t size, size_t have)
{
    packet->kind = kind;
    packet->size = (uint8_t)size;
    return have < size ? ETCH_PT_CUT : (int)size;
}

static int read_ptw(const uint8_t *p, size_t have, struct etch_pt_packet *packet)
{
    static const uint8_t payload[4] = {4, 8, 0, 0};
    size_t n = payload[p[1] >> 5 & 3];

    packet->has_ip = p[1] >> 7;
    return n ? fixed(packet, ETCH_PT_PTW, 2 + n, have) : ETCH_PT_BAD;
}

static int read_pebs(struct etch_pt_reader *reader, const uint8_t *p, size_t have, struct etch_pt_packet *packet)
{
    if (p[1] == 0x63) {
        int size = fixed(packet, ETCH_PT_OTHER, 3, have);

        if (size > 0)
            reader->pebs_item = p[2] & 0x80 ? 4 : 8;
        return size;
    }
    reader->pebs_item = 0;
    packet->has_ip = p[1] >> 7;
    return fixed(packet, ETCH_PT_BEP, 2, have);
}

static int read_psb(struct etch_pt_reader *reader, const uint8_t *p, size_t have, struct etch_pt_packet *packet)
{
    for (size_t i = 0; i < ETCH_PT_PSB_SIZE && i < have; i++)
        if (p[i] != (i & 1 ? 0x82 : 0x02))
            return ETCH_PT_BAD;
    reader->last_ip = 0;
    reader->pebs_item = 0;
    return fixed(packet, ETCH_PT_PSB, ETCH_PT_PSB_SIZE, have);
}

/* 02 xx: everything that is rare. */
static int read_extended(struct etch_pt_reader *reader, const uint8_t *p, size_t have, struct etch_pt_packet *packet)
{
    int size;

    if (have < 2)
        return ETCH_PT_CUT;
    switch (p[1]) {
    case 0x82:
        return read_psb(reader, p, have, packet);
    case 0x23:
        return fixed(packet, ETCH_PT_PSBEND, 2, have);
    case 0xf3:
        reader->pebs_item = 0;
        return fixed(packet, ETCH_PT_OVF, 2, have);
    case 0x83:
        return fixed(packet, ETCH_PT_STOP, 2, have);
    case 0xa3:
        size = fixed(packet, ETCH_PT_TNT, 8, have);
        return size > 0 && !take_tnt(packet, little_endian(p + 2, 6)) ? ETCH_PT_BAD : size;
    case 0x03:
        size = fixed(packet, ETCH_PT_CBR, 4, have);
        packet->value = size > 0 ? p[2] : 0;
        return size;
    case 0x73:
        size = fixed(packet, ETCH_PT_TMA, 7, have);
        if (size > 0)
            packet->value = little_endian(p + 2, 2) | (little_endian(p + 5, 2) & 0x1ff) << 16;
        return size;
    case 0x43: /* PIP */
        return fixed(packet, ETCH_PT_OTHER, 8, have);
    case 0xc8: /* VMCS */
    case 0xa2: /* PWRX */
        return fixed(packet, ETCH_PT_OTHER, 7, have);
    case 0xc3: /* MNT */
        if (have > 2 && p[2] != 0x88)
            return ETCH_PT_BAD;
        return fixed(packet, ETCH_PT_OTHER, 11, have);
    case 0x53: /* EVD */
        return fixed(packet, ETCH_PT_OTHER, 11, have);
    case 0xc2: /* MWAIT */
        return fixed(packet, ETCH_PT_OTHER, 10, have);
    case 0x22: /* PWRE */
        return fixed(packet, ETCH_PT_OTHER, 4, have);
    case 0x62:
    case 0xe2:
        packet->has_ip = p[1] >> 7;
        return fixed(packet, ETCH_PT_EXSTOP, 2, have);
    case 0x13:
        size = fixed(packet, ETCH_PT_CFE, 4, have);
        packet->has_ip = size > 0 && p[2] >> 7;
        return size;
    case 0x63:
    case 0x33:
    case 0xb3:
        return read_pebs(reader, p, have, packet);
    default:
        return (p[1] & 0x1f) == 0x12 ? read_ptw(p, have, packet) : ETCH_PT_BAD;
    }
}

static uint64_t sign_extend(uint64_t v)
{
    return v | (v >> 47 & 1 ? 0xffff000000000000u : 0);
}

static int read_ip(struct etch_pt_reader *reader, const uint8_t *p, size_t have, struct etch_pt_packet *packet)
{
    static const uint8_t payload[8] = {0, 2, 4, 6, 6, 0xff, 8, 0xff};
    unsigned how = p[0] >> 5;
    size_t n = payload[how];
    uint64_t v, ip = reader->last_ip;

    if (n == 0xff)
        return ETCH_PT_BAD;
    if (have < 1 + n)
        return ETCH_PT_CUT;
    v = little_endian(p + 1, n);
    switch (how) {
    case 1:
        ip = (ip & ~(uint64_t)0xffff) | v;
        break;
    case 2:
        ip = (ip & ~(uint64_t)0xffffffff) | v;
        break;
    case 3:
        ip = sign_extend(v);
        break;
    case 4:
        ip = (ip & 0xffff000000000000u) | v;
        break;
    case 6:
        ip = v;
        break;
    default:
        break;
    }
    packet->has_ip = how != 0;
    packet->value = reader->last_ip = ip;
    packet->size = (uint8_t)(1 + n);
    return (int)(1 + n);
}

static int read_cyc(const uint8_t *p, size_t have, struct etch_pt_packet *packet)
{
    uint64_t v = p[0] >> 3;
    unsigned shift = 5;
    size_t i = 0;
    bool more = p[0] & 4;

    while (more) {
        if (++i >= have)
            return ETCH_PT_CUT;
        if (shift > 56)
            return ETCH_PT_BAD;
        v |= (uint64_t)(p[i] >> 1) << shift;
        shift += 7;
        more = p[i] & 1;
    }
    packet->kind = ETCH_PT_CYC;
    packet->value = v;
    packet->size = (uint8_t)(i + 1);
    return (int)(i + 1);
}

static int read_mode(const uint8_t *p, size_t have, struct etch_pt_packet *packet)
{
    if (have < 2)
        return ETCH_PT_CUT;
    packet->value = p[1] & 0x1f;
    switch (p[1] >> 5) {
    case 0:
        return fixed(packet, ETCH_PT_MODE_EXEC, 2, have);
    case 1:
        return fixed(packet, ETCH_PT_MODE_TSX, 2, have);
    default:
        return ETCH_PT_BAD;
    }
}

static int read_odd(struct etch_pt_reader *reader, const uint8_t *p, size_t have, struct etch_pt_packet *packet)
{
    int size;

    switch (p[0] & 0x1f) {
    case 0x0d:
        packet->kind = ETCH_PT_TIP;
        return read_ip(reader, p, have, packet);
    case 0x11:
        packet->kind = ETCH_PT_TIP_PGE;
        return read_ip(reader, p, have, packet);
    case 0x01:
        packet->kind = ETCH_PT_TIP_PGD;
        return read_ip(reader, p, have, packet);
    case 0x1d:
        packet->kind = ETCH_PT_FUP;
        return read_ip(reader, p, have, packet);
    default:
        break;
    }
    switch (p[0]) {
    case 0x99:
        return read_mode(p, have, packet);
    case 0x19:
        size = fixed(packet, ETCH_PT_TSC, 8, have);
        packet->value = size > 0 ? little_endian(p + 1, 7) : 0;
        return size;
    case 0x59:
        size = fixed(packet, ETCH_PT_MTC, 2, have);
        packet->value = size > 0 ? p[1] : 0;
        return size;
    default:
        return ETCH_PT_BAD;
    }
}

int etch_pt_packet_read(struct etch_pt_reader *reader, const uint8_t *p, const uint8_t *end,
                        struct etch_pt_packet *packet)
{
    size_t have = (size_t)(end - p);

    if (have == 0)
        return ETCH_PT_CUT;
    packet->has_ip = false;
    packet->size = 1;
    if (p[0] == 0x02)
        return read_extended(reader, p, have, packet);
    if (reader->pebs_item && (p[0] & 7) == 4)
        return fixed(packet, ETCH_PT_OTHER, (size_t)1 + reader->pebs_item, have);
    if (p[0] == 0) {
        packet->kind = ETCH_PT_PAD;
        return 1;
    }
    if (!(p[0] & 1))
        return take_tnt(packet, p[0] >> 1) ? 1 : ETCH_PT_BAD;
    if ((p[0] & 3) == 3)
        return read_cyc(p, have, packet);
    return read_odd(reader, p, have, packet);
}

const uint8_t *etch_pt_psb_find(const uint8_t *p, const uint8_t *end)
{
    static const uint8_t psb[ETCH_PT_PSB_SIZE] = {2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82,
                                                  2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82};

    return p < end ? memmem(p, (size_t)(end - p), psb, sizeof(psb)) : NULL;
}
