/* SPDX-License-Identifier: MIT */
/* Between compose.c and layout.c: a sketch in the making, and the part that chooses and orders its steps. */
#ifndef ETCH_SKETCH_EXPLAIN_LAYOUT_H
#define ETCH_SKETCH_EXPLAIN_LAYOUT_H

#include "sketch/compose.h"

/* A step in the making. */
struct layout_item {
    uint32_t thread, place;
    uint64_t nth; /* of the thread's visits of the place; 0: not known */
    uint64_t seq;
    uint64_t lo, hi;         /* TSC, for display */
    uint64_t not_before, by; /* proven bounds of its time, in TSC of any CPU; 0 and UINT64_MAX: none */
    uint32_t depth;
    uint64_t count;
    uint32_t access; /* its last access in question, or ETCH_NOWHERE */
    uint32_t event;  /* in the run's order: of that access, or of its synchronisation; ETCH_NOWHERE: none */
    uint32_t rank;   /* equal ranks stand side by side */
    uint32_t step;   /* in the sketch */
    bool not_yet;    /* it had not run at the time of the failure */
};

struct composition {
    const struct etch_names *names;
    const struct etch_compose_options *options;
    Etch__Sketch *sketch;
    struct etch_run **runs; /* of one bug, and passing, by key */
    size_t n_runs;
    uint32_t failing, passing, other_failures; /* runs; other failures are not among `runs` */
    struct etch_predictors predictors;
    struct etch_predictor *top;
    struct etch_predictor *best[ETCH_PREDICTOR_KINDS];
    const struct etch_run *run; /* the run that is laid out */
    ETCH_ARRAY(struct layout_item) items;
    ETCH_ARRAY(uint32_t) variables;
    ETCH_ARRAY(struct etch_run_visit) chosen; /* visits to show instead of the last visit of their place */
    size_t unshown_variables;                 /* variables with values for which there is no column */
    bool walk_cut;                            /* the walk of an address has more statements than are shown */
    bool *before;                             /* by two items: the first is proven to be before the second */
    bool failed;                              /* memory was short */
};

void *etch_compose_new(struct composition *c, size_t size);
char *etch_compose_text(struct composition *c, const char *text);
bool etch_compose_push(struct composition *c, void *field, size_t *n, void *item);
Etch__Place *etch_compose_place(struct composition *c, uint32_t place);

/* The item of an access: the same visit of the same place by the same thread. NULL: there is none. */
struct layout_item *etch_layout_item_of(struct composition *c, const struct etch_run_access *access);

/* Gives an access a step of its own, unless its visit has one. */
void etch_layout_add_access(struct composition *c, uint32_t access);

/* Columns of values, and the values of a step. */
void etch_layout_choose_variables(struct composition *c);
void etch_layout_add_values(struct composition *c, Etch__SketchStep *step, const struct layout_item *item);

/* The value chain: from the values that the failure used to the step that wrote each, and on to the values that this
 * step used. Adds the steps that are missing; after the steps are made, links each value to the step that wrote it. */
void etch_chain_extend(struct composition *c);
void etch_chain_link(struct composition *c);

/* Adds what the passing runs did at the statement of a step. */
void etch_passing_fill(struct composition *c, Etch__SketchStep *step, const struct layout_item *item);

void etch_layout_fill(struct composition *c);
void etch_layout_release(struct composition *c);

/* Puts the items in an order that contradicts nothing proven, and gives them ranks. False when memory is short. */
bool etch_layout_sort(struct composition *c);

/* True if the order of two items is unproven. Valid after sorting. */
bool etch_layout_is_open(const struct composition *c, uint32_t one, uint32_t other);

/* True if the best predictor is about a write that had not happened when the shown run failed. Sets `place` to the
 * place of that write. */
bool etch_layout_not_yet(const struct composition *c, uint32_t *place);

/* Which places are shown: `shown` has room for one mark per place. */
void etch_layout_choose(struct composition *c, bool *shown);

#endif
