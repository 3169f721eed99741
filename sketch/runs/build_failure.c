/* SPDX-License-Identifier: MIT */
/* How a run ended: failed or not, the position of each thread at the end, and the bucket that distinguishes
 * failures. */
#include "base/function_name.h"
#include "base/path.h"
#include "sketch/runs/build_model.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUCKET_CALLERS 2u /* functions above the failing function that distinguish failures */

/* ---- Whether it failed ---- */

static uint32_t exit_status(const struct etch_recording *r)
{
    return r->outcome && r->outcome->how_case == ETCH__OUTCOME__HOW_EXIT_STATUS ? r->outcome->exit_status : 0;
}

bool etch_recording_failed(const struct etch_recording *r, bool *hang)
{
    const Etch__Failure *f = r->failure;

    *hang = false;
    if (!f || f->kind == ETCH__FAILURE_KIND__FAILURE_NONE)
        return exit_status(r) != 0;
    *hang = f->kind == ETCH__FAILURE_KIND__FAILURE_HANG || f->kind == ETCH__FAILURE_KIND__FAILURE_TIMEOUT ||
            (f->kind == ETCH__FAILURE_KIND__FAILURE_SIGNAL && !f->ip &&
             (f->cause != ETCH__FAILURE_CAUSE__CAUSE_NO_MEMORY || !f->tid) &&
             (f->signal == SIGTERM || f->signal == SIGKILL || f->signal == SIGINT));
    return true;
}

bool etch_build_is_failing(const struct build *b)
{
    bool hang;

    return b->options->verdict ? b->options->verdict != ETCH_VERDICT_PASS : etch_recording_failed(b->recording, &hang);
}

/* ---- Where threads stood ---- */

/* The nearest frame within the program, as a place. */
static uint32_t frame_place(struct build *b, const uint64_t *frames, size_t n, uint64_t *outside)
{
    *outside = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t place = etch_build_place_of(b, etch_build_image_at(b, frames[i]), frames[i] - (i > 0));

        if (place != ETCH_NOWHERE)
            return place;
        *outside = frames[i] - (i > 0);
    }
    return ETCH_NOWHERE;
}

static void stack_places(struct build *b, struct etch_run_thread *t)
{
    for (size_t i = 0; i < t->frames.n; i++) {
        uint32_t place = etch_build_place_of(b, etch_build_image_at(b, t->frames.v[i]), t->frames.v[i] - (i > 0));

        if (place != ETCH_NOWHERE)
            b->failed |= !etch_array_push(&t->stack, place);
    }
}

static void take_frames(struct build *b)
{
    for (size_t i = 0; i < b->run->threads.n; i++) {
        struct etch_run_thread *t = &b->run->threads.v[i];
        const Etch__ThreadState *state = etch_build_state_of(b->recording->failure, t->tid);

        if (t->gave_status)
            state = NULL;
        if (state && state->n_frames)
            t->frames.n = 0;
        for (size_t k = 0; state && k < state->n_frames; k++)
            b->failed |= !etch_array_push(&t->frames, state->frames[k]);
    }
}

static bool has_ended(const struct build *b, uint32_t tid)
{
    const Etch__Failure *f = b->recording->failure;
    bool ended = false;

    for (size_t i = 0; i < b->recording->threads.n; i++) {
        const Etch__Thread *t = b->recording->threads.v[i];

        ended |= t->tid == tid && t->end_tsc && (!f || !f->tsc || t->end_tsc < f->tsc);
    }
    return ended;
}

static void place_threads(struct build *b)
{
    for (size_t i = 0; i < b->run->threads.n; i++) {
        struct etch_run_thread *t = &b->run->threads.v[i];
        bool stands = etch_build_state_of(b->recording->failure, t->tid) || t->tid == b->run->failure->tid;
        uint64_t outside;

        if (!stands && has_ended(b, t->tid))
            continue;
        t->wait_place = frame_place(b, t->frames.v, t->frames.n, &outside);
        if (t->tid == b->run->failure->tid && etch_build_ended_itself(b))
            etch_build_place_unseen_exit(b, t);
        stack_places(b, t);
        if (outside)
            t->wait_in = etch_build_short_at(b, outside);
        if (!t->name && t->frames.n)
            t->name = i == 0 ? strdup("main") : NULL;
    }
}

static bool is_joining(const struct build *b, const struct etch_run_thread *t)
{
    bool joining = false;

    for (size_t i = 0; i < t->frames.n && i < 8 && !joining; i++) {
        char *name = etch_build_function_at((struct build *)(uintptr_t)b, t->frames.v[i] - (i > 0));

        joining = name && (strstr(name, "pthread_join") || strstr(name, "pthread_clockjoin") ||
                           strstr(name, "pthread_timedjoin"));
        free(name);
    }
    return joining;
}

/* A thread that only waits for another's end has no part in a hang, unless all do. */
static bool has_part(const struct build *b, size_t i)
{
    const struct etch_run_thread *t = &b->run->threads.v[i];

    if (t->wait_place == ETCH_NOWHERE)
        return false;
    if (!is_joining(b, t))
        return true;
    for (size_t k = 0; k < b->run->threads.n; k++)
        if (b->run->threads.v[k].wait_place != ETCH_NOWHERE && !is_joining(b, &b->run->threads.v[k]))
            return false;
    return true;
}

/* ---- The failure ---- */

static void add_state(Etch__Failure *f, const struct etch_run_thread *t, bool *failed)
{
    Etch__ThreadState **bigger = realloc(f->threads, (f->n_threads + 1) * sizeof(*bigger)), *state;

    if (bigger)
        f->threads = bigger;
    state = bigger ? malloc(sizeof(*state)) : NULL;
    if (!state) {
        *failed = true;
        return;
    }
    etch__thread_state__init(state);
    state->tid = t->tid;
    state->name = strdup(t->name ? t->name : "");
    state->frames = malloc((t->frames.n + 1) * sizeof(*state->frames));
    *failed |= !state->name || !state->frames;
    if (state->frames && t->frames.n) /* a thread of which nothing is known has none */
        memcpy(state->frames, t->frames.v, t->frames.n * sizeof(*state->frames));
    state->n_frames = state->frames ? t->frames.n : 0;
    f->threads[f->n_threads++] = state;
}

static Etch__Failure *copy_failure(const Etch__Failure *from)
{
    size_t size = etch__failure__get_packed_size(from);
    uint8_t *bytes = malloc(size + 1);
    Etch__Failure *copy = bytes ? etch__failure__unpack(NULL, etch__failure__pack(from, bytes), bytes) : NULL;

    free(bytes);
    return copy;
}

static Etch__Failure *own_failure(const struct build *b, bool hang)
{
    Etch__Failure none = ETCH__FAILURE__INIT, *f;

    f = copy_failure(b->recording->failure ? b->recording->failure : &none);
    if (f && f->kind == ETCH__FAILURE_KIND__FAILURE_EXIT && !f->code)
        f->code = (int32_t)exit_status(b->recording);
    if (f && hang) {
        f->kind = ETCH__FAILURE_KIND__FAILURE_HANG;
    } else if (f && f->kind == ETCH__FAILURE_KIND__FAILURE_NONE) {
        f->code = (int32_t)exit_status(b->recording);
        f->kind = f->code ? ETCH__FAILURE_KIND__FAILURE_EXIT : ETCH__FAILURE_KIND__FAILURE_CHECK;
    }
    return f;
}

/* ---- Its bucket ---- */

static int by_text(const void *x, const void *y)
{
    return strcmp(*(char *const *)x, *(char *const *)y);
}

/* Adds the callers: the nearest functions of the program, each named once, so that recursion makes no difference. */
static void add_callers(struct build *b, const struct etch_run_thread *t, char *text, size_t size)
{
    const char *last = b->names->places.v[t->wait_place].function;
    bool there = false;

    for (size_t i = 0, n = 0; i < t->frames.n && n < BUCKET_CALLERS; i++) {
        uint32_t place = etch_build_place_of(b, etch_build_image_at(b, t->frames.v[i]), t->frames.v[i] - (i > 0));
        size_t length = strlen(text);
        char brief[128];

        if (place == ETCH_NOWHERE)
            continue;
        if (there && strcmp(b->names->places.v[place].function, last) != 0) {
            last = b->names->places.v[place].function;
            snprintf(text + length, size - length, " < %s", etch_function_short(last, brief, sizeof(brief)));
            n++;
        }
        there |= place == t->wait_place;
    }
}

static size_t name_failure(const Etch__Failure *f, char *text, size_t size)
{
    const char *signal = f->kind == ETCH__FAILURE_KIND__FAILURE_SIGNAL ? sigabbrev_np((int)f->signal) : NULL;
    const char *type = f->exception ? f->exception->type : "";

    if (f->cause == ETCH__FAILURE_CAUSE__CAUSE_EXCEPTION)
        return (size_t)snprintf(text, size, type[0] ? "uncaught %.1000s" : "uncaught exception%s", type);
    if (f->cause == ETCH__FAILURE_CAUSE__CAUSE_TERMINATE || f->cause == ETCH__FAILURE_CAUSE__CAUSE_JOINABLE_THREAD)
        return (size_t)snprintf(text, size, "std::terminate");
    if (f->cause == ETCH__FAILURE_CAUSE__CAUSE_PURE_VIRTUAL)
        return (size_t)snprintf(text, size, "pure virtual call");

    if (f->cause == ETCH__FAILURE_CAUSE__CAUSE_NO_MEMORY)
        return (size_t)snprintf(text, size, "out of memory");
    if (f->kind == ETCH__FAILURE_KIND__FAILURE_HANG)
        return (size_t)snprintf(text, size, "hang");
    if (f->kind == ETCH__FAILURE_KIND__FAILURE_EXIT)
        return (size_t)snprintf(text, size, "exit status %d", f->code);
    if (f->kind == ETCH__FAILURE_KIND__FAILURE_CHECK)
        return (size_t)snprintf(text, size, "the check failed");
    return signal ? (size_t)snprintf(text, size, "SIG%s", signal)
                  : (size_t)snprintf(text, size, "signal %u", f->signal);
}

/* "SIGSEGV, consumer bug.c:18 < main"; for a hang where all its threads stand. */
static char *bucket_of(struct build *b, bool hang)
{
    ETCH_ARRAY(char *) parts = {0};
    const Etch__Failure *f = b->run->failure;
    char text[4096], callers[1024], brief[128], *part;
    size_t length = name_failure(f, text, sizeof(text));

    for (size_t i = 0; i < b->run->threads.n; i++) {
        const struct etch_run_thread *t = &b->run->threads.v[i];
        uint32_t at = t->wait_place;

        if (at == ETCH_NOWHERE || (hang ? !has_part(b, i) : i != b->run->failing_thread))
            continue;
        snprintf(callers, sizeof(callers), ", %s %s:%u",
                 etch_function_short(b->names->places.v[at].function, brief, sizeof(brief)),
                 etch_path_name(b->names->places.v[at].file), b->names->places.v[at].line);
        if (!hang)
            add_callers(b, t, callers, sizeof(callers));
        part = strdup(callers);
        if (part && !etch_array_push(&parts, part))
            free(part);
    }
    if (parts.n)
        qsort(parts.v, parts.n, sizeof(*parts.v), by_text);
    for (size_t i = 0; i < parts.n; i++) {
        if (length < sizeof(text))
            length += (size_t)snprintf(text + length, sizeof(text) - length, "%s", parts.v[i]);
        free(parts.v[i]);
    }
    etch_array_free(&parts);
    return strdup(text);
}

/* ---- All of it ---- */

/* A run that ended by itself did so by the thread that called exit(), or else by its first. Wrong output was written by
 * the first thread that writes at all. */
static uint32_t ending_thread(const struct etch_run *run)
{
    bool output = run->failure->kind == ETCH__FAILURE_KIND__FAILURE_CHECK;

    for (size_t i = 0; i < run->threads.n; i++)
        if (output ? run->threads.v[i].gave_status : run->threads.v[i].called_exit)
            return run->threads.v[i].tid;
    return run->failure->tid && !run->threads.v[0].gave_status ? run->failure->tid : run->threads.v[0].tid;
}

/* The captured state is that of the end. The place that counts is before the end. */
static void replace_state(Etch__Failure *f, const struct etch_run_thread *t)
{
    for (size_t i = 0; t->gave_status && i < f->n_threads; i++) {
        Etch__ThreadState *state = f->threads[i];
        uint64_t *frames = state->tid == t->tid ? malloc((t->frames.n + 1) * sizeof(*frames)) : NULL;

        if (!frames)
            continue;
        memcpy(frames, t->frames.v, t->frames.n * sizeof(*frames));
        free(state->frames);
        state->frames = frames;
        state->n_frames = t->frames.n;
    }
}

int etch_build_conclude(struct build *b, struct etch_error *err)
{
    enum etch_verdict verdict = b->options->verdict;
    struct etch_run *run = b->run;
    bool hang;

    etch_recording_failed(b->recording, &hang);
    run->failing = etch_build_is_failing(b);
    if (verdict)
        hang = verdict == ETCH_VERDICT_HANG;
    run->failing_place = run->failing_thread = ETCH_NOWHERE;
    if (!run->failing)
        return 0;
    run->failure = own_failure(b, hang);
    if (!run->failure)
        return etch_error_no_memory(err);
    if (b->nowhere && run->failure->code == 0) /* an emulator may not know what the fault was of */
        run->failure->fault_address = run->failure->ip;
    if (!hang && etch_build_ended_itself(b) && run->threads.n)
        run->failure->tid = ending_thread(run);
    take_frames(b);
    etch_build_find_cause(b);
    place_threads(b);
    for (size_t i = 0; i < run->threads.n; i++) {
        struct etch_run_thread *t = &run->threads.v[i];
        bool here = hang ? has_part(b, i) : t->tid == run->failure->tid;

        t->part = here;
        if (here && run->failing_thread == ETCH_NOWHERE && t->wait_place != ETCH_NOWHERE) {
            run->failing_thread = (uint32_t)i;
            run->failing_place = t->wait_place;
        }
        replace_state(run->failure, t);
        if (here && !etch_build_state_of(run->failure, t->tid))
            add_state(run->failure, t, &b->failed);
    }
    run->bucket = bucket_of(b, hang);
    return run->bucket && !b->failed ? 0 : etch_error_no_memory(err);
}
