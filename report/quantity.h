/* SPDX-License-Identifier: MIT */
/* Amounts as text for people: "3.09 ms", "<= 3.1 us" where nothing but the upper bound is known, "1.2..3.4 ms". */
#ifndef ETCH_REPORT_QUANTITY_H
#define ETCH_REPORT_QUANTITY_H

#include "report/profile.h"

#include <stddef.h>

enum { ETCH_QUANTITY_ROOM = 48 };

/* Ticks; nanoseconds where the rate is known. Returns `text`. */
const char *etch_quantity_ticks(const struct etch_profile *profile, struct etch_span ticks, char *text);

/* Instructions: "12.3 k". */
const char *etch_quantity_count(uint64_t count, char *text);

/* In the profile's unit. */
const char *etch_quantity(const struct etch_profile *profile, struct etch_span amount, char *text);

/* The amount in nanoseconds, or in ticks where the rate is not known. */
double etch_quantity_ns(const struct etch_profile *profile, double ticks);

/* The middle of a span: for sorting and for the width of pictures. An unknown end counts as the other end. */
double etch_span_middle(struct etch_span span);

#endif
