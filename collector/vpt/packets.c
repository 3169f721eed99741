/* SPDX-License-Identifier: MIT OR GPL-2.0-or-later */
/* Control flow into PT packets; see packets.h. */
#include "collector/vpt/packets.h"

#include <string.h>

int etch_vpt_writer_init(struct etch_vpt_writer *w, struct etch_vpt_thread *thread, uint8_t *flow, uint64_t size)
{
    struct pt_config config;

    memset(w, 0, sizeof(*w));
    pt_config_init(&config);
    config.begin = flow;
    config.end = flow + 2 * size;
    w->encoder = pt_alloc_encoder(&config);
    w->thread = thread;
    w->state = &thread->states[0];
    w->mask = size - 1;
    w->tnt = 1;
    if (w->encoder && pt_enc_sync_set(w->encoder, 0) < 0)
        w->failed = true;
    return w->encoder ? 0 : -1;
}

void etch_vpt_writer_release(struct etch_vpt_writer *w)
{
    pt_free_encoder(w->encoder);
    w->encoder = NULL;
}

static void put(struct etch_vpt_writer *w, const struct pt_packet *packet)
{
    int size;

    if (w->failed)
        return;
    if (w->place != (w->head & w->mask)) { /* it went past the end, into the ring's second image */
        w->place = w->head & w->mask;
        if (pt_enc_sync_set(w->encoder, w->place) < 0)
            w->failed = true;
    }
    size = pt_enc_next(w->encoder, packet);
    if (size < 0) {
        w->failed = true;
        return;
    }
    w->head += (uint64_t)size;
    w->place += (uint64_t)size;
}

static void put_plain(struct etch_vpt_writer *w, enum pt_packet_type type)
{
    struct pt_packet packet = {.type = type};

    put(w, &packet);
}

void etch_vpt_put_flush(struct etch_vpt_writer *w)
{
    struct pt_packet packet = {.type = ppt_tnt_8};
    unsigned bits = 63u - (unsigned)__builtin_clzll(w->tnt);

    if (!bits)
        return;
    if (bits > 6)
        packet.type = ppt_tnt_64;
    packet.payload.tnt.bit_size = (uint8_t)bits;
    packet.payload.tnt.payload = w->tnt & ~(UINT64_MAX << bits);
    put(w, &packet);
    w->tnt = 1;
}

/* An address in as few bytes as the last one allows. */
static void put_ip(struct etch_vpt_writer *w, enum pt_packet_type type, uint64_t ip)
{
    struct pt_packet packet = {.type = type};
    uint64_t changed = ip ^ w->last_ip;

    if (!(changed >> 16)) {
        packet.payload.ip.ipc = pt_ipc_update_16;
        packet.payload.ip.ip = ip & 0xffff;
    } else if (!(changed >> 32)) {
        packet.payload.ip.ipc = pt_ipc_update_32;
        packet.payload.ip.ip = ip & 0xffffffff;
    } else if ((uint64_t)((int64_t)(ip << 16) >> 16) == ip) {
        packet.payload.ip.ipc = pt_ipc_sext_48;
        packet.payload.ip.ip = ip & 0xffffffffffff;
    } else { /* not canonical: a wild jump */
        packet.payload.ip.ipc = pt_ipc_full;
        packet.payload.ip.ip = ip;
    }
    w->last_ip = ip;
    put(w, &packet);
}

void etch_vpt_put_tip(struct etch_vpt_writer *w, uint64_t ip)
{
    etch_vpt_put_flush(w);
    put_ip(w, ppt_tip, ip);
}

void etch_vpt_put_fup(struct etch_vpt_writer *w, uint64_t ip)
{
    etch_vpt_put_flush(w);
    put_ip(w, ppt_fup, ip);
}

void etch_vpt_put_enable(struct etch_vpt_writer *w, uint64_t ip)
{
    etch_vpt_put_flush(w);
    put_ip(w, ppt_tip_pge, ip);
    w->n_returns = 0;
}

void etch_vpt_put_disable(struct etch_vpt_writer *w)
{
    struct pt_packet packet = {.type = ppt_tip_pgd};

    etch_vpt_put_flush(w);
    packet.payload.ip.ipc = pt_ipc_suppressed;
    put(w, &packet);
}

void etch_vpt_put_tsc(struct etch_vpt_writer *w, uint64_t tsc)
{
    struct pt_packet packet = {.type = ppt_tsc};

    etch_vpt_put_flush(w); /* what ran before must stand before the time */
    packet.payload.tsc.tsc = tsc & 0xffffffffffffff;
    put(w, &packet);
}

void etch_vpt_put_mode(struct etch_vpt_writer *w)
{
    struct pt_packet packet = {.type = ppt_mode};

    packet.payload.mode.leaf = pt_mol_exec;
    packet.payload.mode.bits.exec = pt_set_exec_mode(ptem_64bit);
    put(w, &packet);
}

void etch_vpt_put_overflow(struct etch_vpt_writer *w, uint64_t ip)
{
    etch_vpt_put_flush(w);
    put_plain(w, ppt_ovf);
    put_ip(w, ppt_fup, ip);
    w->n_returns = 0;
}

void etch_vpt_put_psb(struct etch_vpt_writer *w, uint64_t tsc, uint64_t ip)
{
    etch_vpt_put_flush(w);
    put_plain(w, ppt_psb);
    w->last_ip = 0;
    w->n_returns = 0;
    etch_vpt_put_tsc(w, tsc);
    if (ip) {
        etch_vpt_put_mode(w);
        put_ip(w, ppt_fup, ip);
    }
    put_plain(w, ppt_psbend);
}
