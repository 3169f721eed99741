/* SPDX-License-Identifier: MIT */
/* The search for predictors: candidates are found in the failing runs, judged over all, and ranked; see predictor.h. */
#include "sketch/predict/model.h"

#include "base/log.h"

#include <stdlib.h>

#define SYMPTOM_ENOUGH 0.999 /* the least F with which a predictor of the first symptom is ranked first */

bool etch_predictor_is_threaded(const struct etch_predictor *p)
{
    return p->kind <= ETCH_PREDICTOR_ORDER;
}

bool etch_search_start(struct search *s, bool early)
{
    bool good;

    s->facts = calloc(s->n + 1, sizeof(const struct etch_facts *));
    good = s->facts != NULL;
    for (size_t i = 0; good && i < s->n; i++)
        good = (s->facts[i] = etch_facts_of(s->runs[i], early)) != NULL;
    return good;
}

void etch_search_end(struct search *s)
{
    free(s->facts);
    etch_index_release(&s->known);
}

static void judge_from(struct search *s, size_t first)
{
    for (size_t i = first; i < s->found->all.n; i++)
        etch_judge(&s->found->all.v[i], s);
}

/* Judges the candidates, and then the pairs of candidates: a pair depends on the judgement of its halves. */
static bool judge_all(struct search *s)
{
    size_t n = s->found->all.n;

    judge_from(s, 0);
    if (!etch_candidates_pair(s))
        return false;
    judge_from(s, n);
    return true;
}

/* Predictors over the accesses up to the first symptom. The steps between the first symptom and the failure are a
 * consequence. These predictors are taken only if they separate failing from passing runs. */
static bool find_early(struct etch_predictors *found, const struct search *late)
{
    struct etch_predictors early = {0};
    struct search s = {.found = &early, .names = late->names, .runs = late->runs, .n = late->n};
    bool good = true;

    if (!etch_has_first_symptom(late))
        return true;
    good = etch_search_start(&s, true) && etch_candidates_find_orders(&s) && judge_all(&s);
    for (size_t i = 0; good && i < early.all.n; i++) {
        early.all.v[i].first_symptom = true;
        if (etch_predictor_is_threaded(&early.all.v[i]) && early.all.v[i].f > SYMPTOM_ENOUGH)
            good = etch_array_push(&found->all, early.all.v[i]);
    }
    etch_predictors_release(&early);
    etch_search_end(&s);
    return good;
}

/* Logs the number of candidates, and the properties that rank the first ones. */
static void log_best(const struct etch_predictors *predictors, const struct etch_names *names, size_t runs)
{
    char text[512];

    if (!etch_log_is_on(ETCH_LOG_PREDICT, ETCH_LOG_DEBUG))
        return;
    etch_log(ETCH_LOG_PREDICT, ETCH_LOG_DEBUG, "%zu candidates from %zu runs", predictors->all.n, runs);
    for (size_t i = 0; i < predictors->all.n && i < 3; i++) {
        const struct etch_predictor *p = &predictors->all.v[i];

        etch_predictor_text(p, names, text, sizeof(text));
        etch_log(ETCH_LOG_PREDICT, ETCH_LOG_DEBUG,
                 "rank %zu: F %.3f, increase %.3f, position %.3f, true in %u of %u failing and %u of %u passing runs, "
                 "unknown in %u, distance %u%s%s: "
                 "%s",
                 i + 1, p->f, p->increase, p->position, p->failing_true, p->failing, p->passing_true, p->passing,
                 p->unknown, p->distance,
                 p->sequential      ? ", one thread"
                 : p->first_symptom ? ", before the first symptom"
                                    : "",
                 p->guarded ? ", meant to be atomic" : "", text);
    }
}

int etch_predictors_find(struct etch_predictors *predictors, const struct etch_names *names,
                         const struct etch_run *const *runs, size_t n)
{
    struct search s = {.found = predictors, .names = names, .runs = runs, .n = n};
    bool good;

    predictors->all.n = 0;
    good = etch_search_start(&s, false) && etch_candidates_find(&s) && judge_all(&s) && find_early(predictors, &s);
    if (good)
        etch_predictors_rank(predictors, names);
    log_best(predictors, names, n);
    etch_search_end(&s);
    return good ? 0 : -1;
}

void etch_predictors_release(struct etch_predictors *predictors)
{
    etch_array_free(&predictors->all);
}
