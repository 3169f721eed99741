/* SPDX-License-Identifier: MIT */
/* See unordered.h. */
#include "sketch/render/unordered.h"

#include "sketch/render/model.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct pair {
    uint32_t thread[2]; /* the lower number first */
    size_t row[2];
    const char *why;
};

struct sentence {
    char text[700];
    size_t n;
};

static __attribute__((format(printf, 2, 3))) void add(struct sentence *s, const char *format, ...)
{
    va_list args;
    int n;

    va_start(args, format);
    n = vsnprintf(s->text + s->n, sizeof(s->text) - s->n, format, args);
    va_end(args);
    s->n = n < 0 || s->n + (size_t)n >= sizeof(s->text) ? sizeof(s->text) - 1 : s->n + (size_t)n;
}

static int compare_heads(const struct pair *a, const struct pair *b)
{
    for (int i = 0; i < 2; i++)
        if (a->thread[i] != b->thread[i])
            return a->thread[i] < b->thread[i] ? -1 : 1;
    return strcmp(a->why, b->why);
}

static int compare_pairs(const void *one, const void *other)
{
    const struct pair *a = one, *b = other;
    int heads = compare_heads(a, b);

    for (int i = 0; i < 2 && !heads; i++)
        heads = (a->row[i] > b->row[i]) - (a->row[i] < b->row[i]);
    return heads;
}

/* The pairs from the first on that have the first's step of the first thread. */
static size_t count_alike(const struct pair *p, size_t n)
{
    size_t k = 1;

    while (k < n && compare_heads(p, &p[k]) == 0 && p[k].row[0] == p[0].row[0])
        k++;
    return k;
}

/* Do the next n pairs say the same of another step? */
static bool is_repeated(const struct pair *p, size_t n, size_t left)
{
    if (left < 2 * n || compare_heads(p, &p[n]) != 0 || count_alike(p + n, left - n) != n)
        return false;
    for (size_t i = 0; i < n; i++)
        if (p[i].row[1] != p[n + i].row[1])
            return false;
    return true;
}

/* "T1's steps 1-3, 5". The rows are those of `side` in every `stride`-th pair. */
static void add_steps(struct sentence *s, const struct pair *p, size_t n, size_t stride, int side)
{
    add(s, "T%u's step%s ", p->thread[side] + 1, n > 1 ? "s" : "");
    for (size_t i = 0, last; i < n; i = last + 1) {
        for (last = i; last + 1 < n && p[(last + 1) * stride].row[side] == p[last * stride].row[side] + 1;)
            last++;
        add(s, "%s%zu", i ? ", " : "", p[i * stride].row[side] + 1);
        if (last > i)
            add(s, "%s%zu", last == i + 1 ? ", " : "-", p[last * stride].row[side] + 1);
    }
}

static void show_group(const struct pair *p, size_t alike, size_t repeats,
                       void (*show)(void *context, const char *sentence), void *context)
{
    struct sentence s = {.n = 0};

    add_steps(&s, p, repeats, alike, 0);
    add(&s, " and ");
    add_steps(&s, p, alike, 1, 1);
    add(&s, " are unordered%s%.300s%s", p->why[0] ? " (" : "", p->why, p->why[0] ? ")." : ".");
    show(context, s.text);
}

static void show_all(const struct pair *p, size_t n, void (*show)(void *context, const char *sentence), void *context)
{
    for (size_t i = 0, alike, repeats; i < n; i += alike * repeats) {
        alike = count_alike(&p[i], n - i);
        for (repeats = 1; is_repeated(&p[i + (repeats - 1) * alike], alike, n - i - (repeats - 1) * alike);)
            repeats++;
        show_group(&p[i], alike, repeats, show, context);
    }
}

static bool take(const Etch__Sketch *s, const size_t *row_of, const Etch__SketchUnordered *u, struct pair *p)
{
    uint32_t one = u->one, other = u->other;

    if (one >= s->n_steps || other >= s->n_steps)
        return false;
    if (s->steps[one]->thread > s->steps[other]->thread)
        one = u->other, other = u->one;
    *p = (struct pair){{s->steps[one]->thread, s->steps[other]->thread},
                       {row_of[one], row_of[other]},
                       etch_render_string(u->evidence)};
    return true;
}

void etch_render_unordered(const Etch__Sketch *sketch, const size_t *row_of,
                           void (*show)(void *context, const char *sentence), void *context)
{
    struct pair *pairs = calloc(sketch->n_unordered ? sketch->n_unordered : 1, sizeof(*pairs)), single;
    size_t n = 0;

    for (size_t k = 0; k < sketch->n_unordered; k++) {
        if (!take(sketch, row_of, sketch->unordered[k], &single))
            continue;
        if (pairs)
            pairs[n++] = single;
        else
            show_group(&single, 1, 1, show, context);
    }
    if (pairs)
        qsort(pairs, n, sizeof(*pairs), compare_pairs);
    show_all(pairs, n, show, context);
    free(pairs);
}
