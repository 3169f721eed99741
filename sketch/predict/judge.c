/* SPDX-License-Identifier: MIT */
/* Judges a predictor: how well it separates failing runs from passing runs, and which properties it has for its rank.
 */
#include "sketch/predict/model.h"

#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

/* ---- Numbers ---- */

double etch_f_half(double precision, double recall)
{
    double below = 0.25 * precision + recall;

    return below > 0 ? 1.25 * precision * recall / below : 0;
}

void etch_wilson(uint32_t k, uint32_t n, double *lo, double *hi)
{
    const double z = 1.959964;
    double p, middle, half, below;

    if (!n) {
        *lo = 0;
        *hi = 1;
        return;
    }
    p = (double)k / n;
    below = 1 + z * z / n;
    middle = (p + z * z / (2.0 * n)) / below;
    half = z * sqrt(p * (1 - p) / n + z * z / (4.0 * n * n)) / below;
    *lo = k == 0 ? 0 : fmax(0, middle - half);
    *hi = k == n ? 1 : fmin(1, middle + half);
}

static void count(struct etch_predictor *p, const struct search *s)
{
    for (size_t i = 0; i < s->n; i++) {
        enum etch_truth truth = etch_holds_by_facts(p, s->facts[i], s->runs[i]);

        if (truth == ETCH_UNKNOWN) {
            p->unknown++;
        } else if (s->runs[i]->failing) {
            p->failing++;
            p->failing_true += truth == ETCH_TRUE;
        } else {
            p->passing++;
            p->passing_true += truth == ETCH_TRUE;
        }
    }
}

/* ---- Statements of the slice ---- */

static const Etch__Statement *statement_of(const struct search *s, uint32_t place)
{
    uint32_t number = s->names->places.v[place].statement;

    return s->names->slice && number && number <= s->names->slice->n_statements
               ? s->names->slice->statements[number - 1]
               : NULL;
}

/* True if a statement ends in a branch. */
static bool decides(const struct search *s, uint32_t place)
{
    return s->names->places.v[place].branches;
}

/* True if a statement above a place, in its function, may be the head of a loop. */
static bool is_below_branch(const struct search *s, uint32_t place)
{
    for (uint32_t i = 0; i < s->names->places.n; i++) {
        const Etch__Statement *statement = statement_of(s, i);

        if (statement && statement->branch && etch_is_one_function(s, i, place) &&
            s->names->places.v[i].line < s->names->places.v[place].line)
            return true;
    }
    return false;
}

static bool feeds_failure(const struct search *s, uint32_t place)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->runs[i]->failing)
            return etch_names_feeds(s->names, place, s->runs[i]->failing_place);
    return false;
}

/* ---- Orders ---- */

/* By thread: the last group of the first statement and the first group of the second statement, for one object. The
 * groups of a thread are ordered among each other, so these two represent all of them. A group without an event in the
 * order is unordered to all others, and represents the rest. */
struct outermost {
    const struct etch_access_group *last_first, *first_second;
};

/* True if the order has no event for an access. */
static bool is_unknown(const struct etch_run *run, uint32_t access)
{
    return run->accesses.v[access].event == ETCH_NOWHERE;
}

/* Compares the outermost groups of different threads. Returns true if each pair is proven to be in order. `met`: there
 * was a pair at all. */
static bool are_in_order(const struct etch_run *run, const struct outermost *of, size_t threads, bool *met)
{
    for (size_t i = 0; i < threads; i++)
        for (size_t k = 0; of[i].last_first && k < threads; k++) {
            if (k == i || !of[k].first_second)
                continue;
            *met = true;
            if (etch_run_compare(run, &run->accesses.v[of[i].last_first->first],
                                 &run->accesses.v[of[k].first_second->last]) >= 0)
                return false;
        }
    return true;
}

/* True if the first statement is before the second at each object of a run. */
static bool is_ordered_in(const struct search *s, size_t r, const struct etch_predictor *p, struct outermost *of,
                          bool *met)
{
    const struct etch_access_groups *groups = &s->facts[r]->groups;
    size_t threads = s->runs[r]->threads.n;

    for (size_t i = 0, end; i < groups->all.n; i = end) {
        memset(of, 0, threads * sizeof(*of));
        for (end = i; end < groups->all.n && groups->all.v[end].object == groups->all.v[i].object; end++) {
            const struct etch_access_group *g = &groups->all.v[end];
            struct outermost *o = &of[g->thread];

            if (g->place == p->places[0] && g->variable == p->variable &&
                !(o->last_first && is_unknown(s->runs[r], o->last_first->first)))
                o->last_first = g;
            if (g->place == p->places[1] && (!o->first_second || is_unknown(s->runs[r], g->last)))
                o->first_second = g;
        }
        if (!are_in_order(s->runs[r], of, threads, met))
            return false;
    }
    return true;
}

/* True if one statement is before the other in every run that has both, and a passing run is among these. */
static bool is_constant_order(const struct search *s, const struct etch_predictor *p)
{
    bool any = false, ordered = true;

    for (size_t r = 0; ordered && r < s->n; r++) {
        struct outermost *of = calloc(s->runs[r]->threads.n + 1, sizeof(*of));
        bool met = false;

        ordered = of && is_ordered_in(s, r, p, of, &met);
        any |= met && !s->runs[r]->failing;
        free(of);
    }
    return ordered && any;
}

/* True if only a thread that did not fail has a part at the failing statement. */
static bool is_off_path(const struct search *s, const struct etch_predictor *p)
{
    bool any = false;

    for (size_t i = 0; i < s->n; i++) {
        const struct etch_run *run = s->runs[i];
        bool open, off_path = false;
        const struct order_fact *f = run->failing && !p->refill ? etch_facts_find(p, s->facts[i], &open) : NULL;

        for (uint32_t k = 0; f && k < f->n; k++)
            off_path |= f->places[k] == run->failing_place && run->accesses.v[f->at[k]].thread != run->failing_thread &&
                        run->failure->kind != ETCH__FAILURE_KIND__FAILURE_HANG;
        if (f && !off_path)
            return false;
        any |= off_path;
    }
    return any;
}

static bool has_happened(const struct search *s, const struct etch_predictor *p)
{
    bool open;

    for (size_t i = 0; i < s->n; i++)
        if (s->runs[i]->failing && etch_facts_find(p, s->facts[i], &open))
            return true;
    return false;
}

/* True if a passing run reads and writes more than once: a read without its write then means something. */
static bool is_refilled(const struct search *s, const struct etch_predictor *p)
{
    for (size_t i = 0; i < s->n; i++) {
        unsigned reads = 0, writes = 0;

        for (size_t k = 0; !s->runs[i]->failing && k < s->facts[i]->groups.all.n; k++) {
            const struct etch_access_group *t = &s->facts[i]->groups.all.v[k];

            reads += t->place == p->places[0] && t->variable == p->variable && t->read;
            writes += t->place == p->places[1] && t->variable == p->variable && t->write;
        }
        if (reads > 1 && writes > 1)
            return true;
    }
    return false;
}

/* ---- Atomicity that was meant ---- */

bool etch_has_first_symptom(const struct search *s)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->runs[i]->failing && s->runs[i]->first_symptom != UINT32_MAX)
            return true;
    return false;
}

/* True if the last of three accesses went back in its function's text without a new call of the function. It then
 * belongs to the next iteration of a loop, which is no atomic step with the iteration before. If calls are not known:
 * true if that is possible. */
static bool is_next_turn(const struct search *s, const struct etch_predictor *p)
{
    bool back = s->names->places.v[p->places[2]].line < s->names->places.v[p->places[0]].line;

    for (size_t i = 0; i < s->n; i++) {
        const struct etch_run *run = s->runs[i];
        bool open;
        const struct order_fact *f = run->failing ? etch_facts_find(p, s->facts[i], &open) : NULL;

        if (f && run->flow)
            return back && run->accesses.v[f->at[0]].call == run->accesses.v[f->at[2]].call;
    }
    return back && is_below_branch(s, p->places[2]);
}

/* True if the last statement of a triple reads the variable that it writes, or writes a result of the first access. */
static bool is_update(const struct search *s, const struct etch_predictor *p)
{
    for (size_t i = 0; i < s->n; i++) {
        bool open;
        const struct order_fact *f = s->runs[i]->failing ? etch_facts_find(p, s->facts[i], &open) : NULL;

        for (size_t k = 0; f && k < s->facts[i]->groups.all.n; k++) {
            const struct etch_access_group *t = &s->facts[i]->groups.all.v[k];

            if (t->first <= f->at[2] && t->last >= f->at[2] && t->place == p->places[2] && t->read && t->write)
                return true;
        }
    }
    return etch_names_feeds(s->names, p->places[0], p->places[2]);
}

/* True if a place is in a function that had called the failing function. Its earlier accesses belong to another
 * step. */
static bool is_callers(const struct search *s, uint32_t place)
{
    for (size_t i = 0; i < s->n; i++) {
        const struct etch_run *run = s->runs[i];
        const struct etch_run_thread *t =
            run->failing && run->failing_thread < run->threads.n ? &run->threads.v[run->failing_thread] : NULL;

        for (size_t k = 0; t && k < t->stack.n; k++)
            if (t->stack.v[k] != run->failing_place && etch_is_one_function(s, t->stack.v[k], place))
                return true;
    }
    return false;
}

/* True if passing runs read at the third place the value that their own thread had written at the first place. */
static bool is_own_in_passing(const struct search *s, const struct etch_predictor *p)
{
    const struct etch_predictor own = {.kind = ETCH_PREDICTOR_ORIGIN,
                                       .n_places = 2,
                                       .places = {p->places[0], p->places[2]},
                                       .variable = p->variable,
                                       .pattern = "WR"};
    unsigned passing = 0, with = 0;

    for (size_t i = 0; i < s->n; i++) {
        bool open;

        if (s->runs[i]->failing || !etch_is_watched(s->runs[i], p->variable) ||
            !etch_executed(s->runs[i], p->places[2]))
            continue;
        passing++;
        with += etch_facts_find(&own, s->facts[i], &open) != NULL;
    }
    return passing && with == passing;
}

/* True if each of the two orders in WRW separates failing from passing runs by itself. The failure then needs the read
 * between the two writes. */
static bool is_between(const struct search *s, const struct etch_predictor *p)
{
    struct etch_predictor halves[2];

    etch_take_halves(p, halves);
    for (int i = 0; i < 2; i++) {
        halves[i].failing = halves[i].failing_true = halves[i].passing = halves[i].passing_true = 0;
        halves[i].unknown = 0;
        count(&halves[i], s);
        if (halves[i].passing_true || halves[i].failing_true != halves[i].failing || !halves[i].passing)
            return false;
    }
    return true;
}

/* True for accesses that were intended as one step: values that the failing statement uses together, an update, a check
 * and the access that it guards, a write and the use of its value. */
static bool is_meant(const struct search *s, const struct etch_predictor *p)
{
    bool together = etch_is_one_function(s, p->places[0], p->places[2]) && !is_next_turn(s, p);

    if (p->torn && etch_has_first_symptom(s))
        return true; /* the program read both values at that time, to use them together */
    /* The new value must be read first. In the other order, both values may have been old at the first read. */
    if (p->n_places == 4 && s->names->places.v[p->places[1]].line > s->names->places.v[p->places[2]].line)
        return false;
    if (p->n_places == 4)
        return (feeds_failure(s, p->places[1]) || decides(s, p->places[1])) && feeds_failure(s, p->places[2]);
    if (strcmp(p->pattern, "RWW") == 0)
        return is_update(s, p) || (together && decides(s, p->places[0]));
    if (strcmp(p->pattern, "WWR") == 0 && !is_callers(s, p->places[0]) && is_own_in_passing(s, p))
        return true;
    /* Written twice by one statement: each time is a step of its own. */
    if (strcmp(p->pattern, "WRW") == 0 && p->places[0] == p->places[2])
        return false;
    if (strcmp(p->pattern, "WRW") == 0 && is_between(s, p))
        return true;
    return together && (strcmp(p->pattern, "RWR") != 0 || decides(s, p->places[0]));
}

/* ---- Values and where they came from ---- */

/* True if a value was read that no statement of the slice had written. The reason why they did not write it says
 * more. */
static bool is_unwritten(const struct search *s, const struct etch_predictor *p)
{
    for (size_t i = 0; i < s->n; i++) {
        const struct etch_run *run = s->runs[i];
        const struct etch_run_access *a =
            run->failing && !p->write ? etch_run_last_value(run, p->places[0], p->variable, false) : NULL;
        bool written = false;

        if (!a || a->crash || !etch_value_passes(p, a))
            continue;
        for (size_t k = 0; k < run->accesses.n; k++) {
            const struct etch_run_access *w = &run->accesses.v[k];

            written |= w->write && w->address < a->address + a->size && a->address < w->address + w->size;
        }
        if (!written)
            return true;
    }
    return false;
}

/* True if a run failed by dereferencing this pointer. False if the statement tests the pointer first: a run that got
 * past the statement may not have dereferenced it. */
static bool is_followed(const struct search *s, const struct etch_predictor *p)
{
    const Etch__Statement *statement = statement_of(s, p->places[0]);

    if (p->kind != ETCH_PREDICTOR_VALUE || p->test != ETCH_VALUE_ZERO || p->write || (statement && statement->branch))
        return false;
    for (size_t i = 0; i < s->n; i++)
        if (s->runs[i]->failing && s->runs[i]->failing_place == p->places[0] &&
            s->runs[i]->null_variable == p->variable)
            return true;
    return false;
}

static const char *location_of(const struct search *s, const struct etch_run_access *a)
{
    return a->operand < s->names->locations.n ? s->names->locations.v[a->operand] : NULL;
}

#define ONE_STRUCTURE 256u /* bytes; fields of a type within this distance count as fields of the same object */

/* True if two locations are fields of the same type: "f:record.1" and "f:record.3". */
static bool is_one_type(const char *a, const char *b)
{
    const char *end = strrchr(a, '.');

    return end && strncmp(a, "f:", 2) == 0 && strncmp(a, b, (size_t)(end - a) + 1) == 0;
}

/* True if an access of library code, such as malloc and free, was to the location that is read, or next to it in the
 * same structure. */
static bool is_at(const struct search *s, const struct etch_run *run, const struct etch_run_access *library,
                  const struct etch_run_access *read)
{
    const char *from = location_of(s, read);
    uint64_t apart =
        library->address > read->address ? library->address - read->address : read->address - library->address;

    if (!library->outside || library->object == read->object)
        return library->outside;
    for (size_t i = 0; from && apart < ONE_STRUCTURE && i < run->accesses.n; i++) {
        const char *here = run->accesses.v[i].object == library->object ? location_of(s, &run->accesses.v[i]) : NULL;

        if (here && is_one_type(from, here))
            return true;
    }
    return false;
}

/* True if a statement that names the location had written there before: the location was in use. False if library code
 * accessed the location since: it may have had another owner. */
static bool was_written(const struct search *s, const struct etch_run *run, const struct order_fact *f,
                        const char *location)
{
    const struct etch_run_access *read = &run->accesses.v[f->at[1]];

    for (uint32_t k = f->at[0]; k-- > 0;) {
        const struct etch_run_access *a = &run->accesses.v[k];
        const char *here = a->object == read->object ? location_of(s, a) : NULL;

        if (is_at(s, run, a, read))
            return false;
        if (here && a->write && strcmp(here, location) == 0)
            return true;
    }
    return false;
}

/* True if the value that was read had been written as part of something else: a write that went astray. */
static bool is_stray(const struct search *s, const struct etch_run *run, const struct order_fact *f)
{
    const struct etch_run_access *write = &run->accesses.v[f->at[0]];
    const char *to = location_of(s, write), *from = location_of(s, &run->accesses.v[f->at[1]]);

    /* A statement that the slice has not writes nothing by that name, either. */
    return from && from[0] && !write->outside && (!to || (to[0] && strcmp(to, from) != 0)) &&
           was_written(s, run, f, from);
}

/* True if another owner of the memory left the value that was read. */
static bool is_left_over(const struct search *s, const struct etch_run *run, const struct order_fact *f)
{
    for (uint32_t k = f->at[0] + 1; k < f->at[1]; k++)
        if (!run->accesses.v[f->at[0]].outside && is_at(s, run, &run->accesses.v[k], &run->accesses.v[f->at[1]]))
            return true;
    return false;
}

/* True if writer and reader have the same name for the location: equal names, or a field that one of them reaches by a
 * pointer and the other in a variable of its own. */
static bool is_proper(const struct search *s, const struct etch_run *run, const struct order_fact *f)
{
    const char *to = location_of(s, &run->accesses.v[f->at[0]]), *from = location_of(s, &run->accesses.v[f->at[1]]);
    const char *field = to ? strrchr(to, '.') : NULL, *same = from ? strrchr(from, '.') : NULL;

    if (!to || !from || !to[0] || run->accesses.v[f->at[0]].outside)
        return false;
    return strcmp(to, from) == 0 ||
           (field && same && strcmp(field, same) == 0 && to[0] != from[0] && (to[0] == 'f' || from[0] == 'f') &&
            strchr("afg", to[0]) && strchr("afg", from[0]));
}

/* Classifies the write, by the failing runs. */
static void judge_origin(struct etch_predictor *p, const struct search *s)
{
    for (size_t i = 0; i < s->n; i++) {
        const struct etch_run *run = s->runs[i];
        bool open;
        const struct order_fact *f = run->failing ? etch_facts_find(p, s->facts[i], &open) : NULL;

        p->left_over |= f && is_left_over(s, run, f);
        p->proper |= f && is_proper(s, run, f);
        p->stray |= f && !is_proper(s, run, f) && is_stray(s, run, f);
    }
}

/* True if no passing run executed the reading statement. The difference is then that the statement ran, and not which
 * statement wrote the value. */
static bool is_only_there(const struct search *s, const struct etch_predictor *p)
{
    for (size_t i = 0; i < s->n; i++)
        if (!s->runs[i]->failing && etch_executed(s->runs[i], p->places[1]))
            return false;
    return true;
}

/* ---- Reached, and when ---- */

/* True if a run came to the statement whose behaviour the predictor tells. */
static bool was_reached(const struct etch_predictor *p, const struct etch_run *run)
{
    switch (p->kind) {
    case ETCH_PREDICTOR_BRANCH:
        return etch_branch_was_reached(p, run);
    case ETCH_PREDICTOR_VALUE:
    case ETCH_PREDICTOR_ORIGIN:
        return etch_executed(run, p->places[p->n_places - 1]);
    default:
        return true;
    }
}

/* A predictor says nothing that its statement does not say by having run, if its increase is 0. */
static void judge_increase(struct etch_predictor *p, const struct search *s)
{
    uint32_t failing = 0, reached = 0;

    for (size_t i = 0; i < s->n; i++) {
        if (!was_reached(p, s->runs[i]))
            continue;
        reached++;
        failing += s->runs[i]->failing;
    }
    p->increase = p->precision - (reached ? (double)failing / reached : 0);
}

/* The mean over the failing runs in which the predictor is true. */
static void judge_position(struct etch_predictor *p, const struct search *s)
{
    uint32_t n = 0;

    p->sequential = true;
    for (size_t i = 0; i < s->n; i++) {
        const struct etch_run *run = s->runs[i];
        uint64_t time, length;

        if (!run->failing)
            continue;
        p->guards |= p->kind == ETCH_PREDICTOR_BRANCH && p->to == run->failing_place;
        p->sequential = p->sequential && run->threads.n == 1;
        if (!run->flow || run->threads.n > 1 || etch_holds_by_facts(p, s->facts[i], run) != ETCH_TRUE)
            continue;
        time = etch_predictor_time(p, s->facts[i], run);
        length = etch_run_length(run);
        p->position += time == UINT64_MAX || !length ? 1 : (double)time / (double)length;
        n++;
    }
    p->position = n ? p->position / n : 1;
}

/* True if runs died at a statement that had read a 0: a divisor, or a null pointer that it follows or hands to a
 * library. */
static bool is_fatal(const struct etch_predictor *p, const struct search *s)
{
    if (p->kind != ETCH_PREDICTOR_VALUE || p->test != ETCH_VALUE_ZERO || p->write)
        return false;
    for (size_t i = 0; i < s->n; i++) {
        const struct etch_run *run = s->runs[i];

        if (run->failing && run->failing_place == p->places[0] &&
            run->failure->kind == ETCH__FAILURE_KIND__FAILURE_SIGNAL &&
            (p->followed || run->failure->signal == SIGFPE || (run->failure->signal == SIGSEGV && p->size == 8)))
            return true;
    }
    return false;
}

/* ---- All of it ---- */

void etch_judge(struct etch_predictor *p, const struct search *s)
{
    double p_lo, p_hi, r_lo, r_hi;
    uint32_t held;

    p->followed = is_followed(s, p);
    count(p, s);
    held = p->failing_true + p->passing_true;
    p->precision = held ? (double)p->failing_true / held : 0;
    p->recall = p->failing ? (double)p->failing_true / p->failing : 0;
    /* If the predictor is unknown in all passing runs, it does not separate the failing runs. */
    p->f = p->passing && !(p->refill && !is_refilled(s, p)) ? etch_f_half(p->precision, p->recall) : 0;
    etch_wilson(p->failing_true, held, &p_lo, &p_hi);
    etch_wilson(p->failing_true, p->failing, &r_lo, &r_hi);
    p->f_lo = etch_f_half(p_lo, r_lo);
    p->f_hi = etch_f_half(p_hi, r_hi);
    p->guarded = p->kind == ETCH_PREDICTOR_ATOMICITY && is_meant(s, p);
    p->constant_order = p->kind == ETCH_PREDICTOR_ORDER && is_constant_order(s, p);
    p->off_path = p->kind == ETCH_PREDICTOR_ORDER && is_off_path(s, p);
    p->early = p->kind == ETCH_PREDICTOR_ORDER && !has_happened(s, p);
    p->unwritten = p->kind == ETCH_PREDICTOR_VALUE && is_unwritten(s, p);
    if (p->kind == ETCH_PREDICTOR_ORIGIN)
        judge_origin(p, s);
    p->only_there = p->kind == ETCH_PREDICTOR_ORIGIN && is_only_there(s, p);
    p->fatal = is_fatal(p, s);
    judge_increase(p, s);
    if (p->f > 0 && !etch_predictor_is_threaded(p))
        judge_position(p, s);
    p->distance = UINT32_MAX;
    for (uint32_t i = 0; i < p->n_places; i++) {
        uint32_t d = s->names->places.v[p->places[i]].distance;

        p->distance = d < p->distance ? d : p->distance;
        p->spread += 2 * (d < 1000 ? d : 1000) + s->names->places.v[p->places[i]].decides;
    }
}
