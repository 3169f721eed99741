/* SPDX-License-Identifier: MIT */
/* The contents of a file of records: counts, sizes, losses, and the records that describe the run. They are gathered in
 * one pass and in bounded memory: a list stops at ETCH_CONTENTS_LISTED records and counts the rest. */
#ifndef ETCH_PROTO_CONTENTS_H
#define ETCH_PROTO_CONTENTS_H

#include "base/array.h"
#include "base/bound.h"
#include "proto/bundle.h"
#include "proto/ledger.h"

#define ETCH_CONTENTS_KINDS 64u
#define ETCH_CONTENTS_LISTED 4096u

struct etch_contents_kind {
    uint64_t records;
    uint64_t bytes;     /* in the file */
    uint64_t raw_bytes; /* before compression */
};

/* Records of one kind, copied; `total` counts those beyond the list too. */
struct etch_contents_list {
    ETCH_ARRAY(ProtobufCMessage *) listed;
    uint64_t total;
};

struct etch_contents_stream {
    uint32_t id;
    uint64_t bytes;
    uint64_t chunks;
    uint64_t holes; /* places where a chunk does not begin where the last one ended */
    uint64_t next_offset;
};

struct etch_contents_damage {
    uint64_t index;
    uint64_t offset;
    uint64_t size;
    uint32_t kind;
    char why[160];
};

struct etch_contents {
    uint16_t major, minor;
    enum etch_bundle_event ending; /* END, CUT or FAILED */
    uint64_t cut_at;               /* where a cut file's last whole record ends */
    uint64_t cut_tail;             /* bytes behind it */
    uint64_t records;              /* whole ones, the end record not counted */
    uint64_t damaged;
    uint64_t bytes;
    ETCH_ARRAY(struct etch_contents_damage) damages;
    struct etch_contents_kind kinds[ETCH_CONTENTS_KINDS];
    struct etch_contents_kind unknown; /* kinds of a later version */

    Etch__Host *host; /* each NULL where the file has none */
    Etch__Program *program;
    Etch__Failure *failure;
    Etch__Outcome *outcome;
    struct etch_contents_list images, threads, clocks, streams, watches, redactions;
    struct etch_contents_list darks; /* losses: which functions were not recorded, over the budget */
    ETCH_ARRAY(struct etch_contents_stream) flows;
    uint64_t flow_bytes;
    struct etch_ledger ledger;
    uint64_t losses[ETCH_LOSS_CAUSES]; /* by cause, as the ledger sums them up */
    uint64_t lost;                     /* all of them; 0: nothing was lost */
    uint64_t accesses, reads, writes, values_unknown;
    uint64_t syncs, switches;
    struct etch_budget budget; /* of the copied records; a refused record is counted and not listed */
};

/* Reads all of `reader`. Returns 0, also for a cut or damaged file: cuts and damage are part of the result. Returns -1
 * with `err` set if reading itself failed or memory ran out. */
int etch_contents_read(struct etch_contents *contents, struct etch_bundle_reader *reader, struct etch_error *err);

void etch_contents_release(struct etch_contents *contents);

#endif
