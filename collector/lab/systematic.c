/* SPDX-License-Identifier: MIT */
/* See systematic.h. The state of a run at a point is known by a hash of what each thread did, with the operations that
 * each of these depended on: the last write to the same object, and before a write the reads since then. An operation
 * without an object depends on everything. */
#include "collector/lab/systematic.h"

#include "base/array.h"
#include "base/index.h"

#include <stdlib.h>
#include <string.h>

#define NONE UINT32_MAX
#define THREADS 64u  /* that a choice can name */
#define WIDE 64u     /* eights of bytes of an operation, at most; a wider one depends on everything */
#define LOOKED 4096u /* events ahead in which a thread's next operation is looked for */

typedef ETCH_ARRAY(struct etch_lab_segment) segments;

/* A schedule that is still to be run: that of an earlier run up to a point, where another thread runs. */
struct item {
    uint32_t run, point, thread;
    bool predicted;
    uint64_t state; /* behind its first own operation, if `predicted` */
};

struct etch_lab_tree {
    unsigned most, level;
    ETCH_ARRAY(segments) runs;
    ETCH_ARRAY(struct item) * levels; /* by preemptions */
    size_t *taken;                    /* of each level */
    struct etch_index visited;        /* states whose continuations are known */
    segments prefix;
    bool begun;
    uint32_t from; /* of the schedule that was given last: its first point that is its own */
    uint64_t skipped;
};

/* ---- The tree ---- */

struct etch_lab_tree *etch_lab_tree_new(unsigned preemptions)
{
    struct etch_lab_tree *t = calloc(1, sizeof(*t));

    if (!t)
        return NULL;
    t->most = preemptions;
    t->levels = calloc(preemptions + 1, sizeof(*t->levels));
    t->taken = calloc(preemptions + 1, sizeof(*t->taken));
    if (t->levels && t->taken)
        return t;
    etch_lab_tree_free(t);
    return NULL;
}

static void clear(struct etch_lab_tree *t)
{
    for (size_t i = 0; i < t->runs.n; i++)
        etch_array_free(&t->runs.v[i]);
    t->runs.n = 0;
    for (unsigned i = 0; t->levels && i <= t->most; i++) {
        etch_array_free(&t->levels[i]);
        if (t->taken)
            t->taken[i] = 0;
    }
    etch_index_release(&t->visited);
    memset(&t->visited, 0, sizeof(t->visited));
    t->begun = false;
    t->level = 0;
}

void etch_lab_tree_free(struct etch_lab_tree *tree)
{
    if (!tree)
        return;
    clear(tree);
    etch_array_free(&tree->runs);
    etch_array_free(&tree->prefix);
    free(tree->levels);
    free(tree->taken);
    free(tree);
}

void etch_lab_tree_restart(struct etch_lab_tree *tree)
{
    clear(tree);
}

unsigned etch_lab_tree_level(const struct etch_lab_tree *tree)
{
    return tree->level;
}

uint64_t etch_lab_tree_skipped(const struct etch_lab_tree *tree)
{
    return tree->skipped;
}

/* ---- States ---- */

static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

static uint64_t join(uint64_t a, uint64_t b)
{
    return mix(a ^ (b * UINT64_C(0x9e3779b97f4a7c15) + 0x7f4a7c15));
}

struct object {
    uint64_t at; /* plus 1; 0: a free entry */
    uint64_t written, read;
};

struct state {
    struct object *objects;
    size_t size;
    size_t used;
    uint64_t threads[THREADS];
    uint64_t fence; /* operations that depend on everything */
    uint64_t sum;   /* of all threads */
    bool full;
};

static bool begin_state(struct state *s, size_t n)
{
    memset(s, 0, sizeof(*s));
    s->size = 64;
    while (s->size < 4 * n)
        s->size *= 2;
    s->objects = calloc(s->size, sizeof(*s->objects));
    return s->objects;
}

static struct object *object_at(struct state *s, uint64_t at)
{
    size_t i = mix(at) & (s->size - 1);

    while (s->objects[i].at && s->objects[i].at != at + 1)
        i = (i + 1) & (s->size - 1);
    if (!s->objects[i].at) {
        s->full |= ++s->used > s->size / 2;
        if (s->full)
            return NULL;
        s->objects[i].at = at + 1;
    }
    return &s->objects[i];
}

/* How many objects of eight bytes the operation touches; 0: it depends on everything. */
static uint64_t width_of(const struct etch_lab_event *e)
{
    uint64_t bytes = e->bytes > e->size ? e->bytes : e->size;
    uint64_t n = bytes > 8 ? ((e->address & 7) + bytes + 7) / 8 : 1;

    return !e->object || n > WIDE ? 0 : n;
}

/* The hash of the thread behind the operation. */
static uint64_t behind(struct state *s, const struct etch_lab_event *e)
{
    uint64_t n = width_of(e), h = join(s->threads[e->thread % THREADS], s->fence);

    h = join(join(h, e->site), e->object ^ (uint64_t)e->write << 63 ^ (uint64_t)e->resumed << 62);
    if (!n)
        return join(h, s->sum);
    for (uint64_t i = 0; i < n; i++) {
        const struct object *o = object_at(s, e->object + 8 * i);

        if (o)
            h = join(join(h, o->written), e->write ? o->read : 0);
    }
    return h;
}

static void set_thread(struct state *s, uint32_t thread, uint64_t h)
{
    uint64_t *own = &s->threads[thread % THREADS];

    s->sum += mix(h ^ mix(thread)) - (*own ? mix(*own ^ mix(thread)) : 0);
    *own = h;
}

static void follow(struct state *s, const struct etch_lab_event *e)
{
    uint64_t n = width_of(e), h = behind(s, e);

    for (uint64_t i = 0; i < n; i++) {
        struct object *o = object_at(s, e->object + 8 * i);

        if (o && e->write)
            *o = (struct object){o->at, h, 0};
        else if (o)
            o->read += h;
    }
    if (!n)
        s->fence = h;
    set_thread(s, e->thread, h);
}

/* ---- Runs ---- */

static uint32_t thread_at(const struct etch_lab_course *c, size_t *segment, uint32_t *done)
{
    while (*segment < c->n_segments && *done == c->segments[*segment].count) {
        ++*segment;
        *done = 0;
    }
    if (*segment == c->n_segments)
        return NONE;
    ++*done;
    return c->segments[*segment].thread;
}

static uint64_t key_of(const struct state *s, uint64_t sum, uint32_t last)
{
    return join(sum ^ s->fence, last + 1);
}

static bool is_visited(const struct etch_lab_tree *t, uint64_t key)
{
    size_t probe = 0;

    return etch_index_next(&t->visited, key, &probe) != ETCH_INDEX_NONE;
}

/* The state behind the next operation of `thread`, if that can be told from this run. */
static bool predict(struct state *s, const struct etch_lab_course *c, size_t event, uint32_t thread, uint64_t *key)
{
    for (size_t i = event; i < c->n_events && i < event + LOOKED; i++) {
        const struct etch_lab_event *e = &c->events[i];
        uint64_t own, h;

        if (e->thread != thread)
            continue;
        if (e->resumed || e->alone || !width_of(e))
            return false;
        own = s->threads[thread % THREADS];
        h = behind(s, e);
        *key = key_of(s, s->sum + mix(h ^ mix(thread)) - (own ? mix(own ^ mix(thread)) : 0), thread);
        return true;
    }
    return false;
}

/* Who else could have run at this point. */
static bool branch(struct etch_lab_tree *t, struct state *s, const struct etch_lab_course *c, uint32_t point,
                   size_t event, uint32_t chosen)
{
    const struct etch_lab_choice *choice = &c->choices[point];
    bool goes_on = !choice->yields && choice->last < THREADS && choice->enabled >> choice->last & 1;
    unsigned cost = t->level + (goes_on && chosen == choice->last);

    if (cost > t->most)
        return true;
    for (uint32_t other = 0; other < THREADS; other++) {
        struct item item = {(uint32_t)t->runs.n - 1, point, other, false, 0};

        if (!(choice->enabled >> other & 1) || other == chosen || (choice->yields && other == choice->last))
            continue;
        item.predicted = !s->full && predict(s, c, event, other, &item.state);
        if (!etch_array_push(&t->levels[cost], item))
            return false;
    }
    return true;
}

static bool keep_run(struct etch_lab_tree *t, const struct etch_lab_course *c)
{
    segments copy = {0};

    for (size_t i = 0; i < c->n_segments; i++)
        if (!etch_array_push(&copy, c->segments[i]))
            return false;
    return etch_array_push(&t->runs, copy);
}

static bool walk(struct etch_lab_tree *t, struct state *s, const struct etch_lab_course *c)
{
    size_t segment = 0, event = 0;
    uint32_t done = 0, thread;

    for (uint32_t i = 0; i < c->n_choices && (thread = thread_at(c, &segment, &done)) != NONE; i++) {
        uint32_t own = NONE;

        while (event < c->n_events &&
               (c->events[event].point < i || (c->events[event].alone && c->events[event].point == i)))
            follow(s, &c->events[event++]);
        if (i >= t->from) {
            uint64_t key = key_of(s, s->sum, c->choices[i].last) + c->choices[i].yields;

            if (!s->full && is_visited(t, key))
                return true;
            if ((!s->full && !etch_index_add(&t->visited, key, 0)) || !branch(t, s, c, i, event, thread))
                return false;
        }
        if (event < c->n_events && c->events[event].point == i)
            own = c->events[event].thread;
        if (own != thread && thread < THREADS && s->threads[thread]) { /* nothing is known of the operation */
            s->fence = join(s->fence, s->sum);
            set_thread(s, thread, join(s->threads[thread], s->fence));
        } else if (own != thread) { /* the thread begins */
            set_thread(s, thread, join(thread, 1));
        }
    }
    return true;
}

bool etch_lab_tree_add(struct etch_lab_tree *tree, const struct etch_lab_course *course)
{
    struct state state;
    bool ok = begin_state(&state, course->n_events) && keep_run(tree, course) && walk(tree, &state, course);

    free(state.objects);
    return ok;
}

/* ---- The next schedule ---- */

static bool make_prefix(struct etch_lab_tree *t, const struct item *item)
{
    const segments *run = &t->runs.v[item->run];
    uint32_t left = item->point;

    t->prefix.n = 0;
    for (size_t i = 0; i < run->n && left; i++) {
        uint32_t count = run->v[i].count < left ? run->v[i].count : left;

        if (!etch_array_push(&t->prefix, ((struct etch_lab_segment){run->v[i].thread, count})))
            return false;
        left -= count;
    }
    return etch_array_push(&t->prefix, ((struct etch_lab_segment){item->thread, 1}));
}

static const struct item *take_item(struct etch_lab_tree *t)
{
    for (; t->level <= t->most; t->level++)
        while (t->taken[t->level] < t->levels[t->level].n) {
            const struct item *item = &t->levels[t->level].v[t->taken[t->level]++];

            if (!item->predicted || !is_visited(t, item->state))
                return item;
            t->skipped++;
        }
    return NULL;
}

bool etch_lab_tree_next(struct etch_lab_tree *tree, const struct etch_lab_segment **prefix, uint32_t *n)
{
    const struct item *item = NULL;

    tree->prefix.n = 0;
    tree->from = 0;
    if (tree->begun) {
        item = take_item(tree);
        if (!item || !make_prefix(tree, item))
            return false;
        tree->from = item->point + 1;
    }
    tree->begun = true;
    *prefix = tree->prefix.v;
    *n = (uint32_t)tree->prefix.n;
    return true;
}
