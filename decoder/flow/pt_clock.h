/* SPDX-License-Identifier: MIT */
/* Time from PT's timing packets, as bounds that hold rather than estimates. TSC packets are exact. An MTC packet is a
 * tick of the crystal clock, placed by the TMA packet before it. CYC packets count core cycles; a core runs at most at
 * the ratio that CBR names, so that many cycles took at least so many TSC ticks, and no upper bound follows (it may
 * have slept). */
#ifndef ETCH_DECODER_FLOW_PT_CLOCK_H
#define ETCH_DECODER_FLOW_PT_CLOCK_H

#include "decoder/flow/pt_packet.h"
#include "decoder/steps.h"

struct etch_pt_clock {
    const Etch__PtConfig *config;
    bool tsc_known;    /* a TSC packet was seen */
    bool ctc_known;    /* and a TMA after it */
    bool ctc_fresh;    /* no MTC since the TMA */
    bool ticks_missed; /* an overflow: MTCs may be missing, so they bound from below only */
    uint64_t tsc;      /* of the last TSC packet */
    uint64_t base_tsc, base_ctc, ctc;
    uint8_t last_mtc;
    uint32_t cbr;
    bool counted;       /* a CYC since the last anchor: its count is all after it */
    uint64_t ticks;     /* since the last anchor, at least */
    uint64_t ticks_all; /* the same, counting from the CYC before the anchor */
};

enum etch_pt_clock_news {
    ETCH_PT_CLOCK_NOTHING,
    ETCH_PT_CLOCK_ANCHOR,   /* the packet's time is `at` */
    ETCH_PT_CLOCK_PROGRESS, /* clock->ticks went on */
};

void etch_pt_clock_init(struct etch_pt_clock *clock, const Etch__PtConfig *config);

/* Takes any packet. `at` is set for ETCH_PT_CLOCK_ANCHOR: no earlier than lo, no later than hi. */
enum etch_pt_clock_news etch_pt_clock_feed(struct etch_pt_clock *clock, const struct etch_pt_packet *packet,
                                           struct etch_interval *at);

#endif
