/* SPDX-License-Identifier: MIT */
/* The experiments of a diagnosis in words, for --explain. */
#ifndef ETCH_DIAGNOSE_LAB_EXPLAIN_H
#define ETCH_DIAGNOSE_LAB_EXPLAIN_H

#include "base/array.h"
#include "diagnose/lab_cause.h"

struct etch_lab_explain {
    const struct etch_lab_cause *cause; /* under way */
    const char *twin;
    ETCH_ARRAY(char *) lines;
};

/* An observer of experiments: notes each in a line. `context` is a struct etch_lab_explain. */
void etch_lab_explain_trial(void *context, const struct etch_lab_trial *trial);

/* Adds the chain and the comparison that decided. */
void etch_lab_explain_end(struct etch_lab_explain *explain);

void etch_lab_explain_release(struct etch_lab_explain *explain);

#endif
