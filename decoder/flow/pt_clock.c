/* SPDX-License-Identifier: MIT */
/* See pt_clock.h. */
#include "decoder/flow/pt_clock.h"

#include <string.h>

void etch_pt_clock_init(struct etch_pt_clock *clock, const Etch__PtConfig *config)
{
    memset(clock, 0, sizeof(*clock));
    clock->config = config;
}

static void start_count(struct etch_pt_clock *clock)
{
    clock->counted = false;
    clock->ticks = clock->ticks_all = 0;
}

static enum etch_pt_clock_news take_tsc(struct etch_pt_clock *clock, uint64_t tsc, struct etch_interval *at)
{
    if (clock->tsc_known && tsc < clock->tsc)
        clock->ctc_known = false; /* the clock was set back: nothing before it holds */
    clock->tsc = tsc;
    clock->tsc_known = true;
    clock->ticks_missed = false;
    start_count(clock);
    *at = (struct etch_interval){tsc, tsc};
    return ETCH_PT_CLOCK_ANCHOR;
}

/* The crystal's count at the last TSC packet, and how many TSC ticks had passed since it last changed. */
static void take_tma(struct etch_pt_clock *clock, uint64_t value)
{
    uint64_t fast = value >> 16;

    if (!clock->tsc_known || !clock->config || !clock->config->cpuid_15_eax || !clock->config->cpuid_15_ebx ||
        clock->config->mtc_freq > 15 || clock->tsc < fast)
        return;
    clock->base_tsc = clock->tsc - fast;
    clock->base_ctc = clock->ctc = value & 0xffff;
    clock->ctc_known = clock->ctc_fresh = true;
}

/* How many MTC periods since the last one; the TMA holds only sixteen bits of the counter. */
static uint64_t periods(const struct etch_pt_clock *clock, uint8_t mtc)
{
    unsigned shift = clock->config->mtc_freq;
    uint64_t mask = 0xff;

    if (!clock->ctc_fresh)
        return (mtc - clock->last_mtc) & mask;
    if (shift > 8)
        mask = ((uint64_t)1 << (16 - shift)) - 1;
    return (mtc - (clock->ctc >> shift)) & mask;
}

static enum etch_pt_clock_news take_mtc(struct etch_pt_clock *clock, uint8_t mtc, struct etch_interval *at)
{
    unsigned shift;
    uint64_t n, slack, num, den;
    unsigned __int128 passed;

    if (!clock->ctc_known)
        return ETCH_PT_CLOCK_NOTHING;
    shift = clock->config->mtc_freq;
    n = periods(clock, mtc);
    clock->last_mtc = mtc;
    clock->ctc_fresh = false;
    if (n == 0)
        return ETCH_PT_CLOCK_NOTHING;
    clock->ctc = ((clock->ctc >> shift) + n) << shift;
    num = clock->config->cpuid_15_ebx;
    den = clock->config->cpuid_15_eax;
    slack = num / den + 2;
    passed = (unsigned __int128)(clock->ctc - clock->base_ctc) * num / den;
    at->lo = clock->base_tsc + (uint64_t)passed;
    at->hi = clock->ticks_missed ? UINT64_MAX : at->lo + slack;
    at->lo = at->lo > slack ? at->lo - slack : 0;
    at->lo = at->lo > clock->tsc ? at->lo : clock->tsc;
    start_count(clock);
    return ETCH_PT_CLOCK_ANCHOR;
}

static enum etch_pt_clock_news take_cyc(struct etch_pt_clock *clock, uint64_t cycles)
{
    uint64_t ticks;

    if (!clock->tsc_known || !clock->cbr || !clock->config || !clock->config->nom_freq || cycles > UINT32_MAX)
        return ETCH_PT_CLOCK_NOTHING;
    /* One more than CBR says: the ratio is rounded, and may rise a little before the packet that says so. */
    ticks = cycles * clock->config->nom_freq / (clock->cbr + 1);
    if (clock->counted)
        clock->ticks += ticks;
    clock->counted = true;
    clock->ticks_all += ticks;
    return ETCH_PT_CLOCK_PROGRESS;
}

enum etch_pt_clock_news etch_pt_clock_feed(struct etch_pt_clock *clock, const struct etch_pt_packet *packet,
                                           struct etch_interval *at)
{
    switch (packet->kind) {
    case ETCH_PT_TSC:
        return take_tsc(clock, packet->value, at);
    case ETCH_PT_TMA:
        take_tma(clock, packet->value);
        return ETCH_PT_CLOCK_NOTHING;
    case ETCH_PT_MTC:
        return take_mtc(clock, (uint8_t)packet->value, at);
    case ETCH_PT_CYC:
        return take_cyc(clock, packet->value);
    case ETCH_PT_CBR:
        clock->cbr = (uint32_t)packet->value;
        return ETCH_PT_CLOCK_NOTHING;
    case ETCH_PT_OVF:
        clock->ticks_missed = true;
        return ETCH_PT_CLOCK_NOTHING;
    default:
        return ETCH_PT_CLOCK_NOTHING;
    }
}
