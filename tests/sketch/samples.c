/* SPDX-License-Identifier: MIT */
/* Sketches made by hand; see samples.h. The first is the one of the paper that the method comes from. */
#include "tests/sketch/samples.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define UNKNOWN UINT64_C(0xdeadbeefdeadbeef)

/* Appends a message to a repeated field that was made by malloc. */
#define ADD(list, count, message)                                                                                      \
    ((list) = realloc((list), ((count) + 1) * sizeof(*(list))), (list)[(count)++] = (message))

static Etch__Place *place(const char *file, uint32_t line, const char *function)
{
    Etch__Place *p = malloc(sizeof(*p));

    etch__place__init(p);
    p->file = strdup(file);
    p->line = line;
    p->function = strdup(function);
    return p;
}

static void thread(Etch__Sketch *s, const char *name, const char *made_by, int failing)
{
    Etch__SketchThread *t = malloc(sizeof(*t));

    etch__sketch_thread__init(t);
    t->name = strdup(name);
    t->made_by = strdup(made_by);
    t->failing = failing;
    ADD(s->threads, s->n_threads, t);
}

static void variable(Etch__Sketch *s, const char *name, uint64_t address)
{
    Etch__SketchVariable *v = malloc(sizeof(*v));

    etch__sketch_variable__init(v);
    v->name = strdup(name);
    v->address = address;
    ADD(s->variables, s->n_variables, v);
}

static Etch__SketchStep *step(Etch__Sketch *s, uint32_t of, uint32_t rank, Etch__Place *at, const char *text)
{
    Etch__SketchStep *t = malloc(sizeof(*t));

    etch__sketch_step__init(t);
    t->thread = of;
    t->rank = rank;
    t->place = at;
    t->text = strdup(text);
    t->count = 1;
    ADD(s->steps, s->n_steps, t);
    return t;
}

static Etch__SketchValue *value(Etch__SketchStep *t, uint32_t of, char rw, uint64_t number, const char *evidence)
{
    Etch__SketchValue *v = malloc(sizeof(*v));

    etch__sketch_value__init(v);
    v->variable = of;
    v->write = rw == 'W';
    if (number != UNKNOWN) {
        v->known_case = ETCH__SKETCH_VALUE__KNOWN_VALUE;
        v->value = number;
    }
    v->evidence = strdup(evidence);
    ADD(t->values, t->n_values, v);
    return v;
}

static void mark(Etch__SketchStep *t, uint32_t predictor)
{
    ADD(t->predictors, t->n_predictors, predictor);
}

static void order(Etch__Sketch *s, uint32_t before, uint32_t after, int predictor, const char *evidence)
{
    Etch__SketchOrder *o = malloc(sizeof(*o));

    etch__sketch_order__init(o);
    o->before = before;
    o->after = after;
    o->predictor = predictor;
    o->evidence = strdup(evidence);
    ADD(s->orders, s->n_orders, o);
}

static void unordered(Etch__Sketch *s, uint32_t one, uint32_t other, const char *evidence)
{
    Etch__SketchUnordered *u = malloc(sizeof(*u));

    etch__sketch_unordered__init(u);
    u->one = one;
    u->other = other;
    u->evidence = strdup(evidence);
    ADD(s->unordered, s->n_unordered, u);
}

static Etch__Predictor *predictor(Etch__Sketch *s, const char *kind, const char *text, const uint32_t counts[4],
                                  double f)
{
    Etch__Predictor *p = malloc(sizeof(*p));

    etch__predictor__init(p);
    p->kind = strdup(kind);
    p->text = strdup(text);
    p->failing_true = counts[0];
    p->failing = counts[1];
    p->passing_true = counts[2];
    p->passing = counts[3];
    p->precision = counts[0] + counts[2] ? (double)counts[0] / (counts[0] + counts[2]) : 0;
    p->recall = counts[1] ? (double)counts[0] / counts[1] : 0;
    p->f = f;
    p->f_lo = f * 0.8;
    p->f_hi = f;
    ADD(s->predictors, s->n_predictors, p);
    return p;
}

static void speaks_of(Etch__Predictor *p, Etch__Place *at)
{
    ADD(p->statements, p->n_statements, at);
}

static void is_of(Etch__Predictor *p, const char *pattern, const char *variable)
{
    p->pattern = strdup(pattern);
    p->variable = strdup(variable);
}

static Etch__SketchStack *stack(Etch__Sketch *s, const char *name, uint32_t column, const char *inside)
{
    Etch__SketchStack *t = malloc(sizeof(*t));

    etch__sketch_stack__init(t);
    t->failing = 1;
    t->thread = strdup(name);
    t->inside = strdup(inside);
    t->drawn_case = ETCH__SKETCH_STACK__DRAWN_COLUMN;
    t->column = column;
    ADD(s->stacks, s->n_stacks, t);
    return t;
}

static void frame(Etch__SketchStack *t, Etch__Place *at)
{
    ADD(t->frames, t->n_frames, at);
}

static void note(Etch__Sketch *s, const char *text)
{
    ADD(s->notes, s->n_notes, strdup(text));
}

static Etch__Loss *loss(Etch__Sketch *s, Etch__LossCause cause, uint64_t bytes, uint32_t tid, const char *detail)
{
    Etch__Loss *l = malloc(sizeof(*l));

    etch__loss__init(l);
    l->cause = cause;
    l->bytes = bytes;
    l->tid = tid;
    l->detail = strdup(detail);
    ADD(s->losses, s->n_losses, l);
    return l;
}

static void in_slice(Etch__Sketch *s, uint32_t id, Etch__Place *at, Etch__StatementRole role, uint32_t distance)
{
    Etch__Statement *t = malloc(sizeof(*t));

    etch__statement__init(t);
    t->id = id;
    t->place = at;
    t->distance = distance;
    ADD(t->roles, t->n_roles, role);
    if (distance)
        ADD(t->because, t->n_because, 1);
    ADD(s->slice, s->n_slice, t);
}

static Etch__Sketch *begin(const char *headline, Etch__Place *at, uint32_t failing, uint32_t passing)
{
    static const uint8_t id[] = {0x1c, 0x83, 0x00, 0xff};
    Etch__Sketch *s = malloc(sizeof(*s));

    etch__sketch__init(s);
    s->program = strdup("/src/pbzip/pbzip2");
    s->build_id.data = malloc(sizeof(id));
    s->build_id.len = sizeof(id);
    memcpy(s->build_id.data, id, sizeof(id));
    s->headline = strdup(headline);
    s->failing_place = at;
    s->failing_runs = failing;
    s->passing_runs = passing;
    s->compared = failing > 0 && passing > 0;
    s->source = ETCH__SOURCE__SOURCE_SOFT;
    s->round = 2;
    s->sigma = 4;
    s->failure = malloc(sizeof(*s->failure));
    etch__failure__init(s->failure);
    s->failure->kind = failing ? ETCH__FAILURE_KIND__FAILURE_SIGNAL : ETCH__FAILURE_KIND__FAILURE_NONE;
    s->failure->signal = failing ? 11 : 0;
    return s;
}

#define P(line, function) place("/src/pbzip/pbzip.c", line, function)

static void pbzip2_steps(Etch__Sketch *s)
{
    Etch__SketchStep *t;

    thread(s, "main", "main", 0);
    thread(s, "consumer", "main pbzip.c:188", 1);
    variable(s, "fifo->mut", 0x5581b8);
    t = step(s, 0, 1, P(188, "main"), "    pthread_create(&t, 0, consumer, fifo);");
    t->statement = 4;
    value(t, 0, 'R', 0x5581c0, "watchpoint, stamped 24,000 cycles after the access");
    t = step(s, 1, 2, P(135, "consumer"), "while (!fifo->empty) {");
    t->count = 3;
    t->statement = 3;
    step(s, 0, 3, P(203, "main"), "queueDelete(fifo);");
    t = step(s, 0, 4, P(206, "queueDelete"), "free(fifo->mut);");
    t->depth = 1;
    value(t, 0, 'R', 0x5581c0, "watchpoint, stamped 18,200 cycles after the access");
    t = step(s, 0, 5, P(207, "queueDelete"), "fifo->mut = NULL;");
    t->depth = 1;
    t->statement = 2;
    mark(t, 0);
    value(t, 0, 'W', 0, "watchpoint, stamped 21,400 cycles after the access")->deciding = 1;
    t = step(s, 1, 6, P(141, "consumer"), "pthread_mutex_unlock(fifo->mut);");
    t->failing = 1;
    t->statement = 1;
    t->note = strdup("SIGSEGV, address 0x10");
    mark(t, 0);
    mark(t, 1);
    value(t, 0, 'R', 0, "registers at the failure")->deciding = 1;
}

static Etch__Sketch *pbzip2(void)
{
    Etch__Sketch *s = begin("SIGSEGV in consumer()", P(141, "consumer"), 5, 43);
    Etch__SketchStack *t;
    Etch__Predictor *p;

    pbzip2_steps(s);
    order(s, 0, 1, 0, "pthread_create before the thread's first step");
    order(s, 4, 5, 1, "clocks: 412 cycles apart, ranges 258 wide");
    unordered(s, 3, 1, "clock ranges overlap by 61 cycles");
    p = predictor(s, "order", "main pbzip.c:207 before consumer pbzip.c:141", (uint32_t[]){5, 5, 0, 43}, 1);
    is_of(p, "WR", "fifo->mut");
    speaks_of(p, P(207, "queueDelete"));
    speaks_of(p, P(141, "consumer"));
    p = predictor(s, "value", "fifo->mut == 0 at pbzip.c:141", (uint32_t[]){5, 5, 0, 43}, 1);
    is_of(p, "null", "fifo->mut");
    speaks_of(p, P(141, "consumer"));
    p = predictor(s, "value", "fifo->mut < 4096 at pbzip.c:141", (uint32_t[]){5, 5, 0, 43}, 1);
    speaks_of(p, P(141, "consumer"));
    p = predictor(s, "branch", "pbzip.c:135 not taken", (uint32_t[]){5, 5, 39, 43}, 0.14);
    p->unknown = 2;
    speaks_of(p, P(135, "consumer"));
    mark(s->steps[1], 3);
    mark(s->steps[5], 2);
    t = stack(s, "consumer", 1, "pthread_mutex_unlock");
    frame(t, P(141, "consumer"));
    frame(t, P(120, "start"));
    s->slice_statements = 23;
    s->executed_statements = 9;
    in_slice(s, 1, P(141, "consumer"), ETCH__STATEMENT_ROLE__ROLE_FAILURE, 0);
    in_slice(s, 2, P(207, "queueDelete"), ETCH__STATEMENT_ROLE__ROLE_MEMORY, 1);
    in_slice(s, 3, P(135, "consumer"), ETCH__STATEMENT_ROLE__ROLE_CONTROL, 1);
    in_slice(s, 4, P(188, "main"), ETCH__STATEMENT_ROLE__ROLE_THREAD, 2);
    return s;
}

static Etch__Sketch *one_failure(void)
{
    Etch__Sketch *s = begin("SIGSEGV in consumer()", P(141, "consumer"), 1, 0);

    Etch__SketchStack *deep = stack(s, "consumer", 1, "");

    for (uint32_t i = 0; i < 1000; i++) /* its middle is left out */
        frame(deep, P(141 - i % 3, i == 999 ? "main" : "consumer"));
    pbzip2_steps(s);
    s->round = 0;
    order(s, 4, 5, 1, "clocks: 412 cycles apart, ranges 258 wide");
    predictor(s, "value", "fifo->mut == 0 at pbzip.c:141", (uint32_t[]){1, 1, 0, 0}, 1); /* means nothing yet */
    return s;
}

/* Two threads count without a lock: R R W W, the two writes unordered. */
static Etch__Sketch *lost_update(void)
{
    Etch__Sketch *s = begin("check failed: total == 2", place("count.c", 30, "main"), 4, 16);
    Etch__SketchStep *t;
    Etch__Predictor *p;

    s->failure->kind = ETCH__FAILURE_KIND__FAILURE_CHECK;
    thread(s, "main", "", 1);
    thread(s, "adder", "main count.c:21", 0);
    thread(s, "adder", "main count.c:22", 0);
    variable(s, "total", 0x4040);
    t = step(s, 1, 10, place("count.c", 9, "adder"), "long seen = total;");
    value(t, 0, 'R', 0, "emulated watchpoint");
    mark(t, 0);
    t = step(s, 2, 20, place("count.c", 9, "adder"), "long seen = total;");
    value(t, 0, 'R', 0, "emulated watchpoint")->deciding = 1;
    mark(t, 0);
    t = step(s, 1, 30, place("count.c", 10, "adder"), "total = seen + 1;");
    value(t, 0, 'W', 1, "emulated watchpoint");
    mark(t, 0);
    t = step(s, 2, 30, place("count.c", 10, "adder"), "total = seen + 1;");
    value(t, 0, 'W', 1, "emulated watchpoint");
    t = step(s, 0, 40, place("count.c", 30, "main"), "assert(total == 2);");
    value(t, 0, 'R', UNKNOWN, "the watch was cut by its budget");
    t->failing = 1;
    order(s, 0, 1, 1, "clocks");
    order(s, 1, 2, 1, "a write after the value that was read");
    order(s, 3, 4, 0, "pthread_join");
    p = predictor(s, "atomicity", "adder count.c:9 and adder count.c:10 with adder count.c:9 between",
                  (uint32_t[]){4, 4, 1, 16}, 0.83);
    is_of(p, "RRW", "total");
    p->unknown = 3;
    speaks_of(p, place("count.c", 9, "adder"));
    speaks_of(p, place("count.c", 9, "adder"));
    speaks_of(p, place("count.c", 10, "adder"));
    return s;
}

static Etch__Sketch *with_loss(void)
{
    Etch__Sketch *s = pbzip2();

    s->steps[4]->lost_before = 1;
    s->steps[5]->lost_before = 1;
    s->steps[5]->values[0]->known_case = ETCH__SKETCH_VALUE__KNOWN__NOT_SET;
    loss(s, ETCH__LOSS_CAUSE__LOSS_AUX_TRUNCATED, 4096, 712, "");
    loss(s, ETCH__LOSS_CAUSE__LOSS_RATE_LIMITED, 0, 0, "fifo->mut was too hot")->events = 12000;
    note(s, "pbzip.c has changed since the program was built: its lines may not be those that ran.");
    s->other_failures = 2;
    return s;
}

/* Two contradictions: one blames a clock, the other the records of a lock. */
static Etch__Sketch *contradiction(void)
{
    Etch__Sketch *s = pbzip2();
    Etch__SketchConflict *c = malloc(sizeof(*c));

    etch__sketch_conflict__init(c);
    c->text =
        strdup("The clock of CPU 3 contradicts other evidence. It differs from the clock of CPU 1 by at least 412 "
               "cycles more than was measured. Its times order no events.");
    c->blamed_case = ETCH__SKETCH_CONFLICT__BLAMED_CPU;
    c->cpu = 3;
    c->against_case = ETCH__SKETCH_CONFLICT__AGAINST_CPU_WITH;
    c->cpu_with = 1;
    c->excess = 412;
    c->events = 5;
    ADD(s->conflicts, s->n_conflicts, c);
    c = malloc(sizeof(*c));
    etch__sketch_conflict__init(c);
    c->text = strdup("The records of object 0x5020 contradict each other or the order of the program. They order no "
                     "events.");
    c->blamed_case = ETCH__SKETCH_CONFLICT__BLAMED_OBJECT;
    c->object = 0x5020;
    c->events = 2;
    ADD(s->conflicts, s->n_conflicts, c);
    return s;
}

static Etch__Sketch *five_threads(void)
{
    Etch__Sketch *s = begin("deadlock of 5 threads", place("philosophers.c", 40, "dine"), 3, 9);
    Etch__Predictor *p;
    char text[64], what[64];

    s->failure->kind = ETCH__FAILURE_KIND__FAILURE_HANG;
    for (uint32_t i = 0; i < 5; i++) {
        Etch__SketchStep *t;

        snprintf(text, sizeof(text), "philosopher %u", i + 1);
        thread(s, text, "main philosophers.c:61", i == 4);
        snprintf(text, sizeof(text), "fork[%u]", i);
        variable(s, text, 0x5000 + 8 * i);
        t = step(s, i, 1, place("philosophers.c", 38, "dine"), "pthread_mutex_lock(left);");
        value(t, i, 'W', 1, "lock event");
        mark(t, 0);
    }
    for (uint32_t i = 0; i < 5; i++) {
        Etch__SketchStep *t =
            step(s, i, 2 + (i == 4), place("philosophers.c", 40, "dine"), "pthread_mutex_lock(right);");

        snprintf(what, sizeof(what), "waits for fork[%u], held by T%u", (i + 1) % 5, (i + 1) % 5 + 1);
        t->note = strdup(what);
        t->failing = i == 4;
        mark(t, 0);
    }
    thread(s, "logger", "main philosophers.c:70", 0);
    order(s, 0, 9, 1, "lock order");
    p = predictor(s, "lock_order", "fork[0], fork[1], fork[2], fork[3], fork[4] locked in a ring",
                  (uint32_t[]){3, 3, 0, 9}, 1);
    speaks_of(p, place("philosophers.c", 38, "dine"));
    speaks_of(p, place("philosophers.c", 40, "dine"));
    return s;
}

static Etch__Sketch *huge_values(void)
{
    Etch__Sketch *s =
        begin("SIGABRT in sum()", place("a/very/deep/tree/of/source/code/with_a_long_file_name.c", 123456, "sum"),
              4000000000u, 3999999999u);
    Etch__SketchStep *t;
    char longest[3000];

    memset(longest, 'x', sizeof(longest) - 1);
    longest[sizeof(longest) - 1] = '\0';
    thread(s, "a thread whose name is much longer than Linux would ever allow it to be", "", 1);
    variable(s, "state->accounts[customer->number].balance_in_cents.after_the_transaction", 0xffffffffff600000);
    variable(s, "n", 8);
    t = step(s, 0, UINT32_MAX - 1, place("a/very/deep/tree/of/source/code/with_a_long_file_name.c", 123456, "sum"),
             longest);
    t->count = UINT64_MAX;
    t->depth = 4000000000u;
    value(t, 0, 'W', UINT64_MAX, "");
    value(t, 0, 'W', UINT64_MAX / 2, "")->deciding = 1;
    value(t, 1, 'R', 65536, "");
    t = step(s, 0, UINT32_MAX, place("b.c", UINT32_MAX, "sum"), "");
    t->failing = 1;
    value(t, 0, 'R', UINT64_MAX - 65535, "");
    value(t, 1, 'R', UINT64_MAX - 65536, "");
    predictor(s, "value", longest, (uint32_t[]){4000000000u, 4000000000u, 0, 3999999999u}, 1);
    return s;
}

#define HOSTILE                                                                                                        \
    "</script><img src=x onerror=alert(1)>\x1b[31m\x07\"'&amp;\x7f\t\xff\xc3\x28 \xe2\x80\xae flip "                   \
    "\xe6\xbc\xa2\xe5\xad\x97 e\xcc\x81"

static Etch__Sketch *hostile(void)
{
    Etch__Sketch *s = begin(HOSTILE, place(HOSTILE ".c", 1, HOSTILE), 2, 2);
    Etch__SketchStep *t;

    free(s->program);
    s->program = strdup(HOSTILE);
    thread(s, HOSTILE, HOSTILE, 1);
    variable(s, HOSTILE, 1);
    t = step(s, 0, 1,
             place("/src/%41 dir/"
                   "a?b#c.c",
                   1, HOSTILE),
             HOSTILE);
    t->note = strdup(HOSTILE);
    t->failing = 1;
    mark(t, 0);
    mark(t, 77);
    value(t, 0, 'R', 1, HOSTILE);
    value(t, 99, 'R', 1, HOSTILE);
    t = step(s, 55, 2, NULL, HOSTILE);
    order(s, 0, 0, 1, HOSTILE);
    order(s, 0, 1, 1, HOSTILE);
    order(s, 0, 1000, 1, HOSTILE);
    unordered(s, 5, 1000, HOSTILE);
    speaks_of(predictor(s, HOSTILE, HOSTILE, (uint32_t[]){2, 2, 0, 2}, 1), place(HOSTILE, 1, HOSTILE));
    loss(s, (Etch__LossCause)1234, 1, 1, HOSTILE);
    note(s, HOSTILE);
    in_slice(s, 1, NULL, (Etch__StatementRole)99, 0);
    return s;
}

static Etch__Sketch *empty(void)
{
    Etch__Sketch *s = malloc(sizeof(*s));

    etch__sketch__init(s);
    return s;
}

static Etch__Sketch *no_failure(void)
{
    Etch__Sketch *s = begin("", NULL, 0, 40);

    return s;
}

static Etch__Sketch *weak(void)
{
    Etch__Sketch *s = begin("SIGSEGV in consumer()", P(141, "consumer"), 3, 3);

    pbzip2_steps(s);
    for (size_t i = 0; i < s->n_steps; i++)
        s->steps[i]->n_predictors = i == 4;
    predictor(s, "executed", "pbzip.c:207 runs", (uint32_t[]){3, 3, 3, 3}, 0.56);
    return s;
}

const char *const sample_names[] = {"pbzip2",       "one_failure", "lost_update",   "with_loss",
                                    "five_threads", "huge_values", "hostile",       "empty",
                                    "no_failure",   "weak",        "contradiction", NULL};

Etch__Sketch *sample_make(const char *name)
{
    static Etch__Sketch *(*const make[])(void) = {pbzip2,       one_failure, lost_update,  with_loss,
                                                  five_threads, huge_values, hostile,      empty,
                                                  no_failure,   weak,        contradiction};

    for (size_t i = 0; sample_names[i]; i++)
        if (!strcmp(name, sample_names[i]))
            return make[i]();
    return NULL;
}
