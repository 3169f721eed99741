/* SPDX-License-Identifier: MIT */
/* sketch_picture SAMPLE terminal|html|json|sarif|gdb [WIDTH] [ascii|unicode] [colour] [all]: draws a sketch made by
 * hand.
 */
#include "sketch/render.h"
#include "tests/sketch/samples.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Stands in for the source files. */
static const char *made_source(void *context, const char *file, uint32_t line)
{
    static char text[256];

    (void)context;
    if (line == 0 || line > 1000 || !strstr(file, "pbzip"))
        return NULL;
    snprintf(text, sizeof(text), "\tline %u of <%s>", line, file);
    return text;
}

static int write_corpus(const char *folder)
{
    for (size_t i = 0; sample_names[i]; i++) {
        if (!strcmp(sample_names[i], "steps_10000")) /* too long to mutate */
            continue;
        Etch__Sketch *sketch = sample_make(sample_names[i]);
        uint8_t *bytes = calloc(1, etch__sketch__get_packed_size(sketch) + 1);
        size_t size = etch__sketch__pack(sketch, bytes + 1) + 1;
        char path[4096];
        FILE *out;

        snprintf(path, sizeof(path), "%s/%s", folder, sample_names[i]);
        out = fopen(path, "wb");
        if (!out || fwrite(bytes, 1, size, out) != size || fclose(out))
            return 1;
        free(bytes);
        etch__sketch__free_unpacked(sketch, NULL);
    }
    return 0;
}

int main(int argc, char **argv)
{
    Etch__Sketch *sketch = argc > 2 ? sample_make(argv[1]) : NULL;
    struct etch_render_terminal terminal = {.width = argc > 3 ? (unsigned)atoi(argv[3]) : 80};
    struct etch_render_html html = {.source = made_source};
    char *text = NULL;
    size_t size = 0;

    if (argc == 3 && !strcmp(argv[1], "--corpus"))
        return write_corpus(argv[2]);
    if (!sketch)
        return 2;
    for (int i = 4; i < argc; i++) {
        terminal.unicode |= !strcmp(argv[i], "unicode");
        terminal.colour |= !strcmp(argv[i], "colour");
        terminal.all |= !strcmp(argv[i], "all");
    }
    if (!strcmp(argv[2], "terminal"))
        text = etch_render_terminal(sketch, &terminal, &size);
    else if (!strcmp(argv[2], "html"))
        text = etch_render_html(sketch, &html, &size);
    else if (!strcmp(argv[2], "json"))
        text = etch_render_json(sketch, &size);
    else if (!strcmp(argv[2], "sarif"))
        text = etch_render_sarif(sketch, "/src/", &size);
    else if (!strcmp(argv[2], "gdb"))
        text = etch_render_gdb(sketch, &size);
    if (text)
        fwrite(text, 1, size, stdout);
    free(text);
    etch__sketch__free_unpacked(sketch, NULL);
    return text ? 0 : 1;
}
