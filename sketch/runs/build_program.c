/* SPDX-License-Identifier: MIT */
/* The program's addresses: which process and which images of a recording are of the program in question, and which
 * place an address is of. */
#include "base/function_name.h"
#include "sketch/runs/build_model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TABLE_MAX (64u << 20) /* bytes of code between the slice's first and last instruction */

/* ---- Which program ---- */

/* The recorded program, for example a script, may have started the program in question. */
static const ProtobufCBinaryData *wanted_id(const struct build *b)
{
    const struct etch_run_options *o = b->options;

    if (o->slice && o->slice->build_id.len)
        return &o->slice->build_id;
    return o->build_id && o->build_id->len ? o->build_id : &b->recording->program->build_id;
}

static bool is_program_file(const struct build *b, const Etch__Image *image)
{
    const ProtobufCBinaryData *id;

    if (!image || !b->recording->program || (b->pid && image->pid && image->pid != b->pid))
        return false;
    id = wanted_id(b);
    if (id->len && image->build_id.len)
        return id->len == image->build_id.len && memcmp(id->data, image->build_id.data, id->len) == 0;
    return strcmp(b->recording->program->exe, image->path) == 0;
}

/* The program's own library that was mapped there; NULL: none. */
static const Etch__Module *module_of(const struct build *b, const Etch__Image *image)
{
    const Etch__Slice *layout = b->options->slice ? b->options->slice : b->options->layout;

    if (!image || (b->pid && image->pid && image->pid != b->pid))
        return NULL;
    for (size_t i = 0; layout && i < layout->n_modules; i++) {
        const Etch__Module *m = layout->modules[i];
        bool same = m->build_id.len && image->build_id.len
                        ? m->build_id.len == image->build_id.len &&
                              memcmp(m->build_id.data, image->build_id.data, m->build_id.len) == 0
                        : strcmp(m->path, image->path) == 0;

        if (same)
            return m;
    }
    return NULL;
}

bool etch_build_is_soft(const struct build *b)
{
    return b->recording->source == ETCH__SOURCE__SOURCE_SOFT || b->recording->source == ETCH__SOURCE__SOURCE_LAB;
}

bool etch_build_is_program(const struct build *b, const Etch__Image *image)
{
    return is_program_file(b, image) || module_of(b, image);
}

static bool is_program_of(struct build *b, uint32_t pid)
{
    bool found = false;

    b->pid = pid;
    for (size_t i = 0; i < b->recording->images.n && !found; i++)
        found = is_program_file(b, b->recording->images.v[i]);
    return found;
}

/* Chooses the process, among the processes that run the program in question: the process that failed, else the first,
 * else the first process that it started. */
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

/* ---- Mappings of the program ---- */

bool etch_build_use_image(struct build *b, const Etch__Image *image)
{
    struct etch_location location;
    const Etch__Module *module;
    bool program;

    if (image == b->image)
        return image != NULL;
    if (image == b->other)
        return false;
    program = is_program_file(b, image);
    module = program ? NULL : module_of(b, image);
    if (!program && !module) {
        b->other = image;
        return false;
    }
    etch_symbols_find(b->symbols, image, image->start, &location);
    b->image = image;
    b->bias = image->start - location.module_offset - (module ? module->added : 0);
    if (program)
        b->program_bias = b->bias;
    return true;
}

uint64_t etch_build_file_address(struct build *b, uint64_t address)
{
    return address - (etch_build_use_image(b, etch_build_image_at(b, address)) ? b->bias : b->program_bias);
}

void etch_build_find_program(struct build *b)
{
    for (size_t i = 0; i < b->recording->images.n; i++)
        if (is_program_file(b, b->recording->images.v[i]) && b->recording->images.v[i]->prot & 4)
            etch_build_use_image(b, b->recording->images.v[i]);
}

const Etch__Image *etch_build_image_at(const struct build *b, uint64_t address)
{
    return etch_recording_image_at(b->recording, b->pid, address);
}

/* ---- Places ---- */

static const struct place_table *table_at(const struct build *b, uint64_t address)
{
    for (size_t i = 0; i < b->tables.n; i++)
        if (address >= b->tables.v[i].start && address < b->tables.v[i].end)
            return &b->tables.v[i];
    return NULL;
}

/* The innermost frame of the user's own code at an address. NULL: all is a system header's. */
static const struct etch_frame *own_frame(const struct etch_location *location)
{
    const struct etch_frame *f = &location->frame;

    while (f && f->file && etch_file_is_system(f->file))
        f = f->caller;
    return f && f->file && f->line ? f : NULL;
}

uint32_t etch_build_table_place(const struct build *b, uint64_t address)
{
    const struct place_table *t = table_at(b, address);

    return t ? t->place[address - t->start] : ETCH_NOWHERE;
}

bool etch_build_begins(const struct build *b, uint64_t address)
{
    const struct place_table *t = table_at(b, address);

    return t && t->begins[address - t->start];
}

static void fill_table(struct build *b, struct place_table *t)
{
    const Etch__Slice *slice = b->options->slice;

    memset(t->place, 0xff, (t->end - t->start + 1) * sizeof(*t->place));
    for (size_t i = slice->n_statements; i-- > 0;) { /* the statement nearest to the failure comes last and so wins */
        const Etch__Statement *s = slice->statements[i];
        uint32_t place = etch_names_place(b->names, s->place->file, s->place->line, s->place->function);

        for (size_t k = 0; k < s->n_ranges; k++) {
            if (s->ranges[k]->start < t->start || s->ranges[k]->end > t->end)
                continue;
            for (uint64_t a = s->ranges[k]->start; a < s->ranges[k]->end; a++)
                t->place[a - t->start] = place;
            t->begins[s->ranges[k]->start - t->start] = k == 0;
        }
    }
}

/* The table of the code between two addresses: the program's, or a library's. */
static int make_table(struct build *b, uint64_t from, uint64_t to, struct etch_error *err)
{
    const Etch__Slice *slice = b->options->slice;
    struct place_table t = {.start = UINT64_MAX};

    for (size_t i = 0; i < slice->n_statements; i++) {
        for (size_t k = 0; k < slice->statements[i]->n_ranges; k++) {
            const Etch__AddressRange *range = slice->statements[i]->ranges[k];

            if (range->start < from || range->end > to || range->end <= range->start)
                continue;
            t.start = range->start < t.start ? range->start : t.start;
            t.end = range->end > t.end ? range->end : t.end;
        }
    }
    if (t.start >= t.end)
        return 0;
    if (t.end - t.start > TABLE_MAX)
        return etch_error_set(err, "the slice spreads over %llu MiB of code",
                              (unsigned long long)(t.end - t.start) >> 20);
    t.place = malloc((t.end - t.start + 1) * sizeof(*t.place));
    t.begins = calloc(t.end - t.start + 1, sizeof(*t.begins));
    if (!t.place || !t.begins || !etch_array_push(&b->tables, t)) {
        free(t.place);
        free(t.begins);
        return etch_error_no_memory(err);
    }
    fill_table(b, &t);
    return 0;
}

int etch_build_make_tables(struct build *b, struct etch_error *err)
{
    const Etch__Slice *slice = b->options->slice;
    uint64_t from = 0;

    for (size_t i = 0; i <= slice->n_modules; i++) {
        uint64_t to = i < slice->n_modules ? slice->modules[i]->added : UINT64_MAX;

        if (make_table(b, from, to, err) < 0)
            return -1;
        from = to;
    }
    return 0;
}

void etch_build_release_tables(struct build *b)
{
    for (size_t i = 0; i < b->tables.n; i++) {
        free(b->tables.v[i].place);
        free(b->tables.v[i].begins);
    }
    etch_array_free(&b->tables);
}

uint32_t etch_build_place_of(struct build *b, const Etch__Image *image, uint64_t address)
{
    struct etch_location location;
    const struct etch_frame *f;
    uint32_t place;

    if (!etch_build_use_image(b, image))
        return ETCH_NOWHERE;
    place = etch_build_table_place(b, address - b->bias);
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
