/* SPDX-License-Identifier: MIT */
/* The dependence walk; see dependence_walk.h. */
#include "sketch/explain/dependence_walk.h"

#include <stdlib.h>
#include <string.h>

static bool overlap(const struct etch_run_access *a, const struct etch_run_access *b)
{
    return a->address < b->address + b->size && b->address < a->address + a->size;
}

uint32_t etch_dependence_definition(const struct etch_run *run, uint32_t read)
{
    for (uint32_t i = read; i-- > 0;)
        if (run->accesses.v[i].write && overlap(&run->accesses.v[i], &run->accesses.v[read]))
            return i;
    return ETCH_NOWHERE;
}

const Etch__Statement *etch_dependence_statement(const struct composition *c, uint32_t place)
{
    uint32_t number = place < c->names->places.n ? c->names->places.v[place].statement : 0;

    return number && c->options->slice ? c->options->slice->statements[number - 1] : NULL;
}

bool etch_dependence_has_role(const Etch__Statement *s, Etch__StatementRole role)
{
    for (size_t i = 0; i < s->n_roles; i++)
        if (s->roles[i] == role)
            return true;
    return false;
}

bool etch_dependence_on_stack(const struct composition *c, const char *function)
{
    const struct etch_run *run = c->run;

    for (size_t i = 0; run->failing_thread < run->threads.n && i < run->threads.v[run->failing_thread].stack.n; i++)
        if (strcmp(c->names->places.v[run->threads.v[run->failing_thread].stack.v[i]].function, function) == 0)
            return true;
    return false;
}

bool etch_dependence_is_call_of(const struct composition *c, const Etch__Statement *s, const char *function)
{
    const Etch__Slice *slice = c->options->slice;

    if (!s->call || strcmp(s->place->function, function) == 0)
        return false;
    for (size_t i = 0; i < s->n_because; i++)
        if (s->because[i] < slice->n_statements &&
            strcmp(slice->statements[s->because[i]]->place->function, function) == 0)
            return true;
    return false;
}

static uint32_t place_of(const struct composition *c, const Etch__Statement *s)
{
    for (uint32_t i = 0; i < c->names->places.n; i++)
        if (c->names->places.v[i].line == s->place->line && strcmp(c->names->places.v[i].file, s->place->file) == 0 &&
            strcmp(c->names->places.v[i].function, s->place->function) == 0)
            return i;
    return ETCH_NOWHERE;
}

bool etch_dependence_brought_in(const struct composition *c, const Etch__Statement *s, uint32_t place)
{
    const Etch__Slice *slice = c->options->slice;

    for (size_t i = 0; i < s->n_because; i++)
        if (s->because[i] < slice->n_statements && place_of(c, slice->statements[s->because[i]]) == place)
            return true;
    return false;
}

/* ---- By control flow alone ---- */

static bool is_recorded(const struct composition *c, uint32_t place, const char *name)
{
    for (size_t i = 0; i < c->run->accesses.n; i++) {
        const struct etch_run_access *a = &c->run->accesses.v[i];

        if (a->place == place && !a->crash && a->operand != ETCH_NOWHERE &&
            strcmp(c->names->variables.v[a->operand], name) == 0)
            return true;
    }
    return false;
}

/* The last part of a->b.c: what the slice takes for the same memory has it in common. */
static const char *last_part(const char *name)
{
    const char *dot = strrchr(name, '.'), *arrow = strrchr(name, '>');
    const char *last = dot > arrow ? dot : arrow;

    return last ? last + 1 : name;
}

static bool writes(const Etch__Statement *s, const Etch__Operand *operand)
{
    for (size_t i = 0; i < s->n_operands; i++) {
        const Etch__Operand *o = s->operands[i];

        if (o->write && o->shared == operand->shared &&
            (operand->shared ? strcmp(last_part(o->name), last_part(operand->name)) == 0
                             : strcmp(o->name, operand->name) == 0))
            return true;
    }
    return false;
}

/* The newest write that a read at a place was seen to have read from, in another failing run; ETCH_NOWHERE: none was.
 */
static uint32_t written_elsewhere(const struct composition *c, const struct etch_run *run, uint32_t place,
                                  const char *name)
{
    for (uint32_t i = (uint32_t)run->accesses.n; i-- > 0;) {
        const struct etch_run_access *a = &run->accesses.v[i];
        uint32_t write;

        if (a->place != place || !a->read || a->crash || a->operand == ETCH_NOWHERE ||
            strcmp(c->names->variables.v[a->operand], name) != 0)
            continue;
        write = etch_dependence_definition(run, i);
        return write == ETCH_NOWHERE ? ETCH_NOWHERE : run->accesses.v[write].place;
    }
    return ETCH_NOWHERE;
}

/* The newest visit of a place that is not known to be behind another; NULL: there is none. */
static const struct etch_run_visit *visited_by_then(const struct etch_run *run, uint32_t place,
                                                    const struct etch_run_visit *then)
{
    const struct etch_run_visit *newest = NULL;

    for (size_t i = 0; i < run->history.n; i++) {
        const struct etch_run_visit *v = &run->history.v[i];
        bool behind = v->thread == then->thread ? v->seq >= then->seq : v->lo > then->hi;

        if (v->count && v->place == place && !behind && (!newest || v->lo > newest->lo))
            newest = v;
    }
    return newest;
}

/* Debug registers are few: what was not watched in this run was perhaps in another that failed likewise. If what wrote
 * it there ran here too, it is part of the walk, without a value. */
static const struct etch_run_visit *by_other_run(const struct composition *c, const struct etch_run_visit *visit,
                                                 const Etch__Operand *operand)
{
    for (size_t i = 0; i < c->n_runs; i++) {
        const struct etch_run *run = c->runs[i];
        uint32_t from =
            run->failing && run != c->run ? written_elsewhere(c, run, visit->place, operand->name) : ETCH_NOWHERE;
        const struct etch_run_visit *v;

        if (from == ETCH_NOWHERE || from == visit->place || !etch_dependence_statement(c, from))
            continue;
        v = visited_by_then(c->run, from, visit);
        if (v)
            return v;
    }
    return NULL;
}

const struct etch_run_visit *etch_dependence_by_flow(const struct composition *c, const struct etch_run_visit *visit,
                                                     const Etch__Operand *operand)
{
    const Etch__Slice *slice = c->options->slice;
    const char *function = c->names->places.v[visit->place].function;
    const struct etch_run_visit *newest = NULL;

    if (!c->run->flow || operand->write || is_recorded(c, visit->place, operand->name))
        return NULL;
    for (size_t i = 0; i < slice->n_statements; i++) {
        const Etch__Statement *s = slice->statements[i];
        const struct etch_run_visit *v;
        uint32_t at;

        if (!writes(s, operand) || (!operand->shared && strcmp(s->place->function, function) != 0))
            continue;
        at = place_of(c, s);
        if (at == ETCH_NOWHERE || at == visit->place ||
            (operand->shared && !etch_dependence_brought_in(c, s, visit->place)))
            continue;
        v = etch_run_visited_before(c->run, visit->thread, at, visit->seq);
        if (v && (!newest || v->seq > newest->seq))
            newest = v;
    }
    return newest || !operand->shared ? newest : by_other_run(c, visit, operand);
}

/* The visit of a place that counts: the failing thread's last, or the last at all. */
static const struct etch_run_visit *visit_of(const struct composition *c, uint32_t place)
{
    const struct etch_run_visit *v = etch_run_visited_by(c->run, c->run->failing_thread, place);

    return v ? v : etch_run_visited(c->run, place);
}

/* ---- One step back ---- */

struct dependence_walk {
    const struct composition *c;
    bool *shown;
    uint32_t *queue;
    size_t n, next;
    uint32_t variable;
    const char *home; /* the function that wrote the deciding value; NULL: none did */
    bool own;         /* the variable is the failing thread's own */
};

static void take(struct dependence_walk *t, uint32_t place)
{
    if (place >= t->c->names->places.n || t->shown[place])
        return;
    t->shown[place] = true;
    t->queue[t->n++] = place;
}

static bool is_last_read(const struct etch_run *run, size_t at)
{
    const struct etch_run_access *a = &run->accesses.v[at];

    for (size_t i = at + 1; i < run->accesses.n; i++)
        if (run->accesses.v[i].place == a->place && run->accesses.v[i].read && run->accesses.v[i].operand == a->operand)
            return false;
    return true;
}

/* x++, x += 2: the value before is of the same variable, which the walk has already. */
static bool is_pure_update(const struct etch_run *run, uint32_t place)
{
    uint32_t written = ETCH_NOWHERE;

    for (size_t i = 0; i < run->accesses.n; i++)
        if (run->accesses.v[i].place == place && run->accesses.v[i].write)
            written = run->accesses.v[i].operand;
    for (size_t i = 0; i < run->accesses.n; i++)
        if (run->accesses.v[i].place == place && run->accesses.v[i].read && run->accesses.v[i].operand != written)
            return false;
    return written != ETCH_NOWHERE;
}

/* True if a write is worth a line. A loop's counter is not. A statement within a completed call is not, because the
 * call is shown for it, unless the statement wrote the deciding value itself. */
static bool is_reported(const struct dependence_walk *t, uint32_t place, bool seed)
{
    const Etch__Statement *s = etch_dependence_statement(t->c, place);

    if (!s || (s->branch && etch_dependence_has_role(s, ETCH__STATEMENT_ROLE__ROLE_CONTROL) &&
               etch_dependence_has_role(s, ETCH__STATEMENT_ROLE__ROLE_DATA)))
        return false;
    return seed || etch_dependence_on_stack(t->c, s->place->function) ||
           (t->home && strcmp(t->home, s->place->function) == 0);
}

/* The same for what was not recorded. */
static void follow_flow(struct dependence_walk *t, uint32_t place, bool seed)
{
    const Etch__Slice *slice = t->c->options->slice;
    const struct etch_run_visit *visit = visit_of(t->c, place);

    for (size_t i = 0; visit && i < slice->n_statements; i++) {
        const Etch__Statement *s = slice->statements[i];

        if (place_of(t->c, s) != place)
            continue;
        for (size_t k = 0; k < s->n_operands; k++) {
            const struct etch_run_visit *by = etch_dependence_by_flow(t->c, visit, s->operands[k]);
            uint32_t from = by ? by->place : ETCH_NOWHERE;

            if (!by || !is_reported(t, from, seed) ||
                (seed && t->variable != ETCH_NOWHERE &&
                 strcmp(t->c->names->variables.v[t->variable], s->operands[k]->name) != 0))
                continue;
            if (seed)
                t->home = t->c->names->places.v[from].function;
            take(t, from);
        }
    }
}

/* Follows the values that a statement read last to their writers. Returns true if nothing wrote a value that it
 * read. */
static bool follow_reads(struct dependence_walk *t, uint32_t place, bool seed)
{
    const struct etch_run *run = t->c->run;
    bool open = false;

    if (is_pure_update(run, place))
        return false;
    for (uint32_t i = 0; i < run->accesses.n; i++) {
        const struct etch_run_access *a = &run->accesses.v[i];
        uint32_t write;

        if (a->place != place || !a->read || !is_last_read(run, i) ||
            (seed && t->variable != ETCH_NOWHERE && a->variable != t->variable))
            continue;
        write = etch_dependence_definition(run, i);
        open |= write == ETCH_NOWHERE;
        if (write == ETCH_NOWHERE || !is_reported(t, run->accesses.v[write].place, seed))
            continue;
        if (seed)
            t->home = t->c->names->places.v[run->accesses.v[write].place].function;
        take(t, run->accesses.v[write].place);
    }
    return open;
}

static bool is_guard(const Etch__Statement *s)
{
    return s->branch && etch_dependence_has_role(s, ETCH__STATEMENT_ROLE__ROLE_CONTROL) &&
           !etch_dependence_has_role(s, ETCH__STATEMENT_ROLE__ROLE_DATA); /* a loop's counter is not worth a line */
}

/* By what else than memory `s` has a part in what happened at `place`: what a call returned, who called, what let it
 * happen. The inside of a call into another file is shown as the call. */
static bool has_part(const struct dependence_walk *t, const Etch__Statement *s, uint32_t place, bool seed)
{
    const struct etch_line_place *here = &t->c->names->places.v[place];
    bool one = strcmp(s->place->function, here->function) == 0;

    if (strcmp(s->place->file, here->file) != 0)
        return false;
    if (etch_dependence_is_call_of(t->c, s, here->function))
        return seed ? t->own && etch_dependence_has_role(s, ETCH__STATEMENT_ROLE__ROLE_ARGUMENT)
                    : !etch_dependence_on_stack(t->c, here->function);
    if (!etch_dependence_brought_in(t->c, s, place))
        return false;
    if (!one)
        return !seed && (etch_dependence_has_role(s, ETCH__STATEMENT_ROLE__ROLE_RETURN) ||
                         etch_dependence_has_role(s, ETCH__STATEMENT_ROLE__ROLE_DATA));
    return !seed && is_guard(s);
}

/* If nothing wrote the value: what kept the possible writers from writing it. */
static void follow_missing(struct dependence_walk *t, uint32_t place)
{
    const Etch__Slice *slice = t->c->options->slice;

    for (size_t i = 0; i < slice->n_statements; i++) {
        const Etch__Statement *writer = slice->statements[i];
        uint32_t at = place_of(t->c, writer);

        if (!etch_dependence_has_role(writer, ETCH__STATEMENT_ROLE__ROLE_MEMORY) || at == ETCH_NOWHERE ||
            etch_run_visited(t->c->run, at) || !etch_dependence_brought_in(t->c, writer, place))
            continue;
        for (size_t k = 0; k < slice->n_statements; k++) {
            const Etch__Statement *s = slice->statements[k];
            uint32_t from = place_of(t->c, s);

            if (from != ETCH_NOWHERE && etch_run_visited(t->c->run, from) && is_guard(s) &&
                etch_dependence_brought_in(t->c, s, at))
                take(t, from);
        }
    }
}

static void step_back(struct dependence_walk *t, uint32_t place)
{
    const struct composition *c = t->c;
    const Etch__Slice *slice = c->options->slice;
    bool seed = place == c->run->failing_place;

    if (follow_reads(t, place, seed) && !seed)
        follow_missing(t, place);
    follow_flow(t, place, seed);
    for (size_t i = 0; i < slice->n_statements; i++) {
        const Etch__Statement *s = slice->statements[i];
        uint32_t from = place_of(c, s);

        if (from != ETCH_NOWHERE && !t->shown[from] && etch_run_visited(c->run, from) && has_part(t, s, place, seed))
            take(t, from);
    }
}

static bool is_own(const struct etch_run *run, uint32_t variable)
{
    for (size_t i = 0; i < run->accesses.n; i++)
        if (run->accesses.v[i].variable == variable && run->accesses.v[i].object != ETCH_NOWHERE)
            return false;
    return true;
}

void etch_dependence_follow(const struct composition *c, bool *shown, uint32_t variable)
{
    struct dependence_walk t = {.c = c, .shown = shown, .variable = variable, .own = is_own(c->run, variable)};

    t.queue = malloc((c->names->places.n + 1) * sizeof(*t.queue));
    if (!t.queue || !c->options->slice) {
        free(t.queue);
        return;
    }
    for (uint32_t i = 0; i < c->names->places.n; i++)
        if (shown[i])
            t.queue[t.n++] = i;
    while (t.next < t.n)
        step_back(&t, t.queue[t.next++]);
    free(t.queue);
}

/* ---- The walk of an address ---- */

#define WALK_MAX 12u /* statements; a note reports that there are more */

struct address_walk {
    const struct composition *c;
    struct etch_run_visit visit[WALK_MAX + 1]; /* the first is the failing statement's */
    size_t n;
    bool cut;    /* it has more statements than fit */
    bool shared; /* the walk went through memory that threads share */
};

static void go(struct address_walk *w, const struct etch_run_visit *visit)
{
    if (!visit || !etch_dependence_statement(w->c, visit->place))
        return;
    for (size_t i = 0; i < w->n; i++)
        if (w->visit[i].place == visit->place)
            return;
    if (w->n > WALK_MAX) {
        w->cut = true;
        return;
    }
    w->visit[w->n++] = *visit;
}

/* True if this operand points to another operand of the statement: p of p->next, p[i]. */
static bool is_base(const Etch__Statement *s, const Etch__Operand *operand)
{
    size_t length = strlen(operand->name);

    for (size_t i = 0; i < s->n_operands; i++) {
        const char *name = s->operands[i]->name;

        if (strncmp(name, operand->name, length) == 0 && (name[length] == '[' || strncmp(name + length, "->", 2) == 0))
            return true;
    }
    return false;
}

/* The access by an operand that belongs to a visit, as far as it was recorded. */
static uint32_t read_of(const struct composition *c, const struct etch_run_visit *visit, const char *name)
{
    uint32_t found = ETCH_NOWHERE;

    for (uint32_t i = 0; i < c->run->accesses.n; i++) {
        const struct etch_run_access *a = &c->run->accesses.v[i];

        if (a->place == visit->place && a->thread == visit->thread && a->read && a->operand != ETCH_NOWHERE &&
            !a->crash && strcmp(c->names->variables.v[a->operand], name) == 0 &&
            (found == ETCH_NOWHERE || a->nth <= visit->count))
            found = i;
    }
    return found;
}

static bool looks_like_address(const struct etch_run_access *a)
{
    return a->known && a->size == 8 && (a->value == 0 || a->value >= 65536);
}

static bool reads_address(const Etch__Statement *s)
{
    for (size_t i = 0; i < s->n_operands; i++)
        if (!s->operands[i]->write && s->operands[i]->size == 8)
            return true;
    return false;
}

/* The callers that passed the address to the function; `argument` false: the result of the call at the visit. Returns
 * true if there was any. */
static bool go_to_calls(struct address_walk *w, const struct etch_run_visit *visit, bool argument)
{
    const Etch__Slice *slice = w->c->options->slice;
    const struct etch_run *run = w->c->run;
    size_t before = w->n;

    for (size_t i = 0; i < slice->n_statements; i++) {
        const Etch__Statement *s = slice->statements[i];
        bool has_part = argument ? etch_dependence_has_role(s, ETCH__STATEMENT_ROLE__ROLE_ARGUMENT) &&
                                       etch_dependence_is_call_of(w->c, s, w->c->names->places.v[visit->place].function)
                                 : etch_dependence_has_role(s, ETCH__STATEMENT_ROLE__ROLE_RETURN) && reads_address(s);
        uint32_t at = has_part && etch_dependence_brought_in(w->c, s, visit->place) ? place_of(w->c, s) : ETCH_NOWHERE;

        if (at != ETCH_NOWHERE)
            go(w, argument ? etch_run_visited_before(run, visit->thread, at, visit->seq)
                           : etch_run_visited_after(run, visit->thread, at, visit->seq));
    }
    return w->n > before;
}

static void visit_by_access(struct address_walk *w, const struct etch_run_access *a)
{
    const struct etch_run_visit *last = etch_run_visited_by(w->c->run, a->thread, a->place);
    struct etch_run_visit visit = etch_run_visit_of(a);

    go(w, last && last->count == a->nth ? last : &visit);
}

/* Back over one operand. Returns whether that led somewhere. */
static bool go_over(struct address_walk *w, const struct etch_run_visit *visit, const Etch__Operand *o)
{
    const struct etch_run *run = w->c->run;
    uint32_t read = read_of(w->c, visit, o->name);
    uint32_t write = read == ETCH_NOWHERE ? ETCH_NOWHERE : etch_dependence_definition(run, read);
    const struct etch_run_visit *by = write == ETCH_NOWHERE ? etch_dependence_by_flow(w->c, visit, o) : NULL;
    size_t before = w->n;

    if (read != ETCH_NOWHERE ? !looks_like_address(&run->accesses.v[read]) : o->size != 8)
        return false;
    w->shared |= o->shared && (write != ETCH_NOWHERE || by) && visit != &w->visit[0];
    if (write != ETCH_NOWHERE)
        visit_by_access(w, &run->accesses.v[write]);
    else if (by)
        go(w, by);
    else if (!o->shared)
        go_to_calls(w, visit, true);
    return w->n > before;
}

/* One step back from a visit, by each address that the visit read. The holder of an address is followed only if the
 * address itself leads nowhere: the address was then never stored there. */
static void go_back(struct address_walk *w, const struct etch_run_visit *visit)
{
    const Etch__Statement *s = etch_dependence_statement(w->c, visit->place);
    bool asked = visit == &w->visit[0], found = false;

    for (size_t i = 0; i < s->n_operands; i++)
        if (!s->operands[i]->write && !is_base(s, s->operands[i])) {
            asked |= s->operands[i]->shared;
            found |= go_over(w, visit, s->operands[i]);
        }
    found |= go_to_calls(w, visit, false);
    for (size_t i = 0; asked && (!found || visit == &w->visit[0]) && i < s->n_operands; i++)
        if (!s->operands[i]->write && is_base(s, s->operands[i]))
            go_over(w, visit, s->operands[i]);
}

void etch_dependence_follow_addresses(struct composition *c, bool *shown)
{
    struct address_walk w = {.c = c};

    if (!c->options->slice || c->run->failing_place == ETCH_NOWHERE)
        return;
    go(&w, visit_of(c, c->run->failing_place));
    for (size_t i = 0; i < w.n; i++)
        go_back(&w, &w.visit[i]);
    c->walk_cut = w.shared && w.cut;
    for (size_t i = 1; w.shared && i < w.n; i++) {
        shown[w.visit[i].place] = true;
        c->failed |= !etch_array_push(&c->chosen, w.visit[i]);
    }
}
