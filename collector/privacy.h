/* SPDX-License-Identifier: MIT */
/* A policy at work: it stands before a bundle's writer, and sees every record of every source. What it hides it
 * counts. */
#ifndef ETCH_COLLECTOR_PRIVACY_H
#define ETCH_COLLECTOR_PRIVACY_H

#include "collector/policy.h"
#include "proto/bundle.h"

#define ETCH_PRIVACY_MASKED_WORD 0x2a2a2a2a2a2a2a2aull /* in the place of a register: no address, and not 0 */

struct etch_privacy;

/* Takes the policy. With `keep_stack` stacks are written as they are. Returns NULL where memory is short, and frees the
 * policy. */
struct etch_privacy *etch_privacy_new(struct etch_policy *policy, bool keep_stack);

/* By options: finds the policy and refuses what it forbids. */
int etch_privacy_open(struct etch_privacy **privacy, const char *policy, bool keep_stack, struct etch_error *err);

void etch_privacy_free(struct etch_privacy *privacy);

/* From now on all that is written goes through the policy. */
void etch_privacy_guard(struct etch_privacy *privacy, struct etch_bundle_writer *writer);

/* For a bundle that is there already: its code is learned before its stacks are masked. False: no memory. */
bool etch_privacy_learn(struct etch_privacy *privacy, const Etch__Image *image);

/* The record as it may be written, valid until the next call; NULL: no memory. */
const Etch__Record *etch_privacy_pass(void *privacy, const Etch__Record *record);

/* What was hidden so far, as a record. */
const Etch__Record *etch_privacy_last(void *privacy);

/* The same, for who hides more by itself. */
Etch__Redaction *etch_privacy_count(struct etch_privacy *privacy);

#endif
