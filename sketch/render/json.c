/* SPDX-License-Identifier: MIT */
/* The sketch for programs, by docs/sketch.schema.json. Keys are a promise: they are added, never renamed. An unknown
 * value is null, since leaving it out would look like an older etch. */
#include "sketch/render.h"
#include "sketch/render/jansson.h"
#include "sketch/render/model.h"
#include "sketch/render/sentence.h"
#include "sketch/render/stack.h"

#include <stdio.h>

static json_t *failure_json(const Etch__Failure *f, bool *failed)
{
    json_t *o = json_object();

    etch_json_set(o, "kind", etch_json_enum(&etch__failure_kind__descriptor, (int)f->kind), failed);
    etch_json_set(o, "signal", json_integer(f->signal), failed);
    etch_json_set(o, "code", json_integer(f->code), failed);
    etch_json_set(o, "fault_address", etch_json_hex(f->fault_address), failed);
    etch_json_set(o, "ip", etch_json_hex(f->ip), failed);
    etch_json_set(o, "tid", json_integer(f->tid), failed);
    etch_json_set(o, "message", etch_json_text(f->message), failed);
    etch_json_set(o, "cause", etch_json_enum(&etch__failure_cause__descriptor, (int)f->cause), failed);
    return o;
}

static json_t *range_json(double lo, double hi, bool *failed)
{
    json_t *o = json_object();

    etch_json_set(o, "lo", etch_json_real(lo), failed);
    etch_json_set(o, "hi", etch_json_real(hi), failed);
    return o;
}

static json_t *experiment_json(const Etch__Experiment *e, bool *failed)
{
    json_t *o = json_object();

    etch_json_set(o, "turned_failed", json_integer(e->turned_failed), failed);
    etch_json_set(o, "turned", json_integer(e->turned), failed);
    etch_json_set(o, "alone_failed", json_integer(e->alone_failed), failed);
    etch_json_set(o, "alone", json_integer(e->alone), failed);
    return o;
}

static json_t *predictor_json(const Etch__Predictor *p, bool *failed)
{
    json_t *o = json_object(), *statements = json_array();

    for (size_t i = 0; i < p->n_statements; i++)
        etch_json_push(statements, etch_json_place(p->statements[i], failed), failed);
    etch_json_set(o, "kind", etch_json_text(p->kind), failed);
    etch_json_set(o, "pattern", etch_json_text(p->pattern), failed);
    etch_json_set(o, "text", etch_json_text(p->text), failed);
    etch_json_set(o, "precision", etch_json_real(p->precision), failed);
    etch_json_set(o, "recall", etch_json_real(p->recall), failed);
    etch_json_set(o, "f", etch_json_real(p->f), failed);
    etch_json_set(o, "f_range", range_json(p->f_lo, p->f_hi, failed), failed);
    etch_json_set(o, "failing_true", json_integer(p->failing_true), failed);
    etch_json_set(o, "failing", json_integer(p->failing), failed);
    etch_json_set(o, "passing_true", json_integer(p->passing_true), failed);
    etch_json_set(o, "passing", json_integer(p->passing), failed);
    etch_json_set(o, "unknown", json_integer(p->unknown), failed);
    etch_json_set(o, "distance", json_integer(p->distance), failed);
    etch_json_set(o, "statements", statements, failed);
    etch_json_set(o, "sureness", etch_json_text(etch_render_sureness(p)), failed);
    if (p->experiment)
        etch_json_set(o, "experiment", experiment_json(p->experiment, failed), failed);
    return o;
}

static json_t *thread_json(const Etch__SketchThread *t, bool *failed)
{
    json_t *o = json_object();

    etch_json_set(o, "name", etch_json_text(t->name), failed);
    etch_json_set(o, "made_by", etch_json_text(t->made_by), failed);
    etch_json_set(o, "failing", json_boolean(t->failing), failed);
    return o;
}

static json_t *variable_json(const Etch__SketchVariable *v, bool *failed)
{
    json_t *o = json_object();

    etch_json_set(o, "name", etch_json_text(v->name), failed);
    etch_json_set(o, "address", etch_json_hex(v->address), failed);
    return o;
}

static json_t *value_json(const Etch__SketchValue *v, bool *failed)
{
    bool known = v->known_case == ETCH__SKETCH_VALUE__KNOWN_VALUE;
    json_t *o = json_object();

    etch_json_set(o, "variable", json_integer(v->variable), failed);
    etch_json_set(o, "access", json_string(v->write ? "write" : "read"), failed);
    etch_json_set(o, "value", known ? etch_json_hex(v->value) : json_null(), failed);
    etch_json_set(o, "deciding", json_boolean(v->deciding), failed);
    etch_json_set(o, "evidence", etch_json_text(v->evidence), failed);
    if (v->recovered)
        etch_json_set(o, "recovered", json_true(), failed);
    if (v->origin_case == ETCH__SKETCH_VALUE__ORIGIN_FROM)
        etch_json_set(o, "from", json_integer(v->from), failed);
    return o;
}

static json_t *passing_json(const Etch__SketchPassing *p, bool *failed)
{
    json_t *o = json_object(), *values = json_array();

    for (size_t i = 0; i < p->n_values; i++) {
        const Etch__SketchPassingValue *from = p->values[i];
        json_t *v = json_object();

        etch_json_set(v, "variable", json_integer(from->variable), failed);
        etch_json_set(v, "access", json_string(from->write ? "write" : "read"), failed);
        etch_json_set(v, "runs", json_integer(from->runs), failed);
        etch_json_set(v, "distinct", json_integer(from->distinct), failed);
        etch_json_set(v, "least", etch_json_hex(from->least), failed);
        etch_json_set(v, "most", etch_json_hex(from->most), failed);
        etch_json_push(values, v, failed);
    }
    etch_json_set(o, "ran", json_integer(p->ran), failed);
    etch_json_set(o, "not_run", json_integer(p->not_run), failed);
    etch_json_set(o, "unknown", json_integer(p->unknown), failed);
    etch_json_set(o, "values", values, failed);
    return o;
}

static json_t *step_json(const struct etch_render_model *m, size_t i, bool *failed)
{
    const Etch__SketchStep *step = m->sketch->steps[i];
    json_t *o = json_object(), *values = json_array(), *predictors = json_array();

    for (size_t k = 0; k < step->n_values; k++)
        etch_json_push(values, value_json(step->values[k], failed), failed);
    for (size_t k = 0; k < step->n_predictors; k++)
        etch_json_push(predictors, json_integer(step->predictors[k]), failed);
    etch_json_set(o, "thread", json_integer(step->thread), failed);
    etch_json_set(o, "row", etch_json_count(m->row_of[i] + 1), failed);
    etch_json_set(o, "place", etch_json_place(step->place, failed), failed);
    etch_json_set(o, "text", etch_json_text(step->text), failed);
    etch_json_set(o, "count", etch_json_count(step->count), failed);
    etch_json_set(o, "depth", json_integer(step->depth), failed);
    etch_json_set(o, "failing", json_boolean(step->failing), failed);
    etch_json_set(o, "lost_before", json_boolean(step->lost_before), failed);
    etch_json_set(o, "note", etch_json_text(step->note), failed);
    etch_json_set(o, "statement", json_integer(step->statement), failed);
    etch_json_set(o, "predictors", predictors, failed);
    etch_json_set(o, "values", values, failed);
    if (step->estimate_case == ETCH__SKETCH_STEP__ESTIMATE_LIKELIHOOD)
        etch_json_set(o, "likelihood", etch_json_real(step->likelihood), failed);
    if (step->passing)
        etch_json_set(o, "passing", passing_json(step->passing, failed), failed);
    return o;
}

static json_t *order_json(const Etch__SketchOrder *order, bool *failed)
{
    json_t *o = json_object();

    etch_json_set(o, "before", json_integer(order->before), failed);
    etch_json_set(o, "after", json_integer(order->after), failed);
    etch_json_set(o, "predictor", json_boolean(order->predictor), failed);
    etch_json_set(o, "evidence", etch_json_text(order->evidence), failed);
    return o;
}

static json_t *unordered_json(const Etch__SketchUnordered *u, bool *failed)
{
    json_t *o = json_object(), *pair = json_array();

    etch_json_push(pair, json_integer(u->one), failed);
    etch_json_push(pair, json_integer(u->other), failed);
    etch_json_set(o, "steps", pair, failed);
    etch_json_set(o, "evidence", etch_json_text(u->evidence), failed);
    return o;
}

static json_t *loss_json(const Etch__Loss *loss, bool *failed)
{
    json_t *o = json_object();

    etch_json_set(o, "cause", etch_json_enum(&etch__loss_cause__descriptor, (int)loss->cause), failed);
    etch_json_set(o, "bytes", etch_json_count(loss->bytes), failed);
    etch_json_set(o, "events", etch_json_count(loss->events), failed);
    etch_json_set(o, "tid", json_integer(loss->tid), failed);
    etch_json_set(o, "detail", etch_json_text(loss->detail), failed);
    return o;
}

static json_t *conflict_json(const Etch__SketchConflict *c, bool *failed)
{
    json_t *o = json_object();
    bool cpu = c->blamed_case == ETCH__SKETCH_CONFLICT__BLAMED_CPU;
    bool object = c->blamed_case == ETCH__SKETCH_CONFLICT__BLAMED_OBJECT;
    bool with = c->against_case == ETCH__SKETCH_CONFLICT__AGAINST_CPU_WITH;

    etch_json_set(o, "text", etch_json_text(c->text), failed);
    etch_json_set(o, "cpu", cpu ? json_integer(c->cpu) : json_null(), failed);
    etch_json_set(o, "object", object ? etch_json_hex(c->object) : json_null(), failed);
    etch_json_set(o, "cpu_with", with ? json_integer(c->cpu_with) : json_null(), failed);
    etch_json_set(o, "excess_cycles", etch_json_count(c->excess), failed);
    etch_json_set(o, "events", etch_json_count(c->events), failed);
    return o;
}

static json_t *stack_json(const Etch__SketchStack *stack, bool *failed)
{
    json_t *o = json_object(), *frames = json_array(), *arguments = json_array();
    bool drawn = stack->drawn_case == ETCH__SKETCH_STACK__DRAWN_COLUMN;

    for (size_t i = 0; i < stack->n_frames; i++)
        etch_json_push(frames, etch_json_place(stack->frames[i], failed), failed);
    etch_json_set(o, "thread", drawn ? json_integer(stack->column) : json_null(), failed);
    etch_json_set(o, "name", etch_json_text(stack->thread), failed);
    etch_json_set(o, "failing", json_boolean(stack->failing), failed);
    etch_json_set(o, "inside", etch_json_text(stack->inside), failed);
    for (size_t i = 0; i < stack->n_frames; i++)
        etch_json_push(arguments, etch_json_text(etch_render_arguments(stack, i)), failed);
    etch_json_set(o, "frames", frames, failed);
    etch_json_set(o, "arguments", arguments, failed);
    return o;
}

static json_t *statement_json(const Etch__Statement *s, bool *failed)
{
    json_t *o = json_object(), *roles = json_array(), *because = json_array();

    for (size_t i = 0; i < s->n_roles; i++)
        etch_json_push(roles, etch_json_enum(&etch__statement_role__descriptor, (int)s->roles[i]), failed);
    for (size_t i = 0; i < s->n_because; i++)
        etch_json_push(because, json_integer(s->because[i]), failed);
    etch_json_set(o, "id", json_integer(s->id), failed);
    etch_json_set(o, "place", etch_json_place(s->place, failed), failed);
    etch_json_set(o, "roles", roles, failed);
    etch_json_set(o, "distance", json_integer(s->distance), failed);
    etch_json_set(o, "because", because, failed);
    return o;
}

#define SET_LIST(root, key, list, count, make)                                                                         \
    do {                                                                                                               \
        json_t *items = json_array();                                                                                  \
        for (size_t at = 0; at < (count); at++)                                                                        \
            etch_json_push(items, make((list)[at], failed), failed);                                                   \
        etch_json_set(root, key, items, failed);                                                                       \
    } while (0)

static json_t *build_id_json(const ProtobufCBinaryData *id)
{
    char digits[129] = "";

    for (size_t i = 0; i < id->len && i < 64; i++)
        snprintf(digits + 2 * i, 3, "%02x", id->data[i]);
    return json_string(digits);
}

static void set_facts(json_t *root, const Etch__Sketch *s, bool *failed)
{
    char headline[512], sentence[2048];

    etch_render_headline(s, headline, sizeof(headline));
    etch_render_sentence(s, sentence, sizeof(sentence));
    etch_json_set(root, "format", json_string("etch-sketch"), failed);
    etch_json_set(root, "version", json_integer(1), failed);
    etch_json_set(root, "program", etch_json_text(s->program), failed);
    etch_json_set(root, "build_id", build_id_json(&s->build_id), failed);
    etch_json_set(root, "headline", etch_json_text(headline), failed);
    etch_json_set(root, "sentence", etch_json_text(sentence), failed);
    etch_json_set(root, "failing_place", s->failing_place ? etch_json_place(s->failing_place, failed) : json_null(),
                  failed);
    etch_json_set(root, "failure", s->failure ? failure_json(s->failure, failed) : json_null(), failed);
    etch_json_set(root, "exception", etch_json_exception(s->failure, failed), failed);
    etch_json_set(root, "compared", json_boolean(s->compared), failed);
    etch_json_set(root, "failing_runs", json_integer(s->failing_runs), failed);
    etch_json_set(root, "passing_runs", json_integer(s->passing_runs), failed);
    etch_json_set(root, "other_failures", json_integer(s->other_failures), failed);
    etch_json_set(root, "source", etch_json_enum(&etch__source__descriptor, (int)s->source), failed);
    etch_json_set(root, "round", json_integer(s->round), failed);
    etch_json_set(root, "sigma", json_integer(s->sigma), failed);
    etch_json_set(root, "slice_statements", json_integer(s->slice_statements), failed);
    etch_json_set(root, "executed_statements", json_integer(s->executed_statements), failed);
}

static void set_steps(json_t *root, const struct etch_render_model *model, bool *failed)
{
    json_t *steps = json_array();

    for (size_t i = 0; i < model->n_steps; i++)
        etch_json_push(steps, step_json(model, i, failed), failed);
    etch_json_set(root, "steps", steps, failed);
}

static void set_lists(json_t *root, const struct etch_render_model *model, bool *failed)
{
    const Etch__Sketch *s = model->sketch;
    json_t *notes = json_array(), *command = json_array();

    for (size_t i = 0; i < s->n_command; i++)
        etch_json_push(command, etch_json_text(s->command[i]), failed);
    etch_json_set(root, "command", command, failed);
    etch_json_set(root, "input", etch_render_string(s->input)[0] ? etch_json_text(s->input) : json_null(), failed);
    SET_LIST(root, "predictors", s->predictors, s->n_predictors, predictor_json);
    SET_LIST(root, "threads", s->threads, s->n_threads, thread_json);
    SET_LIST(root, "stacks", s->stacks, s->n_stacks, stack_json);
    SET_LIST(root, "variables", s->variables, s->n_variables, variable_json);
    set_steps(root, model, failed);
    SET_LIST(root, "orders", s->orders, s->n_orders, order_json);
    SET_LIST(root, "unordered", s->unordered, s->n_unordered, unordered_json);
    SET_LIST(root, "conflicts", s->conflicts, s->n_conflicts, conflict_json);
    SET_LIST(root, "losses", s->losses, s->n_losses, loss_json);
    SET_LIST(root, "slice", s->slice, s->n_slice, statement_json);
    for (size_t i = 0; i < s->n_notes; i++)
        etch_json_push(notes, etch_json_text(s->notes[i]), failed);
    etch_json_set(root, "notes", notes, failed);
}

char *etch_render_json(const Etch__Sketch *sketch, size_t *size)
{
    struct etch_render_model model;
    json_t *root = json_object();
    bool failed = false;

    if (etch_render_model_make(&model, sketch, true)) {
        json_decref(root);
        return NULL;
    }
    set_facts(root, sketch, &failed);
    set_lists(root, &model, &failed);
    etch_render_model_release(&model);
    return etch_json_write(root, failed, size);
}
