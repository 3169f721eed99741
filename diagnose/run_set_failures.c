/* SPDX-License-Identifier: MIT */
/* The failure that a set of runs is about. Failures are different if their buckets differ. */
#include "diagnose/run_set_model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Failures that are taken for one bug: they failed at the same statement with the same callers. */
struct failure {
    struct etch_run_bundle *first;
    size_t runs;
};

static int by_runs(const void *x, const void *y)
{
    const struct failure *a = x, *b = y;

    if (a->runs != b->runs)
        return a->runs > b->runs ? -1 : 1;
    return strcmp(a->first->bucket, b->first->bucket);
}

/* Each failure once, the commonest first. Returns how many; `list` has room for one per bundle. */
static size_t list_failures(const struct etch_run_set *s, struct failure *list)
{
    size_t n = 0, k;

    for (size_t i = 0; i < s->bundles.n; i++) {
        struct etch_run_bundle *b = &s->bundles.v[i];

        if (!b->failing || b->unplaced)
            continue;
        for (k = 0; k < n && strcmp(list[k].first->bucket, b->bucket) != 0; k++)
            ;
        if (k == n)
            list[n++] = (struct failure){b, 0};
        list[k].runs++;
    }
    if (n)
        qsort(list, n, sizeof(*list), by_runs);
    return n;
}

/* The failure in question: the commonest, or the commonest with the wanted name. */
int etch_run_set_choose_failure(struct etch_run_set *s, struct etch_run_bundle **chosen, struct etch_error *err)
{
    struct failure *list = calloc(s->bundles.n + 1, sizeof(*list));
    size_t n = list ? list_failures(s, list) : 0, i = 0;
    const char *known = n && list[0].first ? list[0].first->bucket : "";

    while (s->bug && i < n && list[i].first && !strstr(list[i].first->bucket, s->bug))
        i++;
    if (i == n && s->lenient)
        i = 0;
    *chosen = i < n ? list[i].first : NULL;
    if (n && !*chosen) {
        etch_error_set(err, "no run failed at '%s'", s->bug);
        etch_error_advise(err, "a part of: %.300s", known);
    }
    free(list);
    return !list ? etch_error_no_memory(err) : n && !*chosen ? -1 : 0;
}

void etch_run_set_note_failures(struct etch_run_set *s)
{
    struct failure *list = calloc(s->bundles.n + 1, sizeof(*list));
    size_t n = list ? list_failures(s, list) : 0;
    char text[2048];

    for (size_t i = 0; i < n; i++) {
        const char *name = list[i].first->bucket, *place = strstr(name, ", ");

        if (strcmp(name, s->sliced) == 0)
            continue;
        place = place ? place + 2 : name;
        snprintf(text, sizeof(text), "another failure, in %zu run%s: %.1200s (--bug '%.*s' shows it)", list[i].runs,
                 list[i].runs == 1 ? "" : "s", name, (int)strcspn(place, "<,") - (strchr(place, '<') ? 1 : 0), place);
        etch_run_set_note_now(s, text);
    }
    free(list);
}

static bool is_same_way(const struct etch_run *a, const struct etch_run *b)
{
    if (a->visits.n != b->visits.n || !a->visits.n)
        return false;
    for (size_t i = 0; i < a->visits.n; i++) {
        const struct etch_run_visit *x = &a->visits.v[i], *y = &b->visits.v[i];

        if (x->thread != y->thread || x->place != y->place || x->count != y->count)
            return false;
    }
    return true;
}

bool etch_run_set_repeats(const struct etch_run_set *s, size_t n)
{
    const struct etch_run_bundle *first = NULL;
    size_t same = 0;

    for (size_t i = 0; i < s->bundles.n; i++) {
        const struct etch_run_bundle *b = &s->bundles.v[i];

        if (!b->failing || !b->run || b->threaded)
            return false;
        first = first ? first : b;
        if (b->unplaced || strcmp(b->bucket, first->bucket) != 0 || !is_same_way(b->run, first->run))
            return false;
        same++;
    }
    return same >= n;
}
