/* SPDX-License-Identifier: MIT */
/* Steps as source lines: consecutive instructions of one line become one, with the inlined calls around it. */
#ifndef ETCH_DECODER_LINES_H
#define ETCH_DECODER_LINES_H

#include "binary/symbols.h"
#include "decoder/steps.h"

/* One line of source, or one symbol or module where lines are not known. The same line has the same `id` all along. */
struct etch_line {
    uint32_t id;
    struct etch_location location; /* of the first address seen on this line */
};

/* `line` is NULL for a step that is not a block. `ip` is where the line was entered this time. */
typedef int etch_line_visitor(void *context, const struct etch_step *step, const struct etch_line *line, uint64_t ip);

struct etch_lines;

/* Returns NULL when memory is short. */
struct etch_lines *etch_lines_new(struct etch_symbols *symbols, etch_line_visitor *visit, void *context);
void etch_lines_free(struct etch_lines *lines);

/* An etch_step_visitor; `lines` is a struct etch_lines. Returns what the visitor returns, -1 when memory is short. */
int etch_lines_step(void *lines, const struct etch_step *step);

#endif
