/* SPDX-License-Identifier: MIT */
/* A line of C or C++ cut into pieces of one colour. A line stands for itself: a comment or a string that began on a
 * line before is not known. */
#ifndef ETCH_SKETCH_RENDER_HIGHLIGHT_H
#define ETCH_SKETCH_RENDER_HIGHLIGHT_H

#include <stddef.h>

enum etch_highlight { ETCH_PLAIN, ETCH_KEYWORD, ETCH_NUMBER, ETCH_STRING, ETCH_COMMENT, ETCH_DIRECTIVE, ETCH_CALL };

/* The kind of the piece that `text` begins with. Sets `size` to its bytes, which are 0 only at the end. */
enum etch_highlight etch_highlight_next(const char *text, size_t *size);

#endif
