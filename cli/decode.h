/* SPDX-License-Identifier: MIT */
/* The output forms of `etch decode`. A file defines each form as a struct etch_decode_form; the table is in decode.c.
 * A form either renders steps to text, in parallel and without state, or visits the steps one by one. */
#ifndef ETCH_CLI_DECODE_H
#define ETCH_CLI_DECODE_H

#include "decoder/steps.h"

#include <stdio.h>

enum etch_decode_field {
    ETCH_FIELD_PID,
    ETCH_FIELD_TID,
    ETCH_FIELD_CPU,
    ETCH_FIELD_TIME,
    ETCH_FIELD_IP,
    ETCH_FIELD_ADDR,
    ETCH_FIELD_SRCLINE,
    ETCH_FIELD_SYM,
    ETCH_FIELD_DSO,
    ETCH_FIELDS,
};

/* The request of the user. */
struct etch_decode {
    struct etch_recording *recording;
    struct etch_steps_options options;
    const struct etch_decode_form *form;
    enum etch_decode_field fields[ETCH_FIELDS]; /* in the order in which they were named */
    size_t n_fields;                            /* 0: the form's own layout, for people */
    const char *output;                         /* --output; NULL: standard output */
};

struct etch_decode_form {
    const char *name;
    const char *summary; /* for --help */
    unsigned fields;     /* a bit for each enum etch_decode_field of the form; 0: no --fields */

    etch_step_renderer *render; /* context: the struct etch_decode; or NULL, and these three: */
    /* Called before the first step. Sets the visitor's context. Returns 0, or -1 with `err` set. */
    int (*begin)(const struct etch_decode *decode, void **context, struct etch_error *err);
    etch_step_visitor *visit; /* NULL: the form needs no decode, and its end() does the work */
    /* Called after the last step, also if the decode failed (`status` is then not 0). Frees the context. */
    int (*end)(const struct etch_decode *decode, void *context, int status, struct etch_error *err);
};

extern const struct etch_decode_form etch_decode_insn;
extern const struct etch_decode_form etch_decode_branch;
extern const struct etch_decode_form etch_decode_line;
extern const struct etch_decode_form etch_decode_call;
extern const struct etch_decode_form etch_decode_chrome;
extern const struct etch_decode_form etch_decode_perf;

/* The names that --fields takes. */
extern const char *const etch_decode_field_names[ETCH_FIELDS];

#endif
