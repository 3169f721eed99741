/* SPDX-License-Identifier: MIT */
/* The origin of a run's exit status. The last instruction of the run is of no interest, because destructors and exit
 * handlers run after the decision. The last executed of the statements that can give the status gave it. */
#include "sketch/runs/build_model.h"

#include <string.h>

/* As in slicer/slice.h: which of two statements says more comes first. */
#define PASSED 2u

bool etch_build_ended_itself(const struct build *b)
{
    const Etch__Failure *f = b->recording->failure;

    return (!f || f->kind == ETCH__FAILURE_KIND__FAILURE_NONE || f->kind == ETCH__FAILURE_KIND__FAILURE_EXIT) &&
           etch_build_is_failing(b);
}

void etch_build_bound_exits(struct build *b)
{
    const Etch__Slice *exits = b->options->exits;

    b->exit_start = UINT64_MAX;
    for (size_t i = 0; exits && etch_build_ended_itself(b) && i < exits->n_statements; i++) {
        for (size_t k = 0; k < exits->statements[i]->n_ranges; k++) {
            const Etch__AddressRange *range = exits->statements[i]->ranges[k];

            b->exit_start = range->start < b->exit_start ? range->start : b->exit_start;
            b->exit_end = range->end > b->exit_end ? range->end : b->exit_end;
        }
    }
}

/* The address at which a block last enters one of the statement's ranges; 0: it enters none. */
static uint64_t meets(const Etch__Statement *s, uint64_t first, uint64_t last)
{
    uint64_t found = 0;

    for (size_t i = 0; i < s->n_ranges; i++) {
        uint64_t at = s->ranges[i]->start > first ? s->ranges[i]->start : first;

        if (at <= last && at < s->ranges[i]->end && at > found)
            found = at;
    }
    return found;
}

static void take_exit(struct build *b, struct walk *w, uint32_t statement, uint64_t ip, uint64_t last)
{
    const Etch__Statement *s = b->options->exits->statements[statement];
    struct exit_point *e = &w->exits[s->distance < PASSED ? s->distance : PASSED];

    if (e->block == w->block && e->ip > ip + b->bias)
        return;
    e->block = w->block;
    e->ip = ip + b->bias;
    e->last = last + b->bias;
    e->statement = statement;
    e->n = 0;
    e->unkept = w->depth > EXIT_FRAMES ? w->depth - EXIT_FRAMES : 0;
    for (uint32_t d = w->depth < DEPTH_MAX ? w->depth : DEPTH_MAX - 1; d > 0 && e->n < EXIT_FRAMES; d--)
        e->frames[e->n++] = w->frames[d].return_address;
}

void etch_walk_pass_exits(struct build *b, struct walk *w, const struct etch_step *step)
{
    uint64_t first = step->first - b->bias, last = step->last - b->bias;
    const Etch__Slice *exits = b->options->exits;

    if (!exits || last < b->exit_start || first >= b->exit_end)
        return;
    for (uint32_t i = 0; i < exits->n_statements; i++) {
        uint64_t ip = meets(exits->statements[i], first, last);

        if (ip)
            take_exit(b, w, i, ip, last);
    }
}

static const struct exit_point *best_of(const struct walk *w)
{
    for (uint32_t i = 0; i <= PASSED; i++)
        if (w->exits[i].ip)
            return &w->exits[i];
    return NULL;
}

/* True if the last step of the thread in the program is a call that got the status. */
static bool ends_in_call(const struct build *b, const struct walk *w)
{
    for (uint32_t i = 0; i <= PASSED; i++)
        if (w->exits[i].ip && w->exits[i].last == w->last_program_ip &&
            b->options->exits->statements[w->exits[i].statement]->call)
            return true;
    return false;
}

bool etch_walk_stand_at_exit(struct build *b, struct walk *w)
{
    struct etch_run_thread *t = &b->run->threads.v[w->thread];
    const struct exit_point *e = best_of(w);

    if (!e)
        return false;
    b->failed |= !etch_array_push(&t->frames, e->ip);
    for (uint32_t i = 0; i < e->n; i++)
        b->failed |= !etch_array_push(&t->frames, e->frames[i]);
    w->unkept_frames += e->unkept;
    t->gave_status = e != &w->exits[PASSED];
    t->called_exit = ends_in_call(b, w);
    return true;
}

/* The statement that made the value, where there is but one. */
static uint32_t only_origin(struct build *b)
{
    const Etch__Slice *exits = b->options->exits;
    const Etch__Statement *only = NULL;

    for (size_t i = 0; exits && i < exits->n_statements; i++) {
        const Etch__Statement *s = exits->statements[i];

        if (s->distance >= PASSED)
            continue;
        if (only && (only->place->line != s->place->line || strcmp(only->place->file, s->place->file) != 0))
            return ETCH_NOWHERE;
        only = s;
    }
    return only ? etch_names_place(b->names, only->place->file, only->place->line, only->place->function)
                : ETCH_NOWHERE;
}

/* The last statement of main's, or else of any function's, that the value can have come from or passed. */
static uint32_t last_in_main(struct build *b)
{
    const Etch__Slice *exits = b->options->exits;
    const Etch__Statement *last = NULL;

    for (size_t i = 0; exits && i < exits->n_statements; i++) {
        const Etch__Statement *s = exits->statements[i];
        bool in_main = strcmp(s->place->function, "main") == 0;
        bool had_main = last && strcmp(last->place->function, "main") == 0;

        if (!last || in_main > had_main || (in_main == had_main && s->place->line > last->place->line))
            last = s;
    }
    return last ? etch_names_place(b->names, last->place->file, last->place->line, last->place->function)
                : ETCH_NOWHERE;
}

void etch_build_place_unseen_exit(struct build *b, struct etch_run_thread *t)
{
    uint32_t only = t->gave_status ? ETCH_NOWHERE : only_origin(b);

    if (only != ETCH_NOWHERE)
        t->wait_place = only;
    if (t->wait_place == ETCH_NOWHERE)
        t->wait_place = last_in_main(b);
}

void etch_walk_visit_exit(struct build *b, struct walk *w)
{
    const struct etch_step step = {.time = {w->last_lo, UINT64_MAX}};
    const struct exit_point *best = best_of(w);
    uint32_t place = best && best != &w->exits[PASSED] ? ETCH_NOWHERE : only_origin(b);

    if (place == ETCH_NOWHERE)
        return;
    w->block++;
    etch_walk_visit(b, w, &step, place, false, 0);
}
