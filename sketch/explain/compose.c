/* SPDX-License-Identifier: MIT */
/* Laying out a sketch; see compose.h. */
#include "sketch/compose.h"
#include "base/function_name.h"
#include "proto/message.h"
#include "sketch/explain/cause.h"
#include "sketch/explain/conflict.h"
#include "sketch/explain/layout.h"
#include "sketch/runs/order.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

/* NOLINTBEGIN(clang-analyzer-unix.Malloc): only where memory is short is an item lost, and then the whole fails */

/* ---- Which runs ---- */

static size_t count_bucket(struct etch_run *const *runs, size_t n, const char *bucket)
{
    size_t count = 0;

    for (size_t i = 0; i < n; i++)
        count += runs[i]->failing && strcmp(runs[i]->bucket, bucket) == 0;
    return count;
}

/* The bucket of most failing runs; the first by name of several such buckets. NULL: no run fails. */
static const char *commonest_failure(struct etch_run *const *runs, size_t n)
{
    const char *best = NULL;
    size_t most = 0;

    for (size_t i = 0; i < n; i++) {
        size_t count = runs[i]->failing ? count_bucket(runs, n, runs[i]->bucket) : 0;

        if (count > most || (count && count == most && strcmp(runs[i]->bucket, best) < 0)) {
            most = count;
            best = runs[i]->bucket;
        }
    }
    return best;
}

static int by_key(const void *x, const void *y)
{
    const struct etch_run *a = *(struct etch_run *const *)x, *b = *(struct etch_run *const *)y;

    if (a->key != b->key)
        return a->key < b->key ? -1 : 1;
    return strcmp(a->name, b->name);
}

/* The failing run that shows most: the best predictor of each kind holds, nothing lost, watched; the first such. */
static const struct etch_run *choose(const struct composition *c)
{
    const struct etch_run *best = NULL;
    int best_score = -1;

    for (size_t i = 0; i < c->n_runs; i++) {
        const struct etch_run *run = c->runs[i];
        int score = 0;

        if (!run->failing)
            continue;
        for (unsigned k = 0; k < ETCH_PREDICTOR_KINDS; k++)
            if (c->best[k] && etch_predictor_holds(c->best[k], c->names, run) == ETCH_TRUE)
                score += c->top && c->best[k] == c->top ? 16 : 2;
        score += (run->lost ? 0 : 1) + (run->accesses.n ? 1 : 0);
        if (score > best_score) {
            best_score = score;
            best = run;
        }
    }
    return best;
}

/* ---- Messages ---- */

void *etch_compose_new(struct composition *c, size_t size)
{
    void *memory = calloc(1, size ? size : 1);

    c->failed |= !memory;
    return memory;
}

char *etch_compose_text(struct composition *c, const char *text)
{
    char *copy = strdup(text ? text : "");

    c->failed |= !copy;
    return copy;
}

bool etch_compose_push(struct composition *c, void *field, size_t *n, void *item)
{
    void ***list = field;
    void **bigger = item ? realloc(*list, (*n + 1) * sizeof(void *)) : NULL;

    if (!bigger) {
        c->failed = true;
        return false;
    }
    bigger[(*n)++] = item;
    *list = bigger;
    return true;
}

Etch__Place *etch_compose_place(struct composition *c, uint32_t place)
{
    const struct etch_line_place *from = place < c->names->places.n ? &c->names->places.v[place] : NULL;
    Etch__Place *to = etch_compose_new(c, sizeof(*to));

    if (!to)
        return NULL;
    etch__place__init(to);
    to->file = etch_compose_text(c, from ? from->file : "");
    to->function = etch_compose_text(c, from ? from->function : "");
    to->line = from ? from->line : 0;
    return to;
}

static void add_note(struct composition *c, const char *text)
{
    etch_compose_push(c, &c->sketch->notes, &c->sketch->n_notes, etch_compose_text(c, text));
}

static const char *variable_name(const struct composition *c, uint32_t variable)
{
    return variable < c->names->variables.n ? c->names->variables.v[variable] : "";
}

static void add_experiment(struct composition *c, Etch__Predictor *to, const struct etch_experiment *from)
{
    if (!from->sureness || !(to->experiment = etch_compose_new(c, sizeof(*to->experiment))))
        return;
    etch__experiment__init(to->experiment);
    to->experiment->proven = from->sureness == ETCH_PROVEN;
    to->experiment->turned_failed = from->turned_failed;
    to->experiment->turned = from->turned;
    to->experiment->alone_failed = from->alone_failed;
    to->experiment->alone = from->alone;
}

static void add_predictor(struct composition *c, const struct etch_predictor *from)
{
    Etch__Predictor *to = etch_compose_new(c, sizeof(*to));
    char text[1024];

    if (!to)
        return;
    etch__predictor__init(to);
    etch_predictor_text(from, c->names, text, sizeof(text));
    to->kind = etch_compose_text(c, etch_predictor_kind_name(from->kind));
    to->text = etch_compose_text(c, text);
    to->pattern = etch_compose_text(c, etch_predictor_pattern(from));
    to->variable = etch_compose_text(c, variable_name(c, from->variable));
    to->second = etch_compose_text(c, variable_name(c, from->second));
    for (uint32_t i = 0; i < from->n_places; i++)
        etch_compose_push(c, &to->statements, &to->n_statements, etch_compose_place(c, from->places[i]));
    to->failing_true = from->failing_true;
    to->failing = from->failing;
    to->passing_true = from->passing_true;
    to->passing = from->passing;
    to->unknown = from->unknown;
    to->precision = from->precision;
    to->recall = from->recall;
    to->f = from->f;
    to->f_lo = from->f_lo;
    to->f_hi = from->f_hi;
    add_experiment(c, to, &from->experiment);
    to->distance = from->distance == UINT32_MAX ? 0 : from->distance;
    etch_compose_push(c, &c->sketch->predictors, &c->sketch->n_predictors, to);
}

/* ---- The head ---- */

static const char *exit_text(const Etch__Failure *f, char *text, size_t size)
{
    if (!f->code)
        return "failing exit status";
    snprintf(text, size, "exit status %d", f->code);
    return text;
}

/* A trap that the source asks for by its name. */
static void name_trap(struct composition *c)
{
    const Etch__Place *at = c->sketch->failing_place;
    Etch__Failure *f = c->sketch->failure;
    const char *line =
        at && c->options->source ? c->options->source(c->options->source_context, at->file, at->line) : NULL;

    if (f && line &&
        (f->cause == ETCH__FAILURE_CAUSE__CAUSE_TRAP || f->cause == ETCH__FAILURE_CAUSE__CAUSE_NO_RETURN_VALUE) &&
        strstr(line, "__builtin_trap"))
        f->cause = ETCH__FAILURE_CAUSE__CAUSE_TRAP_CALL;
}

static void headline(const struct composition *c, char *text, size_t size)
{
    const struct etch_run *run = c->run;
    const Etch__Failure *f = c->sketch->failure ? c->sketch->failure : run->failure;
    const char *function =
        run->failing_place < c->names->places.n ? c->names->places.v[run->failing_place].function : "";
    const char *abbreviation = f->kind == ETCH__FAILURE_KIND__FAILURE_SIGNAL ? sigabbrev_np((int)f->signal) : NULL;
    char what[64], status[32], brief[128];

    if (etch_cause_headline(f, etch_function_short(function, brief, sizeof(brief)), text, size))
        return;
    if (abbreviation)
        snprintf(what, sizeof(what), "SIG%s", abbreviation);
    else if (f->kind == ETCH__FAILURE_KIND__FAILURE_SIGNAL)
        snprintf(what, sizeof(what), "signal %u", f->signal);
    else
        snprintf(what, sizeof(what), "%s",
                 f->kind == ETCH__FAILURE_KIND__FAILURE_HANG      ? "hang"
                 : f->kind == ETCH__FAILURE_KIND__FAILURE_TIMEOUT ? "time limit"
                 : f->kind == ETCH__FAILURE_KIND__FAILURE_EXIT    ? exit_text(f, status, sizeof(status))
                                                                  : "the check failed");
    snprintf(text, size, *function ? "%s in %s()" : "%s", what, etch_function_short(function, brief, sizeof(brief)));
}

static void fill_head(struct composition *c)
{
    Etch__Sketch *s = c->sketch;
    const Etch__Slice *slice = c->options->slice;
    char text[1024];

    s->program = etch_compose_text(c, slice ? slice->program : "");
    if (slice && slice->build_id.len && (s->build_id.data = etch_compose_new(c, slice->build_id.len))) {
        memcpy(s->build_id.data, slice->build_id.data, slice->build_id.len);
        s->build_id.len = slice->build_id.len;
    }
    for (size_t i = 0; i < c->run->command.n; i++)
        etch_compose_push(c, &s->command, &s->n_command, etch_compose_text(c, c->run->command.v[i]));
    s->input = etch_compose_text(c, c->run->input);
    s->failure = etch_message_copy(c->run->failure);
    c->failed |= !s->failure;
    if (c->run->failing_place != ETCH_NOWHERE)
        s->failing_place = etch_compose_place(c, c->run->failing_place);
    name_trap(c);
    headline(c, text, sizeof(text));
    s->headline = etch_compose_text(c, text);
    s->source = c->run->source;
    s->round = c->options->round;
    s->sigma = c->options->sigma;
    s->slice_statements = slice ? (uint32_t)slice->n_statements : 0;
    for (size_t i = 0; slice && i < slice->n_statements; i++) {
        const Etch__Place *p = slice->statements[i]->place;

        s->executed_statements +=
            etch_run_visited(c->run, etch_names_find_place(c->names, p->file, p->line, p->function)) != NULL;
        etch_compose_push(c, &s->slice, &s->n_slice, etch_message_copy(slice->statements[i]));
    }
}

/* The limits of the picture and of the search that left something out. */
static void note_limits(struct composition *c)
{
    struct etch_search_limits limits = etch_predictors_limits(c->run);
    size_t predictors = 0;
    uint64_t bounded;
    char text[256];

    for (size_t i = ETCH_SHOWN_PREDICTORS; i < c->predictors.all.n; i++)
        predictors += c->predictors.all.v[i].f > 0;
    snprintf(text, sizeof(text), "%zu weaker predictors are not part of this sketch.", predictors);
    if (predictors)
        add_note(c, text);
    snprintf(text, sizeof(text), "%zu more variables have values and no column.", c->unshown_variables);
    if (c->unshown_variables)
        add_note(c, text);
    bounded = c->run->order ? etch_run_order_bounded(c->run->order) : 0;
    snprintf(text, sizeof(text),
             "%" PRIu64
             " locks, critical sections or reads were not compared with all others: an order may be missing.",
             bounded);
    if (bounded)
        add_note(c, text);
    if (c->walk_cut)
        add_note(c, "The failing address has a longer history than the statements shown.");
    snprintf(text, sizeof(text),
             "For %zu pairs of reads not all writes were searched, because the object has too many.",
             limits.unsearched);
    if (limits.unsearched)
        add_note(c, text);
    snprintf(text, sizeof(text), "%zu rings of locks have more than %u threads and are not shown.", limits.long_rings,
             ETCH_PREDICTOR_PLACES / 2);
    if (limits.long_rings)
        add_note(c, text);
}

static void fill_notes(struct composition *c)
{
    char text[512];
    uint32_t cut = 0, lost = 0;
    size_t others;

    for (size_t i = 0; i < c->options->n_notes; i++)
        add_note(c, c->options->notes[i]);
    for (size_t i = 0; i < c->n_runs; i++) {
        cut += c->runs[i]->cut;
        lost += c->runs[i]->lost && !c->runs[i]->cut;
    }
    snprintf(text, sizeof(text), "%u of %zu recordings end before their run did. Their missing parts count as unknown.",
             cut, c->n_runs);
    if (cut)
        add_note(c, text);
    snprintf(text, sizeof(text), "%u of %zu recordings have losses. Their missing parts count as unknown.", lost,
             c->n_runs);
    if (lost)
        add_note(c, text);
    others = etch_conflict_count_others(c);
    snprintf(text, sizeof(text),
             "%zu of %zu recordings besides the one shown contain contradictory evidence. The contradicted clocks and "
             "records were not used.",
             others, c->n_runs);
    if (others)
        add_note(c, text);
    note_limits(c);
    if (c->run->failure->message && c->run->failure->message[0])
        add_note(c, c->run->failure->message);
    for (unsigned i = 0; etch_cause_note(c->run->failure, i, text, sizeof(text)); i++)
        add_note(c, text);
    if (c->run->inferred)
        add_note(
            c, "No function of the program was running in the failing thread. The place shown is the last call of that "
               "thread to a library.");
    snprintf(text, sizeof(text), "Times do not order steps of different threads: %s.", c->run->clocks_why);
    if (c->run->clocks_why[0] && c->sketch->n_threads > 1)
        add_note(c, text);
    if (!c->sketch->passing_runs && c->sketch->failing_runs > 1)
        add_note(c, "No run passed. Without a passing run to compare with, no cause is named.");
    for (size_t i = 0; i < c->run->losses.n; i++)
        etch_compose_push(c, &c->sketch->losses, &c->sketch->n_losses, etch_message_copy(c->run->losses.v[i]));
}

/* ---- All of it ---- */

static void pick_best(struct composition *c)
{
    for (size_t i = 0; i < c->predictors.all.n; i++) {
        struct etch_predictor *p = &c->predictors.all.v[i];

        if (!c->top && (p->f > 0 || p->experiment.sureness))
            c->top = p;
        if (!c->best[p->kind] && (p->f >= 0.5 || p->experiment.sureness))
            c->best[p->kind] = p;
    }
}

static bool select_runs(struct composition *c, struct etch_run *const *runs, size_t n)
{
    const char *bucket = c->options->bucket ? c->options->bucket : commonest_failure(runs, n);

    c->runs = calloc(n + 1, sizeof(*c->runs));
    if (!c->runs || !bucket)
        return false;
    for (size_t i = 0; i < n; i++) {
        if (!runs[i]->failing)
            c->passing++;
        else if (strcmp(runs[i]->bucket, bucket) == 0)
            c->failing++;
        else {
            c->other_failures++;
            continue;
        }
        c->runs[c->n_runs++] = runs[i];
    }
    qsort(c->runs, c->n_runs, sizeof(*c->runs), by_key);
    return true;
}

static int rank(struct composition *c, struct etch_run *const *runs, size_t n, struct etch_error *err)
{
    if (!select_runs(c, runs, n))
        return etch_error_set(err, "none of the runs failed");
    if (etch_runs_unify(c->names, c->runs, c->n_runs) < 0)
        return etch_error_no_memory(err);
    if (c->passing &&
        etch_predictors_find(&c->predictors, c->names, (const struct etch_run *const *)c->runs, c->n_runs) < 0)
        return etch_error_no_memory(err);
    if (c->options->experiment && etch_predictors_promote(&c->predictors, c->options->experiment, c->names,
                                                          (const struct etch_run *const *)c->runs, c->n_runs) < 0)
        return etch_error_no_memory(err);
    return 0;
}

int etch_rank(struct etch_predictors *predictors, const struct etch_names *names, struct etch_run *const *runs,
              size_t n, const char *bucket, struct etch_error *err)
{
    const struct etch_compose_options options = {.bucket = bucket};
    struct composition c = {.names = names, .options = &options};
    int status = rank(&c, runs, n, err);

    free(c.runs);
    if (status < 0)
        etch_predictors_release(&c.predictors);
    *predictors = c.predictors;
    return status;
}

static bool is_shown(const struct etch_predictor *p)
{
    return p->f > 0 || p->experiment.sureness;
}

static int fill(struct composition *c, struct etch_run *const *runs, size_t n, struct etch_error *err)
{
    if (rank(c, runs, n, err) < 0)
        return -1;
    c->sketch->passing_runs = c->passing;
    c->sketch->failing_runs = c->failing;
    c->sketch->other_failures = c->other_failures;
    c->sketch->compared = c->passing > 0;
    pick_best(c);
    c->run = choose(c);
    if (!c->run || !c->run->failure)
        return etch_error_set(err, "no run failed as '%.300s'", c->options->bucket ? c->options->bucket : "");
    fill_head(c);
    for (size_t i = 0; i < c->predictors.all.n && i < ETCH_SHOWN_PREDICTORS && is_shown(&c->predictors.all.v[i]); i++)
        add_predictor(c, &c->predictors.all.v[i]);
    etch_layout_fill(c);
    etch_conflict_fill(c);
    fill_notes(c);
    return c->failed ? etch_error_no_memory(err) : 0;
}

Etch__Sketch *etch_compose(const struct etch_names *names, struct etch_run *const *runs, size_t n,
                           const struct etch_compose_options *options, struct etch_error *err)
{
    struct composition c = {.names = names, .options = options};
    int status;

    c.sketch = malloc(sizeof(*c.sketch));
    if (!c.sketch) {
        etch_error_no_memory(err);
        return NULL;
    }
    etch__sketch__init(c.sketch);
    status = fill(&c, runs, n, err);
    if (status < 0) {
        etch__sketch__free_unpacked(c.sketch, NULL);
        c.sketch = NULL;
    }
    etch_predictors_release(&c.predictors);
    etch_layout_release(&c);
    free(c.runs);
    return c.sketch;
}

/* NOLINTEND(clang-analyzer-unix.Malloc) */
