/* SPDX-License-Identifier: MIT */
/* Steps as source lines; see lines.h. A block is looked up once and then known. */
#include "decoder/lines.h"
#include "decoder/flow/block_cache.h"

#include <string.h>

/* A part of a block: the line that begins at `ip`. */
struct part {
    uint32_t line;
    bool no_line; /* the compiler's own: belongs to no line of its function */
    uint64_t ip;
};

struct block_lines {
    uint32_t first, n; /* parts */
};

struct etch_lines {
    struct etch_symbols *symbols;
    etch_line_visitor *visit;
    void *context;
    struct etch_block_cache cache;
    ETCH_ARRAY(struct block_lines) blocks;
    ETCH_ARRAY(struct part) parts;
    ETCH_ARRAY(struct etch_line) lines;
    uint32_t *table; /* lines by contents, plus one */
    size_t table_size;

    uint32_t pid, tid;
    bool open; /* `now` is the line that the last instruction belongs to */
    uint32_t now;
    uint64_t function; /* of `now` */
};

struct etch_lines *etch_lines_new(struct etch_symbols *symbols, etch_line_visitor *visit, void *context)
{
    struct etch_lines *lines = calloc(1, sizeof(*lines));

    if (lines) {
        lines->symbols = symbols;
        lines->visit = visit;
        lines->context = context;
    }
    return lines;
}

void etch_lines_free(struct etch_lines *lines)
{
    if (!lines)
        return;
    etch_block_cache_release(&lines->cache);
    etch_array_free(&lines->blocks);
    etch_array_free(&lines->parts);
    etch_array_free(&lines->lines);
    free(lines->table);
    free(lines);
}

/* ---- One number for one line --------------------------------------------------------------------------------------
 */

static bool same_text(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

/* Columns do not count: what people read is the line. */
static bool same_frames(const struct etch_frame *a, const struct etch_frame *b)
{
    for (; a && b && a != b; a = a->caller, b = b->caller)
        if (a->line != b->line || !same_text(a->function, b->function) || !same_text(a->file, b->file))
            return false;
    return a == b;
}

static bool same_line(const struct etch_location *a, const struct etch_location *b)
{
    if (a->frame.file || b->frame.file)
        return same_frames(&a->frame, &b->frame);
    return same_text(a->symbol, b->symbol) && same_text(a->module, b->module);
}

static uint64_t mix(uint64_t h, const char *text)
{
    for (; text && *text; text++)
        h = (h ^ (uint8_t)*text) * 0x100000001b3u;
    return h;
}

static uint64_t hash_line(const struct etch_location *location)
{
    uint64_t h = 0xcbf29ce484222325u;

    if (!location->frame.file)
        return mix(mix(h, location->symbol), location->module);
    for (const struct etch_frame *f = &location->frame; f; f = f->caller)
        h = mix(mix(h ^ f->line, f->file), f->function);
    return h;
}

static uint32_t *line_place(const struct etch_lines *lines, uint32_t *table, size_t size,
                            const struct etch_location *location)
{
    size_t at = hash_line(location) & (size - 1);

    while (table[at] && !same_line(&lines->lines.v[table[at] - 1].location, location))
        at = (at + 1) & (size - 1);
    return &table[at];
}

static bool grow_table(struct etch_lines *lines)
{
    size_t size = lines->table_size ? lines->table_size * 2 : 1024;
    uint32_t *grown = calloc(size, sizeof(*grown));

    if (!grown)
        return false;
    for (size_t i = 0; i < lines->lines.n; i++)
        *line_place(lines, grown, size, &lines->lines.v[i].location) = (uint32_t)i + 1;
    free(lines->table);
    lines->table = grown;
    lines->table_size = size;
    return true;
}

static bool number_line(struct etch_lines *lines, const struct etch_location *location, uint32_t *number)
{
    uint32_t *place;
    struct etch_line line = {.id = (uint32_t)lines->lines.n, .location = *location};

    if (lines->lines.n * 2 >= lines->table_size && !grow_table(lines))
        return false;
    place = line_place(lines, lines->table, lines->table_size, location);
    if (!*place) {
        if (!etch_array_push(&lines->lines, line))
            return false;
        *place = (uint32_t)lines->lines.n;
    }
    *number = *place - 1;
    return true;
}

/* ---- A block's lines ----------------------------------------------------------------------------------------------
 */

static bool look_up(struct etch_lines *lines, const struct etch_block_key *key, struct block_lines *block)
{
    struct etch_location location;

    block->first = (uint32_t)lines->parts.n;
    for (uint64_t ip = key->first; ip < key->end; ip = location.until) {
        struct part part = {.ip = ip};

        etch_symbols_find(lines->symbols, key->image, ip, &location);
        part.no_line = location.frame.file && location.frame.line == 0;
        if (!number_line(lines, &location, &part.line))
            return false;
        if (block->n && lines->parts.v[lines->parts.n - 1].line == part.line)
            continue;
        if (!etch_array_push(&lines->parts, part))
            return false;
        block->n++;
    }
    return true;
}

static const struct block_lines *block_lines(struct etch_lines *lines, const struct etch_step *step)
{
    struct etch_block_key key = {step->image, step->first, step->end > step->last ? step->end : step->last + 1};
    struct etch_block_slot *slot = etch_block_cache_slot(&lines->cache, &key);
    struct block_lines block = {0};

    if (!slot)
        return NULL;
    if (!slot->value) {
        if (!look_up(lines, &key, &block) || !etch_array_push(&lines->blocks, block))
            return NULL;
        slot->value = (uint32_t)lines->blocks.n;
    }
    return &lines->blocks.v[slot->value - 1];
}

static int show_block(struct etch_lines *lines, const struct etch_step *step)
{
    const struct block_lines *block = block_lines(lines, step);
    int result = 0;

    if (!block)
        return -1;
    for (uint32_t i = 0; i < block->n && result == 0; i++) {
        const struct part *part = &lines->parts.v[block->first + i];
        const struct etch_line *line = &lines->lines.v[part->line];

        if (lines->open &&
            (lines->now == part->line || (part->no_line && lines->function == line->location.function_id)))
            continue;
        lines->open = true;
        lines->now = part->line;
        lines->function = line->location.function_id;
        result = lines->visit(lines->context, step, line, part->ip);
    }
    /* A call of the same line is another run of it. */
    if (step->branch == ETCH_BRANCH_CALL || step->branch == ETCH_BRANCH_CALL_INDIRECT ||
        step->branch == ETCH_BRANCH_RETURN)
        lines->open = false;
    return result;
}

int etch_lines_step(void *context, const struct etch_step *step)
{
    struct etch_lines *lines = context;

    if (step->pid != lines->pid || step->tid != lines->tid)
        lines->open = false;
    lines->pid = step->pid;
    lines->tid = step->tid;
    if (step->kind == ETCH_STEP_BLOCK)
        return show_block(lines, step);
    if (step->kind == ETCH_STEP_LOSS)
        lines->open = false;
    return lines->visit(lines->context, step, NULL, step->ip);
}
