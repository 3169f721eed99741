/* SPDX-License-Identifier: MIT */
/* See choose.h. */
#include "collector/lab/choose.h"

#include <stdlib.h>
#include <string.h>

/* An object of the run, in a hash table. */
struct object {
    uint64_t at;    /* 0: a free entry */
    uint64_t sites; /* a hash of its instructions: objects that the same instructions use are of one kind */
    uint64_t locks; /* that were held at all of its uses */
    uint32_t thread;
    bool used, shared, written, sync;
};

struct pair {
    uint64_t object, site; /* 0: a free entry */
};

struct tables {
    struct object *objects;
    struct pair *pairs; /* each instruction of each object */
    size_t size;
};

static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

static struct object *find(const struct tables *t, uint64_t at)
{
    size_t i = mix(at) & (t->size - 1);

    while (t->objects[i].at && t->objects[i].at != at)
        i = (i + 1) & (t->size - 1);
    return &t->objects[i];
}

static bool is_new_pair(const struct tables *t, uint64_t object, uint64_t site)
{
    size_t i = mix(object ^ mix(site)) & (t->size - 1);

    while (t->pairs[i].object && (t->pairs[i].object != object || t->pairs[i].site != site))
        i = (i + 1) & (t->size - 1);
    if (t->pairs[i].object)
        return false;
    t->pairs[i] = (struct pair){object, site};
    return true;
}

static void enter(const struct tables *t, const struct etch_lab_event *e)
{
    struct object *o = find(t, e->object);

    if (!o->at)
        *o = (struct object){.at = e->object, .locks = UINT64_MAX};
    if (is_new_pair(t, e->object, e->site))
        o->sites ^= mix(e->site);
    if (e->alone)
        return; /* nobody else could come before */
    if (!o->used)
        o->thread = e->thread;
    o->used = true;
    o->shared |= o->thread != e->thread;
    o->written |= e->write;
    o->sync |= e->sync;
    o->locks &= e->locks;
}

/* The order of the uses of an object that a lock protects is the order in which the lock is taken. */
static bool is_candidate(const struct object *o, bool protected)
{
    return o->at && o->shared && o->written && (protected || o->sync || !o->locks);
}

/* One of the kinds of objects that two threads use and one writes to, each as likely as the others; of it one object.
 * 0: there is none but the kind of `other`. */
static uint64_t draw_object(const struct tables *t, uint64_t seed, bool protected, uint64_t other)
{
    const struct object *best = NULL;
    uint64_t best_kind = 0;

    for (size_t i = 0; i < t->size; i++) {
        const struct object *o = &t->objects[i];
        uint64_t kind = mix(o->sites ^ mix(seed));

        if (!is_candidate(o, protected) || (other && o->sites == other))
            continue;
        if (!best || kind > best_kind || (kind == best_kind && mix(o->at ^ seed) > mix(best->at ^ seed))) {
            best = o;
            best_kind = kind;
        }
    }
    return best ? best->at : 0;
}

static bool is_among(const uint64_t *sites, uint32_t n, uint64_t site)
{
    for (uint32_t i = 0; i < n; i++)
        if (sites[i] == site)
            return true;
    return false;
}

/* Adds the instructions that use the object. Returns how many there are now. */
static uint32_t add_sites(const struct etch_lab_event *events, size_t n, uint64_t object,
                          uint64_t sites[ETCH_LAB_CHOSEN], uint32_t found)
{
    for (size_t i = 0; object && i < n && found < ETCH_LAB_CHOSEN; i++)
        if (events[i].object == object && !is_among(sites, found, events[i].site))
            sites[found++] = events[i].site;
    return found;
}

static uint32_t choose_sites(const struct tables *t, const struct etch_lab_event *events, size_t n, uint64_t seed,
                             unsigned objects, uint64_t sites[ETCH_LAB_CHOSEN])
{
    bool protected = false;
    uint64_t first, second;
    uint32_t found;

    for (size_t i = 0; i < n; i++)
        if (events[i].object)
            enter(t, &events[i]);
    first = draw_object(t, seed, false, 0);
    if (!first) {
        protected = true;
        first = draw_object(t, seed, true, 0);
    }
    found = add_sites(events, n, first, sites, 0);
    second = first && objects > 1 ? draw_object(t, mix(seed + 1), protected, find(t, first)->sites) : 0;
    return add_sites(events, n, second, sites, found);
}

uint32_t etch_lab_choose(const struct etch_lab_event *events, size_t n, uint64_t seed, unsigned objects,
                         uint64_t sites[ETCH_LAB_CHOSEN], uint64_t expected[ETCH_LAB_THREADS])
{
    struct tables t = {.size = 16};
    uint32_t found = 0;

    while (t.size < 2 * n)
        t.size *= 2;
    t.objects = calloc(t.size, sizeof(*t.objects));
    t.pairs = calloc(t.size, sizeof(*t.pairs));
    if (t.objects && t.pairs)
        found = choose_sites(&t, events, n, seed, objects, sites);
    free(t.objects);
    free(t.pairs);
    if (!found)
        return 0;
    memset(expected, 0, ETCH_LAB_THREADS * sizeof(*expected));
    for (size_t i = 0; i < n; i++)
        if (events[i].thread < ETCH_LAB_THREADS && !events[i].alone && is_among(sites, found, events[i].site))
            expected[events[i].thread]++;
    return found;
}
