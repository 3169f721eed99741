/* SPDX-License-Identifier: MIT */
/* The forms of `etch decode --as` that speak of source rather than of addresses: line, call, chrome. Each is fed with
 * the steps of a recording and prints as it goes. */
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
    const char *fields; /* that it knows; NULL: it has none */
    /* Returns 0, or -1 with `err` set. */
    int (*begin)(void **view, const struct etch_view_options *options, struct etch_error *err);
    etch_step_visitor *step;
    /* Ends the output properly, also after steps failed, and frees. Returns 0, or -1 with `err` set. */
    int (*end)(void *view, struct etch_error *err);
};

extern const struct etch_view etch_view_line, etch_view_call, etch_view_chrome;

/* ---- What they share: decode_view.c -------------------------------------------------------------------------------
 */

/* Ticks as time since the recording began. */
struct etch_view_clock {
    double ns_per_tick; /* 0: the rate is not known */
    uint64_t origin;
};

void etch_view_clock_init(struct etch_view_clock *clock, const struct etch_recording *recording);

/* "lo..hi", "?" for a bound that is not known, one number where both are the same: microseconds since the recording
 * began where the rate is known, else ticks. */
void etch_view_time(const struct etch_view_clock *clock, struct etch_interval time, char *text, size_t size);

/* "-- overflow: what else is known" for a step that is a loss. Returns `text`. */
const char *etch_view_loss(const struct etch_step *step, char *text, size_t size);

/* "-> 1234, where no code is known ..." for a step that is an interrupt nowhere. Returns `text`. */
const char *etch_view_nowhere(const struct etch_step *step, char *text, size_t size);

/* The last part of a path. */
const char *etch_view_base(const char *path);

/* The name of a thread as recorded, "" where there is none. */
const char *etch_view_thread_name(const struct etch_recording *recording, uint32_t pid, uint32_t tid);

/* "thread PID/TID NAME" and a newline, what does not print replaced. */
void etch_view_thread_title(FILE *out, const struct etch_recording *recording, uint32_t pid, uint32_t tid);

#endif
