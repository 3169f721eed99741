/* SPDX-License-Identifier: MIT */
/* The decoder's order for a run; see order.h. */
#include "sketch/runs/order.h"

#include "base/assert.h"
#include "decoder/timeline.h"
#include "sketch/run.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct etch_run_order {
    struct etch_timeline timeline;
    struct etch_order *order;
    uint32_t *of_access, *of_sync, *position;
    size_t n_accesses, n_syncs;
};

static int index_events(struct etch_run_order *o, const struct etch_recording *r, struct etch_error *err)
{
    const uint32_t *sequence = etch_order_sequence(o->order);

    o->n_accesses = r->accesses.n;
    o->n_syncs = r->syncs.n;
    o->of_access = malloc((r->accesses.n + 1) * sizeof(uint32_t));
    o->of_sync = malloc((r->syncs.n + 1) * sizeof(uint32_t));
    o->position = malloc((o->timeline.events.n + 1) * sizeof(uint32_t));
    if (!o->of_access || !o->of_sync || !o->position)
        return etch_error_no_memory(err);
    memset(o->of_access, 0xff, (r->accesses.n + 1) * sizeof(uint32_t));
    memset(o->of_sync, 0xff, (r->syncs.n + 1) * sizeof(uint32_t));
    for (size_t i = 0; i < o->timeline.events.n; i++) {
        uint64_t source = o->timeline.source.v[i];

        ETCH_ASSERT((source & 3) != 0 || source >> 2 < r->accesses.n);
        ETCH_ASSERT((source & 3) != 1 || source >> 2 < r->syncs.n);
        if ((source & 3) == 0)
            o->of_access[source >> 2] = (uint32_t)i;
        else if ((source & 3) == 1)
            o->of_sync[source >> 2] = (uint32_t)i;
        o->position[sequence[i]] = (uint32_t)i;
    }
    return 0;
}

int etch_run_order_build(struct etch_run_order **order, const struct etch_recording *recording,
                         const struct etch_timeline_options *options, struct etch_error *err)
{
    static const struct etch_timeline_options nothing = {0};
    struct etch_run_order *o = calloc(1, sizeof(*o));

    *order = NULL;
    if (!o)
        return etch_error_no_memory(err);
    if (etch_timeline_build(&o->timeline, recording, options ? options : &nothing, err) < 0) {
        free(o);
        return -1;
    }
    if (etch_order_build(&o->order, &o->timeline.input, err) < 0 || index_events(o, recording, err) < 0) {
        etch_run_order_free(o);
        return -1;
    }
    *order = o;
    return 0;
}

void etch_run_order_free(struct etch_run_order *o)
{
    if (!o)
        return;
    etch_order_free(o->order);
    etch_timeline_free(&o->timeline);
    free(o->of_access);
    free(o->of_sync);
    free(o->position);
    free(o);
}

uint32_t etch_run_order_event(const struct etch_run_order *o, size_t index, int sync)
{
    if (sync)
        return index < o->n_syncs ? o->of_sync[index] : UINT32_MAX;
    return index < o->n_accesses ? o->of_access[index] : UINT32_MAX;
}

uint32_t etch_run_order_position(const struct etch_run_order *o, uint32_t event)
{
    return event < o->timeline.events.n ? o->position[event] : UINT32_MAX;
}

int etch_run_order_compare(const struct etch_run_order *o, uint32_t a, uint32_t b)
{
    if (a == UINT32_MAX || b == UINT32_MAX)
        return 0;
    switch (etch_order_ask(o->order, a, b)) {
    case ETCH_BEFORE:
        return -1;
    case ETCH_AFTER:
        return 1;
    default:
        return 0;
    }
}

void etch_run_order_why(const struct etch_run_order *o, uint32_t a, uint32_t b, char *text, size_t size)
{
    struct etch_evidence links[16];
    size_t n = a == UINT32_MAX || b == UINT32_MAX ? 0 : etch_order_why(o->order, a, b, links, 16), length = 0;

    text[0] = '\0';
    for (size_t i = 0; i < n && i < 16 && length < size; i++) {
        const struct etch_event *from = &o->timeline.events.v[links[i].from], *to = &o->timeline.events.v[links[i].to];

        if (links[i].kind == ETCH_BY_PROGRAM && n > 1)
            continue;
        length += (size_t)snprintf(text + length, size - length, "%s%s", length ? ", then " : "",
                                   etch_evidence_name(links[i].kind));
        if ((links[i].kind == ETCH_BY_CLOCK || links[i].kind == ETCH_BY_CPU) && length < size &&
            to->lo.tsc > from->hi.tsc)
            length +=
                (size_t)snprintf(text + length, size - length, ": %" PRIu64 " cycles apart", to->lo.tsc - from->hi.tsc);
    }
    if (n > 16 && length < size)
        snprintf(text + length, size - length, ", then %zu more links", n - 16);
}

void etch_run_order_bounds(const struct etch_run_order *o, uint32_t event, uint64_t *lo, uint64_t *hi)
{
    const struct etch_event *e = event < o->timeline.events.n ? &o->timeline.events.v[event] : NULL;

    *lo = e && e->lo.cpu != ETCH_CPU_NONE ? e->lo.tsc : 0;
    *hi = e && e->hi.cpu != ETCH_CPU_NONE ? e->hi.tsc : UINT64_MAX;
}

/* True if a contradiction concerns the clocks. A single contradiction that names an object does not. More than one may
 * have made the order leave out all clocks. */
static bool clocks_contradicted(const struct etch_run_order *o)
{
    size_t n;
    const struct etch_conflict *conflicts = etch_order_conflicts(o->order, &n);

    return n > 1 || (n == 1 && (conflicts[0].cpu != ETCH_CPU_NONE || !conflicts[0].object));
}

static void take_clocks(struct etch_run *run, const struct etch_timeline_clocks *clocks)
{
    bool contradicted = run->order && clocks_contradicted(run->order);

    run->clocks_known = clocks->any.known && !contradicted;
    run->clock_width = run->clocks_known ? (uint64_t)(clocks->any.hi - clocks->any.lo) : 0;
    if (!run->clocks_known)
        snprintf(run->clocks_why, sizeof(run->clocks_why), "%s",
                 contradicted      ? "the clocks contradict other evidence"
                 : clocks->refused ? clocks->why
                 : clocks->changed ? "the clock of a CPU changed during the recording"
                                   : "the clock of a CPU was not measured");
}

int etch_run_order_clocks(struct etch_run *run, const struct etch_recording *recording, struct etch_error *err)
{
    bool guest = recording->host && recording->host->hypervisor[0];
    struct etch_timeline_clocks clocks;

    if (run->order) {
        take_clocks(run, &run->order->timeline.clocks);
        return 0;
    }
    if (etch_timeline_clocks(&clocks, recording->clocks.v, recording->clocks.n, guest, 0, err) < 0)
        return -1;
    take_clocks(run, &clocks);
    etch_timeline_clocks_free(&clocks);
    return 0;
}

const struct etch_conflict *etch_run_order_conflicts(const struct etch_run_order *o, size_t *n)
{
    return etch_order_conflicts(o->order, n);
}

uint64_t etch_run_order_bounded(const struct etch_run_order *o)
{
    struct etch_order_size size;

    etch_order_measure(o->order, &size);
    return size.bounded;
}

void etch_run_order_conflict_text(const struct etch_conflict *conflict, char *text, size_t size)
{
    char apart[128] = "";

    if (conflict->cpu != ETCH_CPU_NONE && conflict->cpu_with < ETCH_CPU_ANY && conflict->excess > 0)
        snprintf(apart, sizeof(apart),
                 " It differs from the clock of CPU %u by at least %" PRId64 " cycles more than was measured.",
                 conflict->cpu_with, conflict->excess);
    if (conflict->cpu != ETCH_CPU_NONE)
        snprintf(text, size, "The clock of CPU %u contradicts other evidence.%s Its times order no events.",
                 conflict->cpu, apart);
    else if (conflict->object)
        snprintf(text, size,
                 "The records of object 0x%" PRIx64 " contradict each other or the order of the program. They order no "
                 "events.",
                 conflict->object);
    else
        snprintf(text, size,
                 "Records contradict each other, and no single object is to blame. Synchronisation and "
                 "values order no events.");
}
