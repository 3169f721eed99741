/* SPDX-License-Identifier: MIT */
/* The forms of `etch decode --as` that show source rather than addresses: line, call, chrome. Each form gets the steps
 * of a recording and prints them one after the other. */
#ifndef ETCH_CLI_DECODE_VIEW_H
#define ETCH_CLI_DECODE_VIEW_H

#include "base/error.h"
#include "binary/symbols.h"
#include "decoder/steps.h"

#include <stdio.h>

enum { ETCH_VIEW_NOWHERE_ROOM = 96 };

struct etch_view_options {
    FILE *out;
    const struct etch_recording *recording;
    struct etch_symbols *symbols;
    const char *fields; /* as after --fields; NULL: the view's own choice */
};

struct etch_view {
    const char *name;
    const char *fields; /* the fields of the view; NULL: none */
    /* Returns 0, or -1 with `err` set. */
    int (*begin)(void **view, const struct etch_view_options *options, struct etch_error *err);
    etch_step_visitor *step;
    /* Ends the output, also after steps failed, and frees the view. Returns 0, or -1 with `err` set. */
    int (*end)(void *view, struct etch_error *err);
};

extern const struct etch_view etch_view_line, etch_view_call, etch_view_chrome;

/* ---- Shared functions: decode_view.c -------------------------------------------------------------------------------
 */

/* Ticks as time since the recording began. */
struct etch_view_clock {
    double ns_per_tick; /* 0: the rate is not known */
    uint64_t origin;
};

void etch_view_clock_init(struct etch_view_clock *clock, const struct etch_recording *recording);

/* "lo..hi", with "?" for an unknown bound, or one number if both bounds are the same. The unit is microseconds since
 * the recording began if the rate is known, else ticks. */
void etch_view_time(const struct etch_view_clock *clock, struct etch_interval time, char *text, size_t size);

/* "-- overflow: what else is known" for a step that is a loss. Returns `text`. */
const char *etch_view_loss(const struct etch_step *step, char *text, size_t size);

/* "-> 1234, where no code is known ..." for a step that is an interrupt nowhere. Returns `text`. */
const char *etch_view_nowhere(const struct etch_step *step, char *text, size_t size);

/* The last part of a path. */
const char *etch_view_base(const char *path);

/* The recorded name of a thread, or "". */
const char *etch_view_thread_name(const struct etch_recording *recording, uint32_t pid, uint32_t tid);

/* Prints "thread PID/TID NAME" and a newline. Characters that do not print are replaced. */
void etch_view_thread_title(FILE *out, const struct etch_recording *recording, uint32_t pid, uint32_t tid);

#endif
