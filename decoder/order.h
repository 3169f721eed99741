/* SPDX-License-Identifier: MIT */
/* Which event came first, and how we know. Events of all threads go in, a partial order comes out. The order holds
 * proven pairs only: proven by program order, by clocks whose ranges do not overlap, by synchronisation, or by values.
 * Every other pair stays unordered. If the evidence contradicts itself, the clock or the records to blame are named and
 * left out.
 *
 * How: reachability over logical edges (program order, synchronisation, values) is a vector clock, kept only where it
 * changes. The order by intervals needs no edges. L is the greatest lower bound of an event and of all events logically
 * before the event. U is the least upper bound of an event and of all events logically behind the event. A path from a
 * to b that uses a clock anywhere exists if and only if U(a) < L(b). L and U take one pass each. */
#ifndef ETCH_DECODER_ORDER_H
#define ETCH_DECODER_ORDER_H

#include "base/error.h"
#include "proto/etch.pb-c.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ETCH_CPU_NONE UINT32_MAX
#define ETCH_CPU_ANY (UINT32_MAX - 1)

/* A stamp that bounds when something happened. cpu = ETCH_CPU_NONE: no bound on this side; ETCH_CPU_ANY: by the clock
 * of a CPU that is not known. */
struct etch_bound {
    uint64_t tsc;
    uint32_t cpu;
};

enum etch_event_kind {
    ETCH_EVENT_MARK,   /* a step, a context switch: orders others by its time and place in its thread */
    ETCH_EVENT_SYNC,   /* `op` on `object` */
    ETCH_EVENT_ACCESS, /* of the watched location `object` */
    ETCH_EVENT_LOSS,   /* records of this thread may be missing here; as its first event: anywhere */
};

/* The records that a loss may have taken: `access` of an ETCH_EVENT_LOSS. */
enum { ETCH_LOST_ANYTHING, ETCH_LOST_SYNC };

enum {
    ETCH_ACCESS_READ = 1,
    ETCH_ACCESS_WRITE = 2,
    ETCH_ACCESS_WRITTEN_KNOWN = 4, /* `written` is the location's value after the access */
    ETCH_ACCESS_SEEN_KNOWN = 8,    /* `seen` is the value that the access read */
};

/* An event happened after `lo` and before `hi`, each by the clock of the CPU named there. */
struct etch_event {
    uint32_t thread; /* 0 .. threads - 1 */
    uint8_t kind;
    uint8_t op;     /* Etch__SyncOp */
    uint8_t access; /* ETCH_ACCESS_..., ETCH_LOST_... */
    int32_t result; /* of a sync operation */
    struct etch_bound lo, hi;
    uint64_t object; /* lock, location; for create and join the thread, as its own start has it in `object` */
    uint64_t other;  /* the mutex of a condition; the count a barrier or semaphore begins with */
    uint64_t written, seen;
};

/* TSC of a CPU minus TSC of the reference CPU lies within [lo, hi], all through the recording. */
struct etch_cpu_range {
    int64_t lo, hi;
    bool known; /* false: events are not ordered across this CPU by its clock */
    bool local; /* stamps of this CPU alone are in order (true of any clock that only goes forward) */
};

/* The range for a stamp of any of n CPUs. Known if the range of each CPU is known. */
struct etch_cpu_range etch_cpu_range_any(const struct etch_cpu_range *cpus, uint32_t n);

/* A location of which every access was seen, from the first event to the last. */
struct etch_watched {
    uint64_t object;
    uint64_t initial;
    bool initial_known;
};

/* Event `from` is before event `to` of another sequence of the same thread. The caller knows this from the program. */
struct etch_order_link {
    uint32_t from, to;
};

struct etch_order_input {
    const struct etch_event *events; /* those of one thread in program order; threads may be mixed */
    size_t n;                        /* below 2^32 - 1 */
    uint32_t threads;
    /* A thread may have several sequences of events (records of one source, steps of another), without a known order
     * between the sequences. Each sequence then has a number of its own in etch_event.thread, and tasks[] maps the
     * number to the thread. NULL: each sequence is a thread. */
    const uint32_t *tasks;
    const struct etch_order_link *links;
    size_t n_links;
    const struct etch_cpu_range *cpus;
    uint32_t n_cpus;
    uint32_t reference;
    const struct etch_watched *locations;
    size_t n_locations;
    /* A condition wait that returns 0 was signalled. Off unless the user says so: POSIX allows spurious wakeups, and
     * glibc documents them for its condition variables (a waiter that cannot rule out that it took the signal of
     * another waiter gives a signal back). */
    bool signals_wake;
};

struct etch_order;

/* Returns 0, or -1 with `err` set (memory, impossible input). Contradictions are a result, not an error. `input` and
 * the arrays it points to must stay as long as the order is used. */
int etch_order_build(struct etch_order **order, const struct etch_order_input *input, struct etch_error *err);
void etch_order_free(struct etch_order *order);

enum etch_relation { ETCH_UNORDERED, ETCH_BEFORE, ETCH_AFTER, ETCH_SAME };

/* Is event a before b? */
enum etch_relation etch_order_ask(const struct etch_order *order, size_t a, size_t b);

enum etch_evidence_kind {
    ETCH_BY_PROGRAM,
    ETCH_BY_CLOCK, /* upper bound of `from` below lower bound of `to` */
    ETCH_BY_CPU,   /* the same by one CPU's clock alone */
    ETCH_BY_CREATE,
    ETCH_BY_JOIN,
    ETCH_BY_LOCK,
    ETCH_BY_SIGNAL,
    ETCH_BY_BARRIER,
    ETCH_BY_SEMAPHORE,
    ETCH_BY_VALUE, /* a read and the write that it read from, or a read and the write that replaced the value read */
};

const char *etch_evidence_name(enum etch_evidence_kind kind);

struct etch_evidence {
    enum etch_evidence_kind kind;
    uint32_t from, to; /* events */
};

/* The chain of evidence from a to b, or from b to a if b is before a. Writes up to `max` links and returns how many
 * there are; 0 for an unordered pair. */
size_t etch_order_why(const struct etch_order *order, size_t a, size_t b, struct etch_evidence *links, size_t max);

#define ETCH_CYCLE_MAX 16

/* Evidence that cannot all be true. */
struct etch_conflict {
    uint32_t cpu;      /* the CPU whose clock was left out; ETCH_CPU_NONE: no clock was */
    uint32_t cpu_with; /* the other CPU of the cycle */
    uint64_t object;   /* the object whose records, lost or wrong, were left out because no clock can be blamed */
    int64_t excess;    /* cycles by which the two clocks are further apart than their ranges allow, at least */
    uint64_t events;   /* contradicted */
    size_t n;          /* links of the smallest cycle; the first ETCH_CYCLE_MAX are here */
    struct etch_evidence cycle[ETCH_CYCLE_MAX];
};

const struct etch_conflict *etch_order_conflicts(const struct etch_order *order, size_t *n);

/* All events in an order that contradicts no proven pair, the same for the same input: for display. */
const uint32_t *etch_order_sequence(const struct etch_order *order);

struct etch_order_size {
    size_t events, edges, rows; /* rows: vector clocks */
    size_t bytes;               /* of memory in use */
    unsigned turns;             /* until nothing new could be derived */
    uint64_t bounded; /* locks, sections and reads that were not compared with all others: orders may be missing */
};

void etch_order_measure(const struct etch_order *order, struct etch_order_size *size);

#endif
