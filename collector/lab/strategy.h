/* SPDX-License-Identifier: MIT */
/* Strategies of the lab: which thread runs next. A strategy is a function of the enabled threads, of what each of them
 * does next, and of its own past choices. It does no I/O, allocates nothing and reads no clock, so the same seed and
 * the same program give the same schedule. */
#ifndef ETCH_COLLECTOR_LAB_STRATEGY_H
#define ETCH_COLLECTOR_LAB_STRATEGY_H

#include <stdbool.h>
#include <stdint.h>

#define ETCH_LAB_THREADS 1024u /* threads of one run, in the order of their creation; ended ones keep their number */
#define ETCH_LAB_DEPTH 16u     /* change points of pct, at most */

enum etch_lab_strategy_kind {
    ETCH_LAB_QUEUE,  /* round robin */
    ETCH_LAB_RANDOM, /* uniformly among the enabled threads */
    ETCH_LAB_PCT,    /* highest priority first; `depth` - 1 times the running thread falls to the lowest */
    ETCH_LAB_POS,    /* a random priority for each operation, drawn anew when a conflicting one was executed */
    ETCH_LAB_SURW,   /* uniformly over the orders of interesting operations */
    ETCH_LAB_STAY,   /* the running thread as long as it can run, then the next in turn */
};

/* A strategy by its name and numbers, as "pct:7,3" says it. */
struct etch_lab_spec {
    uint32_t kind;  /* enum etch_lab_strategy_kind */
    uint32_t depth; /* pct */
    uint64_t seed;
    uint64_t length;  /* pct: how many points a run has, about; 0: 1,000 */
    uint32_t strides; /* surw: a thread executes several interesting operations in a row, one or most of them */
    uint32_t sticks;  /* surw: between two interesting operations a thread goes on as long as it can */
};

/* The next operation of a thread. */
struct etch_lab_op {
    uint64_t object;  /* the address, or the synchronisation object; 0: none */
    bool write;       /* may change the object */
    bool interesting; /* for surw */
    bool sync;        /* of a synchronisation, not of memory that the program reads or writes itself */
    uint32_t size;    /* bytes from `object` on; 0: eight */
    uint32_t bytes;   /* exactly, from `address` on; 0: not known */
    uint64_t address;
    bool release;          /* of a lock */
    uint32_t made, joined; /* the number of the thread that it makes, or waits for until its end, plus 1; 0: none */
};

struct etch_lab_candidate {
    uint32_t thread;
    struct etch_lab_op op;
};

struct etch_lab_view {
    const struct etch_lab_candidate *enabled; /* at least one, by thread number */
    uint32_t n;
    uint32_t last;  /* the thread that ran last */
    uint64_t point; /* points so far */
    bool yields;    /* the last thread gives way: it waits for others in a loop, or asked to */
};

struct etch_lab_strategy {
    struct etch_lab_spec spec;
    uint64_t state; /* of the random numbers */
    uint64_t change[ETCH_LAB_DEPTH];
    uint64_t lowest; /* pct: the next priority below all others */
    uint64_t priority[ETCH_LAB_THREADS];
    struct etch_lab_op drawn[ETCH_LAB_THREADS]; /* pos: the operation that the priority was drawn for */
    bool known[ETCH_LAB_THREADS];
    uint64_t ahead[ETCH_LAB_THREADS]; /* surw: interesting operations that are still to come */
    uint32_t intended;                /* surw: the thread that executes the next interesting operation */
    bool has_intended;
    uint64_t stride; /* surw: interesting operations that the intended thread executes in a row, from here on */
    uint32_t waited; /* choices since then */
    uint32_t allowed[ETCH_LAB_THREADS]; /* scratch */
};

/* Reads "queue", "random:SEED", "pct:SEED,DEPTH", "pos:SEED", "surw:SEED" or "stay". False if `text` is none of these.
 */
bool etch_lab_spec_parse(struct etch_lab_spec *spec, const char *text);

/* The name of a kind; "unknown" beyond the last. */
const char *etch_lab_strategy_name(uint32_t kind);

void etch_lab_strategy_init(struct etch_lab_strategy *s, const struct etch_lab_spec *spec);

/* surw: `thread` had that many interesting operations in an earlier run. Without this call it has 1. */
void etch_lab_strategy_expect(struct etch_lab_strategy *s, uint32_t thread, uint64_t interesting);

/* The index of the thread within `view->enabled` that runs next. */
uint32_t etch_lab_strategy_choose(struct etch_lab_strategy *s, const struct etch_lab_view *view);

#endif
