/* SPDX-License-Identifier: MIT */
/* See compare.h. */
#include "report/compare.h"

#include "base/path.h"
#include "report/quantity.h"

#include <math.h>
#include <string.h>

enum { PATH_ROOM = 2000 };
#define NARROW 0.05 /* of the upper bound */
#define RISK 0.001
#define LEAST_SHARE 0.001 /* of all instructions: smaller functions are not compared */

struct etch_comparison *etch_comparison_new(size_t n_a, size_t n_b)
{
    struct etch_comparison *c = calloc(1, sizeof(*c));

    if (c) {
        c->n_a = n_a;
        c->n_b = n_b;
        c->risk = RISK;
    }
    return c;
}

void etch_comparison_free(struct etch_comparison *c)
{
    if (!c)
        return;
    for (size_t i = 0; i < c->rows.n; i++) {
        free(c->rows.v[i].name);
        free(c->rows.v[i].a);
        free(c->rows.v[i].b);
    }
    etch_array_free(&c->rows);
    etch_index_release(&c->by_name);
    free(c);
}

/* ---- Rows ---- */

static struct etch_compared_row *add_row(struct etch_comparison *c, uint64_t hash, const char *name, bool is_path)
{
    struct etch_compared_row row = {.name = strdup(name), .is_path = is_path};

    row.a = calloc(ETCH_MEASURES * c->n_a + 1, sizeof(*row.a));
    row.b = calloc(ETCH_MEASURES * c->n_b + 1, sizeof(*row.b));
    if (!row.name || !row.a || !row.b || !etch_array_reserve(&c->rows, c->rows.n + 1) ||
        !etch_index_add(&c->by_name, hash, (uint32_t)c->rows.n)) {
        free(row.name);
        free(row.a);
        free(row.b);
        return NULL;
    }
    c->rows.v[c->rows.n++] = row;
    return &c->rows.v[c->rows.n - 1];
}

static struct etch_compared_row *row_of(struct etch_comparison *c, const char *name, bool is_path)
{
    uint64_t hash = etch_hash(ETCH_HASH_START + is_path, name, strlen(name));
    size_t probe = 0;
    uint32_t i;

    while ((i = etch_index_next(&c->by_name, hash, &probe)) != ETCH_INDEX_NONE)
        if (c->rows.v[i].is_path == is_path && strcmp(c->rows.v[i].name, name) == 0)
            return &c->rows.v[i];
    return add_row(c, hash, name, is_path);
}

static double *cell(struct etch_comparison *c, struct etch_compared_row *row, bool b, size_t run,
                    enum etch_measure_kind measure)
{
    return b ? &row->b[(size_t)measure * c->n_b + run] : &row->a[(size_t)measure * c->n_a + run];
}

/* ---- A run ---- */

static bool is_loose(struct etch_span span)
{
    return span.hi == UINT64_MAX || (double)(span.hi - span.lo) > NARROW * (double)span.hi;
}

static bool add_function(struct etch_comparison *c, bool b, size_t run, const struct etch_profile_function *f)
{
    struct etch_compared_row *row = row_of(c, f->name, false);

    if (!row)
        return false;
    *cell(c, row, b, run, ETCH_MEASURE_INSTRUCTIONS) += (double)f->instructions;
    *cell(c, row, b, run, ETCH_MEASURE_CALLS) += (double)f->calls;
    *cell(c, row, b, run, ETCH_MEASURE_TIME) += etch_span_middle(f->total);
    *cell(c, row, b, run, ETCH_MEASURE_WAIT) += (double)f->wait;
    row->loose |= f->unbounded || is_loose(f->total);
    return true;
}

/* "main;handle;insert"; false for a path that is too long. */
static bool path_name(const struct etch_profile *profile, uint32_t path, char *name)
{
    uint32_t chain[64], n = 0;
    size_t used = 0;

    for (; path && n < 64; path = profile->paths.v[path].parent)
        chain[n++] = path;
    if (path)
        return false;
    name[0] = '\0';
    while (n && used < PATH_ROOM)
        used += (size_t)snprintf(name + used, PATH_ROOM - used, "%s%s", used ? ";" : "",
                                 profile->functions.v[profile->paths.v[chain[--n]].function].name);
    return used < PATH_ROOM;
}

static bool add_paths(struct etch_comparison *c, bool b, size_t run, const struct etch_profile *profile)
{
    char name[PATH_ROOM];

    for (uint32_t i = 1; i < profile->paths.n; i++) {
        const struct etch_profile_path *path = &profile->paths.v[i];
        struct etch_compared_row *row;

        if ((double)path->instructions < LEAST_SHARE * (double)profile->instructions || !path_name(profile, i, name))
            continue;
        row = row_of(c, name, true);
        if (!row)
            return false;
        *cell(c, row, b, run, ETCH_MEASURE_INSTRUCTIONS) += (double)path->instructions;
        *cell(c, row, b, run, ETCH_MEASURE_CALLS) += (double)path->calls;
    }
    return true;
}

static bool add_whole(struct etch_comparison *c, bool b, size_t run, const struct etch_profile *profile,
                      const struct etch_recording *recording)
{
    struct etch_compared_row *row = row_of(c, "", false);
    const Etch__Outcome *end = recording->outcome;

    if (!row)
        return false;
    if (end && recording->program && end->end_unix_ns > recording->program->start_unix_ns) {
        *cell(c, row, b, run, ETCH_MEASURE_CPU) = (double)end->cpu_ns;
        *cell(c, row, b, run, ETCH_MEASURE_WALL) = (double)(end->end_unix_ns - recording->program->start_unix_ns);
    }
    *cell(c, row, b, run, ETCH_MEASURE_INSTRUCTIONS) = (double)profile->instructions;
    return true;
}

int etch_comparison_add(struct etch_comparison *c, bool b, size_t run, const struct etch_profile *profile,
                        const struct etch_recording *recording, struct etch_error *err)
{
    bool ok = add_whole(c, b, run, profile, recording);

    c->ns_per_tick = profile->ns_per_tick;
    c->lost += profile->losses > 0;
    for (size_t i = 0; i < profile->functions.n && ok; i++)
        ok = add_function(c, b, run, &profile->functions.v[i]);
    ok = ok && add_paths(c, b, run, profile);
    return ok ? 0 : etch_error_no_memory(err);
}

/* ---- Verdicts ---- */

/* The shift between the even and the odd runs of one set, or 0 for few runs. */
static double shift_within(const double *values, size_t n)
{
    double even[512], odd[512];
    struct etch_shift shift;
    size_t half = n / 2 < 512 ? n / 2 : 512;

    for (size_t i = 0; i < half; i++) {
        even[i] = values[2 * i];
        odd[i] = values[2 * i + 1];
    }
    return half < 2 || etch_shift(even, half, odd, half, 0.5, &shift) < 0 ? 0 : fabs(shift.by);
}

static bool is_compared(const struct etch_comparison *c, const struct etch_compared_row *row,
                        enum etch_measure_kind measure)
{
    bool whole = !row->name[0];

    if (measure == ETCH_MEASURE_CPU || measure == ETCH_MEASURE_WALL)
        return whole;
    if (c->lost)
        return false;
    if (measure == ETCH_MEASURE_TIME)
        return !whole && !row->is_path && !row->loose;
    return !whole || measure == ETCH_MEASURE_INSTRUCTIONS;
}

static bool is_small(const struct etch_comparison *c, const struct etch_compared_row *row)
{
    const struct etch_compared_row *whole = &c->rows.v[0];
    size_t at = ETCH_MEASURE_INSTRUCTIONS, wait = ETCH_MEASURE_WAIT;
    double most = 0, all = 0;

    for (size_t i = 0; i < c->n_a; i++) {
        most = fmax(most, row->a[at * c->n_a + i] + row->a[wait * c->n_a + i]);
        all = fmax(all, whole->a[at * c->n_a + i]);
    }
    for (size_t i = 0; i < c->n_b; i++)
        most = fmax(most, row->b[at * c->n_b + i] + row->b[wait * c->n_b + i]);
    return most < LEAST_SHARE * all;
}

static bool is_clock(enum etch_measure_kind measure)
{
    return measure != ETCH_MEASURE_INSTRUCTIONS && measure != ETCH_MEASURE_CALLS;
}

static int decide(struct etch_comparison *c, struct etch_compared_row *row, enum etch_measure_kind measure, double risk)
{
    const double *a = &row->a[(size_t)measure * c->n_a], *b = &row->b[(size_t)measure * c->n_b];
    struct etch_compared *of = &row->of[measure];

    if (etch_shift(a, c->n_a, b, c->n_b, risk, &of->shift) < 0)
        return -1;
    of->a = etch_median(a, c->n_a);
    of->b = etch_median(b, c->n_b);
    of->noise = fmax(shift_within(a, c->n_a), shift_within(b, c->n_b));
    if (!of->shift.known)
        of->verdict = ETCH_COMPARED_UNKNOWN;
    else if (c->apart && !c->lost && c->rows.n > 1 && is_clock(measure))
        of->verdict = ETCH_COMPARED_SAME; /* the machine may have been busier; instructions tell */
    else if ((of->shift.lo > 0 || of->shift.hi < 0) && fabs(of->shift.by) > of->noise)
        of->verdict = ETCH_COMPARED_DIFFERENT;
    return 0;
}

int etch_comparison_decide(struct etch_comparison *c)
{
    size_t tests = 0;

    for (int pass = 0; pass < 2; pass++) { /* first count the intervals, which share the risk */
        for (size_t i = 0; i < c->rows.n; i++)
            for (int m = 0; m < ETCH_MEASURES; m++) {
                if (!is_compared(c, &c->rows.v[i], (enum etch_measure_kind)m) || (i && is_small(c, &c->rows.v[i])))
                    continue;
                if (pass == 0)
                    tests++;
                else if (decide(c, &c->rows.v[i], (enum etch_measure_kind)m, c->risk / (double)tests) < 0)
                    return -1;
            }
    }
    c->tests = tests;
    c->decided = c->rows.n && c->rows.v[0].of[ETCH_MEASURE_CPU].shift.known;
    return 0;
}

bool etch_comparison_is_slower(const struct etch_comparison *c)
{
    for (size_t i = 0; i < c->rows.n; i++)
        for (int m = 0; m < ETCH_MEASURES; m++)
            if (m != ETCH_MEASURE_CALLS && c->rows.v[i].of[m].verdict == ETCH_COMPARED_DIFFERENT &&
                c->rows.v[i].of[m].shift.by > 0)
                return true;
    return false;
}
