/* SPDX-License-Identifier: MIT */
/* Access groups: consecutive accesses of one statement execution to one object, taken as one. The order and atomicity
 * patterns are made of access groups. */
#ifndef ETCH_SKETCH_PREDICT_ACCESS_GROUP_H
#define ETCH_SKETCH_PREDICT_ACCESS_GROUP_H

#include "sketch/run.h"

/* The accesses of one execution of a statement to one object. No access of another thread lies between them. */
struct etch_access_group {
    uint32_t thread, place, variable, object;
    uint32_t first, last;       /* accesses of the run */
    uint32_t read_at, write_at; /* the last read, the last write; ETCH_NOWHERE: none */
    uint64_t nth;
    uint32_t call; /* number of the call in its thread; 0: not known */
    bool read, write;
    bool handler; /* made by a signal handler, which counts as another thread */
};

struct etch_access_groups {
    ETCH_ARRAY(struct etch_access_group) all; /* by object, then in the run's sequence */
    uint64_t fatal; /* number of the execution of the failing statement that failed; 0: not known */
    const struct etch_comparison_points *comparison_points;
};

/* `early`: takes only the accesses up to the first symptom. Returns 0, or -1 when memory is short. */
int etch_access_groups_make(struct etch_access_groups *groups, const struct etch_run *run, bool early);

/* A pattern of two access groups (order) or three (atomicity). */
struct etch_pattern {
    char name[4];
    uint32_t n;
    uint32_t group[3];
    uint32_t at[3]; /* the access of each group that the letter of the name means */
    bool proven;    /* the order of the groups is proven */
    bool alone;     /* WR within one thread: the origin of the value */
    bool last;      /* its last group (RW: its first) is the last one of that statement and object */
};

/* A torn read of two variables. One call makes two reads, and a call of another thread makes two writes. The first read
 * saw the first write. The second read was before the second write. */
struct etch_torn {
    uint32_t group[4]; /* write, read; read, write */
    bool proven;       /* the second read is proven to be before the second write; else nothing is known of the two */
};

typedef void etch_torn_visitor(void *context, const struct etch_torn *torn);

/* Returns the number of pairs of reads for which not all writes of the object were searched: there are too many. */
size_t etch_access_groups_torn(const struct etch_access_groups *groups, const struct etch_run *run,
                               etch_torn_visitor *visit, void *context);

/* Called for each pattern. */
typedef void etch_pattern_visitor(void *context, const struct etch_pattern *pattern);

void etch_access_groups_patterns(const struct etch_access_groups *groups, const struct etch_run *run,
                                 etch_pattern_visitor *visit, void *context);

#endif
