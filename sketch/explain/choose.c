/* SPDX-License-Identifier: MIT */
/* The statements that a sketch shows: the failing statement, the statements of the best predictor, the history of the
 * deciding values, and earlier accesses of the threads. If threads have no part in the failure: the dependence walk to
 * the failure. */
#include "sketch/explain/dependence_walk.h"
#include "sketch/explain/layout.h"

#include <stdlib.h>
#include <string.h>

#define SHOWN_MAX 24u /* statements in addition to the necessary statements */

static bool is_threaded(const struct composition *c)
{
    return c->top && etch_predictor_is_threaded(c->top);
}

static void mark(const struct composition *c, bool *shown, uint32_t place)
{
    if (place < c->names->places.n)
        shown[place] = true;
}

/* A statement that the slice has not is shown only where a predictor names it. */
static void mark_sliced(const struct composition *c, bool *shown, uint32_t place)
{
    if (etch_dependence_statement(c, place))
        shown[place] = true;
}

/* The failing statement. In a hang: the position of each thread that has a part in it. */
static void mark_failure(const struct composition *c, bool *shown)
{
    const Etch__Failure *f = c->run->failure;

    mark(c, shown, c->run->failing_place);
    if (f->kind != ETCH__FAILURE_KIND__FAILURE_HANG)
        return;
    for (size_t i = 0; i < c->run->threads.n; i++)
        if (c->run->threads.v[i].part)
            mark(c, shown, c->run->threads.v[i].wait_place);
}

/* The statements of the best predictor. A write that had not come yet has a step of its own. Earlier accesses of the
 * same statement to other objects have no part. */
static void mark_top(const struct composition *c, bool *shown)
{
    uint32_t missing;
    bool not_yet = etch_layout_not_yet(c, &missing);

    for (uint32_t i = 0; i < c->top->n_places; i++)
        if (!not_yet || c->top->places[i] != missing)
            mark(c, shown, c->top->places[i]);
}

/* The best predictor of each kind has a letter in the picture, and so it needs a row where its statements ran. */
static void mark_badges(const struct composition *c, bool *shown)
{
    for (unsigned kind = 0; kind < ETCH_PREDICTOR_KINDS; kind++) {
        const struct etch_predictor *p = c->best[kind];
        double failing = p && p->failing ? (double)p->failing_true / p->failing : 0;
        double passing = p && p->passing ? (double)p->passing_true / p->passing : 1;

        if (!p || failing - passing < 0.5)
            continue;
        for (uint32_t i = 0; i < p->n_places; i++)
            if (etch_run_visited(c->run, p->places[i]))
                mark(c, shown, p->places[i]);
    }
}

/* ---- How threads met ---- */

/* The value that was there before: the first of the accesses read it, or overwrote it. If another access tears a
 * thread's own write from its use, the history begins with that write. */
static void mark_before(const struct composition *c, bool *shown)
{
    uint32_t at[ETCH_PREDICTOR_ACCESSES];
    size_t n = etch_predictor_instance(c->top, c->run, at);
    const struct etch_run_access *first = n ? &c->run->accesses.v[at[0]] : NULL;

    if (!first || (c->top->kind == ETCH_PREDICTOR_ATOMICITY && first->write))
        return;
    for (size_t i = at[0]; i-- > 0;) {
        const struct etch_run_access *a = &c->run->accesses.v[i];

        if (a->write && a->object == first->object && a->object != ETCH_NOWHERE && a->place != first->place) {
            mark_sliced(c, shown, a->place);
            return;
        }
    }
}

/* Earlier accesses of the failing thread to the objects of its shown statements. */
static void mark_seen(const struct composition *c, bool *shown)
{
    const struct etch_run *run = c->run;

    for (size_t i = 0; i < run->accesses.n; i++) {
        const struct etch_run_access *a = &run->accesses.v[i];
        uint32_t before = ETCH_NOWHERE;

        if (a->thread != run->failing_thread || a->object == ETCH_NOWHERE || a->place >= c->names->places.n ||
            !shown[a->place])
            continue;
        for (size_t k = 0; k < i; k++)
            if (run->accesses.v[k].thread == a->thread && run->accesses.v[k].object == a->object &&
                run->accesses.v[k].place != a->place)
                before = run->accesses.v[k].place;
        mark_sliced(c, shown, before);
    }
}

/* The statements that a thread executed within a torn step, from values that it had at the beginning of the step. */
static void mark_between(const struct composition *c, bool *shown)
{
    uint32_t at[ETCH_PREDICTOR_ACCESSES];
    size_t n = c->top->kind == ETCH_PREDICTOR_ATOMICITY && c->top->n_places == 3
                   ? etch_predictor_instance(c->top, c->run, at)
                   : 0;
    const struct etch_run_access *first = n == 3 ? &c->run->accesses.v[at[0]] : NULL;

    for (size_t i = 0; first && first->read && i < c->run->visits.n; i++) {
        const struct etch_run_visit *v = &c->run->visits.v[i];

        if (v->thread == first->thread && v->place != first->place && v->place != c->top->places[2] &&
            etch_names_feeds(c->names, first->place, v->place) &&
            (etch_names_feeds(c->names, v->place, c->top->places[2]) ||
             (v->seq > first->seq && v->seq < c->run->accesses.v[at[2]].seq)))
            mark_sliced(c, shown, v->place);
    }
}

/* ---- What the failing statement took ---- */

/* A value that is the start of what the same statement uses is an address, and what looks like a pointer is one. */
static bool is_address(const struct etch_run *run, const struct etch_run_access *a)
{
    for (size_t i = 0; i < run->accesses.n; i++) {
        const struct etch_run_access *b = &run->accesses.v[i];

        if (b->thread == a->thread && b->place == a->place && b != a && b->address >= a->value &&
            b->address - a->value < 4096)
            return true;
    }
    return !a->known || a->size < 4 || (a->size == 8 && a->value >= 65536) || (a->size == 8 && a->value == 0);
}

static bool reads_shared(const struct etch_run *run, uint32_t place)
{
    for (size_t i = 0; i < run->accesses.n; i++)
        if (run->accesses.v[i].place == place && run->accesses.v[i].read && run->accesses.v[i].object != ETCH_NOWHERE)
            return true;
    return false;
}

/* Whoever handed a thread its argument. */
static void mark_handed(const struct composition *c, bool *shown)
{
    const Etch__Slice *slice = c->options->slice;
    const struct etch_run *run = c->run;

    for (uint32_t i = 0; i < run->threads.n; i++) {
        const Etch__Statement *s = etch_dependence_statement(c, run->threads.v[i].made_at);
        bool used = false;

        for (size_t k = 0; k < run->visits.n; k++)
            used |= run->visits.v[k].thread == i && shown[run->visits.v[k].place];
        if (slice && s && used && etch_dependence_has_role(s, ETCH__STATEMENT_ROLE__ROLE_THREAD))
            mark(c, shown, run->threads.v[i].made_at);
    }
}

/* The origin of the failing statement's own variables. A number may come from anywhere. An address counts only if it
 * came from shared memory, and then the statement that left it there counts too. */
static void mark_taken(const struct composition *c, bool *shown)
{
    const struct etch_run *run = c->run;

    for (uint32_t i = 0; i < run->accesses.n; i++) {
        const struct etch_run_access *a = &run->accesses.v[i];
        uint32_t write, from;

        if (a->place != run->failing_place || a->thread != run->failing_thread || !a->read)
            continue;
        write = etch_dependence_definition(run, i);
        from = write == ETCH_NOWHERE ? ETCH_NOWHERE : run->accesses.v[write].place;
        if (from == ETCH_NOWHERE || from == a->place || !etch_dependence_statement(c, from) || shown[from])
            continue;
        if (a->object != ETCH_NOWHERE) {
            if (!is_address(run, a))
                mark(c, shown, from);
        } else if (is_address(run, a) && reads_shared(run, from)) {
            mark(c, shown, from);
            for (uint32_t k = 0; k < write; k++)
                if (run->accesses.v[k].place == from && run->accesses.v[k].thread == a->thread &&
                    run->accesses.v[k].read && run->accesses.v[k].object != ETCH_NOWHERE &&
                    etch_dependence_definition(run, k) != ETCH_NOWHERE)
                    mark_sliced(c, shown, run->accesses.v[etch_dependence_definition(run, k)].place);
        } else if (!is_address(run, a) &&
                   !etch_dependence_has_role(etch_dependence_statement(c, from), ETCH__STATEMENT_ROLE__ROLE_CONTROL)) {
            mark(c, shown, from);
            mark_handed(c, shown);
        }
    }
}

/* The same for numbers that nobody watched: control flow shows which statement wrote them. */
static void mark_taken_unseen(const struct composition *c, bool *shown)
{
    const struct etch_run *run = c->run;
    const Etch__Statement *s = etch_dependence_statement(c, run->failing_place);
    const struct etch_run_visit *visit = etch_run_visited_by(run, run->failing_thread, run->failing_place);

    for (size_t i = 0; s && visit && i < s->n_operands; i++) {
        const Etch__Operand *o = s->operands[i];
        const struct etch_run_visit *by =
            o->shared || o->write || o->size == 8 ? NULL : etch_dependence_by_flow(c, visit, o);

        if (!by || shown[by->place] ||
            etch_dependence_has_role(etch_dependence_statement(c, by->place), ETCH__STATEMENT_ROLE__ROLE_CONTROL))
            continue;
        mark_sliced(c, shown, by->place);
        mark_handed(c, shown);
    }
}

/* The value that a call returned to the failing statement, and the shared memory that the value came from. */
static void mark_returned(const struct composition *c, bool *shown)
{
    const Etch__Slice *slice = c->options->slice;
    const struct etch_run *run = c->run;

    for (size_t i = 0; slice && i < slice->n_statements; i++) {
        const Etch__Statement *s = slice->statements[i];
        uint32_t place = ETCH_NOWHERE;

        if (s->distance != 1 || !etch_dependence_has_role(s, ETCH__STATEMENT_ROLE__ROLE_RETURN))
            continue;
        for (uint32_t k = 0; k < c->names->places.n; k++)
            if (etch_dependence_statement(c, k) == s)
                place = k;
        if (place == ETCH_NOWHERE || !etch_run_visited(run, place))
            continue;
        mark(c, shown, place);
        for (uint32_t k = 0; k < run->accesses.n; k++) {
            const struct etch_run_access *a = &run->accesses.v[k];

            if (a->place == place && a->thread == run->failing_thread && a->read && a->object != ETCH_NOWHERE &&
                etch_dependence_definition(run, k) != ETCH_NOWHERE)
                mark_sliced(c, shown, run->accesses.v[etch_dependence_definition(run, k)].place);
        }
    }
}

/* ---- What let it happen ---- */

static bool reads_at(const struct etch_run *run, uint32_t place, uint64_t address)
{
    for (size_t i = 0; i < run->accesses.n; i++)
        if (run->accesses.v[i].place == place && run->accesses.v[i].address == address)
            return true;
    return false;
}

/* True if a branch reads only memory that the failing statement uses. */
static bool tests_the_same(const struct etch_run *run, uint32_t place)
{
    bool any = false;

    for (size_t i = 0; i < run->accesses.n; i++) {
        const struct etch_run_access *a = &run->accesses.v[i];

        if (a->place != place || a->thread != run->failing_thread)
            continue;
        if (!reads_at(run, run->failing_place, a->address))
            return false;
        any = true;
    }
    return any;
}

/* The same by the names of what it looks at, where nobody watched. */
static bool names_the_same(const struct composition *c, const Etch__Statement *s)
{
    const Etch__Statement *failing = etch_dependence_statement(c, c->run->failing_place);
    bool any = false;

    for (size_t i = 0; failing && i < s->n_operands; i++) {
        bool found = false;

        for (size_t k = 0; k < failing->n_operands; k++)
            found |= !failing->operands[k]->write && strcmp(failing->operands[k]->name, s->operands[i]->name) == 0;
        if (!found)
            return false;
        any = true;
    }
    return any && strcmp(s->place->function, failing->place->function) == 0;
}

/* The place at which another thread wrote to an object after the failing thread had read it at `place`. One pass from
 * the end: `next` has the next such write of each object. */
static uint32_t written_since(const struct etch_run *run, uint32_t place)
{
    uint32_t found = ETCH_NOWHERE, *next, objects = 0;

    for (size_t i = 0; i < run->accesses.n; i++)
        if (run->accesses.v[i].object != ETCH_NOWHERE && run->accesses.v[i].object >= objects)
            objects = run->accesses.v[i].object + 1;
    next = calloc((size_t)objects + 1, sizeof(*next));
    for (size_t i = run->accesses.n; next && i-- > 0;) {
        const struct etch_run_access *a = &run->accesses.v[i];

        if (a->object == ETCH_NOWHERE)
            continue;
        if (a->thread != run->failing_thread && a->write)
            next[a->object] = (uint32_t)i + 1;
        else if (a->thread == run->failing_thread && a->place == place && next[a->object])
            found = run->accesses.v[next[a->object] - 1].place;
    }
    free(next);
    return found;
}

static bool comes_of_top(const struct composition *c, uint32_t place)
{
    for (uint32_t i = 0; i < c->top->n_places; i++)
        if (etch_names_feeds(c->names, c->top->places[i], place))
            return true;
    return false;
}

/* The branch before the failing statement, where it looks at what this is about. */
static void mark_guards(const struct composition *c, bool *shown)
{
    for (uint32_t i = 0; i < c->names->places.n; i++) {
        const Etch__Statement *s = etch_dependence_statement(c, i);
        uint32_t writer;

        if (!s || shown[i] || !s->branch || s->distance > 1 ||
            !etch_dependence_has_role(s, ETCH__STATEMENT_ROLE__ROLE_CONTROL) || !etch_run_visited(c->run, i) ||
            etch_dependence_has_role(s, ETCH__STATEMENT_ROLE__ROLE_DATA))
            continue;
        writer = written_since(c->run, i);
        if (writer == ETCH_NOWHERE && !tests_the_same(c->run, i) && !comes_of_top(c, i) &&
            (etch_run_accessed(c->run, i) || !names_the_same(c, s)))
            continue;
        mark(c, shown, i);
        mark_sliced(c, shown, writer);
    }
}

/* The calls by which data came into the functions that count: those on the failing thread's stack, and those of other
 * functions that hand over an argument. */
static void mark_calls(const struct composition *c, bool *shown)
{
    const struct etch_run *run = c->run;
    bool *before = malloc(c->names->places.n + 1);

    if (!before)
        return;
    memcpy(before, shown, c->names->places.n);
    for (uint32_t i = 0; i < c->names->places.n; i++) {
        const Etch__Statement *s = etch_dependence_statement(c, i);
        bool data = s && (etch_dependence_has_role(s, ETCH__STATEMENT_ROLE__ROLE_ARGUMENT) ||
                          etch_dependence_has_role(s, ETCH__STATEMENT_ROLE__ROLE_DATA));

        for (uint32_t k = 0; data && !shown[i] && etch_run_visited(run, i) && k < c->names->places.n; k++) {
            const char *function = c->names->places.v[k].function;
            bool stacked = etch_dependence_on_stack(c, function), here = false;

            if (!before[k] || !etch_dependence_is_call_of(c, s, function) || !etch_dependence_brought_in(c, s, k))
                continue;
            for (size_t f = 0; stacked && f < run->threads.v[run->failing_thread].stack.n; f++)
                here |= run->threads.v[run->failing_thread].stack.v[f] == i;
            if (stacked ? here : etch_dependence_has_role(s, ETCH__STATEMENT_ROLE__ROLE_ARGUMENT))
                mark(c, shown, i);
        }
    }
    free(before);
}

/* The creation of the failing thread, if the creating function also has a statement of the order. */
static void mark_creation(const struct composition *c, bool *shown)
{
    const struct etch_run *run = c->run;
    const struct etch_run_thread *t =
        run->failing_thread < run->threads.n ? &run->threads.v[run->failing_thread] : NULL;
    const struct etch_line_place *made;

    if (c->top->kind != ETCH_PREDICTOR_ORDER || !t || t->made_at >= c->names->places.n)
        return;
    made = &c->names->places.v[t->made_at];
    for (uint32_t i = 0; i < c->top->n_places; i++)
        if (strcmp(c->names->places.v[c->top->places[i]].function, made->function) == 0)
            mark_sliced(c, shown, t->made_at);
}

/* How what threads met over came to be there, and where it went. */
static void mark_brought(struct composition *c, bool *shown)
{
    if (c->top->kind == ETCH_PREDICTOR_LOCK_ORDER)
        return;
    mark_guards(c, shown);
    if (c->top->kind == ETCH_PREDICTOR_WAIT)
        return;
    mark_taken(c, shown);
    mark_taken_unseen(c, shown);
    if (c->run->failure->kind != ETCH__FAILURE_KIND__FAILURE_HANG)
        etch_dependence_follow_addresses(c, shown);
    mark_returned(c, shown);
    mark_seen(c, shown);
    mark_calls(c, shown);
}

/* ---- Where threads have no part ---- */

/* The dependences of the slice: statements that ran and that led, directly or not, to a shown statement. True if a
 * function has no part in the sketch yet: none of its statements was shown before, and it is not main. Its statements
 * are the inside of a call, and the call is shown for them. */
static bool is_inside(const struct composition *c, const bool *seeds, const char *function)
{
    for (size_t i = 0; i < c->names->places.n; i++)
        if (seeds[i] && strcmp(c->names->places.v[i].function, function) == 0)
            return false;
    return strcmp(function, "main") != 0;
}

/* A write that was seen and that no shown statement read has no part. */
static bool is_idle(const struct composition *c, const bool *shown, uint32_t place)
{
    const struct etch_run *run = c->run;
    bool wrote = false;

    for (uint32_t i = 0; i < run->accesses.n; i++) {
        const struct etch_run_access *a = &run->accesses.v[i];
        uint32_t write = a->read && a->place < c->names->places.n && shown[a->place]
                             ? etch_dependence_definition(run, i)
                             : ETCH_NOWHERE;

        if (write != ETCH_NOWHERE && run->accesses.v[write].place == place)
            return false;
        wrote |= a->write && a->place == place;
    }
    return wrote;
}

/* True if a statement gives the function's result: another function needs the statement, and it writes no named
 * variable. */
static bool gives_back(const Etch__Slice *slice, const Etch__Statement *s)
{
    bool asked = false;

    for (size_t i = 0; i < s->n_operands; i++)
        if (s->operands[i]->write)
            return false;
    for (size_t i = 0; i < s->n_because; i++)
        asked |= s->because[i] < slice->n_statements &&
                 strcmp(slice->statements[s->because[i]]->place->function, s->place->function) != 0;
    return asked && !s->call &&
           (etch_dependence_has_role(s, ETCH__STATEMENT_ROLE__ROLE_RETURN) ||
            etch_dependence_has_role(s, ETCH__STATEMENT_ROLE__ROLE_DATA));
}

/* True if the function has returned by another statement since: the result of this statement is outdated. */
static bool is_outdated(const struct composition *c, const Etch__Statement *s, uint32_t place)
{
    const struct etch_run_visit *here = etch_run_visited(c->run, place);
    bool gives = gives_back(c->options->slice, s);

    for (uint32_t i = 0; gives && i < c->names->places.n; i++) {
        const Etch__Statement *other = etch_dependence_statement(c, i);
        const struct etch_run_visit *v = other && i != place &&
                                                 strcmp(other->place->function, s->place->function) == 0 &&
                                                 gives_back(c->options->slice, other)
                                             ? etch_run_visited_by(c->run, here->thread, i)
                                             : NULL;

        if (v && v->seq > here->seq)
            return true;
    }
    return false;
}

static bool feeds_shown(const struct composition *c, const bool *shown, uint32_t place)
{
    for (uint32_t i = 0; i < c->names->places.n; i++)
        if (shown[i] && i != place && etch_names_feeds(c->names, place, i))
            return true;
    return false;
}

static void mark_sources(const struct composition *c, bool *shown)
{
    bool *seeds = malloc(c->names->places.n + 1), more = seeds != NULL;

    if (seeds)
        memcpy(seeds, shown, c->names->places.n);
    while (more) {
        more = false;
        for (uint32_t i = 0; i < c->names->places.n; i++) {
            const Etch__Statement *s = etch_dependence_statement(c, i);

            if (!s || shown[i] || !etch_run_visited(c->run, i) || is_inside(c, seeds, s->place->function) ||
                is_outdated(c, s, i) || !feeds_shown(c, shown, i) ||
                (c->top->kind == ETCH_PREDICTOR_ORIGIN && is_idle(c, shown, i)))
                continue;
            shown[i] = more = true;
        }
    }
    free(seeds);
}

static void mark_executed(const struct composition *c, bool *shown)
{
    for (size_t i = 0; i < c->run->visits.n; i++)
        mark_sliced(c, shown, c->run->visits.v[i].place);
}

/* ---- What is too much ---- */

struct candidate {
    uint32_t place, distance;
    uint64_t hi; /* when it last ran */
};

static int by_nearness(const void *x, const void *y)
{
    const struct candidate *a = x, *b = y;

    if (a->distance != b->distance)
        return a->distance < b->distance ? -1 : 1;
    if (a->hi != b->hi)
        return a->hi > b->hi ? -1 : 1;
    return a->place < b->place ? -1 : a->place > b->place;
}

/* Keeps a picture that a reader can take in: in addition to what must be shown, the statements nearest to the failure,
 * by dependences and then by time. */
static void keep_nearest(const struct composition *c, bool *shown, const bool *must)
{
    ETCH_ARRAY(struct candidate) list = {0};
    bool good = true;

    for (uint32_t place = 0; place < c->names->places.n; place++) {
        const struct etch_run_visit *v = etch_run_visited(c->run, place);
        struct candidate candidate = {place, c->names->places.v[place].distance, v ? v->hi : 0};

        if (shown[place] && !must[place])
            good &= etch_array_push(&list, candidate);
    }
    if (good && list.n > SHOWN_MAX) {
        qsort(list.v, list.n, sizeof(*list.v), by_nearness);
        for (size_t i = SHOWN_MAX; i < list.n; i++)
            shown[list.v[i].place] = false;
    }
    etch_array_free(&list);
}

void etch_layout_choose(struct composition *c, bool *shown)
{
    bool *must = calloc(c->names->places.n + 1, sizeof(*must));

    mark_failure(c, shown);
    if (c->top)
        mark_top(c, shown);
    if (is_threaded(c)) {
        mark_before(c, shown);
        mark_between(c, shown);
    }
    mark_badges(c, shown);
    if (must)
        memcpy(must, shown, c->names->places.n * sizeof(*must));
    if (is_threaded(c)) {
        mark_brought(c, shown);
    } else if (c->top && c->top->kind == ETCH_PREDICTOR_VALUE) {
        etch_dependence_follow(c, shown, c->top->variable);
    } else if (c->top) {
        if (c->top->kind == ETCH_PREDICTOR_ORIGIN)
            mark_before(c, shown);
        mark_sources(c, shown);
    }
    if (c->options->all || !c->top)
        mark_executed(c, shown);
    if (must && !c->options->all)
        keep_nearest(c, shown, must);
    if (is_threaded(c))
        mark_creation(c, shown);
    free(must);
}
