/* SPDX-License-Identifier: MIT */
/* See regions.h. */
#include "diagnose/regions.h"

static bool is_taken(const struct etch_lab_event *e)
{
    return e->sync && !e->release && e->object;
}

uint32_t etch_region_begin(struct etch_lab_events events, uint32_t i, uint64_t lock)
{
    for (uint32_t j = i + 1; j-- > 0;) {
        const struct etch_lab_event *e = &events.v[j];

        if (e->thread != events.v[i].thread || !e->sync || e->object != lock)
            continue;
        if (!e->release)
            return j;
        if (j != i)
            return UINT32_MAX;
    }
    return UINT32_MAX;
}

uint32_t etch_region_end(struct etch_lab_events events, uint32_t begin)
{
    for (uint32_t j = begin + 1; j < events.n; j++)
        if (events.v[j].thread == events.v[begin].thread && events.v[j].release &&
            events.v[j].object == events.v[begin].object)
            return j;
    return events.n - 1;
}

/* Conditions, joins and semaphores are taken, and never released: they are no locks. */
static bool is_lock(struct etch_lab_events events, uint64_t object)
{
    for (uint32_t i = 0; i < events.n; i++)
        if (events.v[i].release && events.v[i].object == object)
            return true;
    return false;
}

uint32_t etch_region_common(struct etch_lab_events one, uint32_t i, struct etch_lab_events other, uint32_t k)
{
    for (uint32_t j = 0; j < i; j++) {
        uint64_t lock = one.v[j].object;

        if (one.v[j].thread == one.v[i].thread && is_taken(&one.v[j]) && etch_region_begin(one, i, lock) == j &&
            etch_region_begin(other, k, lock) != UINT32_MAX && is_lock(one, lock))
            return j;
    }
    return UINT32_MAX;
}

bool etch_region_is_ordered(struct etch_lab_events events, uint32_t i, uint32_t k)
{
    uint32_t after[ETCH_LAB_THREADS]; /* the first event of each thread that comes after `i` in every schedule */

    for (uint32_t t = 0; t < ETCH_LAB_THREADS; t++)
        after[t] = UINT32_MAX;
    after[events.v[i].thread] = i;
    for (uint32_t j = 0; j <= k; j++) {
        const struct etch_lab_event *e = &events.v[j];
        uint32_t made = e->made ? e->made - 1 : e->thread, *own = &after[e->thread];

        if (j > i && *own <= j && after[made] == UINT32_MAX)
            after[made] = *own; /* the new thread may run before its maker goes on behind the call */
        /* The joined thread may run on after the call: its events come before what the caller does next. */
        if (e->joined && after[e->joined - 1] != UINT32_MAX && *own == UINT32_MAX)
            *own = j > i ? j : i;
    }
    return after[events.v[k].thread] <= k && events.v[k].thread != events.v[i].thread;
}
