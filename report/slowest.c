/* SPDX-License-Identifier: MIT */
/* The second pass of --slowest: keeps what the slowest calls and some typical calls did. */
#include "report/slowest.h"

#include "report/measure.h"

#include <string.h>

enum { PARTS_MAX = 1024, TYPICAL_MAX = 24, SHOWN = 4 };

struct watcher {
    struct etch_slowest *slowest;
    const struct etch_profile *first;
    uint32_t wanted;   /* in the first profile */
    uint32_t function; /* in this one; not known before the first call */
    const struct etch_measure *measure;
    struct etch_call_detail now;
    ETCH_ARRAY(uint32_t) open; /* parts; ETCH_FUNCTION_NONE for a call that was pruned */
    uint64_t typical_lo, typical_hi;
    bool failed;
};

static void detail_release(struct etch_call_detail *detail)
{
    etch_array_free(&detail->parts);
    etch_array_free(&detail->waits);
}

static bool is_wanted(const struct watcher *w, uint32_t function)
{
    const struct etch_profile_function *a = &w->first->functions.v[w->wanted];
    const struct etch_profile_function *b = &w->slowest->profile->functions.v[function];

    return strcmp(a->name, b->name) == 0 && strcmp(a->module, b->module) == 0;
}

/* The part of a callee below `parent`, made if need be. */
static uint32_t part_below(struct watcher *w, uint32_t parent, uint32_t function)
{
    uint64_t key =
        etch_hash(w->now.parts.n ? w->now.parts.v[parent].key : ETCH_HASH_START, &function, sizeof(function));
    struct etch_call_part part = {.key = key, .parent = parent, .function = function};

    for (uint32_t i = 0; i < w->now.parts.n; i++)
        if (w->now.parts.v[i].key == key)
            return i;
    if (w->now.parts.n >= PARTS_MAX)
        return ETCH_FUNCTION_NONE;
    if (!etch_array_push(&w->now.parts, part)) {
        w->failed = true;
        return ETCH_FUNCTION_NONE;
    }
    return (uint32_t)w->now.parts.n - 1;
}

/* The innermost open call that has a part. */
static uint32_t innermost(const struct watcher *w)
{
    for (size_t i = w->open.n; i > 0; i--)
        if (w->open.v[i - 1] != ETCH_FUNCTION_NONE)
            return w->open.v[i - 1];
    return 0;
}

static void on_enter(void *context, const struct etch_measure_frame *frame)
{
    struct watcher *w = context;
    uint32_t part;

    if (w->function == ETCH_FUNCTION_NONE && is_wanted(w, frame->function))
        w->function = frame->function;
    if (!w->open.n && frame->function != w->function)
        return;
    part = part_below(w, innermost(w), frame->function);
    if (part == ETCH_FUNCTION_NONE)
        w->now.pruned++;
    else
        w->now.parts.v[part].calls++;
    if (!etch_array_push(&w->open, part))
        w->failed = true;
}

static bool is_call(const struct etch_profile_call *a, const struct etch_profile_call *b)
{
    return a->file == b->file && a->tid == b->tid && a->number == b->number;
}

/* Is it one of those to be shown? */
static bool is_slow(const struct watcher *w, const struct etch_profile_call *call, bool *by_wait)
{
    const struct etch_profile_slowest *s = &w->first->slowest.v[w->wanted];

    *by_wait = false;
    for (uint32_t i = 0; i < s->n && i < SHOWN; i++)
        if (is_call(&s->calls[i], call))
            return true;
    *by_wait = true;
    for (uint32_t i = 0; i < s->n_waits && i < SHOWN; i++)
        if (w->first->unit == ETCH_UNIT_INSTRUCTIONS && is_call(&s->waits[i], call))
            return true;
    return false;
}

static bool is_typical(const struct watcher *w, const struct etch_profile_call *call)
{
    return w->slowest->typical.n < TYPICAL_MAX && call->cost.hi >= w->typical_lo && call->cost.hi <= w->typical_hi;
}

static void forget(struct watcher *w)
{
    w->now.parts.n = w->now.waits.n = 0;
    w->now.pruned = 0;
    w->open.n = 0;
}

/* The call is over: keeps it or forgets it. */
static void end_call(struct watcher *w, const struct etch_profile_call *call)
{
    struct etch_slow_call slow = {0};
    bool by_wait;

    w->now.call = *call;
    if (is_slow(w, call, &by_wait)) {
        slow.detail = w->now;
        slow.by_wait = by_wait;
        w->failed |= !etch_array_push(&w->slowest->slow, slow);
        w->now = (struct etch_call_detail){0};
    } else if (is_typical(w, call)) {
        w->failed |= !etch_array_push(&w->slowest->typical, w->now);
        w->now = (struct etch_call_detail){0};
    }
    forget(w);
}

static void on_leave(void *context, const struct etch_measure_frame *frame, const struct etch_profile_call *call)
{
    struct watcher *w = context;
    uint32_t part;

    if (!w->open.n)
        return;
    part = w->open.v[--w->open.n];
    if (part != ETCH_FUNCTION_NONE) {
        w->now.parts.v[part].instructions += w->measure->instructions - frame->instructions;
        w->now.parts.v[part].wait += w->measure->waited - frame->wait;
    }
    if (w->open.n == 0 && call)
        end_call(w, call);
    else if (w->open.n == 0)
        forget(w);
}

static void on_wait(void *context, uint32_t wait, uint64_t ticks)
{
    struct watcher *w = context;
    struct etch_call_wait new = {wait, ticks, 1};

    if (!w->open.n)
        return;
    for (size_t i = 0; i < w->now.waits.n; i++)
        if (w->now.waits.v[i].wait == wait) {
            w->now.waits.v[i].ticks += ticks;
            w->now.waits.v[i].count++;
            return;
        }
    w->failed |= !etch_array_push(&w->now.waits, new);
}

struct etch_slowest *etch_slowest_new(void)
{
    struct etch_slowest *slowest = calloc(1, sizeof(*slowest));

    if (slowest && !(slowest->profile = etch_profile_new())) {
        free(slowest);
        return NULL;
    }
    return slowest;
}

void etch_slowest_free(struct etch_slowest *slowest)
{
    if (!slowest)
        return;
    for (size_t i = 0; i < slowest->typical.n; i++)
        detail_release(&slowest->typical.v[i]);
    for (size_t i = 0; i < slowest->slow.n; i++) {
        detail_release(&slowest->slow.v[i].detail);
        etch_array_free(&slowest->slow.v[i].differences);
    }
    etch_array_free(&slowest->typical);
    etch_array_free(&slowest->slow);
    etch_profile_free(slowest->profile);
    free(slowest);
}

/* The middle half of all calls, by the upper bounds. */
static bool typical_range(struct watcher *w)
{
    struct etch_distribution lo = {0}, hi = {0};
    bool known = etch_profile_distribution(w->first, w->wanted, ETCH_ANY_CALLER, &lo, &hi, NULL);

    w->typical_lo = etch_distribution_least(etch_distribution_quantile(&hi, 0.25));
    w->typical_hi = etch_distribution_greatest(etch_distribution_quantile(&hi, 0.75));
    etch_distribution_release(&lo);
    etch_distribution_release(&hi);
    return known;
}

int etch_slowest_add(struct etch_slowest *slowest, const struct etch_profile *first, uint32_t function,
                     struct etch_recording *recording, struct etch_symbols *symbols,
                     const struct etch_profile_options *options, struct etch_error *err)
{
    struct watcher w = {.slowest = slowest, .first = first, .wanted = function, .function = ETCH_FUNCTION_NONE};
    struct etch_measure m = {.profile = slowest->profile,
                             .recording = recording,
                             .symbols = symbols,
                             .on_enter = on_enter,
                             .on_leave = on_leave,
                             .on_wait = on_wait,
                             .watcher = &w};
    int status;

    w.measure = &m;
    if (!typical_range(&w))
        return etch_error_no_memory(err);
    status = etch_measure_run(&m, options, err);
    if (w.function != ETCH_FUNCTION_NONE)
        slowest->function = w.function;
    detail_release(&w.now);
    etch_array_free(&w.open);
    return w.failed ? etch_error_no_memory(err) : status;
}
