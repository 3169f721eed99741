/* SPDX-License-Identifier: MIT */
/* The origin of an exception; see thrown.h. */
#include "decoder/thrown.h"

#include "base/function_name.h"
#include "base/type_name.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- The user's own frames ---- */

static bool is_system(const struct etch_recording *r, const Etch__Image *image)
{
    bool program = r->program && strcmp(image->path, r->program->exe) == 0;

    return !program && etch_file_is_system(image->path);
}

/* Inlined functions of headers stand within the function that they were inlined into. */
static bool is_own(const struct etch_recording *r, struct etch_symbols *symbols, uint64_t address,
                   struct etch_frame *own)
{
    const Etch__Image *image = etch_recording_image_at(r, r->failure ? r->failure->pid : 0, address);
    struct etch_location location;

    if (!image || is_system(r, image))
        return false;
    etch_symbols_find(symbols, image, address, &location);
    for (const struct etch_frame *f = &location.frame; f; f = f->caller)
        if (f->file && f->line && !etch_file_is_system(f->file)) {
            *own = *f;
            return true;
        }
    return false;
}

size_t etch_own_frame(const struct etch_recording *recording, struct etch_symbols *symbols, const uint64_t *frames,
                      size_t n, struct etch_frame *own)
{
    size_t i = 0;

    while (i < n && !is_own(recording, symbols, frames[i] - (i > 0), own))
        i++;
    return i;
}

Etch__Place *etch_frame_place(const struct etch_frame *frame)
{
    Etch__Place *place = malloc(sizeof(*place));

    if (!place)
        return NULL;
    etch__place__init(place);
    place->file = strdup(frame->file ? frame->file : "");
    place->function = strdup(frame->function ? frame->function : "");
    place->line = frame->line;
    place->column = frame->column;
    if (place->file && place->function)
        return place;
    etch__place__free_unpacked(place, NULL);
    return NULL; /* NOLINT(clang-analyzer-unix.Malloc): the analyzer does not see that free_unpacked() frees */
}

static Etch__Place *own_place(const struct etch_recording *r, struct etch_symbols *symbols,
                              const Etch__ThreadState *state)
{
    struct etch_frame own;
    bool found = state && etch_own_frame(r, symbols, state->frames, state->n_frames, &own) < state->n_frames;

    return found ? etch_frame_place(&own) : NULL;
}

/* ---- Type and value ---- */

static void replace(char **field, char *text)
{
    if (!text)
        return;
    if (*field != protobuf_c_empty_string)
        free(*field);
    *field = text;
}

static double as_double(uint64_t bits)
{
    double value;

    memcpy(&value, &bits, sizeof(value));
    return value;
}

static double as_float(uint64_t bits)
{
    uint32_t low = (uint32_t)bits;
    float value;

    memcpy(&value, &low, sizeof(value));
    return (double)value;
}

/* A number as C++ would print it; by the type's name in its type_info. */
static char *number_of(const char *type, uint64_t value)
{
    char text[64] = "";

    if (!type[0] || type[1])
        return NULL;
    switch (type[0]) {
    case 'b':
        return strdup(value & 0xff ? "true" : "false");
    case 'a':
    case 'c':
    case 'h':
        snprintf(text, sizeof(text), type[0] == 'h' ? "%u" : "%d",
                 type[0] == 'h' ? (int)(uint8_t)value : (int)(int8_t)value);
        break;
    case 's':
        snprintf(text, sizeof(text), "%d", (int16_t)value);
        break;
    case 't':
        snprintf(text, sizeof(text), "%u", (unsigned)(uint16_t)value);
        break;
    case 'i':
        snprintf(text, sizeof(text), "%" PRId32, (int32_t)value);
        break;
    case 'j':
        snprintf(text, sizeof(text), "%" PRIu32, (uint32_t)value);
        break;
    case 'l':
    case 'x':
        snprintf(text, sizeof(text), "%" PRId64, (int64_t)value);
        break;
    case 'm':
    case 'y':
        snprintf(text, sizeof(text), "%" PRIu64, value);
        break;
    case 'f':
        snprintf(text, sizeof(text), "%g", as_float(value));
        break;
    case 'd':
        snprintf(text, sizeof(text), "%g", as_double(value));
        break;
    default:
        return NULL;
    }
    return strdup(text);
}

/* ---- All of it ---- */

/* A call that several throws of a function share has no line; the one that made the exception has. */
static void tell_apart(const struct etch_recording *r, struct etch_symbols *symbols, Etch__Throw *thrown)
{
    const Etch__ThreadState *state = thrown->state;
    struct etch_frame own;

    if (state && state->n_frames && thrown->made && !is_own(r, symbols, state->frames[0], &own) &&
        is_own(r, symbols, thrown->made, &own))
        state->frames[0] = thrown->made;
}

static void settle_again(Etch__Exception *e, const struct etch_recording *r, struct etch_symbols *symbols)
{
    e->again_at = calloc(e->n_again + 1, sizeof(Etch__Place *));
    for (size_t i = 0; e->again_at && i < e->n_again; i++) {
        Etch__Place *place = own_place(r, symbols, e->again[i]->state);

        if (place)
            e->again_at[e->n_again_at++] = place;
    }
}

void etch_exception_settle(struct etch_recording *recording, struct etch_symbols *symbols)
{
    Etch__Exception *e = recording->failure ? recording->failure->exception : NULL;

    if (!e || e->thrown_at || e->n_again_at || e->none)
        return;
    if (e->known_case == ETCH__EXCEPTION__KNOWN_VALUE)
        replace(&e->number, number_of(e->type, e->value));
    replace(&e->type, etch_type_name(e->type));
    if (e->thrown)
        tell_apart(recording, symbols, e->thrown);
    if (e->thrown)
        e->thrown_at = own_place(recording, symbols, e->thrown->state);
    settle_again(e, recording, symbols);
}

static Etch__ThreadState *state_of(Etch__Failure *f, uint32_t tid)
{
    Etch__ThreadState **bigger, *state;

    for (size_t i = 0; i < f->n_threads; i++)
        if (f->threads[i]->tid == tid)
            return f->threads[i];
    bigger = realloc(f->threads, (f->n_threads + 1) * sizeof(*bigger));
    if (bigger)
        f->threads = bigger;
    state = bigger ? malloc(sizeof(*state)) : NULL;
    if (!state)
        return NULL;
    etch__thread_state__init(state);
    state->tid = tid;
    f->threads[f->n_threads++] = state;
    return state;
}

/* The registers and the stack are those of the end: the frames are no more theirs. */
static bool stand_at(Etch__Failure *f, const Etch__ThreadState *thrown)
{
    uint64_t *frames = malloc((thrown->n_frames + 1) * sizeof(*frames));
    Etch__ThreadState *state = frames ? state_of(f, thrown->tid) : NULL;

    if (!state) {
        free(frames);
        return false;
    }
    memcpy(frames, thrown->frames, thrown->n_frames * sizeof(*frames));
    free(state->frames);
    state->frames = frames;
    state->n_frames = thrown->n_frames;
    state->frames_scanned = false;
    state->n_registers = 0;
    state->stack.len = 0;
    f->tid = thrown->tid;
    f->ip = frames[0];
    return true;
}

bool etch_failure_blame(Etch__Failure *failure)
{
    const Etch__Exception *e = failure->exception;

    if (!e || e->none || e->handled)
        return false;
    if (e->thrown_at && e->thrown && e->thrown->state && e->thrown->state->n_frames)
        return stand_at(failure, e->thrown->state);
    return e->n_again_at && e->n_again && e->again[0]->state && e->again[0]->state->n_frames &&
           stand_at(failure, e->again[0]->state);
}
