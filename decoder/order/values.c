/* SPDX-License-Identifier: MIT */
/* Edges from values. If every access to a location was seen, a read that returned v comes behind a write of v and
 * before the write that replaced v. If only one write can be the source of the read, the read and this write are
 * ordered. See order.h. */
#include "decoder/order/graph.h"

#include <stdlib.h>
#include <string.h>

#define SCANNED 64 /* writes of one value that are tried for a read; more: the pair is unordered, not wrong */
#define NEXT 4     /* writes behind the source of a read that are tried as the replacing write */

struct write {
    int64_t u, l;
    int64_t least_l; /* the least L from this write to the array's end, among writes of its value */
    int64_t most_l;  /* the greatest L up to this write */
    uint64_t value;
    uint32_t event;
    uint32_t place; /* in the array by time */
    bool known;
};

/* A location during one round of deriving. */
struct values {
    struct etch_order *o;
    const struct etch_watched *location;
    struct write *by_time;  /* by U */
    struct write *by_value; /* by value, then U; writes of unknown value last */
    size_t n, n_known;
    uint32_t *reads;
    size_t n_reads;
    int64_t found;
    bool impossible; /* a read of a value that nobody wrote */
    uint32_t impossible_read;
};

static int by_time(const void *x, const void *y)
{
    const struct write *a = x;
    const struct write *b = y;

    if (a->u != b->u)
        return a->u < b->u ? -1 : 1;
    return a->event < b->event ? -1 : a->event > b->event;
}

static int by_value(const void *x, const void *y)
{
    const struct write *a = x;
    const struct write *b = y;

    if (a->known != b->known)
        return a->known ? -1 : 1;
    if (a->known && a->value != b->value)
        return a->value < b->value ? -1 : 1;
    return by_time(x, y);
}

static void sort_writes(struct values *v)
{
    qsort(v->by_time, v->n, sizeof(*v->by_time), by_time);
    for (size_t i = 0; i < v->n; i++) {
        v->by_time[i].place = (uint32_t)i;
        v->by_time[i].most_l = v->by_time[i].l;
        if (i > 0 && v->by_time[i - 1].most_l > v->by_time[i].most_l)
            v->by_time[i].most_l = v->by_time[i - 1].most_l;
    }
    memcpy(v->by_value, v->by_time, v->n * sizeof(*v->by_value));
    qsort(v->by_value, v->n, sizeof(*v->by_value), by_value);
    for (size_t i = v->n; i-- > 0;) {
        struct write *w = &v->by_value[i];
        const struct write *next = i + 1 < v->n ? w + 1 : NULL;

        w->least_l = w->l;
        if (next && next->known == w->known && (!w->known || next->value == w->value) && next->least_l < w->least_l)
            w->least_l = next->least_l;
    }
}

/* Writes with U below `limit`: how many, in the array by time. */
static size_t ended_before(const struct values *v, int64_t limit)
{
    size_t lo = 0, n = v->n;

    while (lo < n) {
        size_t middle = lo + (n - lo) / 2;

        if (v->by_time[middle].u < limit)
            lo = middle + 1;
        else
            n = middle;
    }
    return lo;
}

/* The first write of `value` (or of unknown value) whose U is not below `limit`. */
static size_t first_of(const struct values *v, bool known, uint64_t value, int64_t limit)
{
    size_t lo = known ? 0 : v->n_known;
    size_t n = known ? v->n_known : v->n;

    while (lo < n) {
        size_t middle = lo + (n - lo) / 2;
        const struct write *w = &v->by_value[middle];

        if ((known && w->value < value) || ((!known || w->value == value) && w->u < limit))
            lo = middle + 1;
        else
            n = middle;
    }
    return lo;
}

/* The writes that a read may have read from. */
struct sources {
    const struct write *one;
    size_t n;     /* 0, 1, or 2 for several (or too many to try) */
    bool bounded; /* there were too many to try */
};

static void try_sources(const struct values *v, uint32_t read, bool known, uint64_t value, int64_t floor,
                        struct sources *s)
{
    const struct etch_order *o = v->o;
    size_t end = known ? v->n_known : v->n;
    size_t scanned = 0;

    for (size_t i = first_of(v, known, value, floor); i < end && s->n < 2; i++) {
        const struct write *w = &v->by_value[i];

        if ((known && w->value != value) || w->least_l > o->u[read])
            break; /* all further writes are behind the read */
        if (++scanned > SCANNED) {
            s->n = 2;
            s->bounded = true;
            break;
        }
        if (w->event == read || etch_order_before(o, read, w->event))
            continue;
        s->one = w;
        s->n++;
    }
}

/* The last write of the reading thread before the read. A read never sees an older value. */
static uint32_t own_write(const struct etch_order *o, const uint32_t *last_write, uint32_t read)
{
    return last_write[o->thread[read]];
}

/* True if the read may have returned the location's first value. */
static bool initial_possible(const struct values *v, uint64_t seen, bool overwritten)
{
    return !overwritten && (!v->location->initial_known || v->location->initial == seen);
}

static bool add(struct values *v, uint32_t from, uint32_t to)
{
    if (from == to || etch_order_before(v->o, from, to))
        return true;
    if (!etch_order_edge(v->o, from, to, ETCH_BY_VALUE))
        return false;
    v->found += v->o->thread[from] != v->o->thread[to];
    return true;
}

/* Adds no edge against evidence for the opposite order: this rule cannot tell which evidence is wrong. */
static bool add_unless_against(struct values *v, uint32_t from, uint32_t to)
{
    return etch_order_before(v->o, to, from) || add(v, from, to);
}

/* `read` read from `w`. Writes certainly behind w are behind the read. Writes certainly before the read are before w,
 * also the reading thread's own writes. */
static bool place_between(struct values *v, const struct write *w, uint32_t read, uint32_t own)
{
    if (own != ETCH_NO_EVENT && own != w->event && !add_unless_against(v, own, w->event))
        return false;
    for (size_t i = w->place; i-- > 0 && w->place - i <= NEXT;)
        if (v->by_time[i].event != read && etch_order_before(v->o, v->by_time[i].event, read) &&
            !add_unless_against(v, v->by_time[i].event, w->event))
            return false;
    for (size_t i = w->place + 1; i < v->n && i <= w->place + NEXT; i++) {
        uint32_t other = v->by_time[i].event;

        if (other == read)
            continue;
        if (etch_order_before(v->o, other, read)) {
            if (!add(v, other, w->event))
                return false;
        } else if (etch_order_before(v->o, w->event, other)) {
            return add(v, read, other);
        }
    }
    return true;
}

/* `read` saw the first value: the read is before every write. */
static bool place_first(struct values *v, uint32_t read)
{
    for (size_t i = 0; i < v->n && i < NEXT; i++)
        if (v->by_time[i].event != read && !add(v, read, v->by_time[i].event))
            return false;
    return true;
}

/* The clocks leave no write as the source of this read. If the whole run has exactly one write of the value, that write
 * is the source and the clocks are wrong: the new edge will show the contradiction. Without such a write, the records
 * are wrong. */
static bool derive_against_clocks(struct values *v, uint32_t read, uint64_t seen)
{
    struct sources s = {.n = 0};
    bool initial = !v->location->initial_known || v->location->initial == seen;

    for (size_t i = first_of(v, true, seen, INT64_MIN); i < v->n_known && v->by_value[i].value == seen && s.n < 2;
         i++) {
        if (v->by_value[i].event == read)
            continue;
        s.one = &v->by_value[i];
        s.n++;
    }
    if (s.n == 1 && v->n_known == v->n && !initial) {
        v->found++;
        return etch_order_edge(v->o, s.one->event, read, ETCH_BY_VALUE);
    }
    if (!v->impossible) {
        v->impossible = true;
        v->impossible_read = read;
    }
    return true;
}

static bool derive_read(struct values *v, uint32_t read, uint32_t own)
{
    const struct etch_order *o = v->o;
    uint64_t seen = o->in->events[read].seen;
    size_t before = ended_before(v, o->l[read]);
    int64_t floor = before ? v->by_time[before - 1].most_l : INT64_MIN; /* writes with U below this were overwritten */
    struct sources s = {.n = 0};

    if (own != ETCH_NO_EVENT && o->l[own] > floor)
        floor = o->l[own];
    try_sources(v, read, true, seen, floor, &s);
    try_sources(v, read, false, 0, floor, &s);
    v->o->bounded += s.bounded;
    if (initial_possible(v, seen, before > 0 || own != ETCH_NO_EVENT)) {
        if (s.n == 0 && v->location->initial_known)
            return place_first(v, read);
        return true;
    }
    if (s.n == 1)
        return add(v, s.one->event, read) && place_between(v, s.one, read, own);
    return s.n > 1 || derive_against_clocks(v, read, seen);
}

static bool derive_location(struct values *v)
{
    struct etch_order *o = v->o;
    uint32_t *last_write = malloc((o->threads + 1) * sizeof(*last_write));
    bool good = last_write != NULL;

    if (!good)
        return false;
    memset(last_write, 0xff, (o->threads + 1) * sizeof(*last_write));
    /* Accesses have the order of the input: program order within each thread. */
    for (size_t i = 0; good && i < v->n_reads; i++) {
        const struct etch_event *e = &o->in->events[v->reads[i]];

        if (e->access & ETCH_ACCESS_READ && e->access & ETCH_ACCESS_SEEN_KNOWN)
            good = derive_read(v, v->reads[i], own_write(o, last_write, v->reads[i]));
        if (e->access & ETCH_ACCESS_WRITE)
            last_write[e->thread] = v->reads[i];
    }
    free(last_write);
    return good;
}

static int note_impossible(struct etch_order *o, const struct values *v)
{
    struct etch_conflict conflict = {.cpu = ETCH_CPU_NONE, .cpu_with = ETCH_CPU_NONE, .object = v->location->object};
    struct etch_evidence link = {.kind = ETCH_BY_VALUE, .from = v->impossible_read, .to = v->impossible_read};

    if (!o->blaming)
        return ETCH_DERIVE_CONFLICT;
    if (!o->clockless) { /* without clocks there is no contradiction, so a clock is to blame */
        if (etch_order_blame_clock(o) < 0)
            return ETCH_DERIVE_MEMORY;
        if (o->conflicts.v[o->conflicts.n - 1].n == 0) {
            o->conflicts.v[o->conflicts.n - 1].n = 1;
            o->conflicts.v[o->conflicts.n - 1].cycle[0] = link;
        }
        return ETCH_DERIVE_CONFLICT;
    }
    conflict.events = 1;
    conflict.n = 1;
    conflict.cycle[0] = link;
    if (!etch_array_push(&o->conflicts, conflict) || !etch_array_push(&o->excluded, v->location->object))
        return ETCH_DERIVE_MEMORY;
    return ETCH_DERIVE_CONFLICT;
}

/* Gathers the accesses to one location, in the order of the input, and its writes. */
static bool gather(struct values *v, const struct keyed *events, size_t n)
{
    const struct etch_order *o = v->o;

    v->reads = malloc((n + 1) * sizeof(*v->reads));
    v->by_time = malloc((n + 1) * sizeof(*v->by_time));
    v->by_value = malloc((n + 1) * sizeof(*v->by_value));
    if (!v->reads || !v->by_time || !v->by_value)
        return false;
    for (size_t i = 0; i < n; i++) {
        uint32_t event = events[i].event;
        const struct etch_event *e = &o->in->events[event];
        bool known = e->access & ETCH_ACCESS_WRITTEN_KNOWN;

        v->reads[v->n_reads++] = event;
        if (!(e->access & ETCH_ACCESS_WRITE))
            continue;
        v->n_known += known;
        v->by_time[v->n++] =
            (struct write){.u = o->u[event], .l = o->l[event], .event = event, .known = known, .value = e->written};
    }
    sort_writes(v);
    return true;
}

static int64_t derive_one(struct etch_order *o, const struct etch_watched *location, const struct keyed *events,
                          size_t n)
{
    struct values v = {.o = o, .location = location};
    int64_t found = ETCH_DERIVE_MEMORY;

    if (gather(&v, events, n) && derive_location(&v))
        found = v.impossible ? note_impossible(o, &v) : v.found;
    free(v.reads);
    free(v.by_time);
    free(v.by_value);
    return found;
}

/* The number of the object's location in the input, from 1; 0: none. The first match counts. Locations are few: they
 * are watches. */
static uint64_t location_of(const struct etch_order *o, uint64_t object)
{
    for (size_t i = 0; i < o->in->n_locations; i++)
        if (o->in->locations[i].object == object)
            return etch_order_excluded(o, object) ? 0 : i + 1;
    return 0;
}

/* Lists all accesses to locations, by location, then in the order of the input. */
static bool list_located(struct etch_order *o)
{
    size_t n = 0;

    for (size_t i = 0; i < o->n; i++)
        n += o->in->events[i].kind == ETCH_EVENT_ACCESS;
    o->located.v = malloc((n + 1) * sizeof(*o->located.v));
    o->located.n = 0;
    if (!o->located.v)
        return false;
    for (size_t i = 0; i < o->n; i++) {
        uint64_t location = o->in->events[i].kind == ETCH_EVENT_ACCESS ? location_of(o, o->in->events[i].object) : 0;

        if (location)
            o->located.v[o->located.n++] = (struct keyed){.key = location, .event = (uint32_t)i};
    }
    etch_keyed_sort(&o->located);
    return true;
}

/* Derives nothing after a loss: the rules need every access to a location. */
int64_t etch_order_values_derive(struct etch_order *o)
{
    int64_t found = 0;

    if (o->access_lost || o->distrust || o->in->n_locations == 0)
        return 0;
    if (!o->located.v && !list_located(o))
        return ETCH_DERIVE_MEMORY;
    for (size_t i = 0, end; i < o->located.n; i = end) {
        int64_t news;

        for (end = i; end < o->located.n && o->located.v[end].key == o->located.v[i].key;)
            end++;
        news = derive_one(o, &o->in->locations[o->located.v[i].key - 1], &o->located.v[i], end - i);
        if (news < 0)
            return news;
        found += news;
    }
    return found;
}
