/* SPDX-License-Identifier: MIT */
/* The answers from outside that a run in the lab got, so that the run can be repeated without the world outside, and
 * the policy that says which answers are kept. */
#ifndef ETCH_COLLECTOR_LAB_JOURNAL_H
#define ETCH_COLLECTOR_LAB_JOURNAL_H

#include "base/error.h"
#include "collector/lab/layout.h"

#include <stddef.h>

/* Links the answers of each thread, and counts them. `first` gets where the first answer of each thread is, plus 1. The
 * bytes may come from a file of others: returns false if they are no journal. */
bool etch_lab_journal_link(void *journal, size_t size, uint64_t first[ETCH_LAB_THREADS + 1], uint64_t *answers);

/* "read", "connect", ... of enum etch_lab_call. */
const char *etch_lab_call_name(uint32_t call);

/* Reads a policy: lines "SOURCE record" or "SOURCE repeat", and comments after '#'. `kept` gets the sources that are
 * kept (enum etch_lab_source); a source without a line is. Returns 0, or -1 with `err` set. */
int etch_lab_policy_parse(uint32_t *kept, const char *text, size_t size, struct etch_error *err);

#endif
