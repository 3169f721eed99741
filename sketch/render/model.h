/* SPDX-License-Identifier: MIT */
/* The common part of all renderers of a sketch: the predictors shown, the steps that share a row, and the texts of a
 * value, a loss and a failure. Each index of the message is checked here before it is used. */
#ifndef ETCH_SKETCH_RENDER_MODEL_H
#define ETCH_SKETCH_RENDER_MODEL_H

#include "base/array.h"
#include "base/printable.h"
#include "base/text.h"
#include "proto/etch.pb-c.h"

#include <stdbool.h>

#define ETCH_RENDER_STRONG 0.5

/* Steps of equal rank. */
struct etch_render_row {
    size_t first, n; /* into etch_render_model.order */
    bool unordered;  /* of more than one thread */
};

struct etch_render_model {
    const Etch__Sketch *sketch;
    size_t *order; /* indexes of the steps, by rank, thread and place in the message */
    size_t n_steps;
    struct etch_render_row *rows;
    size_t n_rows;
    size_t *row_of;  /* by step */
    size_t *columns; /* threads that have a step, in their order */
    size_t n_columns;
    size_t *shown; /* predictors, best first */
    size_t n_shown;
    size_t unshown; /* predictors left out */
};

/* Returns 0, or -1 where memory is short. `all`: every predictor is shown. */
int etch_render_model_make(struct etch_render_model *model, const Etch__Sketch *sketch, bool all);
void etch_render_model_release(struct etch_render_model *model);

/* The position of the step's thread among the columns, SIZE_MAX where the message names no such thread. */
size_t etch_render_column(const struct etch_render_model *model, size_t step);

bool etch_render_step_has_predictor(const Etch__SketchStep *step, size_t predictor);

/* Its two steps exist and are not the same. */
bool etch_render_order_is_sound(const Etch__Sketch *sketch, const Etch__SketchOrder *order);

/* The best predictor tells failing from passing runs well enough to be called a cause. */
bool etch_render_has_cause(const Etch__Sketch *sketch);

/* "one failure, no comparison yet", "5 failing, 43 passing runs", "no failure in 40 runs". */
void etch_render_runs(const Etch__Sketch *sketch, char *text, size_t size);

/* "in 5/5 failing, 0/43 passing", and in how many it is unknown. */
/* "proven", "necessary" or "suspect". */
const char *etch_render_sureness(const Etch__Predictor *predictor);

void etch_render_counts(const Etch__Predictor *predictor, char *text, size_t size);

/* The headline, or what the failure record says where there is none. */
void etch_render_headline(const Etch__Sketch *sketch, char *text, size_t size);

/* Decimal where it is small, hexadecimal where it looks like an address; "?" where it is unknown. */
void etch_render_value(const Etch__SketchValue *value, char text[24]);

/* What passing runs had where the step has this value; NULL: not known. */
const Etch__SketchPassingValue *etch_render_passing_of(const Etch__SketchStep *step, const Etch__SketchValue *value);

/* "never 0; 0x5581c0 to 0x5582f0": the values of passing runs in words. */
void etch_render_passing_value(const Etch__SketchPassingValue *seen, char *text, size_t size);

/* "4096 bytes lost: aux truncated (T2), detail". */
void etch_render_loss(const Etch__Loss *loss, char *text, size_t size);

/* An enumerator without its prefix, in lower case, with `space` between its words. */
void etch_render_enum(const ProtobufCEnumDescriptor *descriptor, int value, char space, char name[64]);

/* Some step may be missing or some record is lost. */
bool etch_render_has_loss(const Etch__Sketch *sketch);

/* The last part of a path. */
const char *etch_render_basename(const char *path);

/* The short name of the function that a place is in, written to `text`. */
const char *etch_render_function(const Etch__Place *place, char *text, size_t size);

/* Strings and places that a hand-made message may lack. */
const char *etch_render_string(const char *text);
const Etch__Place *etch_render_place(const Etch__Place *place);

/* Appends a scalar as UTF-8. */
void etch_render_put_rune(struct etch_text *out, uint32_t rune);

#endif
