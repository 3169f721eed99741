/* SPDX-License-Identifier: MIT */
/* See sentence.h. */
#include "sketch/render/sentence.h"

#include "sketch/render/model.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define NO_STEP SIZE_MAX
#define CHAIN_LINKS 3u /* writers that the sentence names, from the failure back */

struct sentence {
    const Etch__Sketch *sketch;
    const Etch__Predictor *cause;
    char *text;
    size_t size, n;
    uint64_t named; /* threads that were named already, by their bits */
    bool one_file;  /* lines need no file */
};

static void say(struct sentence *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void say(struct sentence *s, const char *format, ...)
{
    va_list arguments;
    int n;

    if (s->n + 1 >= s->size)
        return;
    va_start(arguments, format);
    n = vsnprintf(s->text + s->n, s->size - s->n, format, arguments);
    va_end(arguments);
    s->n = n < 0 ? s->n : s->n + (size_t)n < s->size ? s->n + (size_t)n : s->size - 1;
}

/* ---- Places and steps ---- */

static bool is_at(const Etch__Place *a, const Etch__Place *b)
{
    return a->line == b->line && strcmp(etch_render_string(a->file), etch_render_string(b->file)) == 0;
}

static const Etch__Place *statement(const struct sentence *s, size_t i)
{
    return etch_render_place(i < s->cause->n_statements ? s->cause->statements[i] : NULL);
}

#define ANY_THREAD UINT32_MAX

/* The last step at a statement of the cause. A step that the cause speaks of comes before any other, and before that a
 * step of another thread than `not_by`. */
static size_t step_apart(const struct sentence *s, size_t i, uint32_t not_by)
{
    size_t found = NO_STEP;
    int best = -1;

    for (size_t k = 0; k < s->sketch->n_steps; k++) {
        const Etch__SketchStep *step = s->sketch->steps[k];
        int score = (step->thread != not_by ? 2 : 0) + etch_render_step_has_predictor(step, 0);

        if (is_at(etch_render_place(step->place), statement(s, i)) && score >= best) {
            found = k;
            best = score;
        }
    }
    return found;
}

static size_t step_at(const struct sentence *s, size_t i)
{
    return step_apart(s, i, ANY_THREAD);
}

static uint32_t thread_at(const struct sentence *s, size_t step)
{
    return step == NO_STEP ? ANY_THREAD : s->sketch->steps[step]->thread;
}

static bool share_a_file(const struct sentence *s)
{
    const Etch__Place *failing = etch_render_place(s->sketch->failing_place);

    for (size_t i = 0; i < s->cause->n_statements; i++)
        if (strcmp(etch_render_string(statement(s, i)->file), etch_render_string(failing->file)) != 0)
            return false;
    return failing->line != 0;
}

static void say_place(struct sentence *s, const Etch__Place *place)
{
    if (!place->line)
        say(s, "an unknown place");
    else if (s->one_file)
        say(s, "line %u", place->line);
    else
        say(s, "%s:%u", etch_render_basename(place->file), place->line);
}

static void say_thread(struct sentence *s, size_t thread)
{
    const char *name = thread < s->sketch->n_threads ? etch_render_string(s->sketch->threads[thread]->name) : "";

    say(s, "T%zu", thread + 1);
    if (thread < 64 && !(s->named >> thread & 1) && name[0])
        say(s, " (%.80s)", name);
    if (thread < 64)
        s->named |= UINT64_C(1) << thread;
}

/* The thread of a step, or the function where no step is drawn. */
static void say_who(struct sentence *s, size_t step, const Etch__Place *place)
{
    char function[128];

    if (step != NO_STEP && s->sketch->steps[step]->thread < s->sketch->n_threads)
        say_thread(s, s->sketch->steps[step]->thread);
    else if (etch_render_string(place->function)[0])
        say(s, "%s()", etch_render_function(place, function, sizeof(function)));
    else
        say(s, s->n ? "the program" : "The program");
}

/* ---- What a statement does ---- */

static const Etch__SketchValue *value_of(const struct sentence *s, size_t step, const char *variable, bool write)
{
    const Etch__SketchStep *at = step != NO_STEP ? s->sketch->steps[step] : NULL;

    for (size_t k = 0; at && k < at->n_values; k++) {
        const Etch__SketchValue *v = at->values[k];

        if (v->write == write && v->known_case == ETCH__SKETCH_VALUE__KNOWN_VALUE &&
            v->variable < s->sketch->n_variables &&
            strcmp(etch_render_string(s->sketch->variables[v->variable]->name), variable) == 0)
            return v;
    }
    return NULL;
}

/* "sets fifo->mut to 0", "reads it". */
static void say_deed(struct sentence *s, size_t step, char pattern, const char *variable, bool again)
{
    const Etch__SketchValue *v = pattern == 'W' ? value_of(s, step, variable, true) : NULL;
    const char *name = again ? "it" : variable[0] ? variable : "the variable";
    char number[24];

    if (v) {
        etch_render_value(v, number);
        say(s, "sets %.200s to %s", name, number);
    } else {
        say(s, "%s %.200s", pattern == 'W' ? "writes" : "reads", name);
    }
}

/* ---- How it fails ---- */

static bool is_assertion(const Etch__Failure *f)
{
    return f->signal == SIGABRT && strstr(etch_render_string(f->message), "ssertion");
}

/* "crashes (SIGSEGV)", "hangs": what the failing thread does. */
static void say_failure(struct sentence *s)
{
    const Etch__Failure *f = s->sketch->failure;
    const char *name = f && f->kind == ETCH__FAILURE_KIND__FAILURE_SIGNAL ? sigabbrev_np((int)f->signal) : NULL;

    if (!f)
        say(s, "fails");
    else if (f->cause == ETCH__FAILURE_CAUSE__CAUSE_EXCEPTION)
        say(s, "ends by an uncaught %.200s",
            f->exception && f->exception->type && f->exception->type[0] ? f->exception->type : "exception");
    else if (f->cause == ETCH__FAILURE_CAUSE__CAUSE_STACK_OVERFLOW)
        say(s, "overflows its stack");
    else if (f->cause == ETCH__FAILURE_CAUSE__CAUSE_NO_MEMORY)
        say(s, "is killed by the kernel, because memory is short,");
    else if (f->kind == ETCH__FAILURE_KIND__FAILURE_HANG || f->kind == ETCH__FAILURE_KIND__FAILURE_TIMEOUT)
        say(s, "hangs");
    else if (f->kind == ETCH__FAILURE_KIND__FAILURE_EXIT)
        say(s, "ends with status %d", f->code);
    else if (f->kind != ETCH__FAILURE_KIND__FAILURE_SIGNAL)
        say(s, "fails the check");
    else if (is_assertion(f))
        say(s, "fails an assertion");
    else if (f->signal == SIGABRT)
        say(s, "aborts (SIGABRT)");
    else if (name)
        say(s, "crashes (SIG%s)", name);
    else
        say(s, "dies by signal %u", f->signal);
}

static size_t failing_step(const struct sentence *s)
{
    for (size_t i = s->sketch->n_steps; i-- > 0;)
        if (s->sketch->steps[i]->failing)
            return i;
    return NO_STEP;
}

/* "so fifo->mut is 0 there", if a value decides at the failing statement and was not named yet. */
static void say_failing_value(struct sentence *s, size_t step)
{
    const Etch__SketchStep *at = step != NO_STEP ? s->sketch->steps[step] : NULL;
    char number[24];

    for (size_t k = 0; at && k < at->n_values; k++) {
        const Etch__SketchValue *v = at->values[k];

        if (!v->deciding || v->known_case != ETCH__SKETCH_VALUE__KNOWN_VALUE || v->variable >= s->sketch->n_variables)
            continue;
        etch_render_value(v, number);
        say(s, " with %.200s %s %s", etch_render_string(s->sketch->variables[v->variable]->name),
            s->sketch->compared ? "==" : "equal to", number);
        return;
    }
}

/* The clause of the failure, after what led to it. `last` is the step of the last statement that was named. */
static void say_end(struct sentence *s, size_t last)
{
    const Etch__Place *failing = etch_render_place(s->sketch->failing_place);
    size_t step = failing_step(s);
    bool here = last != NO_STEP && last == step;

    if (!here && last != NO_STEP && step != NO_STEP)
        here = is_at(etch_render_place(s->sketch->steps[last]->place), failing) &&
               s->sketch->steps[last]->thread == s->sketch->steps[step]->thread;
    if (here) {
        say(s, ", where it ");
        say_failure(s);
        say(s, ".");
        return;
    }
    say(s, "; ");
    say_who(s, step, failing);
    say(s, " then ");
    say_failure(s);
    if (failing->line) {
        say(s, " at ");
        say_place(s, failing);
    }
    say_failing_value(s, step);
    say(s, ".");
}

/* ---- By kind of cause ---- */

/* One access of the cause. `again`: its variable was named already. */
static void say_access(struct sentence *s, size_t i, size_t step, bool again)
{
    const char *pattern = etch_render_string(s->cause->pattern);

    say_who(s, step, statement(s, i));
    say(s, " ");
    say_deed(s, step, strlen(pattern) > i ? pattern[i] : 'R', etch_render_string(s->cause->variable), again);
    say(s, " at ");
    say_place(s, statement(s, i));
}

static bool say_order(struct sentence *s)
{
    size_t last = step_at(s, 1);

    if (s->cause->n_statements != 2)
        return false;
    say_access(s, 0, step_apart(s, 0, thread_at(s, last)), false);
    say(s, " before ");
    say_access(s, 1, last, true);
    say_end(s, last);
    return true;
}

static bool say_atomicity(struct sentence *s)
{
    const char *pattern = etch_render_string(s->cause->pattern);
    size_t last = step_at(s, 2);

    if (s->cause->n_statements != 3)
        return false;
    say_access(s, 1, step_apart(s, 1, thread_at(s, last)), false);
    say(s, " between two uses by ");
    say_who(s, last, statement(s, 0));
    say(s, ", which %s it at ", pattern[0] == 'W' ? "writes" : "reads");
    say_place(s, statement(s, 0));
    say(s, " and %s it at ", strlen(pattern) > 2 && pattern[2] == 'W' ? "writes" : "reads");
    say_place(s, statement(s, 2));
    say_end(s, last);
    return true;
}

/* The predictor's own words end with the place: "fifo->mut == 0 at consumer pbzip2.c:18". */
/* Where the value at a step came from: its writer, and what that step had read, back to the root. */
static void say_chain(struct sentence *s, size_t step)
{
    size_t n_steps = s->sketch->n_steps;

    for (unsigned links = 0; links < CHAIN_LINKS && step < n_steps; links++) {
        const Etch__SketchStep *at = s->sketch->steps[step];
        const Etch__SketchValue *read = NULL;

        for (size_t k = 0; k < at->n_values; k++) {
            const Etch__SketchValue *v = at->values[k];

            if (v->origin_case == ETCH__SKETCH_VALUE__ORIGIN_FROM && v->from < n_steps && v->from != step &&
                (!read || v->deciding))
                read = v;
        }
        if (!read)
            return;
        say(s, links ? ", from what " : " The value is from ");
        say_who(s, read->from, etch_render_place(s->sketch->steps[read->from]->place));
        say(s, links ? " left at " : ", at ");
        say_place(s, etch_render_place(s->sketch->steps[read->from]->place));
        step = read->from;
    }
}

/* A statement that ran in all failing runs and in no passing run says how it came about. The nearest to the failure
 * would only repeat the failure. */
static void say_only_failing_runs(struct sentence *s)
{
    const Etch__Place *failing = etch_render_place(s->sketch->failing_place);

    for (size_t i = 1; i < s->sketch->n_predictors; i++) {
        const Etch__Predictor *p = s->sketch->predictors[i];

        if (strcmp(etch_render_string(p->kind), "executed") != 0 || p->n_statements != 1 || p->passing_true ||
            !p->passing || p->failing_true < p->failing || strncmp(etch_render_string(p->pattern), "not", 3) == 0 ||
            is_at(p->statements[0], failing))
            continue;
        say(s, " Only failing runs execute ");
        say_place(s, p->statements[0]);
        say(s, ".");
        return;
    }
}

static bool say_value(struct sentence *s)
{
    size_t step = step_at(s, 0);
    const char *text = etch_render_string(s->cause->text), *at = strstr(text, " at ");

    if (!s->cause->n_statements || !at)
        return false;
    say_who(s, step, statement(s, 0));
    say(s, " has %.*s at ", (int)(at - text), text);
    say_place(s, statement(s, 0));
    say_end(s, step);
    if (step != NO_STEP) {
        size_t before = s->n;

        say_chain(s, step);
        if (s->n > before)
            say(s, ".");
    }
    say_only_failing_runs(s);
    return true;
}

static bool say_origin(struct sentence *s)
{
    size_t last = step_at(s, 1);

    if (s->cause->n_statements != 2)
        return false;
    say_access(s, 0, step_apart(s, 0, thread_at(s, last)), false);
    say(s, ", and this is what ");
    say_who(s, last, statement(s, 1));
    say(s, " finds there at ");
    say_place(s, statement(s, 1));
    say_end(s, last);
    return true;
}

/* "goes on to line 5", "never goes on to line 5", "goes on to line 5 after line 3 went on to line 4": the other branch
 * is the first statement. */
static void say_outcome(struct sentence *s)
{
    const char *text = etch_render_string(s->cause->text), *never = strstr(text, "never goes on to line ");
    const char *to = never ? never : strstr(text, "goes on to line "), *after = to ? strstr(to, " after ") : NULL;
    const char *went = after ? strstr(after, "went on to line ") : NULL;

    if (!to)
        return;
    say(s, " (it %.*s", after ? (int)(after - to) : 60, to);
    if (went && s->cause->n_statements == 2) {
        say(s, " after ");
        say_place(s, statement(s, 0));
        say(s, " %.60s", went);
    }
    say(s, ")");
}

static bool say_branch(struct sentence *s)
{
    const char *text = etch_render_string(s->cause->text);
    size_t n = s->cause->n_statements, step;

    if (!n)
        return false;
    step = step_at(s, n - 1);
    say_who(s, step, statement(s, n - 1));
    if (n == 1 && strstr(text, " goes on to line ") && !strstr(text, " never ")) {
        say(s, " %.60s after the test at ", strstr(text, "goes on to line "));
        say_place(s, statement(s, 0));
        say(s, ", where passing runs go elsewhere");
    } else {
        say(s, " decides differently than in passing runs at ");
        say_place(s, statement(s, n - 1));
        say_outcome(s);
    }
    say_end(s, step);
    return true;
}

static bool say_executed(struct sentence *s)
{
    size_t step = step_at(s, 0);
    bool not_run = strncmp(etch_render_string(s->cause->pattern), "not", 3) == 0;

    if (!s->cause->n_statements)
        return false;
    say_who(s, not_run ? NO_STEP : step, statement(s, 0));
    say(s, not_run ? " does not run " : " runs ");
    say_place(s, statement(s, 0));
    say(s, not_run ? ", which passing runs do" : ", which passing runs do not");
    say_end(s, not_run ? NO_STEP : step);
    return true;
}

/* The thread that took the lock at a statement waits at the next statement; the lock is waited for at the one before.
 */
static bool say_ring(struct sentence *s)
{
    size_t n = s->cause->n_statements;

    if (n < 4 || n % 2)
        return false;
    for (size_t i = 0; i < n; i += 2) {
        say(s, i ? i + 2 == n ? ", and " : ", " : "");
        say_who(s, step_at(s, i), statement(s, i));
        say(s, " holds the lock that it took at ");
        say_place(s, statement(s, i));
        say(s, " and waits at ");
        say_place(s, statement(s, i + 1));
        say(s, " for that of ");
        say_who(s, step_at(s, (i + 2) % n), statement(s, (i + 2) % n));
    }
    say(s, ": none of them can go on.");
    return true;
}

static bool say_wait(struct sentence *s)
{
    size_t n = s->cause->n_statements, waits = n ? step_at(s, n - 1) : NO_STEP;

    if (n == 2) {
        say_who(s, step_at(s, 0), statement(s, 0));
        say(s, " wakes at ");
        say_place(s, statement(s, 0));
        say(s, " before ");
        say_who(s, waits, statement(s, 1));
        say(s, " begins to wait at ");
        say_place(s, statement(s, 1));
        say(s, ", and nobody wakes it again.");
    } else if (n == 1) {
        say_who(s, waits, statement(s, 0));
        say(s, " waits at ");
        say_place(s, statement(s, 0));
        say(s, " for what nobody signals.");
    }
    return n == 1 || n == 2;
}

/* ---- All of it ---- */

static bool say_cause(struct sentence *s)
{
    static const struct {
        const char *kind;
        bool (*say)(struct sentence *s);
    } kinds[] = {{"order", say_order},   {"atomicity", say_atomicity}, {"value", say_value},     {"origin", say_origin},
                 {"branch", say_branch}, {"executed", say_executed},   {"lock_order", say_ring}, {"wait", say_wait}};

    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if (strcmp(etch_render_string(s->cause->kind), kinds[i].kind) == 0)
            return kinds[i].say(s);
    return false;
}

static void say_sureness(struct sentence *s)
{
    const Etch__Predictor *p = s->cause;
    const Etch__Experiment *e = p->experiment;

    if (e) {
        say(s, " %s by experiment: %u of %u runs fail when this is turned round, %u of %u when it is enforced.",
            e->proven ? "Proven" : "Necessary", e->turned_failed, e->turned, e->alone_failed, e->alone);
        return;
    }
    say(s, " Suspected: so in %u of %u failing and %u of %u passing runs.", p->failing_true, p->failing,
        p->passing_true, p->passing);
}

/* Nothing is known but the end. */
static void say_only_failure(struct sentence *s)
{
    const Etch__Place *failing = etch_render_place(s->sketch->failing_place);
    size_t step = failing_step(s);

    say_who(s, step, failing);
    say(s, " ");
    say_failure(s);
    if (failing->line) {
        say(s, " at ");
        say_place(s, failing);
    }
    say_failing_value(s, step);
    say(s, ".");
}

static void say_no_cause(struct sentence *s)
{
    say(s, " The cause is not known: ");
    if (s->sketch->compared)
        say(s, "nothing separates failing runs from passing runs yet.");
    else if (s->sketch->failing_runs > 1)
        say(s, "no run passed, so there is nothing to compare with.");
    else
        say(s, "there is one failing run and nothing to compare it with.");
}

size_t etch_render_sentence(const Etch__Sketch *sketch, char *text, size_t size)
{
    struct sentence s = {.sketch = sketch, .text = text, .size = size};
    size_t what;

    text[0] = '\0';
    if (!sketch->failing_runs || (!sketch->failure && !sketch->failing_place))
        return 0;
    if (!etch_render_has_cause(sketch)) {
        say_only_failure(&s);
        what = s.n;
        say_no_cause(&s);
        return what;
    }
    s.cause = sketch->predictors[0];
    s.one_file = share_a_file(&s);
    if (!say_cause(&s)) { /* in the predictor's own words */
        say(&s, "%.600s", etch_render_string(s.cause->text));
        say_end(&s, NO_STEP);
    }
    what = s.n;
    say_sureness(&s);
    return what;
}
