/* SPDX-License-Identifier: MIT */
/* A run of a script, and the recording of the program in question that the script started: the program was built with
 * etch cc --record and leaves its rings in a folder. Nothing is watched. */
#ifndef ETCH_DIAGNOSE_RING_RUNNER_H
#define ETCH_DIAGNOSE_RING_RUNNER_H

#include "collector/record.h"

/* Runs options->argv in this process's group and records options->subject. A process that failed counts before others,
 * and then the newest. Returns 0, or -1 with `err` set: also if no process of the subject ran. */
int etch_ring_runner_record(const struct etch_record_options *options, struct etch_record_summary *summary,
                            struct etch_error *err);

#endif
