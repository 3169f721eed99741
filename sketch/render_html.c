#include "sketch/render.h"
char *etch_render_html(const Etch__Sketch *sketch, const struct etch_render_html *options, size_t *size)
{
    (void)sketch;
    (void)options;
    (void)size;
    return 0;
}
char *etch_render_json(const Etch__Sketch *sketch, size_t *size)
{
    (void)sketch;
    (void)size;
    return 0;
}
char *etch_render_sarif(const Etch__Sketch *sketch, size_t *size)
{
    (void)sketch;
    (void)size;
    return 0;
}
