/* SPDX-License-Identifier: MIT */
/* The page of character cells; see render_canvas.h. */
#include "sketch/render/canvas.h"
#include "base/text.h"
#include "sketch/render/model.h"

#include <wchar.h>

static const struct {
    uint32_t rune;
    char ascii;
} glyphs[] = {
    [GLYPH_HORIZONTAL] = {0x2500, '-'}, [GLYPH_VERTICAL] = {0x2502, '|'},  [GLYPH_CROSS] = {0x253c, '+'},
    [GLYPH_FROM] = {0x250c, '+'},       [GLYPH_TO] = {0x2514, '+'},        [GLYPH_BACK] = {0x2518, '+'},
    [GLYPH_DOWN] = {0x2510, '+'},       [GLYPH_DOWN_BACK] = {0x250c, '+'}, [GLYPH_FORK] = {0x251c, '+'},
    [GLYPH_TEE] = {0x252c, '+'},        [GLYPH_RIGHT] = {0x25b6, '>'},     [GLYPH_LEFT] = {0x25c0, '<'},
};

void etch_canvas_begin(struct etch_canvas *canvas, unsigned width, bool unicode, bool colour)
{
    *canvas = (struct etch_canvas){.width = width, .unicode = unicode, .colour = colour};
    canvas->wide = unicode ? newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0) : (locale_t)0;
    if (canvas->wide)
        canvas->before = uselocale(canvas->wide);
    else
        canvas->unicode = false; /* without it no width is known */
}

void etch_canvas_release(struct etch_canvas *canvas)
{
    for (size_t i = 0; i < canvas->lines.n; i++)
        free(canvas->lines.v[i]);
    etch_array_free(&canvas->lines);
    if (canvas->wide) {
        uselocale(canvas->before);
        freelocale(canvas->wide);
        canvas->wide = (locale_t)0;
    }
}

static struct etch_cell *cell_at(struct etch_canvas *canvas, unsigned x, unsigned y)
{
    while (canvas->lines.n <= y) {
        struct etch_cell *line = calloc(canvas->width + 1, sizeof(*line));

        if (!line || !etch_array_push(&canvas->lines, line)) {
            free(line);
            canvas->failed = true;
            return NULL;
        }
    }
    return x < canvas->width ? &canvas->lines.v[y][x] : NULL;
}

/* The character as it may be shown, and how many cells it takes. */
static int show_rune(const struct etch_canvas *canvas, uint32_t *rune)
{
    int width;

    if (*rune == '\t' || *rune == '\n' || *rune == '\r')
        *rune = ' ';
    if (!canvas->unicode) {
        if (*rune < 0x20 || *rune >= 0x7f)
            *rune = '?';
        return 1;
    }
    if (*rune < 0x20)
        *rune += 0x2400;
    else if (*rune == 0x7f)
        *rune = 0x2421;
    else if (etch_rune_is_invisible(*rune))
        *rune = 0xfffd;
    width = wcwidth((wchar_t)*rune);
    if (width >= 0)
        return width;
    *rune = 0xfffd;
    return 1;
}

typedef ETCH_ARRAY(struct etch_cell) cells;

/* Cuts the cells of a run that begins at `first` down to `clip`, with an ellipsis. */
static void clip_cells(const struct etch_canvas *canvas, cells *line, size_t first, unsigned clip)
{
    uint32_t dots = canvas->unicode ? 0x2026 : '.';
    size_t n = canvas->unicode ? 1 : 3;

    if (!clip || line->n - first <= clip)
        return;
    line->n = first + clip;
    if (clip > n && line->v[line->n - n].tail)
        line->v[line->n - n - 1] = (struct etch_cell){.rune = ' '}; /* half of a wide character */
    for (size_t i = 0; i < n && i < clip; i++)
        line->v[line->n - 1 - i] = (struct etch_cell){.rune = dots, .look = line->v[first].look};
}

static void add_run(struct etch_canvas *canvas, cells *line, const struct etch_text_run *run)
{
    size_t first = line->n;
    const char *text = run->text;

    while (*text && (!run->clip || line->n - first <= run->clip)) {
        struct etch_cell cell = {.rune = etch_utf8_next(&text), .look = (uint8_t)run->look};
        int width = show_rune(canvas, &cell.rune);

        if (width == 0) {
            if (line->n > first)
                line->v[line->n - 1].mark = cell.rune;
            continue;
        }
        canvas->failed |= !etch_array_push(line, cell);
        if (width > 1)
            canvas->failed |= !etch_array_push(line, ((struct etch_cell){.tail = true, .look = (uint8_t)run->look}));
    }
    clip_cells(canvas, line, first, run->clip);
}

/* How many cells from `at` go on a line of `width`: up to a blank in its second half, else behind a punctuation mark
 * there, since source text has few blanks. */
static size_t take_line(const cells *line, size_t at, unsigned width)
{
    size_t left = line->n - at;

    if (left <= width)
        return left;
    for (size_t n = width; n > width / 2; n--)
        if (line->v[at + n].rune == ' ')
            return n;
    for (size_t n = width; n > width / 2; n--) {
        uint32_t rune = line->v[at + n - 1].rune;

        if (rune && rune < 0x80 && strchr("(,;=&|+/>{", (int)rune))
            return n;
    }
    return line->v[at + width].tail && width > 1 ? width - 1 : width;
}

unsigned etch_canvas_flow(struct etch_canvas *canvas, unsigned x, unsigned y, unsigned width, unsigned hang,
                          const struct etch_text_run *runs, size_t n)
{
    cells line = {0};
    unsigned used = 0;

    for (size_t i = 0; i < n; i++)
        add_run(canvas, &line, &runs[i]);
    if (hang + 2 > width)
        hang = 0;
    for (size_t at = 0; at < line.n;) {
        unsigned indent = used ? hang : 0;
        size_t take = take_line(&line, at, width > indent ? width - indent : 1);

        for (size_t i = 0; i < take; i++) {
            struct etch_cell *cell = cell_at(canvas, x + indent + (unsigned)i, y + used);

            if (cell && line.v[at + i].rune != ' ')
                *cell = line.v[at + i];
        }
        for (at += take; at < line.n && line.v[at].rune == ' ';)
            at++;
        used++;
    }
    cell_at(canvas, 0, y);
    etch_array_free(&line);
    return used ? used : 1;
}

unsigned etch_canvas_measure(struct etch_canvas *canvas, const char *text)
{
    unsigned width = 0;

    while (*text) {
        uint32_t rune = etch_utf8_next(&text);

        width += (unsigned)show_rune(canvas, &rune);
    }
    return width;
}

bool etch_canvas_is_blank(const struct etch_canvas *canvas, unsigned x, unsigned y)
{
    return y >= canvas->lines.n || x >= canvas->width || (!canvas->lines.v[y][x].rune && !canvas->lines.v[y][x].tail);
}

static enum etch_glyph join_glyphs(enum etch_glyph old, enum etch_glyph glyph)
{
    if ((old == GLYPH_VERTICAL && glyph == GLYPH_HORIZONTAL) || (old == GLYPH_HORIZONTAL && glyph == GLYPH_VERTICAL))
        return GLYPH_CROSS;
    if ((old == GLYPH_FROM && glyph == GLYPH_HORIZONTAL) || (old == GLYPH_HORIZONTAL && glyph == GLYPH_FROM))
        return GLYPH_TEE;
    if ((old == GLYPH_VERTICAL || old == GLYPH_FROM || old == GLYPH_TO) &&
        (glyph == GLYPH_FROM || glyph == GLYPH_TO || glyph == GLYPH_VERTICAL))
        return old == glyph ? glyph : GLYPH_FORK;
    return old == GLYPH_CROSS ? GLYPH_CROSS : glyph;
}

void etch_canvas_glyph(struct etch_canvas *canvas, unsigned x, unsigned y, enum etch_glyph glyph, enum etch_look look)
{
    struct etch_cell *cell = cell_at(canvas, x, y);

    if (!cell || cell->tail || (cell->rune && !cell->drawn))
        return;
    if (cell->drawn)
        glyph = join_glyphs((enum etch_glyph)(cell->drawn - 1), glyph);
    *cell = (struct etch_cell){.look = (uint8_t)look,
                               .drawn = (uint8_t)(glyph + 1),
                               .rune = canvas->unicode ? glyphs[glyph].rune : (uint32_t)glyphs[glyph].ascii};
}

static void write_line(const struct etch_canvas *canvas, const struct etch_cell *line, struct etch_text *out)
{
    static const char *const sequences[] = {
        [LOOK_PLAIN] = "\33[0m",      [LOOK_DIM] = "\33[0;2m",        [LOOK_BOLD] = "\33[0;1m",
        [LOOK_CAUSE] = "\33[0;1;33m", [LOOK_FAILURE] = "\33[0;1;31m", [LOOK_LOSS] = "\33[0;35m",
        [LOOK_VALUE] = "\33[0;36m",   [LOOK_HEAD] = "\33[0;1;4m",
    };
    unsigned end = canvas->width, look = LOOK_PLAIN;

    while (end > 0 && !line[end - 1].rune && !line[end - 1].tail)
        end--;
    for (unsigned x = 0; x < end; x++) {
        const struct etch_cell *cell = &line[x];

        if (cell->tail)
            continue;
        if (canvas->colour && cell->rune && cell->look != look)
            etch_text_string(out, sequences[look = cell->look]);
        else if (canvas->colour && !cell->rune && look != LOOK_PLAIN)
            etch_text_string(out, sequences[look = LOOK_PLAIN]);
        etch_render_put_rune(out, cell->rune ? cell->rune : ' ');
        if (cell->mark)
            etch_render_put_rune(out, cell->mark);
    }
    if (look != LOOK_PLAIN)
        etch_text_string(out, sequences[LOOK_PLAIN]);
    etch_text_char(out, '\n');
}

char *etch_canvas_write(const struct etch_canvas *canvas, size_t *size)
{
    struct etch_text out = {0};

    for (size_t y = 0; y < canvas->lines.n; y++)
        write_line(canvas, canvas->lines.v[y], &out);
    etch_text_char(&out, '\0');
    if (canvas->failed || out.failed) {
        free(out.v);
        return NULL;
    }
    *size = out.n - 1;
    return out.v;
}
