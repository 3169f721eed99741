/* SPDX-License-Identifier: MIT */
/* See critical.h. */
#include "report/critical.h"
#include "report/critical_wait.h"

#include "base/function_name.h"
#include "binary/object.h"

#include <string.h>

enum { NAMED = 32 }; /* contended objects that are looked up in symbol tables */

struct finding {
    struct etch_critical *critical;
    struct etch_sync_table table;
    ETCH_ARRAY(struct etch_sync_wait) waits; /* by tid, then end */
};

/* ---- Contention ---- */

static struct etch_contended *contended_at(struct etch_critical *c, const struct etch_sync_wait *wait)
{
    struct etch_contended new = {.object = wait->object, .kind = wait->kind};

    for (size_t i = 0; i < c->contended.n; i++)
        if (c->contended.v[i].object == wait->object && c->contended.v[i].kind == wait->kind)
            return &c->contended.v[i];
    return etch_array_push(&c->contended, new) ? &c->contended.v[c->contended.n - 1] : NULL;
}

static bool count_wait(struct finding *f, const struct etch_sync_wait *wait)
{
    struct etch_contended *x = contended_at(f->critical, wait);

    if (!x)
        return false;
    x->waits++;
    x->waited.lo += wait->waited.lo;
    x->waited.hi += wait->waited.hi;
    x->longest = wait->waited.hi > x->longest ? wait->waited.hi : x->longest;
    return true;
}

/* For whom the others waited longest: one candidate after the other, because there are few threads. */
static void find_owner(const struct finding *f, struct etch_contended *x)
{
    for (size_t i = 0; i < f->waits.n; i++) {
        struct etch_span sum = {0};
        uint64_t caller = 0;

        if (f->waits.v[i].object != x->object || f->waits.v[i].kind != x->kind || f->waits.v[i].other == x->owner)
            continue;
        for (size_t k = i; k < f->waits.n; k++) {
            const struct etch_sync_wait *w = &f->waits.v[k];

            if (w->object != x->object || w->kind != x->kind || w->other != f->waits.v[i].other)
                continue;
            sum.lo += w->waited.lo;
            sum.hi += w->waited.hi;
            caller = w->owner_caller ? w->owner_caller : caller;
        }
        if (sum.hi > x->owned.hi) {
            x->owner = f->waits.v[i].other;
            x->owned = sum;
            x->owner_caller = caller;
        }
    }
}

static int longer_first(const void *a, const void *b)
{
    const struct etch_contended *x = a, *y = b;

    return x->waited.hi < y->waited.hi ? 1 : x->waited.hi > y->waited.hi ? -1 : x->object < y->object ? -1 : 1;
}

static bool find_waits(struct finding *f)
{
    for (size_t i = 0; i < f->table.by_thread.n; i++) {
        struct etch_sync_wait wait;

        if (etch_sync_wait_of(&f->table, f->table.by_thread.v[i], &wait) &&
            (!etch_array_push(&f->waits, wait) || !count_wait(f, &wait)))
            return false;
    }
    for (size_t i = 0; i < f->critical->contended.n; i++)
        find_owner(f, &f->critical->contended.v[i]);
    if (f->critical->contended.n)
        qsort(f->critical->contended.v, f->critical->contended.n, sizeof(*f->critical->contended.v), longer_first);
    return true;
}

/* ---- The path ---- */

/* The last wait of the thread that was over by `before`. */
static const struct etch_sync_wait *last_wait(const struct finding *f, uint32_t tid, uint64_t before)
{
    size_t low = 0, high = f->waits.n;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct etch_sync_wait *w = &f->waits.v[middle];

        if (w->tid < tid || (w->tid == tid && w->to <= before))
            low = middle + 1;
        else
            high = middle;
    }
    return low && f->waits.v[low - 1].tid == tid ? &f->waits.v[low - 1] : NULL;
}

static bool add_work(struct finding *f, uint32_t tid, uint64_t from, uint64_t to)
{
    struct etch_link link = {.kind = ETCH_LINK_WORK, .tid = tid, .from = from, .to = to};

    return from >= to || etch_array_push(&f->critical->links, link);
}

static bool add_wait(struct finding *f, const struct etch_sync_wait *w, uint64_t to)
{
    struct etch_link link = {.kind = w->kind,
                             .tid = w->tid,
                             .other = w->other,
                             .object = w->object,
                             .from = w->ended,
                             .to = w->to < to ? w->to : to,
                             .waited = w->waited,
                             .caller = w->caller};
    struct etch_contended *x = contended_at(f->critical, w);

    if (x)
        x->on_path += w->waited.hi;
    return x && etch_array_push(&f->critical->links, link);
}

/* Goes on in the creator of a thread that began within the path. */
static bool to_creator(struct finding *f, uint32_t *tid, uint64_t *now)
{
    struct etch_link link = {.kind = ETCH_LINK_START, .tid = *tid, .to = *now};
    uint32_t creator;
    uint64_t when;
    size_t n, first = etch_sync_table_thread(&f->table, *tid, &n);

    if (!n || !etch_sync_creator(&f->table, *tid, &creator, &when) || creator == *tid || when >= *now)
        return false;
    link.from = when;
    link.to = f->table.recording->syncs.v[f->table.by_thread.v[first]].tsc;
    link.other = creator;
    if (link.to < *now && !add_work(f, *tid, link.to, *now))
        return false;
    link.to = link.to < *now ? link.to : *now;
    if (link.to > link.from && !etch_array_push(&f->critical->links, link))
        return false;
    *tid = creator;
    *now = when;
    return true;
}

static void reverse(struct etch_critical *c)
{
    for (size_t i = 0, k = c->links.n; i + 1 < k; i++) {
        struct etch_link link = c->links.v[i];

        c->links.v[i] = c->links.v[--k];
        c->links.v[k] = link;
    }
}

static bool follow(struct finding *f, uint32_t tid)
{
    uint64_t now = f->critical->end;

    while (now > f->critical->begin) {
        const struct etch_sync_wait *w = last_wait(f, tid, now);

        if (w && w->ended < now && w->ended > f->critical->begin) {
            if (!add_work(f, tid, w->to, now) || !add_wait(f, w, now))
                return false;
            tid = w->other;
            now = w->ended;
        } else if (!to_creator(f, &tid, &now)) {
            if (!add_work(f, tid, f->critical->begin, now))
                return false;
            break;
        }
    }
    reverse(f->critical);
    return true;
}

/* The first thread of the program, if it took part: the run ends with it. Else the thread with the last event. */
static uint32_t last_thread(const struct finding *f, uint64_t *end)
{
    const struct etch_recording *r = f->table.recording;
    uint32_t tid = 0;
    size_t n = 0;

    *end = 0;
    for (size_t i = 0; i < r->syncs.n; i++)
        if (r->syncs.v[i].tsc > *end) {
            *end = r->syncs.v[i].tsc;
            tid = r->syncs.v[i].tid;
        }
    if (r->program)
        etch_sync_table_thread(&f->table, r->program->pid, &n);
    return n ? r->program->pid : tid;
}

/* ---- Names ---- */

/* The variable at the address, by the symbols of a mapped file of the build that ran. */
static bool name_from(const Etch__Image *image, uint64_t address, char *name, size_t size)
{
    uint8_t id[ETCH_BUILD_ID_MAX];
    struct etch_object *object;
    struct etch_error err;
    bool found = false;
    size_t n;

    if (!image->path || image->path[0] != '/' || etch_object_open(&object, image->path, &err) < 0)
        return false;
    n = etch_object_build_id(object, id);
    if (!image->build_id.len || (n == image->build_id.len && memcmp(id, image->build_id.data, n) == 0))
        found = etch_object_variable_at(object, address - etch_object_bias(object, image->start, image->file_offset),
                                        name, size);
    etch_object_free(object);
    return found;
}

static void name_objects(struct etch_critical *c)
{
    char name[256];

    for (size_t i = 0; i < c->contended.n && i < NAMED; i++)
        for (size_t k = 0; k < c->recording->images.n && !c->contended.v[i].name; k++)
            if (c->recording->images.v[k]->prot & 4 &&
                name_from(c->recording->images.v[k], c->contended.v[i].object, name, sizeof(name)))
                c->contended.v[i].name = etch_function_name(name, name, 0);
}

int etch_critical_find(struct etch_critical *critical, const struct etch_recording *recording,
                       struct etch_symbols *symbols, struct etch_error *err)
{
    struct finding f = {.critical = critical};
    uint32_t tid;
    uint64_t end;
    bool ok;

    *critical = (struct etch_critical){.recording = recording, .symbols = symbols};
    if (!recording->syncs.n) {
        etch_error_set(err, "%s has no synchronisation events, so the threads' waits are not known", recording->path);
        return etch_error_advise(err, "record a program with threads, without --no-sync");
    }
    critical->ns_per_tick = recording->host && recording->host->tsc_hz ? 1e9 / (double)recording->host->tsc_hz : 0;
    ok = etch_sync_table_build(&f.table, recording);
    tid = ok ? last_thread(&f, &end) : 0;
    critical->begin = recording->program && recording->program->start_tsc ? recording->program->start_tsc
                      : ok ? recording->syncs.v[f.table.by_thread.v[0]].tsc
                           : 0;
    critical->end = ok ? end : 0;
    for (size_t i = 0; i < recording->losses.n; i++)
        critical->lost += recording->losses.v[i]->events;
    ok = ok && find_waits(&f) && follow(&f, tid);
    name_objects(critical);
    etch_sync_table_release(&f.table);
    etch_array_free(&f.waits);
    return ok ? 0 : etch_error_no_memory(err);
}

void etch_critical_release(struct etch_critical *critical)
{
    for (size_t i = 0; i < critical->contended.n; i++)
        free(critical->contended.v[i].name);
    etch_array_free(&critical->contended);
    etch_array_free(&critical->links);
}
