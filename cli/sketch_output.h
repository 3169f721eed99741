/* SPDX-License-Identifier: MIT */
/* The output of a sketch, which etch sketch and etch diagnose share: its options, the picture and the files. */
#ifndef ETCH_CLI_SKETCH_OUTPUT_H
#define ETCH_CLI_SKETCH_OUTPUT_H

#include "diagnose/run_set.h"

/* The files of the sketch, as the options name them. */
struct etch_sketch_output {
    const char *html, *json, *sarif, *gdb;
    bool all;
};

/* Takes one of 'H', 'j', 's', 'G', 'a': the long options --html, --json, --sarif, --gdb and --all. Returns false for
 * any other. */
bool etch_sketch_output_take_option(struct etch_sketch_output *output, int option, const char *value);

/* Prints the sketch and writes the files asked for. */
int etch_sketch_output_write(struct etch_run_set *s, const Etch__Sketch *sketch,
                             const struct etch_sketch_output *output, struct etch_error *err);

#endif
