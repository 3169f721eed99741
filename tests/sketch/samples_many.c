/* SPDX-License-Identifier: MIT */
/* Samples for the page: a value with a chain and what passing runs did, many threads, many steps. */
#include "tests/sketch/sample_parts.h"
#include "tests/sketch/samples.h"

#include <stdio.h>

#define CACHE(line, function) place("/src/cache/session_cache.cpp", line, function)

static void from(Etch__SketchValue *v, uint32_t step)
{
    v->origin_case = ETCH__SKETCH_VALUE__ORIGIN_FROM;
    v->from = step;
}

static Etch__SketchPassing *passing(Etch__SketchStep *t, uint32_t ran, uint32_t not_run)
{
    t->passing = malloc(sizeof(*t->passing));
    etch__sketch_passing__init(t->passing);
    t->passing->ran = ran;
    t->passing->not_run = not_run;
    return t->passing;
}

static void passing_value(Etch__SketchPassing *p, uint32_t variable, uint32_t runs, uint64_t least, uint64_t most)
{
    Etch__SketchPassingValue *v = malloc(sizeof(*v));

    etch__sketch_passing_value__init(v);
    v->variable = variable;
    v->runs = runs;
    v->distinct = least == most ? 1 : 2;
    v->least = least;
    v->most = most;
    ADD(p->values, p->n_values, v);
}

static void session_steps(Etch__Sketch *s)
{
    Etch__SketchStep *t;

    t = step(s, 0, 1, CACHE(14, "Session::Session"), "quota = new Quota{limit};");
    value(t, 0, 'W', 0x5581c0, "watchpoint");
    passing(t, 43, 0);
    t = step(s, 1, 2, CACHE(38, "serve"), "Session *s = cache.find(id).get(); // raw pointer");
    t->count = 3;
    passing(t, 43, 0);
    t = step(s, 2, 3, CACHE(17, "Session::~Session"), "delete quota;");
    t->depth = 1;
    from(value(t, 0, 'R', 0x5581c0, "watchpoint"), 0);
    t = step(s, 2, 4, CACHE(18, "Session::~Session"), "quota = nullptr;");
    t->depth = 1;
    mark(t, 0);
    value(t, 0, 'W', 0, "watchpoint")->deciding = 1;
    passing(t, 43, 0);
    t = step(s, 1, 5, CACHE(45, "serve"), "s->quota->used += charge(\"request\", 1);");
    t->failing = 1;
    t->note = strdup("SIGSEGV, address 0x8");
    mark(t, 0);
    mark(t, 1);
    from(value(t, 0, 'R', 0, "the failing instruction followed it"), 3);
    t->values[0]->deciding = 1;
    passing_value(passing(t, 41, 2), 0, 41, 0x5581c0, 0x5582f0);
}

/* A raw pointer out of a cache of shared pointers: the reaper destroys the session while a worker charges it. */
Etch__Sketch *sample_session_cache(void)
{
    static const double likelihood[] = {0.1, 0.1, 0.2, 0.97, 1};
    Etch__Sketch *s = begin("SIGSEGV in serve()", CACHE(45, "serve"), 5, 43);
    Etch__SketchStack *t;
    Etch__Predictor *p;

    thread(s, "main", "main", 0);
    thread(s, "worker", "session_cache.cpp:71", 1);
    thread(s, "reaper", "session_cache.cpp:72", 0);
    variable(s, "s->quota", 0x5581b8);
    session_steps(s);
    for (size_t i = 0; i < s->n_steps; i++) {
        s->steps[i]->estimate_case = ETCH__SKETCH_STEP__ESTIMATE_LIKELIHOOD;
        s->steps[i]->likelihood = likelihood[i];
    }
    order(s, 3, 4, 1, "clocks: 812 cycles apart, ranges 258 wide");
    p = predictor(s, "order", "reaper session_cache.cpp:18 before worker session_cache.cpp:45",
                  (uint32_t[]){5, 5, 0, 43}, 1);
    is_of(p, "WR", "s->quota");
    speaks_of(p, CACHE(18, "Session::~Session"));
    speaks_of(p, CACHE(45, "serve"));
    p->experiment = malloc(sizeof(*p->experiment));
    etch__experiment__init(p->experiment);
    p->experiment->proven = 1;
    p->experiment->turned = p->experiment->alone = p->experiment->alone_failed = 20;
    p = predictor(s, "value", "s->quota == 0 at session_cache.cpp:45", (uint32_t[]){5, 5, 0, 43}, 1);
    is_of(p, "null", "s->quota");
    speaks_of(p, CACHE(45, "serve"));
    t = stack(s, "worker", 1, "");
    frame(t, CACHE(45, "serve"));
    ADD(t->arguments, t->n_arguments, strdup("id = 7"));
    frame(t, CACHE(60, "worker"));
    ADD(s->command, s->n_command, strdup("./session_cache"));
    ADD(s->command, s->n_command, strdup("--sessions=8"));
    s->input = strdup("cases/expired.txt");
    return s;
}

static void bystand(Etch__Sketch *s, uint32_t n, uint32_t rank)
{
    for (uint32_t i = 2; i < n; i++) {
        Etch__SketchStep *t = step(s, i, rank + i, place("/src/server/a_worker_pool.cc", 100 + i, "Pool::run_one_job"),
                                   "while (auto job = queue_.take(std::chrono::milliseconds(10)))");

        t->count = i;
        if (i % 4 == 0)
            value(t, 1, 'R', i, "watchpoint");
    }
}

/* Two threads of the cause, all others bystanders, with names of 60 characters. */
Etch__Sketch *sample_threads(uint32_t n)
{
    Etch__Sketch *s =
        begin("SIGSEGV in Connection::send_response_with_a_long_name()",
              place("/src/server/connection.cc", 245, "Connection::send_response_with_a_long_name"), 4, 16);
    Etch__SketchStep *t;
    Etch__Predictor *p;
    char name[80];

    for (uint32_t i = 0; i < n; i++) {
        snprintf(name, sizeof(name), "background_connection_maintenance_worker_for_shard_number_%02u", i + 1);
        thread(s, name, "server.cc:88", i == 1);
    }
    variable(s, "connection->transport_session->write_buffer.current_chunk_pos", 0x7f0010);
    variable(s, "queue_.pending", 0x7f0020);
    t = step(s, 1, 1, place("/src/server/connection.cc", 231, "Connection::send"), "if (!transport_session_) return;");
    value(t, 0, 'R', 0x7f3344556677, "watchpoint");
    bystand(s, n, 10);
    t = step(s, 0, 100, place("/src/server/reaper.cc", 77, "Reaper::sweep"),
             "connection->transport_session.reset(); // nobody uses an idle connection any more, or so we think");
    mark(t, 0);
    value(t, 0, 'W', 0, "watchpoint")->deciding = 1;
    bystand(s, n, 110);
    t = step(s, 1, 200, place("/src/server/connection.cc", 245, "Connection::send_response_with_a_long_name"),
             "transport_session_->write(header, sizeof(header));");
    t->failing = 1;
    t->note = strdup("SIGSEGV, address 0x0");
    mark(t, 0);
    from(value(t, 0, 'R', 0, "the failing instruction followed it"), n - 1);
    t->values[0]->deciding = 1;
    passing_value(passing(t, 16, 0), 0, 16, 0x7f3344556677, 0x7f3344559977);
    order(s, n - 1, (uint32_t)s->n_steps - 1, 1, "clocks");
    p = predictor(s, "order",
                  "Reaper::sweep reaper.cc:77 before Connection::send_response_with_a_long_name connection.cc:245",
                  (uint32_t[]){4, 4, 0, 16}, 1);
    is_of(p, "WR", s->variables[0]->name);
    speaks_of(p, place("/src/server/reaper.cc", 77, "Reaper::sweep"));
    speaks_of(p, place("/src/server/connection.cc", 245, "Connection::send_response_with_a_long_name"));
    return s;
}

Etch__Sketch *sample_long(void)
{
    Etch__Sketch *s = begin("SIGABRT in check()", place("/src/pbzip/pbzip.c", 90, "check"), 1, 0);
    char name[32];

    for (uint32_t i = 0; i < 4; i++) {
        snprintf(name, sizeof(name), "worker_%u", i);
        thread(s, name, "pbzip.c:12", i == 3);
    }
    variable(s, "counter", 0x4040);
    for (uint32_t i = 0; i < 10000; i++) {
        Etch__SketchStep *t =
            step(s, i % 4, i, place("/src/pbzip/pbzip.c", 10 + i % 80, "check"), "counter += table[i] * 2; /* each */");

        value(t, 0, i % 2 ? 'W' : 'R', i, "watchpoint");
        if (i % 2 == 0 && i)
            from(t->values[0], i - 1);
        if (i && i % 3 == 0)
            order(s, i - 1, i, 0, "clocks");
    }
    s->steps[9999]->failing = 1;
    return s;
}
