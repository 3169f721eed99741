/* SPDX-License-Identifier: MIT */
/* The ledger of losses: the data that a recording lacks. The writer keeps a ledger of the records it writes, and each
 * reader keeps a ledger of the records it reads, so that record, info and decode report the same losses for one file.
 * The ledger counts Loss records, and losses that the file shows by itself: a cut end, damaged records, holes in
 * streams, rings that wrapped, threads without control flow.
 *
 * Etch says "nothing lost" only if the ledger is empty. */
#ifndef ETCH_PROTO_LEDGER_H
#define ETCH_PROTO_LEDGER_H

#include "base/array.h"
#include "proto/etch.pb-c.h"

#include <stdbool.h>
#include <stdint.h>

enum { ETCH_LOSS_CAUSES = 32 }; /* more than Etch__LossCause has */

struct etch_ledger_stream {
    uint32_t id, pid, tid;
    bool snapshot, begun, wrap_told;
    uint64_t first, next; /* offsets of the first byte, and behind the last */
    uint64_t holes, told; /* places where bytes are missing; losses that name the stream */
};

struct etch_ledger {
    uint64_t counts[ETCH_LOSS_CAUSES]; /* from the Loss records; etch_ledger_sum() has all losses */
    ETCH_ARRAY(struct etch_ledger_stream) streams;
    ETCH_ARRAY(uint64_t) threads; /* pid << 32 | tid; perhaps several times */
    size_t last;                  /* the stream that had bytes last */
    Etch__Source source;
    uint64_t ringless;     /* threads that a loss says to have had no ring */
    bool limited, starved; /* the count is incomplete: too many streams or threads, or too little memory */
    bool begun;
};

/* One record, in the order of the file. */
void etch_ledger_take(struct etch_ledger *ledger, const Etch__Record *record);

/* Adds a loss that has no record: the cut end of a file, say. */
void etch_ledger_add(struct etch_ledger *ledger, Etch__LossCause cause, uint64_t n);

/* Counts all losses by cause. Returns their sum: 0 is "nothing lost". */
uint64_t etch_ledger_sum(struct etch_ledger *ledger, uint64_t counts[ETCH_LOSS_CAUSES]);

void etch_ledger_release(struct etch_ledger *ledger);

/* "ring wrapped" for LOSS_RING_WRAPPED. */
const char *etch_loss_name(Etch__LossCause cause);

/* "ring_wrapped", for programs. */
const char *etch_loss_key(Etch__LossCause cause, char key[64]);

/* "ring wrapped (2), file cut (1)", or "nothing". Returns `text`. */
const char *etch_losses_text(const uint64_t counts[ETCH_LOSS_CAUSES], char *text, size_t size);

#endif
