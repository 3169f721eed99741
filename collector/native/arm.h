/* SPDX-License-Identifier: MIT */
/* Watches in a program that runs: debug registers are set at its start, or when an instruction (a site) shows which
 * location is meant. */
#ifndef ETCH_COLLECTOR_NATIVE_ARM_H
#define ETCH_COLLECTOR_NATIVE_ARM_H

#include "collector/native/native.h"

/* Sets the watches of this run's set. Returns 0, or -1 with `err` set. */
int etch_native_arm(struct native *n, struct etch_error *err);

/* A thread stopped at a site. Returns true: the stop is etch's own and not for the program. */
bool etch_native_arrive(struct native *n, pid_t tid);

/* Before etch leaves a program that goes on: takes the sites away. */
void etch_native_leave_sites(struct native *n, struct etch_error *err);

/* At the end: writes which watches were not set or not complete. */
void etch_native_watches_account(struct native *n);

#endif
