/* SPDX-License-Identifier: MIT */
/* A failure's cause in words, where the signal alone does not say it. */
#ifndef ETCH_SKETCH_EXPLAIN_CAUSE_H
#define ETCH_SKETCH_EXPLAIN_CAUSE_H

#include "proto/etch.pb-c.h"

#include <stdbool.h>
#include <stddef.h>

/* For the head of the sketch: "uncaught std::out_of_range in lookup(): no such key". False: the cause is not known. */
bool etch_cause_headline(const Etch__Failure *failure, const char *function, char *text, size_t size);

/* For the failing statement. */
bool etch_cause_step(const Etch__Failure *failure, char *text, size_t size);

/* Further sentences about the cause, by number; false: there are no more. */
bool etch_cause_note(const Etch__Failure *failure, unsigned number, char *text, size_t size);

#endif
