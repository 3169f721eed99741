/* SPDX-License-Identifier: MIT */
/* Bringing recorded hits to instructions and values; see accesses.h. */
#include "decoder/accesses.h"

#include "decoder/values.h"
#include "decoder/values/callers.h"

#include <stdlib.h>
#include <string.h>

#define BEFORE 4096u /* how far back a function's start is worth a sweep */

struct lookup {
    const struct etch_code_space *space;
    struct etch_symbols *symbols;
    size_t ages;
};

/* The function's first instruction is a boundary; without a symbol a window of bytes is all there is. */
static bool read_code(void *context, uint64_t ip, struct etch_value_code *code)
{
    struct lookup *l = context;
    const char *why;
    const struct etch_code_section *section = etch_code_find(l->space, ip, 0, l->ages, &why);
    struct etch_location location;
    uint64_t start, end;

    if (!section || !section->bytes || ip < section->start || ip - section->start >= section->size)
        return false;
    end = ip - section->start + 16 < section->size ? ip + 16 : section->start + section->size;
    /* The byte before ip: a call's or jump's last one may be its function's. */
    etch_symbols_find(l->symbols, section->image, ip - 1, &location);
    start = location.symbol && location.offset <= BEFORE && location.source != ETCH_LOCATION_NOTHING
                ? ip - 1 - location.offset
                : 0;
    code->boundary = start >= section->start && start < ip;
    if (!code->boundary)
        start = ip - section->start > 15 ? ip - 15 : section->start;
    code->start = start;
    code->bytes = section->bytes + (start - section->start);
    code->size = (size_t)(end - start);
    return true;
}

static int by_time(const void *x, const void *y)
{
    const Etch__Access *a = *(Etch__Access *const *)x, *b = *(Etch__Access *const *)y;

    if (a->tsc != b->tsc)
        return a->tsc < b->tsc ? -1 : 1;
    return a < b ? -1 : a > b;
}

static void mark_losses(const struct etch_recording *r, uint32_t watch, Etch__Access **v, size_t n, bool *lost)
{
    for (size_t k = 0; k < r->losses.n; k++) {
        const Etch__Loss *loss = r->losses.v[k];
        size_t i = 0;

        if (loss->watch != watch && loss->watch != 0)
            continue;
        if (loss->watch == 0 && loss->cause != ETCH__LOSS_CAUSE__LOSS_SIDEBAND)
            continue;
        /* A loss is stamped when it was noticed: anything up to there may be behind the hole. */
        while (i < n && v[i]->tsc <= loss->tsc)
            lost[i++] = true;
        if (i < n)
            lost[i] = true;
    }
}

static int settle_watch(struct etch_recording *r, const Etch__Watch *watch, struct lookup *lookup,
                        struct etch_error *err)
{
    Etch__Access **v = malloc((r->accesses.n + 1) * sizeof(Etch__Access *));
    bool *lost = calloc(r->accesses.n + 1, sizeof(*lost));
    size_t n = 0;

    if (!v || !lost) {
        free(v);
        free(lost);
        return etch_error_no_memory(err);
    }
    for (size_t i = 0; i < r->accesses.n; i++)
        if (r->accesses.v[i].watch == watch->id)
            v[n++] = &r->accesses.v[i];
    qsort(v, n, sizeof(Etch__Access *), by_time);
    mark_losses(r, watch->id, v, n, lost);
    etch_values_fill(watch, v, n, lost, read_code, lookup);
    free(v);
    free(lost);
    return 0;
}

int etch_accesses_settle(struct etch_recording *recording, const struct etch_code *code, struct etch_symbols *symbols,
                         struct etch_error *err)
{
    uint32_t pid = recording->program ? recording->program->pid : 0;
    struct lookup lookup = {etch_code_space_of(code, pid), symbols, 0};

    lookup.ages = etch_code_space_changes(lookup.space);
    etch_callers_find(recording, symbols);
    for (size_t i = 0; i < recording->watches.n; i++) {
        const Etch__Watch *watch = recording->watches.v[i];

        if (!watch->skipped && !watch->emulated && settle_watch(recording, watch, &lookup, err) < 0)
            return -1;
    }
    return 0;
}

/* ---- Values that may be another's ---- */

#define SLACK 4096u        /* cycles by which two CPUs' clocks may differ, at most */
#define LONGEST 100000000u /* cycles: beyond that two accesses are not looked at together */
#define WIDEST 4096u       /* bytes: no instruction accesses more, so a wider access is damage */

/* One of the pieces that the bounds of all accesses cut memory into, and an access to it. */
struct part {
    size_t piece;
    Etch__Access *access;
};

struct parts {
    ETCH_ARRAY(uint64_t) bounds; /* of pieces, sorted, each once */
    ETCH_ARRAY(struct part) all; /* by piece, then time */
};

/* The earliest TSC at which another thread's access may have come between. */
static uint64_t reach(const Etch__Access *a)
{
    uint64_t since = a->since && a->since < a->tsc ? a->since : a->tsc;
    uint64_t lo = since > SLACK ? since - SLACK : 0, floor = a->tsc >= LONGEST ? a->tsc - LONGEST + 1 : 0;

    return lo > floor ? lo : floor;
}

/* The largest value that was offered, and the largest by another thread than that. */
struct largest {
    struct {
        bool any;
        uint32_t tid;
        uint64_t value;
    } v[2];
};

static void offer(struct largest *l, uint32_t tid, uint64_t value)
{
    unsigned at = l->v[0].any && l->v[0].tid != tid;

    if (l->v[at].any && l->v[at].tid == tid ? value < l->v[at].value : at && l->v[1].any && value < l->v[1].value)
        return;
    l->v[at].any = true;
    l->v[at].tid = tid;
    l->v[at].value = value;
    if (at && value >= l->v[0].value) {
        struct largest old = *l;

        l->v[0] = old.v[1];
        l->v[1] = old.v[0];
    }
}

/* Did another thread offer at least `value`? */
static bool has_other(const struct largest *l, uint32_t tid, uint64_t value)
{
    unsigned at = l->v[0].any && l->v[0].tid == tid;

    return l->v[at].any && l->v[at].value >= value;
}

/* An access is in doubt if it reaches back to an earlier access of another thread, or a later access of another thread
 * reaches back to it, and one of the two writes. The forward pass compares with the newest access, the backward pass
 * with the furthest reach. */
static void doubt_piece(const struct part *v, size_t n, bool *doubtful, const Etch__Access *first)
{
    struct largest all = {0}, writes = {0};

    for (size_t i = 0; i < n; i++) {
        const Etch__Access *a = v[i].access;

        doubtful[a - first] |= has_other(a->write ? &all : &writes, a->tid, reach(a));
        offer(&all, a->tid, a->tsc);
        if (a->write)
            offer(&writes, a->tid, a->tsc);
    }
    all = writes = (struct largest){0};
    for (size_t i = n; i-- > 0;) {
        const Etch__Access *a = v[i].access;

        doubtful[a - first] |= has_other(a->write ? &all : &writes, a->tid, UINT64_MAX - a->tsc);
        offer(&all, a->tid, UINT64_MAX - reach(a));
        if (a->write)
            offer(&writes, a->tid, UINT64_MAX - reach(a));
    }
}

static bool is_one_threads(const struct etch_recording *r)
{
    for (size_t i = 1; i < r->accesses.n; i++)
        if (r->accesses.v[i].tid != r->accesses.v[0].tid)
            return false;
    return true;
}

static bool is_damaged(const Etch__Access *a)
{
    return a->size > WIDEST || a->address + a->size < a->address;
}

static int by_number(const void *x, const void *y)
{
    uint64_t a = *(const uint64_t *)x, b = *(const uint64_t *)y;

    return a < b ? -1 : a > b;
}

static int by_piece(const void *x, const void *y)
{
    const struct part *a = x, *b = y;

    if (a->piece != b->piece)
        return a->piece < b->piece ? -1 : 1;
    return by_time(&a->access, &b->access);
}

static bool list_bounds(const struct etch_recording *r, struct parts *p)
{
    size_t n = 0;

    for (size_t i = 0; i < r->accesses.n; i++) {
        const Etch__Access *a = &r->accesses.v[i];

        if (!is_damaged(a) &&
            (!etch_array_push(&p->bounds, a->address) || !etch_array_push(&p->bounds, a->address + a->size)))
            return false;
    }
    if (p->bounds.n)
        qsort(p->bounds.v, p->bounds.n, sizeof(*p->bounds.v), by_number);
    for (size_t i = 0; i < p->bounds.n; i++)
        if (!i || p->bounds.v[i] != p->bounds.v[n - 1])
            p->bounds.v[n++] = p->bounds.v[i];
    p->bounds.n = n;
    return true;
}

/* Lists each access once per piece. Nearly all accesses have a single piece. */
static bool list_parts(struct etch_recording *r, struct parts *p)
{
    for (size_t i = 0; i < r->accesses.n; i++) {
        Etch__Access *a = &r->accesses.v[i];
        const uint64_t *from =
            is_damaged(a) ? NULL : bsearch(&a->address, p->bounds.v, p->bounds.n, sizeof(*from), by_number);

        for (size_t k = from ? (size_t)(from - p->bounds.v) : SIZE_MAX;
             k < p->bounds.n && p->bounds.v[k] < a->address + a->size; k++) {
            const struct part part = {k, a};

            if (!etch_array_push(&p->all, part))
                return false;
        }
    }
    if (p->all.n)
        qsort(p->all.v, p->all.n, sizeof(*p->all.v), by_piece);
    return true;
}

int etch_accesses_doubt(struct etch_recording *r, struct etch_error *err)
{
    struct parts p = {0};
    bool *doubtful, good;

    if (is_one_threads(r))
        return 0; /* nobody could come between */
    doubtful = calloc(r->accesses.n + 1, sizeof(*doubtful));
    good = doubtful && list_bounds(r, &p) && list_parts(r, &p);
    for (size_t i = 0, end; good && i < p.all.n; i = end) {
        for (end = i + 1; end < p.all.n && p.all.v[end].piece == p.all.v[i].piece;)
            end++;
        doubt_piece(p.all.v + i, end - i, doubtful, r->accesses.v);
    }
    for (size_t i = 0; good && i < r->accesses.n; i++)
        if (doubtful[i] || is_damaged(&r->accesses.v[i]))
            r->accesses.v[i].known_case = ETCH__ACCESS__KNOWN__NOT_SET;
    etch_array_free(&p.bounds);
    etch_array_free(&p.all);
    free(doubtful);
    return good ? 0 : etch_error_no_memory(err);
}
