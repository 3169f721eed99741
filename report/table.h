/* SPDX-License-Identifier: MIT */
/* The views of a profile that are text or JSON: the table of functions, the distribution of one function's calls. */
#ifndef ETCH_REPORT_TABLE_H
#define ETCH_REPORT_TABLE_H

#include "report/profile.h"

#include <stdio.h>

struct etch_table_filter {
    const char *function; /* its name has this text; NULL: all */
    uint64_t above;       /* ticks or instructions: calls of it took, or may have taken, that much at least */
    size_t rows;          /* at most; 0: all */
};

/* The functions that pass, those with the greatest total first. Returns how many, or -1 when memory is short. The
 * caller frees *rows. */
long etch_table_rows(const struct etch_profile *profile, const struct etch_table_filter *filter, uint32_t **rows);

/* Return 0, or -1 when memory is short. Errors of writing stay with `out`. */
int etch_table_print(const struct etch_profile *profile, const struct etch_table_filter *filter, FILE *out);
int etch_table_json(const struct etch_profile *profile, const struct etch_table_filter *filter, FILE *out);

/* How the calls of one function are distributed; with `by_caller` for each caller apart. */
int etch_histogram_print(const struct etch_profile *profile, uint32_t function, bool by_caller, FILE *out);
int etch_histogram_json(const struct etch_profile *profile, uint32_t function, bool by_caller, FILE *out);

#endif
