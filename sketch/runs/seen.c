/* SPDX-License-Identifier: MIT */
/* Visits of a run without control flow; see seen.h. */
#include "sketch/runs/seen.h"
#include "sketch/runs/limit.h"

#include <stdlib.h>
#include <string.h>

#define STRIDE 256u /* room for frames between two events */

/* An access or a synchronisation event of one thread. */
struct seen {
    uint64_t at;
    uint32_t place, index;
    bool sync;
};

typedef ETCH_ARRAY(struct seen) seen_list;

static int by_time(const void *x, const void *y)
{
    const struct seen *a = x, *b = y;

    if (a->at != b->at)
        return a->at < b->at ? -1 : 1;
    if (a->sync != b->sync)
        return a->sync ? -1 : 1;
    return a->index < b->index ? -1 : a->index > b->index;
}

/* Both lists are in the thread's own order, and so must the two together be: stamps decide only between them. */
static bool list_events(const struct etch_run *run, uint32_t thread, seen_list *list)
{
    uint64_t last = 0;

    for (uint32_t i = 0; i < run->accesses.n; i++) {
        const struct etch_run_access *a = &run->accesses.v[i];
        struct seen event = {.at = a->hi > last ? a->hi : last, .place = a->place, .index = i};

        if (a->thread != thread)
            continue;
        last = event.at;
        if (!etch_array_push(list, event))
            return false;
    }
    last = 0;
    for (uint32_t i = 0; i < run->syncs.n; i++) {
        const struct etch_run_sync *s = &run->syncs.v[i];
        struct seen event = {.at = s->tsc > last ? s->tsc : last, .place = s->place, .index = i, .sync = true};

        if (s->thread != thread)
            continue;
        last = event.at;
        if (!etch_array_push(list, event))
            return false;
    }
    if (list->n)
        qsort(list->v, list->n, sizeof(*list->v), by_time);
    return true;
}

static struct etch_run_visit *visit_of(struct etch_run *run, uint32_t thread, uint32_t place)
{
    struct etch_run_visit visit = {.thread = thread, .place = place, .hi = UINT64_MAX};

    for (size_t i = 0; i < run->visits.n; i++)
        if (run->visits.v[i].thread == thread && run->visits.v[i].place == place)
            return &run->visits.v[i];
    return etch_array_push(&run->visits, visit) ? &run->visits.v[run->visits.n - 1] : NULL;
}

/* True if an access continues the execution of its statement to which the events before it belong. An execution uses an
 * operand once in each direction. */
static bool goes_on(const struct etch_run *run, const seen_list *list, size_t at)
{
    const struct etch_run_access *a = list->v[at].sync ? NULL : &run->accesses.v[list->v[at].index];

    for (size_t i = at; i-- > 0 && list->v[i].place == list->v[at].place;) {
        const struct etch_run_access *b = list->v[i].sync ? NULL : &run->accesses.v[list->v[i].index];

        if (a && b && a->operand == b->operand && a->write == b->write)
            return false;
        if (!a && !b)
            return run->syncs.v[list->v[at].index].op != run->syncs.v[list->v[i].index].op;
    }
    return at > 0 && list->v[at - 1].place == list->v[at].place;
}

static bool visit_events(struct etch_run *run, uint32_t thread, const seen_list *list)
{
    for (size_t i = 0; i < list->n; i++) {
        struct etch_run_visit *v;

        if (list->v[i].place == ETCH_NOWHERE)
            continue;
        v = visit_of(run, thread, list->v[i].place);
        if (!v)
            return false;
        if (!goes_on(run, list, i)) {
            v->count++;
            v->seq = (i + 1) * STRIDE;
            v->lo = v->hi = list->v[i].at;
        }
        v->hi = list->v[i].at;
        if (!list->v[i].sync) {
            run->accesses.v[list->v[i].index].nth = v->count;
            run->accesses.v[list->v[i].index].seq = (i + 1) * STRIDE;
        }
    }
    return true;
}

static bool is_inner(const struct etch_run *run, const struct etch_names *names, uint32_t thread, size_t level,
                     uint32_t place)
{
    const struct etch_run_thread *t = &run->threads.v[thread];

    for (size_t i = 0; place != ETCH_NOWHERE && i < level; i++)
        if (strcmp(names->places.v[t->stack.v[i]].function, names->places.v[place].function) == 0)
            return true;
    return false;
}

/* The calls on a thread's stack ran: the innermost call last of all, each other call before the last events of its
 * callees. */
static bool visit_stack(struct etch_run *run, const struct etch_names *names, uint32_t thread, const seen_list *list)
{
    const struct etch_run_thread *t = &run->threads.v[thread];

    for (size_t level = 0; level < t->stack.n && level < STRIDE - 2; level++) {
        size_t at = list->n;
        bool again = !level && at && list->v[at - 1].place == t->stack.v[level];
        struct etch_run_visit *v = visit_of(run, thread, t->stack.v[level]);

        if (!v)
            return false;
        while (level && at && is_inner(run, names, thread, level, list->v[at - 1].place))
            at--;
        if (again || (level && v->count))
            continue; /* its events were seen already */
        v->count++;
        v->seq = (at + 1) * STRIDE - 1 - level;
        v->lo = at ? list->v[at - 1].at : 0;
        v->hi = UINT64_MAX;
    }
    return etch_run_limit(run, t->tid, t->stack.n > STRIDE - 2 ? t->stack.n - (STRIDE - 2) : 0,
                          "the outermost calls of a deep stack are not kept") == 0;
}

static int by_thread(const void *x, const void *y)
{
    const struct etch_run_visit *a = x, *b = y;

    if (a->thread != b->thread)
        return a->thread < b->thread ? -1 : 1;
    return a->seq < b->seq ? -1 : a->seq > b->seq;
}

static void find_makers(struct etch_run *run)
{
    for (uint32_t parent = 0; parent < run->threads.n; parent++) {
        uint32_t child = 0;

        for (size_t i = 0; i < run->syncs.n; i++) {
            if (run->syncs.v[i].thread != parent || run->syncs.v[i].op != ETCH__SYNC_OP__SYNC_THREAD_CREATE ||
                run->syncs.v[i].result != 0)
                continue;
            while (child < run->threads.n && run->threads.v[child].parent != parent)
                child++;
            if (child < run->threads.n)
                run->threads.v[child++].made_at = run->syncs.v[i].place;
        }
    }
}

int etch_run_see(struct etch_run *run, const struct etch_names *names)
{
    bool good = true;

    for (uint32_t t = 0; good && t < run->threads.n; t++) {
        seen_list list = {0};

        good = list_events(run, t, &list) && visit_events(run, t, &list) && visit_stack(run, names, t, &list);
        etch_array_free(&list);
    }
    if (run->visits.n)
        qsort(run->visits.v, run->visits.n, sizeof(*run->visits.v), by_thread);
    find_makers(run);
    return good ? 0 : -1;
}
