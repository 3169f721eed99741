/* SPDX-License-Identifier: MIT */
/* backtraces BUNDLE: the calls that every thread was in at the failure, and where its exception was thrown, as the
 * unwind tables have them: a line a thread, function:line from the innermost on. */
#include "decoder/unwind.h"

#include <stdio.h>

static void print_state(const struct etch_recording *r, struct etch_symbols *symbols, const char *what,
                        const Etch__ThreadState *state)
{
    printf("%s%s", what, state->frames_scanned ? " (scanned)" : "");
    for (size_t i = 0; i < state->n_frames; i++) {
        uint64_t address = state->frames[i] - (i > 0);
        struct etch_location at;

        etch_symbols_find(symbols, etch_recording_image_at(r, 0, address), address, &at);
        printf(" %s:%u", at.symbol ? at.symbol : "?", at.frame.line);
        for (const struct etch_frame *f = at.frame.caller; f; f = f->caller)
            printf("<%s:%u", f->function ? f->function : "?", f->line);
    }
    printf("\n");
}

int main(int argc, char **argv)
{
    struct etch_symbols *symbols = etch_symbols_new(&(struct etch_symbols_options){0});
    struct etch_recording *r;
    struct etch_error err;
    const Etch__Exception *e;

    if (argc != 2 || !symbols || etch_recording_open(&r, argv[1], &err) < 0 || !r->failure)
        return 2;
    etch_unwind_failure(r, symbols);
    for (size_t i = 0; i < r->failure->n_threads; i++)
        print_state(r, symbols, i ? "thread" : "failing", r->failure->threads[i]);
    e = r->failure->exception;
    if (e && e->thrown && e->thrown->state)
        print_state(r, symbols, "thrown", e->thrown->state);
    etch_symbols_free(symbols);
    etch_recording_free(r);
    return 0;
}
