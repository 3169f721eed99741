/* SPDX-License-Identifier: MIT */
/* Starting the program of a native recording, or joining one that runs. */
#ifndef ETCH_COLLECTOR_NATIVE_LAUNCH_H
#define ETCH_COLLECTOR_NATIVE_LAUNCH_H

#include "collector/native/native.h"
#include "collector/session/signals.h"

#include <sys/resource.h>

/* Starts options->argv with the signals and the limit of descriptors that etch itself was started with. */
int etch_native_launch(struct native *n, const struct etch_signals *signals, const struct rlimit *descriptors,
                       struct etch_error *err);

/* Joins options->pid. */
int etch_native_join(struct native *n, struct etch_error *err);

#endif
