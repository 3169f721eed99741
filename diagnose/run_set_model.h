/* SPDX-License-Identifier: MIT */
/* Private to run_set*.c. */
#ifndef ETCH_DIAGNOSE_RUN_SET_MODEL_H
#define ETCH_DIAGNOSE_RUN_SET_MODEL_H

#include "diagnose/run_set.h"

/* The failure in question: the commonest, or the commonest with the wanted name. NULL: no run failed. */
int etch_run_set_choose_failure(struct etch_run_set *s, struct etch_run_bundle **chosen, struct etch_error *err);

/* The other failures, in words. */
void etch_run_set_note_failures(struct etch_run_set *s);

/* Adds a note to this sketch, unless the sketch has it already. */
void etch_run_set_note_now(struct etch_run_set *s, const char *text);
void etch_run_set_drop_notes(struct etch_run_set *s);

/* ---- run_set_values.c ---- */

/* True if the policy hides a recovered value. `context` is the set. */
bool etch_run_set_hides(void *context, const char *name, uint64_t value);

#endif
