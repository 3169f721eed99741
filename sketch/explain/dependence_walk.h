/* SPDX-License-Identifier: MIT */
/* The dependence walk of the run that is laid out. It goes from the failing statement back to the writes whose values
 * were read, to the calls that passed them, and to the branches that let them run. It is a part of choosing the
 * statements of a sketch. */
#ifndef ETCH_SKETCH_EXPLAIN_DEPENDENCE_WALK_H
#define ETCH_SKETCH_EXPLAIN_DEPENDENCE_WALK_H

#include "sketch/explain/layout.h"

/* The write whose value the access read, as far as accesses were recorded: an index into the run's accesses, or
 * ETCH_NOWHERE. */
uint32_t etch_dependence_definition(const struct etch_run *run, uint32_t read);

/* The write of the value that a visit of a statement read by `operand`, if no access was recorded but control flow was.
 * A function's own variable: the newest write before the visit. Shared memory: the newest write by the same thread that
 * the slice knows. NULL: not known. */
const struct etch_run_visit *etch_dependence_by_flow(const struct composition *c, const struct etch_run_visit *visit,
                                                     const Etch__Operand *operand);

/* The statement of the slice at a place, or NULL. */
const Etch__Statement *etch_dependence_statement(const struct composition *c, uint32_t place);

bool etch_dependence_has_role(const Etch__Statement *s, Etch__StatementRole role);

/* True if `function` is on the failing thread's last stack. */
bool etch_dependence_on_stack(const struct composition *c, const char *function);

/* True if a statement calls `function` and passes it an argument that is in the slice. */
bool etch_dependence_is_call_of(const struct composition *c, const Etch__Statement *s, const char *function);

/* True if a statement is in the slice because of a statement at `place`. */
bool etch_dependence_brought_in(const struct composition *c, const Etch__Statement *s, uint32_t place);

/* Shows how the addresses that the failing statement used came to its thread through shared memory: by which reads,
 * calls and returns, and which statement had left them there. */
void etch_dependence_follow_addresses(struct composition *c, bool *shown);

/* From what is shown already on to where a value came from: of the failing statement only what writes `variable`
 * counts, ETCH_NOWHERE: all. */
void etch_dependence_follow(const struct composition *c, bool *shown, uint32_t variable);

#endif
