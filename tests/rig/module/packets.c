/* SPDX-License-Identifier: MIT OR GPL-2.0-or-later */
#include "packets.h"
#include "rig.h"

#include <asm/msr.h>
#include <linux/string.h>

enum { RIG_PUT_MAX = 64 }; /* bytes at once: longer than any packet */
enum opcode { TIP = 0x0d, TIP_PGE = 0x11, TIP_PGD = 0x01, FUP = 0x1d };

static void put(struct rig_packets *p, const u8 *bytes, size_t n)
{
    u8 played[RIG_PUT_MAX];

    p->since_psb += n;
    rig_aux_put(p->aux, n <= sizeof(played) && rig_play(played, n) ? played : bytes, n);
}

static void put_little_endian(struct rig_packets *p, const u8 *head, size_t n_head, u64 value, size_t n)
{
    u8 packet[16];

    memcpy(packet, head, n_head);
    for (size_t i = 0; i < n; i++)
        packet[n_head + i] = (u8)(value >> 8 * i);
    put(p, packet, n_head + n);
}

/* CYC stands before the packets that need it. */
static void put_cycles(struct rig_packets *p)
{
    u8 packet[12];
    size_t n = 0;

    if (!(p->config & RIG_CONFIG_CYC) || !p->cycles)
        return;
    packet[n++] = (u8)(3 | (p->cycles > 31) << 2 | (p->cycles & 31) << 3);
    for (u64 rest = p->cycles >> 5; rest; rest >>= 7)
        packet[n++] = (u8)((rest > 127) | (rest & 127) << 1);
    p->cycles = 0;
    put(p, packet, n);
}

void rig_put_flush(struct rig_packets *p)
{
    static const u8 head[] = {0x02, 0xa3};
    u64 bits = 1ull << p->n_tnt | p->tnt;
    u8 byte = (u8)(bits << 1);

    if (!p->n_tnt)
        return;
    put_cycles(p);
    if (p->n_tnt <= 6)
        put(p, &byte, 1);
    else
        put_little_endian(p, head, sizeof(head), bits, 6);
    p->n_tnt = 0;
    p->tnt = 0;
}

void rig_put_bit(struct rig_packets *p, bool taken)
{
    p->tnt = p->tnt << 1 | taken;
    if (++p->n_tnt == RIG_TNT_BITS)
        rig_put_flush(p);
}

/* Only the bytes that differ from the last address are written. */
static void put_ip(struct rig_packets *p, enum opcode opcode, u64 ip)
{
    static const u8 bytes[] = {0, 2, 4, 6, 6, 0, 8};
    unsigned form = 6;
    u8 head;

    if (ip >> 16 == p->last_ip >> 16)
        form = 1;
    else if (ip >> 32 == p->last_ip >> 32)
        form = 2;
    else if ((u64)((s64)(ip << 16) >> 16) == ip)
        form = 3;
    head = (u8)(opcode | form << 5);
    put_little_endian(p, &head, 1, ip, bytes[form]);
    p->last_ip = ip;
}

void rig_put_tip(struct rig_packets *p, u64 ip)
{
    rig_put_flush(p);
    put_cycles(p);
    put_ip(p, TIP, ip);
}

void rig_put_call(struct rig_packets *p, u64 return_address)
{
    if (p->config & RIG_CONFIG_NORETCOMP)
        return;
    p->returns[p->next_return++ % RIG_RETURNS] = return_address;
    if (p->n_returns < RIG_RETURNS)
        p->n_returns++;
}

/* A return to where its call came from is a taken branch. After any other, decoders disagree on what is left of the
 * calls: all are forgotten. */
void rig_put_return(struct rig_packets *p, u64 target)
{
    if (p->n_returns && p->returns[(p->next_return - 1) % RIG_RETURNS] == target) {
        p->n_returns--;
        p->next_return--;
        rig_put_bit(p, true);
        return;
    }
    p->n_returns = 0;
    rig_put_tip(p, target);
}

static void put_tsc(struct rig_packets *p)
{
    static const u8 head = 0x19, tma[] = {0x02, 0x73};
    u64 tsc = rdtsc();

    if (p->config & RIG_CONFIG_TSC)
        put_little_endian(p, &head, 1, tsc, 7);
    if (!(p->config & RIG_CONFIG_TSC) || !(p->config & RIG_CONFIG_MTC))
        return;
    /* The crystal counts once every RIG_TSC_PER_CTC ticks; the rest is the fast counter of the packet. */
    put_little_endian(p, tma, sizeof(tma), (tsc / RIG_TSC_PER_CTC & 0xffff) | (tsc % RIG_TSC_PER_CTC) << 24, 5);
    p->last_mtc = tsc / RIG_TSC_PER_CTC >> rig_config_mtc_period(p->config);
}

void rig_put_time(struct rig_packets *p)
{
    u64 mtc;
    u8 packet[2] = {0x59};

    if (!(p->config & RIG_CONFIG_MTC))
        return;
    mtc = rdtsc() / RIG_TSC_PER_CTC >> rig_config_mtc_period(p->config);
    if (mtc == p->last_mtc)
        return;
    p->last_mtc = mtc;
    packet[1] = (u8)mtc;
    rig_put_flush(p);
    put_cycles(p);
    put(p, packet, sizeof(packet));
}

static void put_mode(struct rig_packets *p)
{
    static const u8 mode[] = {0x99, 0x01}; /* 64-bit code */

    put(p, mode, sizeof(mode));
}

void rig_put_enable(struct rig_packets *p, u64 ip)
{
    p->n_returns = 0;
    put_tsc(p);
    put_mode(p);
    put_ip(p, TIP_PGE, ip);
    /* More often than a CPU would: without MTC, or where CPUID does not tell its rate as in this guest, nothing else
     * says when this piece of user code ran. */
    put_tsc(p);
}

void rig_put_disable(struct rig_packets *p)
{
    static const u8 packet = TIP_PGD;

    rig_put_flush(p);
    put_cycles(p);
    put(p, &packet, 1);
}

void rig_put_leave(struct rig_packets *p, u64 ip)
{
    rig_put_flush(p);
    put_cycles(p);
    put_ip(p, TIP_PGD, ip);
}

void rig_put_interrupt(struct rig_packets *p, u64 ip)
{
    rig_put_flush(p);
    put_cycles(p);
    put_ip(p, FUP, ip);
    rig_put_disable(p);
}

void rig_put_overflow(struct rig_packets *p, u64 ip)
{
    static const u8 ovf[] = {0x02, 0xf3};

    p->n_tnt = 0;
    p->tnt = 0;
    p->n_returns = 0;
    p->cycles = 0;
    put(p, ovf, sizeof(ovf));
    put_tsc(p);
    if (ip)
        put_ip(p, FUP, ip);
}

void rig_put_stop(struct rig_packets *p)
{
    static const u8 packet[] = {0x02, 0x83};

    rig_put_flush(p);
    put(p, packet, sizeof(packet));
}

void rig_put_psb(struct rig_packets *p, u64 ip)
{
    static const u8 psb[] = {2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82};
    static const u8 psbend[] = {0x02, 0x23}, cbr[] = {0x02, 0x03, RIG_CBR, 0};

    rig_put_flush(p);
    p->since_psb = 0;
    p->last_ip = 0;
    p->n_returns = 0;
    put(p, psb, sizeof(psb));
    put_tsc(p);
    put(p, cbr, sizeof(cbr));
    put_mode(p);
    if (ip)
        put_ip(p, FUP, ip);
    put(p, psbend, sizeof(psbend));
}

void rig_put_padding(struct rig_packets *p, unsigned n)
{
    static const u8 zeros[RIG_PUT_MAX];

    rig_put_flush(p);
    for (; n > sizeof(zeros); n -= sizeof(zeros))
        put(p, zeros, sizeof(zeros));
    put(p, zeros, n);
}

void rig_packets_resume(struct rig_packets *p)
{
    p->tnt = 0;
    p->n_tnt = 0;
    p->n_returns = 0;
    p->cycles = 0;
    p->last_ip = ~0ull; /* like no user address: the next one is written whole */
}
