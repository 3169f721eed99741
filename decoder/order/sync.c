/* SPDX-License-Identifier: MIT */
/* Edges from synchronisation. Pairs are never guessed: a lock follows an unlock if mutual exclusion leaves no other
 * way, a wait follows a post if counting leaves no other way. See order.h. */
#include "decoder/order/sync.h"

#include <stdlib.h>
#include <string.h>

/* Lists all sync events whose op is in `ops` (a bit each), by object, then in the order of the input. False when memory
 * is short. */
bool etch_sync_events(const struct etch_order *o, uint64_t ops, struct keyed_list *list)
{
    size_t n = 0;

    memset(list, 0, sizeof(*list));
    for (size_t i = 0; i < o->n; i++)
        n += o->in->events[i].kind == ETCH_EVENT_SYNC && o->in->events[i].op < 64 && ops >> o->in->events[i].op & 1;
    list->v = malloc((n + 1) * sizeof(*list->v));
    if (!list->v)
        return false;
    for (size_t i = 0; i < o->n; i++) {
        const struct etch_event *e = &o->in->events[i];

        if (e->kind == ETCH_EVENT_SYNC && e->op < 64 && ops >> e->op & 1 && !etch_order_excluded(o, e->object))
            list->v[list->n++] = (struct keyed){.key = e->object, .event = (uint32_t)i};
    }
    etch_keyed_sort(list);
    return true;
}

size_t etch_sync_group_end(const struct keyed_list *list, size_t begin)
{
    size_t end = begin;

    while (end < list->n && list->v[end].key == list->v[begin].key)
        end++;
    return end;
}

int etch_by_thread_and_place(const void *x, const void *y, void *context)
{
    const struct etch_order *o = context;
    uint32_t a = *(const uint32_t *)x;
    uint32_t b = *(const uint32_t *)y;
    uint32_t ta = o->thread[a];
    uint32_t tb = o->thread[b];

    if (ta != tb)
        return ta < tb ? -1 : 1;
    return o->position[a] < o->position[b] ? -1 : o->position[a] > o->position[b];
}

/* What the caller knows. */
static bool link_program(struct etch_order *o)
{
    for (size_t i = 0; !o->unlinked && i < o->in->n_links; i++)
        if (!etch_order_edge(o, o->in->links[i].from, o->in->links[i].to, ETCH_BY_PROGRAM))
            return false;
    return true;
}

int etch_order_sync_collect(struct etch_order *o)
{
    if (!link_program(o))
        return -1;
    if (o->distrust)
        return etch_order_link_cpus(o) ? 0 : -1;
    return etch_order_link_threads(o) && etch_order_link_barriers(o) && etch_order_link_cpus(o) &&
                   etch_order_collect_sections(o)
               ? 0
               : -1;
}

/* Calls `derive` for the events of each object in the list. Returns the sum, or what is below 0. */
int64_t etch_sync_derive_groups(struct etch_order *o, const struct keyed_list *list,
                                int64_t (*derive)(struct etch_order *o, const struct keyed *v, size_t n))
{
    int64_t found = 0;

    for (size_t i = 0, end; found >= 0 && i < list->n; i = end) {
        int64_t news;

        end = etch_sync_group_end(list, i);
        news = derive(o, list->v + i, end - i);
        found = news < 0 ? news : found + news;
    }
    return found;
}

int64_t etch_order_sync_derive(struct etch_order *o)
{
    int64_t locks = o->distrust ? 0 : etch_order_derive_locks(o);
    int64_t semaphores = locks < 0 || o->distrust ? locks : etch_order_derive_semaphores(o);
    int64_t signals = semaphores < 0 || o->distrust ? semaphores : etch_order_derive_signals(o);

    return signals < 0 ? signals : locks + semaphores + signals;
}
