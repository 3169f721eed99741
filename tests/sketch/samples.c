/* SPDX-License-Identifier: MIT */
/* Sketches made by hand; see samples.h. The first is the one of the paper that the method comes from. */
#include "tests/sketch/samples.h"
#include "tests/sketch/sample_parts.h"

#include <stdio.h>

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

static Etch__Sketch *threads_2(void)
{
    return sample_threads(2);
}

static Etch__Sketch *threads_8(void)
{
    return sample_threads(8);
}

static Etch__Sketch *threads_32(void)
{
    return sample_threads(32);
}

static Etch__Sketch *threads_64(void)
{
    return sample_threads(64);
}

const char *const sample_names[] = {"pbzip2",        "one_failure",   "lost_update", "with_loss",  "five_threads",
                                    "huge_values",   "hostile",       "empty",       "no_failure", "weak",
                                    "contradiction", "session_cache", "threads_2",   "threads_8",  "threads_32",
                                    "threads_64",    "steps_10000",   NULL};

Etch__Sketch *sample_make(const char *name)
{
    static Etch__Sketch *(*const make[])(void) = {
        pbzip2,    one_failure, lost_update, with_loss,  five_threads,  huge_values,
        hostile,   empty,       no_failure,  weak,       contradiction, sample_session_cache,
        threads_2, threads_8,   threads_32,  threads_64, sample_long};

    for (size_t i = 0; sample_names[i]; i++)
        if (!strcmp(name, sample_names[i]))
            return make[i]();
    return NULL;
}
