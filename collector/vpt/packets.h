/* SPDX-License-Identifier: MIT OR GPL-2.0-or-later */
/* Control flow into Intel PT packets, as a CPU writes them: conditional branches gather in TNT packets, returns to
 * where they were called from are a bit there too, other indirect targets are TIP packets with only the bytes that
 * changed. The bytes go through libipt's encoder into memory that the caller gives. Nothing is published here:
 * etch_vpt_commit() says what is certain, all at once. */
#ifndef ETCH_VPT_PACKETS_H
#define ETCH_VPT_PACKETS_H

#include "collector/vpt/layout.h"

#include <intel-pt.h>
#include <stdbool.h>

#define VPT_RETURNS 64u           /* as deep as libipt and the CPU follow calls */
#define VPT_TNT_BITS 47u          /* of a long TNT packet */
#define VPT_RESERVE UINT64_C(512) /* bytes that the packets between two commits stay below */

struct etch_vpt_writer {
    struct pt_encoder *encoder;
    struct etch_vpt_thread *thread;
    uint64_t mask;  /* ring size - 1 */
    uint64_t head;  /* bytes written, published or not */
    uint64_t place; /* of the head in the ring, where the encoder is */
    uint64_t tnt;   /* see struct etch_vpt_state */
    uint64_t last_ip;
    struct etch_vpt_state *state; /* the current one */
    uint32_t current;             /* counts changes of the current one */
    bool failed;                  /* the encoder refused something: nothing more is written */
    unsigned n_returns, next_return;
    uint64_t returns[VPT_RETURNS];
};

/* `flow` is the ring of `size` bytes (a power of two) mapped twice in a row, so that a packet never wraps. Returns 0,
 * or -1 without memory. */
int etch_vpt_writer_init(struct etch_vpt_writer *writer, struct etch_vpt_thread *thread, uint8_t *flow, uint64_t size);
void etch_vpt_writer_release(struct etch_vpt_writer *writer);

void etch_vpt_put_flush(struct etch_vpt_writer *writer); /* what gathered of TNT */
void etch_vpt_put_tip(struct etch_vpt_writer *writer, uint64_t ip);
void etch_vpt_put_fup(struct etch_vpt_writer *writer, uint64_t ip);
void etch_vpt_put_enable(struct etch_vpt_writer *writer, uint64_t ip); /* TIP.PGE; forgets calls */
void etch_vpt_put_disable(struct etch_vpt_writer *writer); /* TIP.PGD, no address: execution went to the kernel */
void etch_vpt_put_tsc(struct etch_vpt_writer *writer, uint64_t tsc);
void etch_vpt_put_mode(struct etch_vpt_writer *writer); /* 64-bit code */
void etch_vpt_put_overflow(struct etch_vpt_writer *writer, uint64_t ip);
/* PSB, TSC, MODE.Exec, FUP, PSBEND; without an ip (0, tracing not yet on) PSB, TSC, PSBEND. Forgets calls. */
void etch_vpt_put_psb(struct etch_vpt_writer *writer, uint64_t tsc, uint64_t ip);

static inline void etch_vpt_put_bit(struct etch_vpt_writer *writer, unsigned taken)
{
    writer->tnt = writer->tnt << 1 | taken;
    if (writer->tnt >> VPT_TNT_BITS)
        etch_vpt_put_flush(writer);
}

static inline void etch_vpt_put_call(struct etch_vpt_writer *writer, uint64_t return_address)
{
    writer->returns[writer->next_return++ % VPT_RETURNS] = return_address;
    if (writer->n_returns < VPT_RETURNS)
        writer->n_returns++;
}

/* True if a return to `target` matches the newest call. The call is then forgotten. */
static inline bool etch_vpt_take_return(struct etch_vpt_writer *writer, uint64_t target)
{
    if (!writer->n_returns || writer->returns[(writer->next_return - 1) % VPT_RETURNS] != target)
        return false;
    writer->n_returns--;
    writer->next_return--;
    return true;
}

/* A return that matches its call is one taken bit. After a return that does not match (longjmp, an exception) decoders
 * disagree on which calls are left, so the writer forgets all calls: more bytes, never a wrong path. */
static inline void etch_vpt_put_return(struct etch_vpt_writer *writer, uint64_t target)
{
    if (etch_vpt_take_return(writer, target)) {
        etch_vpt_put_bit(writer, 1);
        return;
    }
    writer->n_returns = 0;
    etch_vpt_put_tip(writer, target);
}

typedef uint64_t etch_vpt_pair __attribute__((vector_size(16)));

/* Publishes that the block at `at` runs now (0: the kernel), where no packet was put since the last etch_vpt_commit().
 */
static inline void etch_vpt_commit_bits(struct etch_vpt_writer *writer, uint64_t at)
{
    *(volatile etch_vpt_pair *)&writer->state->tnt = (etch_vpt_pair){writer->tnt, at};
}

/* Publishes the packets so far and the same. */
static inline void etch_vpt_commit(struct etch_vpt_writer *writer, uint64_t at)
{
    uint32_t next = writer->current + 1;
    struct etch_vpt_state *state = &writer->thread->states[next & 1];

    state->tnt = writer->tnt;
    state->at = at;
    /* Release: pairs with etch's acquire of head, which then may read the packets. */
    atomic_store_explicit(&state->head, writer->head, memory_order_release);
    /* Release: the state before the word that makes it count; after a kill etch reads both, in any order. */
    atomic_store_explicit(&writer->thread->current, next, memory_order_release);
    writer->current = next;
    writer->state = state;
}

#endif
