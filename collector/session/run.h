/* SPDX-License-Identifier: MIT */
/* Records one run of a program under a source that starts the program itself. */
#ifndef ETCH_COLLECTOR_SESSION_RUN_H
#define ETCH_COLLECTOR_SESSION_RUN_H

#include "collector/source.h"

/* As etch_record(). */
int etch_run_record(const struct etch_source *source, const struct etch_record_options *options,
                    struct etch_record_summary *summary, struct etch_error *err);

#endif
