/* SPDX-License-Identifier: MIT */
/* Applies a policy to a bundle's writer. Every record of every source passes through the policy. Hidden parts are
 * counted. */
#ifndef ETCH_COLLECTOR_PRIVACY_H
#define ETCH_COLLECTOR_PRIVACY_H

#include "collector/policy.h"
#include "proto/bundle.h"

#define ETCH_PRIVACY_MASKED_WORD 0x2a2a2a2a2a2a2a2aull /* in the place of a register: no address, and not 0 */

struct etch_privacy;

/* Takes the policy. With `keep_stack` stacks are written as they are. Returns NULL where memory is short, and frees the
 * policy. */
struct etch_privacy *etch_privacy_new(struct etch_policy *policy, bool keep_stack);

/* Opens by options: finds the policy and refuses options that the policy forbids. */
int etch_privacy_open(struct etch_privacy **privacy, const char *policy, bool keep_stack, struct etch_error *err);

void etch_privacy_free(struct etch_privacy *privacy);

/* From now on every written record goes through the policy. */
void etch_privacy_guard(struct etch_privacy *privacy, struct etch_bundle_writer *writer);

/* For an existing bundle: learns the bundle's code before its stacks are masked. False: no memory. */
bool etch_privacy_learn(struct etch_privacy *privacy, const Etch__Image *image);

/* The record as it may be written, valid until the next call; NULL: no memory. */
const Etch__Record *etch_privacy_pass(void *privacy, const Etch__Record *record);

/* The record with the counts of hidden parts so far. */
const Etch__Record *etch_privacy_last(void *privacy);

/* The same counts, for a caller that hides more by itself. */
Etch__Redaction *etch_privacy_count(struct etch_privacy *privacy);

#endif
