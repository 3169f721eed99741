/* SPDX-License-Identifier: MIT */
/* Between the two halves of the HTML renderer: the page with its picture, and the panel of each step. */
#ifndef ETCH_SKETCH_RENDER_HTML_H
#define ETCH_SKETCH_RENDER_HTML_H

#include "base/text.h"
#include "sketch/render.h"
#include "sketch/render/lanes.h"
#include "sketch/render/model.h"

struct etch_page {
    const Etch__Sketch *sketch;
    const struct etch_render_html *options;
    struct etch_render_model model; /* with the predictors that the picture shows */
    struct etch_render_lanes lanes;
    bool value_columns; /* values have columns; else they stand in the rows alone */
    bool margin;        /* steps have a likelihood */
    bool one_file;      /* steps need no file */
    bool is_long;       /* so many rows that each element counts: no empty cells, hovers by title alone */
    size_t *twins;      /* by step: the first step of the same line; NULL: each step has its own source */
    struct etch_text out;
};

/* Text from outside, for content and for quoted attributes. */
void etch_page_escape(struct etch_page *page, const char *text);

/* Our own words. */
void etch_page_write(struct etch_page *page, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* "A" for the first predictor that is picked, "B", ..., then those that are not; numbers where letters end. */
void etch_page_letter(struct etch_page *page, size_t predictor);

/* The picture marks the predictor. Predictors that are not picked are behind a fold. */
bool etch_page_is_picked(const struct etch_page *page, size_t predictor);

/* Prose or code: a line never breaks within an arrow. */
void etch_page_text(struct etch_page *page, const char *text);

/* A line of source with its colours. */
void etch_page_source(struct etch_page *page, const char *text);

/* A path as part of a URI. */
void etch_page_uri(struct etch_page *page, const char *path);

/* A long name, which may break where the source would: behind -> and a dot. */
void etch_page_name(struct etch_page *page, const char *name);

/* The suspects, and what their marks mean. */
void etch_page_causes(struct etch_page *page);
void etch_page_legend(struct etch_page *page);

/* Lanes, rows, values. */
void etch_page_picture(struct etch_page *page);

/* The panel that a click on a step opens. */
void etch_page_panel(struct etch_page *page, size_t step);

/* Finds the steps of the same line, so that its source is in the page once. False when memory is short. */
bool etch_page_find_twins(struct etch_page *page);

/* All of the slice, as a table. */
void etch_page_slice(struct etch_page *page);

#endif
