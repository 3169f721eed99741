/* SPDX-License-Identifier: MIT */
/* Between the two halves of the HTML renderer: the page with its picture, and the panel of each step. */
#ifndef ETCH_SKETCH_RENDER_HTML_H
#define ETCH_SKETCH_RENDER_HTML_H

#include "base/text.h"
#include "sketch/render.h"
#include "sketch/render/model.h"

struct etch_page {
    const Etch__Sketch *sketch;
    const struct etch_render_html *options;
    struct etch_render_model model; /* with the predictors that the picture shows */
    struct etch_text out;
};

/* Text from outside, for content and for quoted attributes. */
void etch_page_escape(struct etch_page *page, const char *text);

/* Our own words. */
void etch_page_write(struct etch_page *page, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* "A" for the first predictor that is picked, "B", ..., then those that are not; numbers where letters end. */
void etch_page_letter(struct etch_page *page, size_t predictor);

/* The panel that a click on a step opens. */
void etch_page_panel(struct etch_page *page, size_t step);

/* All of the slice, as a table. */
void etch_page_slice(struct etch_page *page);

#endif
