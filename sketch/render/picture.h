/* SPDX-License-Identifier: MIT */
/* A sketch in the making for a terminal. Private to picture*.c and terminal.c: each file draws one part of it. */
#ifndef ETCH_SKETCH_RENDER_PICTURE_H
#define ETCH_SKETCH_RENDER_PICTURE_H

#include "sketch/render/canvas.h"
#include "sketch/render/model.h"

enum {
    PICTURE_MIN_COLUMN = 26,
    PICTURE_GAP = 3,     /* cells between two columns */
    PICTURE_LINES = 4,   /* of one text at most; a longer text ends with an ellipsis */
    PICTURE_LETTERS = 3, /* of causes next to one step */
    PICTURE_NOTE = 2000, /* cells of a note */
};

/* The label left of a step's source text: file and line, or the line alone. */
enum label { LABEL_PLACE, LABEL_LINE };

struct picture {
    const Etch__Sketch *sketch;
    struct etch_render_model model;
    struct etch_canvas canvas;
    bool all;
    bool stacked;       /* threads below each other instead of side by side */
    bool value_columns; /* values have columns of their own */
    enum label label;
    unsigned gutter, lane;
    unsigned *x, *width, *labels; /* by column: of its lane; all of it; cells of its labels */
    unsigned *value_x, *value_width;
    unsigned *step_y;  /* by step */
    const char **file; /* by column: of the step above */
    unsigned y;        /* the next free line */
};

/* ---- Text ---- */

/* Writes runs of text at column `x` of the next free line. Returns the number of lines. */
unsigned etch_picture_flow(struct picture *p, unsigned x, unsigned width, unsigned hang,
                           const struct etch_text_run *runs, size_t n);

/* Writes one paragraph across the whole width. */
void etch_picture_write(struct picture *p, enum etch_look look, unsigned hang, const char *text);

/* The letter of the shown predictor number `shown`; "+" after Z. */
void etch_picture_letter(size_t shown, char letter[2]);

/* ---- Columns ---- */

/* Places the columns of threads and values: as wide as their text, or as wide as there is room. False when memory is
 * short. */
bool etch_picture_place(struct picture *p);

unsigned etch_picture_digits(size_t n);
void etch_picture_label(const Etch__Place *place, enum label label, char *text, size_t size);
unsigned etch_picture_indent(const Etch__SketchStep *step);

/* The source text of a step without its indentation, or the place in words where there is no source text. */
const char *etch_picture_text(const Etch__SketchStep *step, char *spare, size_t size);

/* Only orders of a cause have arrows. The other orders are tags. */
bool etch_picture_has_arrow(const struct picture *p, const Etch__SketchOrder *order);

/* The tags after the text of step `i`: how often it ran, the steps that it is proven to be before, a mark if it failed.
 */
void etch_picture_tags(const struct picture *p, size_t i, char *text, size_t size);

/* Nothing decides before runs were compared. */
bool etch_picture_is_deciding(const struct picture *p, const Etch__SketchValue *value);

/* The text of a value, with the thread's number where `named`. Returns its cells. */
unsigned etch_picture_value(const struct picture *p, const Etch__SketchValue *value, bool named, size_t thread,
                            char *text, size_t size);

/* True if other threads have steps in the same row. */
bool etch_picture_row_is_shared(const struct picture *p, size_t step);

/* ---- Parts, from top to bottom ---- */

void etch_picture_head(struct picture *p);
void etch_picture_causes(struct picture *p);
void etch_picture_threads(struct picture *p);

/* `used`: by variable, the first line of its column that is free. */
void etch_picture_row(struct picture *p, size_t row, unsigned *used);
void etch_picture_arrow(struct picture *p, const Etch__SketchOrder *order);
void etch_picture_stacks(struct picture *p);
void etch_picture_foot(struct picture *p);

#endif
