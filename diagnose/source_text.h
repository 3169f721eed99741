/* SPDX-License-Identifier: MIT */
/* Lines of source files, as the sketch shows them. */
#ifndef ETCH_DIAGNOSE_SOURCE_TEXT_H
#define ETCH_DIAGNOSE_SOURCE_TEXT_H

#include <stdbool.h>
#include <stdint.h>

struct source_text;

/* The MD5 of a file when it was compiled, in hexadecimal; NULL: not known. */
typedef const char *source_text_checksum(void *context, const char *file);

/* What tells whether a file has changed since it was compiled: its checksum; where there is none, that it is newer than
 * `program`. */
struct source_text *source_text_new(const char *program, source_text_checksum *checksum, void *context);
void source_text_free(struct source_text *s);

/* An etch_source_line and an etch_render_source. */
const char *source_text_line(void *source, const char *file, uint32_t line);

/* OUTSIDE: it lies below no source root (base/input.h), and its checksum does not say that the compiler read it.
 * Nothing of it is shown. */
enum source_text_state { SOURCE_AS_COMPILED, SOURCE_CHANGED, SOURCE_NEWER, SOURCE_OUTSIDE, SOURCE_MISSING };

/* What is known of a file. */
enum source_text_state source_text_state(struct source_text *s, const char *file);

#endif
