/* SPDX-License-Identifier: MIT */
/* The native collector: records a program that runs on this CPU itself, with hardware watchpoints, synchronisation and
 * the state at a failure. */
#ifndef ETCH_COLLECTOR_NATIVE_H
#define ETCH_COLLECTOR_NATIVE_H

#include "collector/source.h"

/* As etch_record(). `source` records the control flow; NULL: no control flow. */
int etch_native_record(const struct etch_record_options *options, const struct etch_source *source,
                       struct etch_record_summary *summary, struct etch_error *err);

#endif
