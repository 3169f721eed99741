/* SPDX-License-Identifier: MIT */
/* The critical path: the chain of work and waits that decided when the run ended. It is followed backwards, from the
 * thread that ended last: where that thread waited, the chain goes on in the thread that ended the wait. Every time is
 * a span between recorded stamps. */
#ifndef ETCH_REPORT_CRITICAL_H
#define ETCH_REPORT_CRITICAL_H

#include "report/profile.h"

#include <stdio.h>

enum etch_link_kind {
    ETCH_LINK_WORK,    /* the thread ran, or waited for something that was not recorded */
    ETCH_LINK_LOCK,    /* waited for a lock; `other` held it */
    ETCH_LINK_SIGNAL,  /* waited on a condition; `other` signalled it */
    ETCH_LINK_POST,    /* waited on a semaphore; `other` posted it */
    ETCH_LINK_JOIN,    /* waited for the end of `other` */
    ETCH_LINK_BARRIER, /* waited at a barrier; `other` came last */
    ETCH_LINK_START,   /* was created by `other` */
    ETCH_LINKS,
};

struct etch_link {
    enum etch_link_kind kind;
    uint32_t tid, other;     /* other: 0 for work */
    uint64_t object;         /* the lock, condition, ... */
    uint64_t from, to;       /* ticks: of the path, this much */
    struct etch_span waited; /* of a wait: how long `tid` waited in all */
    uint64_t caller;         /* code address of the operation */
};

/* A lock, condition, semaphore or barrier, over the whole run. */
struct etch_contended {
    uint64_t object;
    enum etch_link_kind kind;
    uint64_t operations, waits;
    struct etch_span waited; /* sum over all threads */
    uint64_t longest;
    uint64_t on_path;       /* ticks of the critical path that waited for it */
    uint32_t owner;         /* the thread for which others waited longest */
    struct etch_span owned; /* how long they waited for that thread */
    uint64_t owner_caller;  /* where that thread took it, the last time that somebody waited */
    char *name;             /* of the variable; NULL: not known */
};

struct etch_critical {
    ETCH_ARRAY(struct etch_link) links;          /* from the beginning of the run to its end */
    ETCH_ARRAY(struct etch_contended) contended; /* that somebody waited for; the longest waits first */
    uint64_t begin, end;
    uint64_t lost; /* synchronisation events: links may be missing */
    double ns_per_tick;
    const struct etch_recording *recording;
    struct etch_symbols *symbols;
};

/* Returns 0, or -1 with `err` set. `recording` and `symbols` must outlive it. */
int etch_critical_find(struct etch_critical *critical, const struct etch_recording *recording,
                       struct etch_symbols *symbols, struct etch_error *err);
void etch_critical_release(struct etch_critical *critical);

void etch_critical_print(const struct etch_critical *critical, FILE *out);
void etch_critical_json(const struct etch_critical *critical, FILE *out);

#endif
