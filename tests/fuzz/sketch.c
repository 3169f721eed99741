/* SPDX-License-Identifier: MIT */
/* Any sketch that unpacks can be drawn: no index, count or text in it is believed. */
#include "sketch/render.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct etch_render_html html = {0};
    Etch__Sketch *sketch = size > 1 ? etch__sketch__unpack(NULL, size - 1, data + 1) : NULL;
    struct etch_render_terminal terminal = {0};
    size_t drawn = 0;
    char *text;

    if (!sketch)
        return 0;
    terminal = (struct etch_render_terminal){
        .width = 40u + data[0] % 100u, .unicode = data[0] & 1, .colour = data[0] & 2, .all = data[0] & 4};
    text = etch_render_terminal(sketch, &terminal, &drawn);
    if (!text || strlen(text) != drawn)
        abort();
    free(text);
    text = etch_render_html(sketch, &html, &drawn);
    if (!text || strlen(text) != drawn)
        abort();
    free(text);
    text = etch_render_json(sketch, &drawn);
    if (!text)
        abort();
    free(text);
    text = etch_render_gdb(sketch, &drawn);
    free(text);
    text = etch_render_sarif(sketch, "/src", &drawn);
    if (!text)
        abort();
    free(text);
    etch__sketch__free_unpacked(sketch, NULL);
    return 0;
}
