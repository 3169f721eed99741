/* SPDX-License-Identifier: MIT */
/* See index.h. The file: magic, CRC32C of what follows, then numbers of 8 bytes and strings with their length. */
#include "report/index.h"

#include "base/crc32c.h"

#include <string.h>
#include <sys/stat.h>

static const char magic[12] = "etch-index1\n";

enum { HEAD = sizeof(magic) + 4, NAME_MAX_BYTES = 1 << 16 };

/* ---- Writing ---- */

static void put(struct etch_text *text, uint64_t value)
{
    etch_text_bytes(text, (const char *)&value, sizeof(value));
}

static void put_string(struct etch_text *text, const char *string)
{
    put(text, strlen(string));
    etch_text_string(text, string);
}

static void put_double(struct etch_text *text, double value)
{
    uint64_t bits;

    memcpy(&bits, &value, sizeof(bits));
    put(text, bits);
}

static void put_span(struct etch_text *text, struct etch_span span)
{
    put(text, span.lo);
    put(text, span.hi);
}

static void put_distribution(struct etch_text *text, const struct etch_distribution *d)
{
    put(text, d->first);
    put(text, d->n);
    put(text, d->total);
    etch_text_bytes(text, (const char *)d->counts, d->n * sizeof(*d->counts));
}

static void put_call(struct etch_text *text, const struct etch_profile_call *c)
{
    const uint64_t values[] = {c->file,   c->pid,     c->tid,   c->instructions_before,
                               c->number, c->entered, c->depth, c->wait};

    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++)
        put(text, values[i]);
    put_span(text, c->cost);
}

static void put_function(struct etch_text *text, const struct etch_profile_function *f,
                         const struct etch_profile_slowest *s)
{
    const uint64_t values[] = {f->calls,  f->left_out,   f->instructions, f->total_instructions,
                               f->wait,   f->total_wait, f->unbounded,    s->n,
                               s->n_waits};

    put_string(text, f->name);
    put_string(text, f->module);
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++)
        put(text, values[i]);
    put_span(text, f->self);
    put_span(text, f->total);
    for (uint32_t i = 0; i < s->n; i++)
        put_call(text, &s->calls[i]);
    for (uint32_t i = 0; i < s->n_waits; i++)
        put_call(text, &s->waits[i]);
}

static void put_path(struct etch_text *text, const struct etch_profile_path *p)
{
    put(text, p->parent);
    put(text, p->function);
    put(text, p->calls);
    put(text, p->instructions);
    put(text, p->wait);
    put_span(text, p->self);
    put_double(text, p->estimate);
}

static void put_thread(struct etch_text *text, const struct etch_profile_thread *t)
{
    put(text, t->file);
    put(text, t->pid);
    put(text, t->tid);
    put_string(text, t->name);
    put_span(text, t->elapsed);
    put(text, t->instructions);
    put(text, t->wait);
    put(text, t->losses);
}

static void put_origin(struct etch_text *text, const struct etch_profile_origin *origin)
{
    put(text, origin->options.tid);
    put(text, origin->options.instructions);
    put(text, origin->n);
    for (size_t i = 0; i < origin->n; i++) {
        struct stat st = {0};

        stat(origin->files[i], &st);
        put_string(text, origin->files[i]);
        put(text, (uint64_t)st.st_size);
        put(text, (uint64_t)st.st_mtim.tv_sec);
        put(text, (uint64_t)st.st_mtim.tv_nsec);
    }
}

static void put_tables(struct etch_text *text, const struct etch_profile *profile)
{
    put(text, profile->functions.n);
    for (size_t i = 0; i < profile->functions.n; i++)
        put_function(text, &profile->functions.v[i], &profile->slowest.v[i]);
    put(text, profile->edges.n);
    for (size_t i = 0; i < profile->edges.n; i++) {
        const struct etch_profile_edge *e = &profile->edges.v[i];

        put(text, e->caller);
        put(text, e->function);
        put(text, e->calls);
        put_distribution(text, &e->lo);
        put_distribution(text, &e->hi);
        put_distribution(text, &e->wait);
    }
    put(text, profile->paths.n);
    for (size_t i = 1; i < profile->paths.n; i++)
        put_path(text, &profile->paths.v[i]);
    put(text, profile->waits.n);
    for (size_t i = 0; i < profile->waits.n; i++) {
        const struct etch_profile_wait *w = &profile->waits.v[i];

        put(text, w->function);
        put_string(text, w->place);
        put_string(text, w->what ? w->what : "");
        put(text, w->count);
        put(text, w->ticks);
        put(text, w->longest);
    }
    put(text, profile->threads.n);
    for (size_t i = 0; i < profile->threads.n; i++)
        put_thread(text, &profile->threads.v[i]);
}

void etch_profile_pack(const struct etch_profile *profile, const struct etch_profile_origin *origin,
                       struct etch_text *text)
{
    uint32_t crc = 0;

    etch_text_bytes(text, magic, sizeof(magic));
    etch_text_bytes(text, (const char *)&crc, sizeof(crc));
    put_origin(text, origin);
    put(text, profile->unit);
    put_double(text, profile->ns_per_tick);
    put(text, profile->branches);
    put(text, profile->instructions);
    put(text, profile->losses);
    put(text, profile->merged_paths);
    put(text, ETCH_LOSS_CAUSES);
    for (size_t i = 0; i < ETCH_LOSS_CAUSES; i++)
        put(text, profile->lost[i]);
    put_tables(text, profile);
    if (text->failed)
        return;
    crc = etch_crc32c(0, text->v + HEAD, text->n - HEAD);
    memcpy(text->v + sizeof(magic), &crc, sizeof(crc));
}

/* ---- Reading ---- */

struct reader {
    const unsigned char *at, *end;
    bool bad;
};

static uint64_t get(struct reader *r)
{
    uint64_t value = 0;

    if (r->bad || (size_t)(r->end - r->at) < sizeof(value)) {
        r->bad = true;
        return 0;
    }
    memcpy(&value, r->at, sizeof(value));
    r->at += sizeof(value);
    return value;
}

/* A number that must be below `limit`. */
static uint32_t get_below(struct reader *r, uint64_t limit)
{
    uint64_t value = get(r);

    r->bad |= value >= limit;
    return r->bad ? 0 : (uint32_t)value;
}

/* How many elements follow, of at least 8 bytes each. */
static size_t get_count(struct reader *r)
{
    uint64_t n = get(r);

    r->bad |= n > (size_t)(r->end - r->at) / 8;
    return r->bad ? 0 : (size_t)n;
}

static double get_double(struct reader *r)
{
    uint64_t bits = get(r);
    double value;

    memcpy(&value, &bits, sizeof(value));
    r->bad |= !(value >= 0 && value < 1e300);
    return r->bad ? 0 : value;
}

static struct etch_span get_span(struct reader *r)
{
    struct etch_span span;

    span.lo = get(r);
    span.hi = get(r);
    return span;
}

static char *get_string(struct reader *r)
{
    uint64_t n = get(r);
    char *string = NULL;

    if (r->bad || n > (size_t)(r->end - r->at) || n > NAME_MAX_BYTES || memchr(r->at, 0, n))
        r->bad = true;
    else
        string = strndup((const char *)r->at, n);
    if (string)
        r->at += n;
    r->bad |= !string;
    return string;
}

static void get_distribution(struct reader *r, struct etch_distribution *d)
{
    uint32_t last = etch_distribution_bucket(UINT64_MAX);

    d->first = get_below(r, (uint64_t)last + 1);
    d->n = get_below(r, (uint64_t)last + 2 - d->first);
    d->total = get(r);
    if (r->bad || d->n > (size_t)(r->end - r->at) / 8) {
        r->bad = true;
        d->n = 0;
    }
    if (!d->n)
        return;
    d->counts = malloc(d->n * sizeof(*d->counts));
    r->bad |= !d->counts;
    for (uint32_t i = 0; i < d->n && !r->bad; i++)
        d->counts[i] = get(r);
    d->n = d->counts ? d->n : 0;
}

static void get_call(struct reader *r, struct etch_profile_call *c)
{
    c->file = (uint32_t)get(r);
    c->pid = (uint32_t)get(r);
    c->tid = (uint32_t)get(r);
    c->instructions_before = get(r);
    c->number = get(r);
    c->entered = get(r);
    c->depth = (uint32_t)get(r);
    c->wait = get(r);
    c->cost = get_span(r);
}

static void get_function(struct reader *r, struct etch_profile *profile)
{
    char *name = get_string(r), *module = get_string(r);
    size_t before = profile->functions.n;
    uint32_t i = r->bad ? ETCH_FUNCTION_NONE : etch_profile_function(profile, name, module);
    struct etch_profile_function *f;
    struct etch_profile_slowest *s;

    r->bad |= i == ETCH_FUNCTION_NONE || i != before; /* a name twice */
    free(name);
    free(module);
    if (r->bad)
        return;
    f = &profile->functions.v[i];
    s = &profile->slowest.v[i];
    f->calls = get(r);
    f->left_out = get(r);
    f->instructions = get(r);
    f->total_instructions = get(r);
    f->wait = get(r);
    f->total_wait = get(r);
    f->unbounded = get(r) != 0;
    s->n = get_below(r, ETCH_SLOWEST_KEPT + 1);
    s->n_waits = get_below(r, ETCH_SLOWEST_KEPT + 1);
    f->self = get_span(r);
    f->total = get_span(r);
    for (uint32_t k = 0; k < s->n; k++)
        get_call(r, &s->calls[k]);
    for (uint32_t k = 0; k < s->n_waits; k++)
        get_call(r, &s->waits[k]);
}

static void get_edge(struct reader *r, struct etch_profile *profile)
{
    size_t before = profile->edges.n;
    uint64_t caller = get(r);
    uint32_t function = get_below(r, profile->functions.n), i;

    r->bad |= caller != ETCH_FUNCTION_NONE && caller >= profile->functions.n;
    i = r->bad ? ETCH_FUNCTION_NONE : etch_profile_edge(profile, (uint32_t)caller, function);
    r->bad |= i == ETCH_FUNCTION_NONE || i != before;
    if (r->bad)
        return;
    profile->edges.v[i].calls = get(r);
    get_distribution(r, &profile->edges.v[i].lo);
    get_distribution(r, &profile->edges.v[i].hi);
    get_distribution(r, &profile->edges.v[i].wait);
}

/* A parent comes before its children. */
static void get_path(struct reader *r, struct etch_profile *profile)
{
    size_t before = profile->paths.n;
    uint32_t parent = get_below(r, before), function = get_below(r, profile->functions.n);
    uint32_t i = r->bad ? ETCH_FUNCTION_NONE : etch_profile_path(profile, parent, function);
    struct etch_profile_path *p;

    r->bad |= i == ETCH_FUNCTION_NONE || i != before;
    if (r->bad)
        return;
    p = &profile->paths.v[i];
    p->calls = get(r);
    p->instructions = get(r);
    p->wait = get(r);
    p->self = get_span(r);
    p->estimate = get_double(r);
}

static void get_wait(struct reader *r, struct etch_profile *profile)
{
    struct etch_profile_wait w = {.function = get_below(r, profile->functions.n)};

    w.place = get_string(r);
    w.what = get_string(r);
    if (w.what && !w.what[0]) {
        free(w.what);
        w.what = NULL;
    }
    w.count = get(r);
    w.ticks = get(r);
    w.longest = get(r);
    if (r->bad || !etch_array_push(&profile->waits, w)) {
        r->bad = true;
        free(w.place);
        free(w.what);
    }
}

static void get_thread(struct reader *r, struct etch_profile *profile)
{
    struct etch_profile_thread t = {.file = (uint32_t)get(r), .pid = (uint32_t)get(r), .tid = (uint32_t)get(r)};

    t.name = get_string(r);
    t.elapsed = get_span(r);
    t.instructions = get(r);
    t.wait = get(r);
    t.losses = get(r);
    if (r->bad || !etch_array_push(&profile->threads, t)) {
        r->bad = true;
        free(t.name);
    }
}

static void get_tables(struct reader *r, struct etch_profile *profile)
{
    static void (*const tables[])(struct reader *, struct etch_profile *) = {get_function, get_edge, get_path, get_wait,
                                                                             get_thread};

    for (size_t t = 0; t < sizeof(tables) / sizeof(tables[0]); t++) {
        size_t n = get_count(r);

        for (size_t i = tables[t] == get_path; i < n && !r->bad; i++) /* the root is there */
            tables[t](r, profile);
    }
}

/* Are these the recordings, unchanged? NULL: any will do. */
static bool get_origin(struct reader *r, struct etch_profile *profile, const struct etch_profile_origin *origin)
{
    bool same = true;
    size_t n;

    same &= get(r) == (origin ? origin->options.tid : 0) || !origin;
    same &= (get(r) != 0) == (origin && origin->options.instructions) || !origin;
    n = get_count(r);
    same &= !origin || n == origin->n;
    for (size_t i = 0; i < n && !r->bad && same; i++) {
        char *file = get_string(r);
        uint64_t size = get(r), seconds = get(r), nanoseconds = get(r);
        struct stat st = {0};

        if (!file || !etch_array_push(&profile->files, file)) {
            free(file);
            return false;
        }
        if (origin)
            same = strcmp(file, origin->files[i]) == 0 && stat(file, &st) == 0 && (uint64_t)st.st_size == size &&
                   (uint64_t)st.st_mtim.tv_sec == seconds && (uint64_t)st.st_mtim.tv_nsec == nanoseconds;
    }
    return same && !r->bad;
}

static bool unpack(struct reader *r, struct etch_profile *profile, const struct etch_profile_origin *origin)
{
    if (!get_origin(r, profile, origin))
        return false;
    profile->unit = get_below(r, ETCH_UNIT_INSTRUCTIONS + 1) ? ETCH_UNIT_INSTRUCTIONS : ETCH_UNIT_TICKS;
    profile->ns_per_tick = get_double(r);
    profile->branches = get(r);
    profile->instructions = get(r);
    profile->losses = get(r);
    profile->merged_paths = get(r);
    r->bad |= get(r) != ETCH_LOSS_CAUSES; /* of another version */
    for (size_t i = 0; i < ETCH_LOSS_CAUSES && !r->bad; i++)
        profile->lost[i] = get(r);
    get_tables(r, profile);
    return !r->bad && r->at == r->end;
}

static struct etch_profile *unpack_bytes(const void *bytes, size_t size, const struct etch_profile_origin *origin,
                                         bool check)
{
    struct reader r = {.at = bytes, .end = (const unsigned char *)bytes + size};
    struct etch_profile *profile;
    uint32_t crc;

    if (size < HEAD || memcmp(bytes, magic, sizeof(magic)) != 0)
        return NULL;
    memcpy(&crc, r.at + sizeof(magic), sizeof(crc));
    r.at += HEAD;
    if (check && crc != etch_crc32c(0, r.at, size - HEAD))
        return NULL;
    profile = etch_profile_new();
    if (profile && !unpack(&r, profile, origin)) {
        etch_profile_free(profile);
        return NULL;
    }
    return profile;
}

struct etch_profile *etch_profile_unpack(const void *bytes, size_t size, const struct etch_profile_origin *origin)
{
    return unpack_bytes(bytes, size, origin, true);
}

struct etch_profile *etch_profile_unpack_any(const void *bytes, size_t size)
{
    return unpack_bytes(bytes, size, NULL, false);
}
