/* SPDX-License-Identifier: MIT */
/* The answer of experiments among the predictors: it comes first, whatever the statistics say. */
#include "sketch/predict/model.h"

#include <stdio.h>
#include <string.h>

static bool is_same_line(const struct etch_names *names, uint32_t a, uint32_t b)
{
    const struct etch_line_place *x, *y;

    if (a == b)
        return true;
    if (a >= names->places.n || b >= names->places.n)
        return false;
    x = &names->places.v[a];
    y = &names->places.v[b];
    return x->line == y->line && strcmp(x->file, y->file) == 0;
}

/* The places of a ring may begin with any of its threads. */
static bool has_places(const struct etch_predictor *p, const struct etch_experiment *e, const struct etch_names *names)
{
    uint32_t steps = e->kind == ETCH_PREDICTOR_LOCK_ORDER ? 2 : e->n_places;

    for (uint32_t from = 0; from < e->n_places; from += steps ? steps : 1) {
        uint32_t i = 0;

        while (i < e->n_places && is_same_line(names, p->places[i], e->places[(i + from) % e->n_places]))
            i++;
        if (i == e->n_places)
            return true;
    }
    return false;
}

/* How well a predictor says what the experiments show; 0: not at all. */
static int fit(const struct etch_predictor *p, const struct etch_experiment *e, const struct etch_names *names)
{
    if (p->kind != e->kind || p->n_places != e->n_places || !has_places(p, e, names))
        return 0;
    return 1 + (strcmp(p->pattern, e->pattern) == 0) + (p->f > 0);
}

/* A variable that the accesses at both places have in common, in a failing run. */
static uint32_t common_variable(const struct etch_run *const *runs, size_t n, const struct etch_names *names,
                                uint32_t one, uint32_t other)
{
    for (size_t r = 0; r < n; r++) {
        const struct etch_run *run = runs[r];

        for (size_t i = run->failing ? run->accesses.n : 0; i-- > 0;) {
            const struct etch_run_access *a = &run->accesses.v[i];

            if (a->variable == ETCH_NOWHERE || !is_same_line(names, a->place, other))
                continue;
            for (size_t k = run->accesses.n; k-- > 0;)
                if (run->accesses.v[k].variable == a->variable && is_same_line(names, run->accesses.v[k].place, one))
                    return a->variable;
        }
    }
    return ETCH_NOWHERE;
}

static struct etch_predictor make(const struct etch_experiment *e, const struct etch_names *names,
                                  const struct etch_run *const *runs, size_t n)
{
    struct etch_predictor p = {
        .kind = e->kind, .n_places = e->n_places, .variable = ETCH_NOWHERE, .second = ETCH_NOWHERE, .to = ETCH_NOWHERE};

    memcpy(p.places, e->places, sizeof(p.places));
    memcpy(p.pattern, e->pattern, sizeof(p.pattern));
    if (e->n_places >= 2 && (e->kind == ETCH_PREDICTOR_ORDER || e->kind == ETCH_PREDICTOR_ATOMICITY))
        p.variable = common_variable(runs, n, names, e->places[0], e->places[1]);
    if (e->n_places == 4 && e->kind == ETCH_PREDICTOR_ATOMICITY)
        p.second = common_variable(runs, n, names, e->places[2], e->places[3]);
    return p;
}

static void move_to_front(struct etch_predictors *predictors, size_t at)
{
    struct etch_predictor p = predictors->all.v[at];

    memmove(predictors->all.v + 1, predictors->all.v, at * sizeof(p));
    predictors->all.v[0] = p;
}

int etch_predictors_promote(struct etch_predictors *predictors, const struct etch_experiment *e,
                            const struct etch_names *names, const struct etch_run *const *runs, size_t n)
{
    size_t at = predictors->all.n;
    int best = 0;

    for (size_t i = 0; i < predictors->all.n; i++) {
        int f = fit(&predictors->all.v[i], e, names);

        if (f > best) {
            best = f;
            at = i;
        }
    }
    if (at == predictors->all.n) {
        struct etch_predictor p = make(e, names, runs, n);
        struct search s = {.names = names, .runs = runs, .n = n};

        bool good = etch_search_start(&s, false);

        if (good)
            etch_judge(&p, &s);
        etch_search_end(&s);
        if (!good || !etch_array_push(&predictors->all, p))
            return -1;
    }
    move_to_front(predictors, at);
    predictors->all.v[0].experiment = *e;
    return 0;
}
