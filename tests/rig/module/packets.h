/* SPDX-License-Identifier: MIT OR GPL-2.0-or-later */
/* Control flow into Intel PT packets, as the manual has them. Written for the rig alone: it shares no line with vpt's
 * encoder, so that two of the same mistakes are less likely. */
#ifndef ETCH_RIG_PACKETS_H
#define ETCH_RIG_PACKETS_H

#include "aux.h"

#define RIG_RETURNS 64u  /* calls that the CPU remembers */
#define RIG_TNT_BITS 47u /* of a long TNT packet */

struct rig_packets {
    struct rig_aux *aux; /* where the bytes go */
    u64 config;          /* the event's: RTIT_CTL as perf knows it */
    u64 last_ip;         /* as the decoder knows it */
    u64 tnt;             /* bits not yet written, the oldest the highest */
    unsigned n_tnt;
    u64 returns[RIG_RETURNS];
    unsigned n_returns, next_return;
    u64 since_psb; /* bytes, as PacketByteCnt */
    u64 cycles;    /* since the last CYC; an instruction is a cycle here */
    u64 last_mtc;
};

void rig_put_bit(struct rig_packets *p, bool taken);
void rig_put_call(struct rig_packets *p, u64 return_address);
void rig_put_return(struct rig_packets *p, u64 target);
void rig_put_tip(struct rig_packets *p, u64 ip);
void rig_put_enable(struct rig_packets *p, u64 ip); /* TIP.PGE, with the time before it */
void rig_put_disable(struct rig_packets *p);        /* TIP.PGD to the kernel */
void rig_put_leave(struct rig_packets *p, u64 ip);  /* TIP.PGD to code beyond the filters */
void rig_put_interrupt(struct rig_packets *p,
                       u64 ip); /* FUP and TIP.PGD: at ip, which did not run, something else began */
void rig_put_overflow(struct rig_packets *p, u64 ip); /* OVF, and FUP where tracing goes on at once; 0: it does not */
void rig_put_stop(struct rig_packets *p);             /* TraceStop */
void rig_put_psb(struct rig_packets *p, u64 ip);      /* the whole PSB+; ip 0: tracing is off here */
void rig_put_time(struct rig_packets *p);             /* MTC where its time has come */
void rig_put_flush(struct rig_packets *p);
void rig_put_padding(struct rig_packets *p, unsigned n);

/* A stream that goes on after a pause, perhaps on another CPU: nothing that the decoder knew may be built on. */
void rig_packets_resume(struct rig_packets *p);

#endif
