/* SPDX-License-Identifier: MIT */
/* The parts that the samples are put together from. */
#ifndef ETCH_TESTS_SKETCH_SAMPLE_PARTS_H
#define ETCH_TESTS_SKETCH_SAMPLE_PARTS_H

#include "proto/etch.pb-c.h"

#include <stdlib.h>
#include <string.h>

#define UNKNOWN UINT64_C(0xdeadbeefdeadbeef)

/* Appends a message to a repeated field that was made by malloc. */
#define ADD(list, count, message)                                                                                      \
    ((list) = realloc((list), ((count) + 1) * sizeof(*(list))), (list)[(count)++] = (message))

static inline Etch__Place *place(const char *file, uint32_t line, const char *function)
{
    Etch__Place *p = malloc(sizeof(*p));

    etch__place__init(p);
    p->file = strdup(file);
    p->line = line;
    p->function = strdup(function);
    return p;
}

static inline void thread(Etch__Sketch *s, const char *name, const char *made_by, int failing)
{
    Etch__SketchThread *t = malloc(sizeof(*t));

    etch__sketch_thread__init(t);
    t->name = strdup(name);
    t->made_by = strdup(made_by);
    t->failing = failing;
    ADD(s->threads, s->n_threads, t);
}

static inline void variable(Etch__Sketch *s, const char *name, uint64_t address)
{
    Etch__SketchVariable *v = malloc(sizeof(*v));

    etch__sketch_variable__init(v);
    v->name = strdup(name);
    v->address = address;
    ADD(s->variables, s->n_variables, v);
}

static inline Etch__SketchStep *step(Etch__Sketch *s, uint32_t of, uint32_t rank, Etch__Place *at, const char *text)
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

static inline Etch__SketchValue *value(Etch__SketchStep *t, uint32_t of, char rw, uint64_t number, const char *evidence)
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

static inline void mark(Etch__SketchStep *t, uint32_t predictor)
{
    ADD(t->predictors, t->n_predictors, predictor);
}

static inline void order(Etch__Sketch *s, uint32_t before, uint32_t after, int predictor, const char *evidence)
{
    Etch__SketchOrder *o = malloc(sizeof(*o));

    etch__sketch_order__init(o);
    o->before = before;
    o->after = after;
    o->predictor = predictor;
    o->evidence = strdup(evidence);
    ADD(s->orders, s->n_orders, o);
}

static inline void unordered(Etch__Sketch *s, uint32_t one, uint32_t other, const char *evidence)
{
    Etch__SketchUnordered *u = malloc(sizeof(*u));

    etch__sketch_unordered__init(u);
    u->one = one;
    u->other = other;
    u->evidence = strdup(evidence);
    ADD(s->unordered, s->n_unordered, u);
}

static inline Etch__Predictor *predictor(Etch__Sketch *s, const char *kind, const char *text, const uint32_t counts[4],
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

static inline void speaks_of(Etch__Predictor *p, Etch__Place *at)
{
    ADD(p->statements, p->n_statements, at);
}

static inline void is_of(Etch__Predictor *p, const char *pattern, const char *variable)
{
    p->pattern = strdup(pattern);
    p->variable = strdup(variable);
}

static inline Etch__SketchStack *stack(Etch__Sketch *s, const char *name, uint32_t column, const char *inside)
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

static inline void frame(Etch__SketchStack *t, Etch__Place *at)
{
    ADD(t->frames, t->n_frames, at);
}

static inline void note(Etch__Sketch *s, const char *text)
{
    ADD(s->notes, s->n_notes, strdup(text));
}

static inline Etch__Loss *loss(Etch__Sketch *s, Etch__LossCause cause, uint64_t bytes, uint32_t tid, const char *detail)
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

static inline void in_slice(Etch__Sketch *s, uint32_t id, Etch__Place *at, Etch__StatementRole role, uint32_t distance)
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

static inline Etch__Sketch *begin(const char *headline, Etch__Place *at, uint32_t failing, uint32_t passing)
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

#endif
