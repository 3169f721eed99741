/* SPDX-License-Identifier: MIT */
/* Synthetic PT streams, by libipt's encoder: what no real capture at hand has. */
#ifndef ETCH_TESTS_PT_STREAM_H
#define ETCH_TESTS_PT_STREAM_H

#include <intel-pt.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct pt_stream {
    uint8_t bytes[1 << 20];
    size_t n;
};

static inline void put_packet(struct pt_stream *s, const struct pt_packet *packet)
{
    struct pt_config config;
    struct pt_encoder *encoder;
    int n;

    pt_config_init(&config);
    config.begin = s->bytes + s->n;
    config.end = s->bytes + sizeof(s->bytes);
    encoder = pt_alloc_encoder(&config);
    n = pt_enc_next(encoder, packet);
    pt_free_encoder(encoder);
    if (n < 0)
        abort();
    s->n += (size_t)n;
}

static inline void put(struct pt_stream *s, enum pt_packet_type type)
{
    put_packet(s, &(struct pt_packet){.type = type});
}

/* ppt_tip, ppt_tip_pge, ppt_tip_pgd, ppt_fup with a full IP; ip 0: suppressed */
static inline void put_ip(struct pt_stream *s, enum pt_packet_type type, uint64_t ip)
{
    struct pt_packet packet = {.type = type};

    packet.payload.ip.ipc = ip ? pt_ipc_full : pt_ipc_suppressed;
    packet.payload.ip.ip = ip;
    put_packet(s, &packet);
}

/* "TNT" as a string, the oldest first */
static inline void put_tnt(struct pt_stream *s, const char *bits)
{
    struct pt_packet packet = {.type = strlen(bits) > 6 ? ppt_tnt_64 : ppt_tnt_8};

    packet.payload.tnt.bit_size = (uint8_t)strlen(bits);
    for (; *bits; bits++)
        packet.payload.tnt.payload = packet.payload.tnt.payload << 1 | (*bits == 'T');
    put_packet(s, &packet);
}

static inline void put_tsc(struct pt_stream *s, uint64_t tsc)
{
    struct pt_packet packet = {.type = ppt_tsc};

    packet.payload.tsc.tsc = tsc;
    put_packet(s, &packet);
}

static inline void put_mode_64(struct pt_stream *s)
{
    struct pt_packet packet = {.type = ppt_mode};

    packet.payload.mode.leaf = pt_mol_exec;
    packet.payload.mode.bits.exec.csl = 1;
    put_packet(s, &packet);
}

/* PSB+ with the time and, where tracing is on, the address */
static inline void put_psb(struct pt_stream *s, uint64_t tsc, uint64_t ip)
{
    put(s, ppt_psb);
    if (tsc)
        put_tsc(s, tsc);
    put_mode_64(s);
    if (ip)
        put_ip(s, ppt_fup, ip);
    put(s, ppt_psbend);
}

#endif
