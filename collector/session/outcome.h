/* SPDX-License-Identifier: MIT */
/* How a run ended: the parts of its records that all sources share. */
#ifndef ETCH_COLLECTOR_SESSION_OUTCOME_H
#define ETCH_COLLECTOR_SESSION_OUTCOME_H

#include "collector/record.h"
#include "proto/bundle.h"

#include <sys/resource.h>

/* The exit status or the signal of `wait_status`. `wait_status` is in the format of waitpid. */
void etch_outcome_set(Etch__Outcome *outcome, int wait_status);

/* The summary of a failure that is in the bundle. */
void etch_failure_sum_up(struct etch_record_summary *summary, const Etch__Failure *failure, bool address_known);

/* CPU time: of RUSAGE_SELF or RUSAGE_CHILDREN, and of a usage that is known. */
uint64_t etch_cpu_ns(int who);
uint64_t etch_rusage_ns(const struct rusage *use);

/* The time of day. */
uint64_t etch_unix_ns(void);

#endif
