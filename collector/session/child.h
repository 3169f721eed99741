/* SPDX-License-Identifier: MIT */
/* Records a program that the source runs inside another program (struct etch_source_runner). */
#ifndef ETCH_COLLECTOR_SESSION_CHILD_H
#define ETCH_COLLECTOR_SESSION_CHILD_H

#include "collector/source.h"

/* As etch_record(). `source` has a runner. */
int etch_child_record(const struct etch_record_options *options, const struct etch_source *source,
                      struct etch_record_summary *summary, struct etch_error *err);

#endif
