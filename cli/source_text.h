/* SPDX-License-Identifier: MIT */
/* Lines of source files, as the sketch shows them. */
#ifndef ETCH_CLI_SOURCE_TEXT_H
#define ETCH_CLI_SOURCE_TEXT_H

#include <stdbool.h>
#include <stdint.h>

struct source_text;

/* `program` tells when the source was compiled: files changed after it are not shown as what ran. */
struct source_text *source_text_new(const char *program);
void source_text_free(struct source_text *s);

/* An etch_source_line and an etch_render_source. */
const char *source_text_line(void *source, const char *file, uint32_t line);

/* The i-th file asked for that has changed since; NULL: no more. */
const char *source_text_changed(const struct source_text *s, unsigned i);

#endif
