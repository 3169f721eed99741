/* SPDX-License-Identifier: MIT */
/* The graph behind order.h, shared by the files of decoder/order. */
#ifndef ETCH_DECODER_ORDER_GRAPH_H
#define ETCH_DECODER_ORDER_GRAPH_H

#include "base/array.h"
#include "decoder/order.h"

#define ETCH_NO_EVENT UINT32_MAX

struct edge {
    uint32_t from, to;
    uint8_t kind;
};

/* The time between a thread's acquire and release of a lock. If the record of one end is missing, first == last: the
 * section claims less. */
struct section {
    uint64_t object;
    uint32_t first, last; /* acquire and release */
    bool shared;
    bool misused; /* a release by a thread that had not acquired the lock: no mutual exclusion, whatever the lock is
                     called */
};

/* An event with its sort key: its object or location. */
struct keyed {
    uint64_t key;
    uint32_t event;
};

struct keyed_list {
    struct keyed *v;
    size_t n;
};

struct etch_order {
    const struct etch_order_input *in;
    size_t n;
    uint32_t threads;

    uint32_t *thread;       /* of an event; every pass reads it first, so the array is compact */
    uint32_t *by_thread;    /* events, thread by thread, in program order */
    uint32_t *thread_begin; /* threads + 1 places in by_thread */
    uint32_t *position;     /* of an event within its thread */
    uint32_t *sibling;      /* the next sequence of the same thread; the sequences form a ring */

    bool *cpu_blamed;
    int64_t *lo, *hi; /* in reference time; INT64_MIN and INT64_MAX where unknown */
    int64_t *l, *u;   /* the bounds with all events logically before and behind */
    uint32_t *l_from, *u_from;

    ETCH_ARRAY(struct edge) edges;
    uint32_t *in_begin; /* n + 1 places in in_edge: the edges into an event */
    uint32_t *in_edge;
    uint32_t *topological;

    uint32_t *row; /* of an event: its vector clock in rows */
    ETCH_ARRAY(uint32_t) rows;

    ETCH_ARRAY(struct section) sections;
    struct keyed_list posts; /* of semaphores, with their waits; made when first needed, dropped after each settling */
    struct keyed_list located;     /* accesses by their location's place in the input; made and dropped as `posts` */
    ETCH_ARRAY(uint64_t) excluded; /* objects whose records contradict themselves */
    ETCH_ARRAY(struct etch_conflict) conflicts;
    bool blaming;   /* a contradiction is to be noted, rather than just found */
    bool clockless; /* no clock is used, for the time being */
    bool distrust;  /* only program order and clocks are used */
    bool unlinked;  /* not even the input's links are used */
    bool sync_lost; /* records are missing somewhere: of synchronisation, of accesses */
    bool access_lost;
    struct etch_cpu_range any; /* of all CPUs' clocks together */
    uint32_t *sequence;
    unsigned turns;
    uint64_t held_bounded; /* acquires beyond the locks that a thread is followed through holding */
    uint64_t bounded;      /* in the last turn: sections and reads that were not compared with all others */
};

static inline uint32_t etch_event_at(const struct etch_order *o, uint32_t thread, uint32_t position)
{
    return o->by_thread[o->thread_begin[thread] + position];
}

static inline uint32_t etch_thread_size(const struct etch_order *o, uint32_t thread)
{
    return o->thread_begin[thread + 1] - o->thread_begin[thread];
}

/* Is a before b by program order, synchronisation and values alone? */
static inline bool etch_order_logical(const struct etch_order *o, uint32_t a, uint32_t b)
{
    uint32_t ta = o->thread[a];

    if (ta == o->thread[b])
        return o->position[a] < o->position[b];
    return o->rows.v[(size_t)o->row[b] * o->threads + ta] > o->position[a];
}

static inline bool etch_order_before(const struct etch_order *o, uint32_t a, uint32_t b)
{
    return o->u[a] < o->l[b] || etch_order_logical(o, a, b);
}

/* Sorts by key, then in the order of the input. */
void etch_keyed_sort(struct keyed_list *list);

bool etch_order_excluded(const struct etch_order *o, uint64_t object);

/* Adds an edge between threads. False when memory is short. */
bool etch_order_edge(struct etch_order *o, uint32_t from, uint32_t to, enum etch_evidence_kind kind);

/* Collects the edges that need no order to be found (create, join, barrier, the stamps of one CPU) and the sections of
 * locks. */
int etch_order_sync_collect(struct etch_order *o);

enum etch_order_result { ETCH_ORDER_GOOD, ETCH_ORDER_CONFLICT, ETCH_ORDER_MEMORY };

/* One pass: bounds and reachability from the edges so far. */
enum etch_order_result etch_order_pass(struct etch_order *o);

/* Pushes lower bounds along the edges. The second function tells if a lower bound has passed an upper bound. */
void etch_order_push_bounds(struct etch_order *o);
bool etch_order_bounds_crossed(const struct etch_order *o);

#define ETCH_DERIVE_MEMORY (-1)
#define ETCH_DERIVE_CONFLICT (-2) /* a read of a value that nobody wrote: noted, and the location left out */

/* Derive edges from the order so far. Each returns the number of new edges, or a negative ETCH_DERIVE_... code. */
int64_t etch_order_sync_derive(struct etch_order *o);
int64_t etch_order_values_derive(struct etch_order *o);

/* After a failed topological sort, or after a lower bound passed an upper bound: record the conflict and leave out the
 * records or the clock to blame. Return 0, or -1 when memory is short. */
int etch_order_blame_records(struct etch_order *o, const bool *placed);
int etch_order_blame_clock(struct etch_order *o);

#endif
