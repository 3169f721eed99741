/* SPDX-License-Identifier: MIT */
/* The stop rule; see stop.h. */
#include "diagnose/stop.h"

#include "base/assert.h"

#define FAILING_ENOUGH 2u          /* failing runs in which a strong predictor is true */
#define FAILING_ENOUGH_OF_VALUE 3u /* the same, of a value: two runs too often have the same value by chance */
#define FAILING_MAX 4u             /* kept of a bug for each set of watches of a round */
#define FAILING_MAX_AT_LAST 8u     /* the same, once all is watched: in many runs no register was on the object */
#define PASSING_ENOUGH 5u          /* passing runs in which the predictor is known to be false */
/* The same in a program of one thread. Its runs differ by their inputs, and a few inputs differ in much besides. */
#define FAILING_SEQUENTIAL 6u
#define PASSING_SEQUENTIAL 16u
#define PASSING_KEPT 40u          /* recordings of passing runs, with watches */
#define PASSING_KEPT_UNTRACKED 4u /* the same, without watches */
#define HOPELESS 20u              /* runs without a passing run: more runs will not pass either */
#define HOPELESS_THREADED 100u    /* the same with threads, which a recorder delays: a few may yet pass */
#define DISTURBED 16u             /* failures with a set of watches, and no pass, that the watches themselves cause */
#define FOUND_MAX 3u              /* plans for the same statements, as runs show where objects are */
#define SET_PATIENCE 12u          /* runs that a set of watches may be ahead of another */

/* Each set of watches needs its own share of runs: runs with another set say nothing of its variables. */
static unsigned for_each_set(const struct etch_stop *s, unsigned n)
{
    return n * (s->n_sets > 1 ? (unsigned)s->n_sets : 1);
}

static bool is_seen(const struct etch_set_seen *set, unsigned failing)
{
    return set->failing >= failing && set->passing >= PASSING_ENOUGH;
}

/* The set nearest to the failure of which not enough is known. A set whose watches keep the program from failing, or
 * from passing, must not hold up the other sets for ever. */
uint32_t etch_stop_next_set(const struct etch_set_seen *sets, size_t n)
{
    size_t least = 0;

    for (size_t i = 1; i < n; i++)
        if (sets[i].tries < sets[least].tries)
            least = i;
    for (size_t i = 0; i < n; i++)
        if (!is_seen(&sets[i], FAILING_ENOUGH) && sets[i].tries < sets[least].tries + SET_PATIENCE)
            return (uint32_t)i;
    return (uint32_t)least;
}

static unsigned most_failing(const struct etch_stop *s)
{
    return !s->threaded || (s->exhausted && s->native) ? FAILING_MAX_AT_LAST : FAILING_MAX;
}

bool etch_stop_round_over(const struct etch_stop *s, bool most)
{
    unsigned each = most || (!s->threaded && s->n_sets <= 1) ? most_failing(s)
                    : s->n_sets > 1                          ? FAILING_ENOUGH
                                                             : FAILING_MAX;
    unsigned enough = s->n_sets <= 1 && !s->threaded ? PASSING_SEQUENTIAL : PASSING_ENOUGH, failing = 0, passing = 0;
    bool all = true;

    for (size_t i = 0; i < s->n_sets; i++) {
        all &= is_seen(&s->sets[i], each);
        failing += s->sets[i].failing;
        passing += s->sets[i].passing;
    }
    all &= passing >= enough;
    return all || (s->n_sets > 1 && failing >= for_each_set(s, most ? each : FAILING_MAX) &&
                   passing >= for_each_set(s, enough));
}

/* True if watching keeps the program from passing: hits make a thread slow, and another thread overtakes it each time.
 * Fewer watches at a time disturb the program less. */
static bool is_disturbed(const struct etch_stop *s)
{
    for (size_t i = 0; i < s->n_sets; i++)
        if (!s->sets[i].passing && s->sets[i].failing >= DISTURBED)
            return s->passed && s->slots > 1;
    return false;
}

bool etch_stop_enough_passes(const struct etch_stop *s, bool tracked, const struct etch_set_seen *set)
{
    if (!tracked)
        return s->passing_kept[0] >= PASSING_KEPT_UNTRACKED;
    return s->passing_kept[1] >= PASSING_KEPT && (!set || set->passing >= PASSING_ENOUGH);
}

/* Passing runs matter for a program that nearly always fails. Failures by a rare bug matter among the failures by a
 * common bug. */
bool etch_stop_enough_failures(const struct etch_stop *s, bool ours, bool placed, unsigned alike,
                               const struct etch_set_seen *set)
{
    if (ours && set)
        return set->failing > most_failing(s);
    return !placed || alike > FAILING_MAX;
}

bool etch_stop_worth_ranking(const struct etch_stop *s, const struct etch_set_seen *set)
{
    ETCH_ASSERT(set);
    return s->best.f >= ETCH_STOP_STRONG || set->passing <= PASSING_ENOUGH || etch_stop_round_over(s, s->exhausted);
}

bool etch_stop_is_symptom(const struct etch_stop *s)
{
    return (s->best.is_value || s->best.is_said) && s->threaded;
}

/* As long as more can be watched, the cause of a symptom may be found nearer to its origin. */
bool etch_stop_is_enough(const struct etch_stop *s)
{
    unsigned failing = !s->threaded ? FAILING_SEQUENTIAL : s->best.is_value ? FAILING_ENOUGH_OF_VALUE : FAILING_ENOUGH;

    return s->best.text && !(etch_stop_is_symptom(s) && !s->exhausted) && s->best.f >= ETCH_STOP_STRONG &&
           s->best.failing_true >= failing && s->best.passing >= (s->threaded ? PASSING_ENOUGH : PASSING_SEQUENTIAL);
}

/* A set of watches without enough runs may explain more. So the round goes on to its end, unless that takes too long.
 * If only a symptom is known, the round also goes on: a failure may come with an object that a register is on. */
static bool is_told(struct etch_stop *s)
{
    bool most = s->native && etch_stop_is_symptom(s);

    if (!s->enough)
        s->enough = s->runs;
    return (s->n_sets <= 1 && !most) || etch_stop_round_over(s, most) ||
           s->runs - s->enough >= for_each_set(s, most ? 2 * SET_PATIENCE : SET_PATIENCE);
}

bool etch_stop_may_replan(const struct etch_stop *s)
{
    if (!s->native || s->plans > FOUND_MAX || (etch_stop_is_enough(s) && !etch_stop_is_symptom(s)))
        return false;
    for (size_t i = 0; i < s->n_sets; i++)
        if (s->sets[i].passing + s->sets[i].failing == 0)
            return false;
    return true;
}

enum etch_next etch_stop_decide(struct etch_stop *s, bool found)
{
    if (found)
        return ETCH_NEXT_REPLAN;
    if (etch_stop_is_enough(s))
        return is_told(s) ? ETCH_NEXT_END : ETCH_NEXT_RUN;
    if (is_disturbed(s))
        return ETCH_NEXT_FEWER;
    if (!etch_stop_round_over(s, s->exhausted))
        return ETCH_NEXT_RUN;
    return s->exhausted ? ETCH_NEXT_END : ETCH_NEXT_WIDEN;
}

bool etch_stop_is_hopeless(const struct etch_stop *s)
{
    unsigned enough = s->repeats ? ETCH_STOP_NEVER_PASSES : s->threaded ? HOPELESS_THREADED : HOPELESS;

    return !s->patient && !s->passed && s->failing_tracked >= FAILING_ENOUGH && s->runs >= enough;
}
