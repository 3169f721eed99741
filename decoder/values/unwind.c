/* SPDX-License-Identifier: MIT */
/* Unwinding of copied stacks; see unwind.h. */
#include "decoder/unwind.h"

#include <stdlib.h>
#include <string.h>

#define FRAMES_MAX 256u

const uint8_t etch_unwind_perf_register[17] = {0, 3, 2, 1, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23, 8};

struct unwinding {
    uint64_t frames[FRAMES_MAX];
    size_t n;
};

static bool read_stack(const void *context, uint64_t address, uint64_t *word)
{
    const Etch__ThreadState *s = context;

    if (address < s->stack_start || s->stack.len < sizeof(*word) ||
        address - s->stack_start > s->stack.len - sizeof(*word))
        return false;
    memcpy(word, s->stack.data + (address - s->stack_start), sizeof(*word));
    return true;
}

static void add_images(struct etch_unwind_tables *tables, const struct etch_recording *r, struct etch_symbols *symbols)
{
    for (size_t i = 0; i < r->images.n; i++) {
        const Etch__Image *image = r->images.v[i];
        struct etch_location location;
        bool known = false;

        for (size_t k = 0; k < i; k++)
            known |= (r->images.v[k]->prot & 4) && strcmp(r->images.v[k]->path, image->path) == 0;
        if (known || !(image->prot & 4) || image->path[0] != '/')
            continue;
        etch_symbols_find(symbols, image, image->start, &location);
        etch_unwind_tables_add(tables, image, image->start - location.module_offset);
    }
}

/* The chain of frame pointers misses the caller of a function without a frame pointer, such as most functions of libc.
 * But a chain that is longer than the unwound frames is better, and stays. */
static void replace(Etch__ThreadState *state, const struct unwinding *u)
{
    bool better = u->n > 1 && (state->frames_scanned || u->n >= state->n_frames);
    uint64_t *frames = better ? malloc(u->n * sizeof(*frames)) : NULL;

    if (!frames)
        return;
    memcpy(frames, u->frames, u->n * sizeof(*frames));
    free(state->frames);
    state->frames = frames;
    state->n_frames = u->n;
    state->frames_scanned = false;
}

static void unwind(struct etch_unwind_tables *tables, Etch__ThreadState *state)
{
    const struct etch_unwind_memory memory = {read_stack, state};
    struct etch_unwind_frame f = {.known = (1u << ETCH_UNWIND_FRAME_REGISTERS) - 1};
    struct unwinding u;

    for (size_t i = 0; i < ETCH_UNWIND_FRAME_REGISTERS; i++)
        f.r[i] = state->registers[etch_unwind_perf_register[i]];
    u.n = etch_unwind_tables_walk(tables, &memory, &f, u.frames, FRAMES_MAX);
    replace(state, &u);
}

static bool is_stub(const struct etch_recording *r, struct etch_symbols *symbols, uint64_t address)
{
    struct etch_location location;

    for (size_t i = 0; i < r->images.n; i++) {
        const Etch__Image *image = r->images.v[i];

        if (!(image->prot & 4) || address < image->start || address - image->start >= image->size)
            continue;
        etch_symbols_find(symbols, image, address, &location);
        return location.is_plt;
    }
    return false;
}

/* Removes the frames of stubs: a stub between two functions is no place in the program. */
static void drop_stubs(const struct etch_recording *r, struct etch_symbols *symbols, Etch__ThreadState *state)
{
    size_t n = 0;

    for (size_t i = 0; i < state->n_frames; i++)
        if (!is_stub(r, symbols, state->frames[i] - (i > 0)))
            state->frames[n++] = state->frames[i];
    state->n_frames = n;
}

struct etch_unwind_tables *etch_unwind_open(const struct etch_recording *r, struct etch_symbols *symbols)
{
    struct etch_unwind_tables *tables = etch_unwind_tables_new();

    if (tables)
        add_images(tables, r, symbols);
    if (tables && etch_unwind_tables_finish(tables))
        return tables;
    etch_unwind_tables_free(tables);
    return NULL;
}

/* The tables of a recording's code, opened once for all its threads. */
struct unwinder {
    const struct etch_recording *recording;
    struct etch_symbols *symbols;
    struct etch_unwind_tables *tables;
    bool tried;
};

static void unwind_state(struct unwinder *w, Etch__ThreadState *state)
{
    if (state->n_registers >= ETCH_UNWIND_REGISTERS && state->stack.len && state->tid) {
        if (!w->tried)
            w->tables = etch_unwind_open(w->recording, w->symbols);
        w->tried = true;
        if (!w->tables)
            return;
        unwind(w->tables, state);
    }
    drop_stubs(w->recording, w->symbols, state);
}

void etch_unwind_failure(struct etch_recording *r, struct etch_symbols *symbols)
{
    Etch__Exception *e = r->failure ? r->failure->exception : NULL;
    struct unwinder w = {.recording = r, .symbols = symbols};

    for (size_t i = 0; r->failure && i < r->failure->n_threads; i++)
        unwind_state(&w, r->failure->threads[i]);
    if (e && e->thrown && e->thrown->state)
        unwind_state(&w, e->thrown->state);
    for (size_t i = 0; e && i < e->n_again; i++)
        if (e->again[i]->state)
            unwind_state(&w, e->again[i]->state);
    etch_unwind_tables_free(w.tables);
}
