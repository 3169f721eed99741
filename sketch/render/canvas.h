/* SPDX-License-Identifier: MIT */
/* A page of character cells that grows downwards: text is flowed into it at any place, lines and arrows are drawn
 * around the text, and the page is written out once. Text from outside cannot move the cursor or colour anything. */
#ifndef ETCH_SKETCH_RENDER_CANVAS_H
#define ETCH_SKETCH_RENDER_CANVAS_H

#include "base/array.h"

#include <locale.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum etch_look { LOOK_PLAIN, LOOK_DIM, LOOK_BOLD, LOOK_CAUSE, LOOK_FAILURE, LOOK_LOSS, LOOK_VALUE, LOOK_HEAD };

/* The glyphs, in either character set. */
enum etch_glyph {
    GLYPH_HORIZONTAL,
    GLYPH_VERTICAL,
    GLYPH_CROSS,
    GLYPH_FROM,      /* where an arrow leaves a step */
    GLYPH_TO,        /* where it turns right */
    GLYPH_BACK,      /* where it turns left */
    GLYPH_DOWN,      /* where it comes from the left and turns down */
    GLYPH_DOWN_BACK, /* where it comes from the right and turns down */
    GLYPH_FORK,
    GLYPH_TEE,
    GLYPH_RIGHT,
    GLYPH_LEFT,
};

struct etch_cell {
    uint32_t rune; /* 0: blank */
    uint32_t mark; /* a combining character on it, or 0 */
    uint8_t look;
    uint8_t drawn; /* the glyph + 1; 0: no glyph */
    bool tail;     /* the second half of a wide character */
};

struct etch_canvas {
    unsigned width;
    bool unicode, colour;
    bool failed; /* memory ran out: it is not whole */
    locale_t wide, before;
    ETCH_ARRAY(struct etch_cell *) lines;
};

/* A piece of text in one look. */
struct etch_text_run {
    const char *text;
    enum etch_look look;
    unsigned clip; /* at most this many cells, with the "..."; 0: no limit */
};

/* The thread's locale is UTF-8's between the two, since wcwidth() asks it. */
void etch_canvas_begin(struct etch_canvas *canvas, unsigned width, bool unicode, bool colour);
void etch_canvas_release(struct etch_canvas *canvas);

/* Flows the runs into the columns [x, x + width) from line y on, later lines indented by `hang`. Returns the lines it
 * took, at least 1. */
unsigned etch_canvas_flow(struct etch_canvas *canvas, unsigned x, unsigned y, unsigned width, unsigned hang,
                          const struct etch_text_run *runs, size_t n);

/* The number of cells of a text on one line. */
unsigned etch_canvas_measure(struct etch_canvas *canvas, const char *text);

/* Draws over a blank or over another line of the drawing; text stays. */
void etch_canvas_glyph(struct etch_canvas *canvas, unsigned x, unsigned y, enum etch_glyph glyph, enum etch_look look);

bool etch_canvas_is_blank(const struct etch_canvas *canvas, unsigned x, unsigned y);

/* All lines, without blanks at their ends. NULL where memory is or was short. */
char *etch_canvas_write(const struct etch_canvas *canvas, size_t *size);

#endif
