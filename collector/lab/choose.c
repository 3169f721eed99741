/* SPDX-License-Identifier: MIT */
/* See choose.h. */
#include "collector/lab/choose.h"

#include <stdlib.h>
#include <string.h>

/* An object of the run, in a hash table. */
struct object {
    uint64_t at; /* 0: a free entry */
    uint32_t thread;
    bool shared, written;
};

static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

static struct object *find(struct object *table, size_t size, uint64_t at)
{
    size_t i = mix(at) & (size - 1);

    while (table[i].at && table[i].at != at)
        i = (i + 1) & (size - 1);
    return &table[i];
}

static void enter(struct object *o, const struct etch_lab_event *e)
{
    if (!o->at)
        *o = (struct object){.at = e->object, .thread = e->thread};
    o->shared |= o->thread != e->thread;
    o->written |= e->write;
}

/* One of the objects that two threads use and one writes to, each as likely as the others; 0: there is none. */
static uint64_t draw_object(const struct etch_lab_event *events, size_t n, uint64_t seed)
{
    struct object *table;
    uint64_t best = 0;
    size_t size = 16;

    while (size < 2 * n)
        size *= 2;
    table = calloc(size, sizeof(*table));
    for (size_t i = 0; table && i < n; i++)
        if (events[i].object)
            enter(find(table, size, events[i].object), &events[i]);
    for (size_t i = 0; table && i < size; i++)
        if (table[i].shared && table[i].written && (!best || mix(table[i].at ^ mix(seed)) > mix(best ^ mix(seed))))
            best = table[i].at;
    free(table);
    return best;
}

static bool is_among(const uint64_t *sites, uint32_t n, uint64_t site)
{
    for (uint32_t i = 0; i < n; i++)
        if (sites[i] == site)
            return true;
    return false;
}

uint32_t etch_lab_choose(const struct etch_lab_event *events, size_t n, uint64_t seed, uint64_t sites[ETCH_LAB_CHOSEN],
                         uint64_t expected[ETCH_LAB_THREADS])
{
    uint64_t object = draw_object(events, n, seed);
    uint32_t found = 0;

    for (size_t i = 0; object && i < n && found < ETCH_LAB_CHOSEN; i++)
        if (events[i].object == object && !is_among(sites, found, events[i].site))
            sites[found++] = events[i].site;
    if (!found)
        return 0;
    memset(expected, 0, ETCH_LAB_THREADS * sizeof(*expected));
    for (size_t i = 0; i < n; i++)
        if (events[i].thread < ETCH_LAB_THREADS && is_among(sites, found, events[i].site))
            expected[events[i].thread]++;
    return found;
}
