/* SPDX-License-Identifier: MIT */
/* Private to report/: JSON as a stream. A flame chart has millions of values, too many for a tree in memory. */
#ifndef ETCH_REPORT_JSON_H
#define ETCH_REPORT_JSON_H

#include "report/profile.h"

#include <stdio.h>

/* Names are bytes, JSON is UTF-8: a byte beyond ASCII becomes a number. */
void etch_json_string(FILE *out, const char *text);

/* KEY:{"lo":1.0,"hi":2.0} in nanoseconds (or ticks). `key` has its quotes, and its comma. */
void etch_json_span(FILE *out, const char *key, const struct etch_profile *profile, struct etch_span ticks);

/* {"lo":..,"hi":..} in the profile's unit. */
void etch_json_cost(FILE *out, const struct etch_profile *profile, struct etch_span cost);

#endif
