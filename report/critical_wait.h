/* SPDX-License-Identifier: MIT */
/* Private to report/: the waits of a recording's threads, and who ended each. */
#ifndef ETCH_REPORT_CRITICAL_WAIT_H
#define ETCH_REPORT_CRITICAL_WAIT_H

#include "report/critical.h"

#define ETCH_SYNC_NONE SIZE_MAX

struct etch_sync_wait {
    enum etch_link_kind kind;
    uint32_t tid, other;
    uint64_t object, caller;
    uint64_t from;  /* it waited at most since then */
    uint64_t to;    /* it was over by then */
    uint64_t ended; /* when the other thread ended it */
    struct etch_span waited;
    uint64_t owner_caller; /* of a lock: where the other thread took it; 0: not known */
};

/* Operations by thread, and by object. */
struct etch_sync_table {
    const struct etch_recording *recording;
    ETCH_ARRAY(size_t) by_thread; /* by tid, then time */
    ETCH_ARRAY(size_t) by_object; /* by object, then time */
    ETCH_ARRAY(size_t) place;     /* of an operation in by_thread */
};

/* Returns false when memory is short. */
bool etch_sync_table_build(struct etch_sync_table *table, const struct etch_recording *recording);
void etch_sync_table_release(struct etch_sync_table *table);

/* The first operation of the thread in by_thread, and how many there are. */
size_t etch_sync_table_thread(const struct etch_sync_table *table, uint32_t tid, size_t *n);

/* Did the thread wait in this operation for another one? */
bool etch_sync_wait_of(const struct etch_sync_table *table, size_t index, struct etch_sync_wait *wait);

/* The thread that created `tid`, and when. False: not recorded. */
bool etch_sync_creator(const struct etch_sync_table *table, uint32_t tid, uint32_t *creator, uint64_t *when);

#endif
