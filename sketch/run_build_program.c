/* SPDX-License-Identifier: MIT */
/* The program's addresses: which process and which images of a recording are of the program in question, and which
 * place an address is of. */
#include "base/function_name.h"
#include "sketch/run_build_model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TABLE_MAX (64u << 20) /* bytes of code between the slice's first and last instruction */

/* ---- Which program ---- */

/* The program in question may be one that the recorded one, a script say, has started. */
static const ProtobufCBinaryData *wanted_id(const struct build *b)
{
    const struct etch_run_options *o = b->options;

    if (o->slice && o->slice->build_id.len)
        return &o->slice->build_id;
    return o->build_id && o->build_id->len ? o->build_id : &b->recording->program->build_id;
}

bool etch_build_is_program(const struct build *b, const Etch__Image *image)
{
    const ProtobufCBinaryData *id;

    if (!image || !b->recording->program || (b->pid && image->pid && image->pid != b->pid))
        return false;
    id = wanted_id(b);
    if (id->len && image->build_id.len)
        return id->len == image->build_id.len && memcmp(id->data, image->build_id.data, id->len) == 0;
    return strcmp(b->recording->program->exe, image->path) == 0;
}

static bool is_program_of(struct build *b, uint32_t pid)
{
    bool found = false;

    b->pid = pid;
    for (size_t i = 0; i < b->recording->images.n && !found; i++)
        found = etch_build_is_program(b, b->recording->images.v[i]);
    return found;
}

/* The process that is looked at: the one that failed, the first, or the first of those that it started; of those that
 * run the program in question. */
static bool choose_process(struct build *b)
{
    const struct etch_recording *r = b->recording;
    uint32_t first = r->program->pid;

    if (r->failure && r->failure->pid && is_program_of(b, r->failure->pid))
        return true;
    if (is_program_of(b, first))
        return true;
    for (size_t i = 0; i < r->images.n; i++)
        if (r->images.v[i]->pid && is_program_of(b, r->images.v[i]->pid))
            return true;
    b->pid = first;
    return false;
}

bool etch_recording_runs(struct etch_recording *recording, const ProtobufCBinaryData *build_id)
{
    const struct etch_run_options options = {.build_id = build_id};
    struct build b = {.recording = recording, .options = &options};
    const ProtobufCBinaryData *theirs = recording->program ? &recording->program->build_id : NULL;

    if (!theirs || !build_id->len || !theirs->len || choose_process(&b))
        return true;
    return build_id->len == theirs->len && memcmp(build_id->data, theirs->data, theirs->len) == 0;
}

int etch_build_check_program(struct build *b, struct etch_error *err)
{
    const Etch__Program *p = b->recording->program;
    const ProtobufCBinaryData *id;

    if (!p) {
        etch_error_set(err, "%s does not say which program ran", b->recording->path);
        return etch_error_advise(err, "a bundle made by etch record");
    }
    id = wanted_id(b);
    if (choose_process(b) || !id->len || !p->build_id.len ||
        (id->len == p->build_id.len && memcmp(id->data, p->build_id.data, id->len) == 0))
        return 0;
    etch_error_set(err, "%s is of another build of the program, or of another program", b->recording->path);
    return etch_error_advise(err, "bundles and program of one build; etch info says what is in a bundle");
}

/* ---- Where it was mapped ---- */

bool etch_build_use_image(struct build *b, const Etch__Image *image)
{
    struct etch_location location;

    if (image == b->image)
        return image != NULL;
    if (image == b->other)
        return false;
    if (!etch_build_is_program(b, image)) {
        b->other = image;
        return false;
    }
    etch_symbols_find(b->symbols, image, image->start, &location);
    b->image = image;
    b->bias = image->start - location.module_offset;
    return true;
}

void etch_build_find_program(struct build *b)
{
    for (size_t i = 0; i < b->recording->images.n; i++)
        if (etch_build_is_program(b, b->recording->images.v[i]) && b->recording->images.v[i]->prot & 4)
            etch_build_use_image(b, b->recording->images.v[i]);
}

const Etch__Image *etch_build_image_at(const struct build *b, uint64_t address)
{
    return etch_recording_image_at(b->recording, b->pid, address);
}

/* ---- Places ---- */

uint32_t etch_build_table_place(const struct place_table *t, uint64_t address)
{
    return address >= t->start && address < t->end ? t->place[address - t->start] : ETCH_NOWHERE;
}

/* The innermost frame of the user's own code at an address. NULL: all is a system header's. */
static const struct etch_frame *own_frame(const struct etch_location *location)
{
    const struct etch_frame *f = &location->frame;

    while (f && f->file && etch_file_is_system(f->file))
        f = f->caller;
    return f && f->file && f->line ? f : NULL;
}

/* Code of a system header that was inlined into the user's own belongs to the user's line. What was not inlined belongs
 * to its caller, and has no place here. */
static void place_inlined(struct build *b, uint64_t start, uint64_t end)
{
    struct place_table *t = &b->table;
    struct etch_location location;

    for (uint64_t a = start; a<end; a = location.until - b->bias> a ? location.until - b->bias : a + 1) {
        const struct etch_frame *f;
        uint32_t place;

        etch_symbols_find(b->symbols, b->image, a + b->bias, &location);
        f = own_frame(&location);
        place = f ? etch_names_find_place(b->names, f->file, f->line, f->function ? f->function : "") : ETCH_NOWHERE;
        if (place == ETCH_NOWHERE)
            continue;
        for (uint64_t k = a; k < end && k + b->bias < location.until; k++)
            t->place[k - t->start] = place;
    }
}

static void place_statement(struct build *b, const Etch__Statement *s)
{
    struct place_table *t = &b->table;
    bool system = etch_file_is_system(s->place->file);
    uint32_t place = etch_names_place(b->names, s->place->file, s->place->line, s->place->function);

    for (size_t k = 0; k < s->n_ranges; k++) {
        if (system) {
            if (b->image)
                place_inlined(b, s->ranges[k]->start, s->ranges[k]->end);
            continue;
        }
        for (uint64_t a = s->ranges[k]->start; a < s->ranges[k]->end; a++)
            t->place[a - t->start] = place;
        t->begins[s->ranges[k]->start - t->start] = k == 0;
    }
}

int etch_build_make_table(struct build *b, struct etch_error *err)
{
    const Etch__Slice *slice = b->options->slice;
    struct place_table *t = &b->table;

    t->start = UINT64_MAX;
    for (size_t i = 0; i < slice->n_statements; i++) {
        for (size_t k = 0; k < slice->statements[i]->n_ranges; k++) {
            const Etch__AddressRange *range = slice->statements[i]->ranges[k];

            t->start = range->start < t->start ? range->start : t->start;
            t->end = range->end > t->end ? range->end : t->end;
        }
    }
    if (t->start >= t->end)
        t->start = t->end = 0;
    if (t->end - t->start > TABLE_MAX)
        return etch_error_set(err, "the slice spreads over %llu MiB of code",
                              (unsigned long long)(t->end - t->start) >> 20);
    t->place = malloc((t->end - t->start + 1) * sizeof(*t->place));
    t->begins = calloc(t->end - t->start + 1, sizeof(*t->begins));
    if (!t->place || !t->begins)
        return etch_build_out_of_memory(err);
    memset(t->place, 0xff, (t->end - t->start + 1) * sizeof(*t->place));
    for (size_t i = slice->n_statements; i-- > 0;) /* the nearest to the failure last, so that it wins */
        place_statement(b, slice->statements[i]);
    return 0;
}

uint32_t etch_build_place_of(struct build *b, const Etch__Image *image, uint64_t address)
{
    struct etch_location location;
    const struct etch_frame *f;
    uint32_t place;

    if (!etch_build_use_image(b, image))
        return ETCH_NOWHERE;
    place = etch_build_table_place(&b->table, address - b->bias);
    if (place != ETCH_NOWHERE)
        return place;
    etch_symbols_find(b->symbols, image, address, &location);
    f = own_frame(&location);
    return f ? etch_names_place(b->names, f->file, f->line, f->function ? f->function : "") : ETCH_NOWHERE;
}

char *etch_build_thread_name(struct build *b, uint64_t address)
{
    struct etch_location location;
    const char *name = NULL;
    char brief[128];

    etch_symbols_find(b->symbols, etch_build_image_at(b, address), address, &location);
    for (const struct etch_frame *f = &location.frame; f; f = f->caller)
        if (f->function && f->file && !etch_file_is_system(f->file))
            name = f->function;
    return name ? strdup(etch_function_short(name, brief, sizeof(brief))) : NULL;
}

char *etch_build_function_at(struct build *b, uint64_t address)
{
    struct etch_location location;
    const char *name;

    etch_symbols_find(b->symbols, etch_build_image_at(b, address), address, &location);
    name = location.frame.function ? location.frame.function : location.symbol;
    /* "NAME@plt" is a way to NAME, and a library's "NAME@@VERSION" is NAME. */
    return name ? strndup(name, strcspn(name, "@")) : NULL;
}

char *etch_build_short_at(struct build *b, uint64_t address)
{
    char *whole = etch_build_function_at(b, address), brief[128];
    char *name = whole ? strdup(etch_function_short(whole, brief, sizeof(brief))) : NULL;

    free(whole);
    return name;
}
