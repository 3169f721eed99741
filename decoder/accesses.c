/* SPDX-License-Identifier: MIT */
/* Bringing recorded hits to instructions and values; see accesses.h. */
#include "decoder/accesses.h"

#include "decoder/callers.h"
#include "decoder/values.h"

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
        return etch_error_set(err, "out of memory");
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

static bool met(const Etch__Access *a, const Etch__Access *b)
{
    uint64_t since_a = a->since ? a->since : a->tsc, since_b = b->since ? b->since : b->tsc;

    return a->tid != b->tid && (a->write || b->write) && a->address < b->address + b->size &&
           b->address < a->address + a->size && since_a <= b->tsc + SLACK && since_b <= a->tsc + SLACK;
}

static bool is_one_threads(const struct etch_recording *r)
{
    for (size_t i = 1; i < r->accesses.n; i++)
        if (r->accesses.v[i].tid != r->accesses.v[0].tid)
            return false;
    return true;
}

int etch_accesses_doubt(struct etch_recording *r, struct etch_error *err)
{
    Etch__Access **v;
    bool *doubtful;

    if (is_one_threads(r))
        return 0; /* nobody could come between */
    v = malloc((r->accesses.n + 1) * sizeof(Etch__Access *));
    doubtful = calloc(r->accesses.n + 1, sizeof(*doubtful));
    if (!v || !doubtful) {
        free(v);
        free(doubtful);
        return etch_error_set(err, "out of memory");
    }
    for (size_t i = 0; i < r->accesses.n; i++)
        v[i] = &r->accesses.v[i];
    qsort(v, r->accesses.n, sizeof(Etch__Access *), by_time);
    for (size_t i = 0; i < r->accesses.n; i++)
        for (size_t k = i + 1; k < r->accesses.n && v[k]->tsc - v[i]->tsc < LONGEST && k - i < 4096; k++)
            if (met(v[i], v[k]))
                doubtful[i] = doubtful[k] = true;
    for (size_t i = 0; i < r->accesses.n; i++)
        if (doubtful[i])
            v[i]->known_case = ETCH__ACCESS__KNOWN__NOT_SET;
    free(v);
    free(doubtful);
    return 0;
}
