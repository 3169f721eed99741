/* SPDX-License-Identifier: MIT */
/* What etch sketch and etch diagnose share: the ways out of a sketch. */
#ifndef ETCH_CLI_SKETCHING_H
#define ETCH_CLI_SKETCHING_H

#include "diagnose/run_set.h"

/* Where the sketch goes, as the options say. */
struct sketching_output {
    const char *html, *json, *sarif;
    bool all;
};

/* One of -H, -j, -s, -a, as the commands' long options --html, --json, --sarif and --all give them. Returns false for
 * any other. */
bool sketching_take_option(struct sketching_output *output, int option, const char *value);

/* Prints the sketch and writes the files asked for. */
int sketching_write(struct etch_run_set *s, const Etch__Sketch *sketch, const struct sketching_output *output,
                    struct etch_error *err);

#endif
