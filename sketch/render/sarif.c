/* SPDX-License-Identifier: MIT */
/* The sketch as SARIF 2.1.0: one result at the failing statement, a thread flow for each thread with the rows as
 * execution order (equal numbers: unordered), and the predictors as messages at their statements. */
#include "sketch/render.h"
#include "sketch/render/jansson.h"
#include "sketch/render/model.h"
#include "sketch/render/sentence.h"
#include "sketch/render/stack.h"

#include <stdio.h>
#include <string.h>

#define ROOT_ID "%SRCROOT%"

/* The root of the sources, below which paths are relative, and whether memory was short. */
struct sarif {
    const char *root; /* empty: none */
    bool failed;
};

/* The part of a path below the root; NULL if it is not below the root. */
static const char *below_root(const struct sarif *f, const char *path)
{
    size_t n = strlen(f->root);

    while (n && f->root[n - 1] == '/')
        n--;
    return n && !strncmp(path, f->root, n) && path[n] == '/' && path[n + 1] ? path + n + 1 : NULL;
}

/* A path as a URI reference: absolute ones as file:, whatever is not unreserved in percent signs. */
static json_t *uri_json(const char *path, bool folder)
{
    struct etch_text uri = {0};
    json_t *value;

    if (path[0] == '/')
        etch_text_string(&uri, "file://");
    for (; *path; path++) {
        unsigned char c = (unsigned char)*path;

        if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || strchr("/-._~+", c)) {
            etch_text_char(&uri, (char)c);
        } else {
            etch_text_char(&uri, '%');
            etch_text_char(&uri, "0123456789ABCDEF"[c >> 4]);
            etch_text_char(&uri, "0123456789ABCDEF"[c & 15]);
        }
    }
    if (folder && uri.n && uri.v[uri.n - 1] != '/')
        etch_text_char(&uri, '/');
    value = uri.failed ? NULL : json_stringn(uri.v ? uri.v : "", uri.n);
    free(uri.v);
    return value;
}

static json_t *message_json(const char *text, struct sarif *f)
{
    json_t *o = json_object();

    etch_json_set(o, "text", etch_json_text(text), &f->failed);
    return o;
}

static json_t *region_json(const Etch__Place *place, const char *snippet, struct sarif *f)
{
    json_t *o = json_object();

    etch_json_set(o, "startLine", json_integer(place->line), &f->failed);
    if (place->column)
        etch_json_set(o, "startColumn", json_integer(place->column), &f->failed);
    if (snippet[0])
        etch_json_set(o, "snippet", message_json(snippet, f), &f->failed);
    return o;
}

static void set_physical(json_t *location, const Etch__Place *place, const char *snippet, struct sarif *f)
{
    json_t *physical = json_object(), *artifact = json_object();
    const char *path = etch_render_string(place->file), *below = below_root(f, path);

    etch_json_set(artifact, "uri", uri_json(below ? below : path, false), &f->failed);
    if (below)
        etch_json_set(artifact, "uriBaseId", json_string(ROOT_ID), &f->failed);
    etch_json_set(physical, "artifactLocation", artifact, &f->failed);
    etch_json_set(physical, "region", region_json(place, snippet, f), &f->failed);
    etch_json_set(location, "physicalLocation", physical, &f->failed);
}

static json_t *location_json(const Etch__Place *place, const char *snippet, const char *message, struct sarif *f)
{
    json_t *o = json_object();

    place = etch_render_place(place);
    if (place->line && etch_render_string(place->file)[0])
        set_physical(o, place, etch_render_string(snippet), f);
    if (etch_render_string(place->function)[0]) {
        json_t *logical = json_object(), *list = json_array();

        char function[128];
        const char *brief = etch_render_function(place, function, sizeof(function));

        etch_json_set(logical, "name", etch_json_text(brief), &f->failed);
        if (strcmp(brief, place->function) != 0)
            etch_json_set(logical, "fullyQualifiedName", etch_json_text(place->function), &f->failed);
        etch_json_set(logical, "kind", json_string("function"), &f->failed);
        etch_json_push(list, logical, &f->failed);
        etch_json_set(o, "logicalLocations", list, &f->failed);
    }
    if (etch_render_string(message)[0])
        etch_json_set(o, "message", message_json(message, f), &f->failed);
    return o;
}

/* ---- Thread flows ---- */

static json_t *state_json(const Etch__Sketch *s, const Etch__SketchStep *step, struct sarif *f)
{
    json_t *state = json_object();

    for (size_t i = 0; i < step->n_values; i++) {
        const Etch__SketchValue *value = step->values[i];
        json_t *name;
        char number[24], text[64];

        if (value->variable >= s->n_variables)
            continue;
        etch_render_value(value, number);
        snprintf(text, sizeof(text), "%s%s", number[0] == '?' ? "unknown" : number,
                 value->write ? " (written)" : " (read)");
        name = etch_json_text(s->variables[value->variable]->name);
        if (name)
            etch_json_set(state, json_string_value(name), message_json(text, f), &f->failed);
        else
            f->failed = true;
        json_decref(name);
    }
    return state;
}

static json_t *flow_location_json(const struct etch_render_model *m, size_t i, struct sarif *f)
{
    const Etch__SketchStep *step = m->sketch->steps[i];
    const char *text = etch_render_string(step->text), *note = etch_render_string(step->note);
    char message[1024];
    json_t *o = json_object();

    snprintf(message, sizeof(message), "%s%s%s%s", text + strspn(text, " \t"), note[0] ? " - " : "", note,
             step->lost_before ? " (steps before this one may be lost)" : "");
    etch_json_set(o, "location", location_json(step->place, text, message, f), &f->failed);
    etch_json_set(o, "executionOrder", etch_json_count(m->row_of[i] + 1), &f->failed);
    etch_json_set(o, "nestingLevel", json_integer(step->depth), &f->failed);
    etch_json_set(o, "importance", json_string(step->failing || step->n_predictors ? "essential" : "important"),
                  &f->failed);
    if (step->n_values)
        etch_json_set(o, "state", state_json(m->sketch, step, f), &f->failed);
    return o;
}

static json_t *thread_flow_json(const struct etch_render_model *m, size_t c, struct sarif *f)
{
    const Etch__SketchThread *t = m->sketch->threads[m->columns[c]];
    json_t *o = json_object(), *locations = json_array();
    char id[32];

    snprintf(id, sizeof(id), "T%zu", m->columns[c] + 1);
    for (size_t k = 0; k < m->n_steps; k++)
        if (etch_render_column(m, m->order[k]) == c)
            etch_json_push(locations, flow_location_json(m, m->order[k], f), &f->failed);
    etch_json_set(o, "id", json_string(id), &f->failed);
    etch_json_set(o, "message", message_json(t->name, f), &f->failed);
    etch_json_set(o, "locations", locations, &f->failed);
    return o;
}

static json_t *code_flows_json(const struct etch_render_model *m, struct sarif *f)
{
    json_t *flows = json_array(), *flow = json_object(), *threads = json_array();

    for (size_t c = 0; c < m->n_columns; c++)
        etch_json_push(threads, thread_flow_json(m, c, f), &f->failed);
    etch_json_set(flow, "message",
                  message_json("How the failure happened. Steps with equal executionOrder are unordered.", f),
                  &f->failed);
    etch_json_set(flow, "threadFlows", threads, &f->failed);
    etch_json_push(flows, flow, &f->failed);
    return flows;
}

/* ---- The result ---- */

static void predictor_text(const Etch__Predictor *p, char *text, size_t size)
{
    char counts[256];

    etch_render_counts(p, counts, sizeof(counts));
    snprintf(text, size, "%.40s: %.400s (%s, F %.2f)", etch_render_string(p->kind), etch_render_string(p->text), counts,
             p->f);
}

/* The sentence, the failure in a line, then the causes. */
static json_t *result_message_json(const struct etch_render_model *m, struct sarif *f)
{
    struct etch_text all = {0};
    char text[2048], runs[128];
    json_t *o;

    etch_render_sentence(m->sketch, text, sizeof(text));
    etch_text_string(&all, text);
    etch_text_string(&all, text[0] ? " " : "");
    etch_render_headline(m->sketch, text, sizeof(text));
    etch_render_runs(m->sketch, runs, sizeof(runs));
    etch_text_string(&all, text);
    etch_text_string(&all, " (");
    etch_text_string(&all, runs);
    etch_text_string(&all, ").");
    if (m->n_shown)
        etch_text_string(&all, etch_render_has_cause(m->sketch) ? " Cause:" : " No strong predictor; the best hints:");
    for (size_t i = 0; i < m->n_shown; i++) {
        predictor_text(m->sketch->predictors[m->shown[i]], text, sizeof(text));
        etch_text_string(&all, i ? "; " : " ");
        etch_text_string(&all, text);
    }
    etch_text_char(&all, '\0');
    f->failed |= all.failed;
    o = message_json(all.failed ? "" : all.v, f);
    free(all.v);
    return o;
}

static json_t *related_json(const struct etch_render_model *m, struct sarif *f)
{
    json_t *list = json_array();
    json_int_t id = 1;
    char text[1024];

    for (size_t i = 0; i < m->n_shown; i++) {
        const Etch__Predictor *p = m->sketch->predictors[m->shown[i]];

        predictor_text(p, text, sizeof(text));
        for (size_t k = 0; k < p->n_statements; k++) {
            json_t *location = location_json(p->statements[k], NULL, text, f);

            etch_json_set(location, "id", json_integer(id++), &f->failed);
            etch_json_push(list, location, &f->failed);
        }
    }
    return list;
}

static const char *rule_of(const Etch__Sketch *s)
{
    static const char *const rules[] = {"failure", "crash", "exit-status", "hang", "timeout", "failed-check"};
    unsigned kind = s->failure ? (unsigned)s->failure->kind : 0;

    if (s->failure && s->failure->cause == ETCH__FAILURE_CAUSE__CAUSE_EXCEPTION)
        return "uncaught-exception";
    return kind < 6 ? rules[kind] : rules[0];
}

/* "n = 3, p = 0" as the strings that the standard wants. */
static json_t *parameters_json(const char *text, struct sarif *f)
{
    json_t *list = json_array();

    while (*text) {
        size_t n = strcspn(text, ",");

        etch_json_push(list, json_stringn(text, n), &f->failed);
        text += n;
        text += strspn(text, ", ");
    }
    return list;
}

static json_t *stack_json(const Etch__Sketch *s, const Etch__SketchStack *stack, struct sarif *f)
{
    json_t *o = json_object(), *frames = json_array();
    char title[600];

    for (size_t i = 0; i < stack->n_frames; i++) {
        json_t *frame = json_object();

        etch_json_set(frame, "location", location_json(stack->frames[i], NULL, NULL, f), &f->failed);
        if (etch_render_arguments(stack, i)[0])
            etch_json_set(frame, "parameters", parameters_json(etch_render_arguments(stack, i), f), &f->failed);
        etch_json_push(frames, frame, &f->failed);
    }
    etch_render_stack_title(s, stack, title, sizeof(title));
    etch_json_set(o, "message", message_json(title, f), &f->failed);
    etch_json_set(o, "frames", frames, &f->failed);
    return o;
}

static json_t *stacks_json(const Etch__Sketch *s, struct sarif *f)
{
    json_t *list = json_array();

    for (size_t i = 0; i < s->n_stacks; i++)
        etch_json_push(list, stack_json(s, s->stacks[i], f), &f->failed);
    return list;
}

/* The same bug has the same fingerprint in the next report: its failing statement, without the line. */
static json_t *fingerprint_json(const Etch__Sketch *s, struct sarif *f)
{
    const Etch__Place *place = etch_render_place(s->failing_place);
    json_t *o = json_object();
    char text[512], function[128];

    snprintf(text, sizeof(text), "%s:%.200s:%.200s", rule_of(s), etch_render_basename(place->file),
             etch_render_function(place, function, sizeof(function)));
    etch_json_set(o, "etchFailure/v1", etch_json_text(text), &f->failed);
    return o;
}

static json_t *result_json(const struct etch_render_model *m, struct sarif *f)
{
    const Etch__Sketch *s = m->sketch;
    json_t *o = json_object(), *locations = json_array();

    etch_json_push(locations, location_json(s->failing_place, NULL, NULL, f), &f->failed);
    etch_json_set(o, "ruleId", json_string(rule_of(s)), &f->failed);
    etch_json_set(o, "ruleIndex", json_integer(0), &f->failed);
    etch_json_set(o, "level", json_string("error"), &f->failed);
    etch_json_set(o, "kind", json_string("fail"), &f->failed);
    etch_json_set(o, "message", result_message_json(m, f), &f->failed);
    etch_json_set(o, "locations", locations, &f->failed);
    if (m->n_columns)
        etch_json_set(o, "codeFlows", code_flows_json(m, f), &f->failed);
    if (s->n_stacks)
        etch_json_set(o, "stacks", stacks_json(s, f), &f->failed);
    etch_json_set(o, "relatedLocations", related_json(m, f), &f->failed);
    etch_json_set(o, "occurrenceCount", json_integer(s->failing_runs), &f->failed);
    etch_json_set(o, "partialFingerprints", fingerprint_json(s, f), &f->failed);
    if (s->failure && s->failure->cause == ETCH__FAILURE_CAUSE__CAUSE_EXCEPTION) {
        json_t *properties = json_object();

        etch_json_set(properties, "exception", etch_json_exception(s->failure, &f->failed), &f->failed);
        etch_json_set(o, "properties", properties, &f->failed);
    }
    return o;
}

/* ---- The run ---- */

static json_t *driver_json(const Etch__Sketch *s, struct sarif *f)
{
    json_t *driver = json_object(), *rules = json_array(), *rule = json_object();

    etch_json_set(rule, "id", json_string(rule_of(s)), &f->failed);
    etch_json_set(rule, "shortDescription", message_json("A failure that etch recorded and explained.", f), &f->failed);
    etch_json_push(rules, rule, &f->failed);
    etch_json_set(driver, "name", json_string("etch"), &f->failed);
    etch_json_set(driver, "semanticVersion", json_string(ETCH_VERSION), &f->failed);
    etch_json_set(driver, "rules", rules, &f->failed);
    return driver;
}

static void push_notice(json_t *list, const char *level, const char *before, const char *text, struct sarif *f)
{
    json_t *notice = json_object();
    char all[1024];

    snprintf(all, sizeof(all), "%s%s", before, text);
    etch_json_set(notice, "level", json_string(level), &f->failed);
    etch_json_set(notice, "message", message_json(all, f), &f->failed);
    etch_json_push(list, notice, &f->failed);
}

/* Losses, contradictions and notes limit the result. */
static json_t *invocations_json(const Etch__Sketch *s, struct sarif *f)
{
    json_t *list = json_array(), *invocation = json_object(), *notices = json_array();
    char loss[600];

    for (size_t i = 0; i < s->n_losses; i++) {
        etch_render_loss(s->losses[i], loss, sizeof(loss));
        push_notice(notices, "warning", "lost: ", loss, f);
    }
    for (size_t i = 0; i < s->n_conflicts; i++)
        push_notice(notices, "warning", "contradiction: ", etch_render_string(s->conflicts[i]->text), f);
    for (size_t i = 0; i < s->n_notes; i++)
        push_notice(notices, "note", "", etch_render_string(s->notes[i]), f);
    etch_json_set(invocation, "executionSuccessful", json_true(), &f->failed);
    etch_json_set(invocation, "toolExecutionNotifications", notices, &f->failed);
    etch_json_push(list, invocation, &f->failed);
    return list;
}

static json_t *run_json(const struct etch_render_model *m, struct sarif *f)
{
    json_t *run = json_object(), *tool = json_object(), *results = json_array();

    etch_json_set(tool, "driver", driver_json(m->sketch, f), &f->failed);
    if (m->sketch->failing_runs)
        etch_json_push(results, result_json(m, f), &f->failed);
    etch_json_set(run, "tool", tool, &f->failed);
    etch_json_set(run, "invocations", invocations_json(m->sketch, f), &f->failed);
    etch_json_set(run, "results", results, &f->failed);
    return run;
}

static json_t *bases_json(struct sarif *f)
{
    json_t *bases = json_object(), *base = json_object();

    etch_json_set(base, "uri", uri_json(f->root, true), &f->failed);
    etch_json_set(bases, ROOT_ID, base, &f->failed);
    return bases;
}

char *etch_render_sarif(const Etch__Sketch *sketch, const char *root_path, size_t *size)
{
    struct sarif f = {.root = etch_render_string(root_path)};
    struct etch_render_model model;
    json_t *root = json_object(), *runs = json_array(), *run;

    if (etch_render_model_make(&model, sketch, false)) {
        json_decref(root);
        json_decref(runs);
        return NULL;
    }
    run = run_json(&model, &f);
    if (f.root[0])
        etch_json_set(run, "originalUriBaseIds", bases_json(&f), &f.failed);
    etch_json_set(root, "$schema", json_string("https://json.schemastore.org/sarif-2.1.0.json"), &f.failed);
    etch_json_set(root, "version", json_string("2.1.0"), &f.failed);
    etch_json_push(runs, run, &f.failed);
    etch_json_set(root, "runs", runs, &f.failed);
    etch_render_model_release(&model);
    return etch_json_write(root, f.failed, size);
}
