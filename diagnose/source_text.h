/* SPDX-License-Identifier: MIT */
/* Lines of source files, as the sketch shows them. */
#ifndef ETCH_DIAGNOSE_SOURCE_TEXT_H
#define ETCH_DIAGNOSE_SOURCE_TEXT_H

#include <stdbool.h>
#include <stdint.h>

struct etch_source_text;

/* The MD5 of a file when it was compiled, in hexadecimal; NULL: not known. */
typedef const char *etch_source_text_checksum(void *context, const char *file);

/* A file has changed since it was compiled if its checksum differs. A file without a checksum may have changed if it is
 * newer than `program`. */
struct etch_source_text *etch_source_text_new(const char *program, etch_source_text_checksum *checksum, void *context);
void etch_source_text_free(struct etch_source_text *s);

/* An etch_source_line and an etch_render_source. */
const char *etch_source_text_line(void *source, const char *file, uint32_t line);

/* OUTSIDE: the file lies below no source root (base/input.h), and its checksum does not prove that the compiler read
 * it. Nothing of the file is shown. */
enum etch_source_text_state {
    ETCH_SOURCE_AS_COMPILED,
    ETCH_SOURCE_CHANGED,
    ETCH_SOURCE_NEWER,
    ETCH_SOURCE_OUTSIDE,
    ETCH_SOURCE_MISSING
};

/* The state of a file. */
enum etch_source_text_state etch_source_text_state(struct etch_source_text *s, const char *file);

#endif
