/* SPDX-License-Identifier: MIT */
/* Address filters: from ranges of a program to the few that a CPU has. */
#ifndef ETCH_COLLECTOR_PT_FILTER_H
#define ETCH_COLLECTOR_PT_FILTER_H

#include "base/array.h"
#include "base/error.h"
#include "binary/object.h"
#include "collector/sink.h"

#include <stddef.h>
#include <stdint.h>

/* [start, end), in the numbering of the program's file. */
struct etch_filter_range {
    uint64_t start, end;
};

struct etch_filter_ranges {
    ETCH_ARRAY(struct etch_filter_range) list;
};

/* START-END in hexadecimal with 0x, or the name of a function. Returns 0, or -1 with `err` set. */
int etch_range_parse(struct etch_filter_range *range, const char *text, const struct etch_object *object,
                     struct etch_error *err);

/* Sorts, joins what touches, and then the neighbours with the least code between them until at most `limit` are left:
 * more is recorded than was asked for, never less. Returns how many bytes more. */
uint64_t etch_ranges_join(struct etch_filter_ranges *ranges, size_t limit);

/* The kernel's words for them: "filter 0x1000/0x20@/path, ...". Returns 0, or -1 with `err` set. */
int etch_pt_filter_write(char *text, size_t size, const struct etch_filter_ranges *ranges,
                         const struct etch_object *object, const char *path, struct etch_error *err);

/* The kernel's words, and how many filters they are; 0: all code is recorded. */
struct etch_pt_filter {
    char text[8192];
    size_t n;
};

/* The ranges that the options ask for, in the program of process `pid`, joined to the `limit` filters of this CPU.
 * Notes what is recorded beyond them. Returns 0, or -1 with `err` set. */
int etch_pt_filter_make(struct etch_pt_filter *filter, const struct etch_record_options *options, size_t limit,
                        pid_t pid, const struct etch_sink *sink, struct etch_error *err);

#endif
