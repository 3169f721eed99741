/* SPDX-License-Identifier: MIT */
/* A profile in the formats of other tools. The width of a path in their pictures is its instructions, or for recordings
 * with times: the time of each window between stamps, shared by the instructions that ran in it. */
#ifndef ETCH_REPORT_EXPORT_H
#define ETCH_REPORT_EXPORT_H

#include "report/compare.h"
#include "report/profile.h"

#include <stdio.h>

/* Nanoseconds (ticks where the rate is not known) or instructions of a path itself. */
double etch_path_weight(const struct etch_profile *profile, uint32_t path);

void etch_export_folded(const struct etch_profile *profile, FILE *out);
void etch_export_speedscope(const struct etch_profile *profile, FILE *out);

/* Return 0, or -1 when memory is short. */
int etch_export_pprof(const struct etch_profile *profile, FILE *out);

/* One page with everything in it. `before`: the profile to compare with, or NULL. */
int etch_flame_html(const struct etch_profile *profile, const struct etch_profile *before, FILE *out);

/* The calls of a recording, one after the other: a Perfetto trace. Begins at `out`'s end. */
int etch_export_perfetto(struct etch_recording *recording, struct etch_symbols *symbols,
                         const struct etch_profile_options *options, FILE *out, struct etch_error *err);

#endif
