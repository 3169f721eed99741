/* SPDX-License-Identifier: MIT */
/* See lab_explain.h. */
#include "diagnose/lab_explain.h"

#include "base/function_name.h"
#include "base/path.h"
#include "diagnose/lab_places.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void add_line(struct etch_lab_explain *e, const char *text)
{
    char *copy = strdup(text);

    if (copy && !etch_array_push(&e->lines, copy))
        free(copy); /* a line less: the answer does not depend on it */
}

/* "T2 consumer bug.c:18 #3" */
static void moment_text(const struct etch_lab_explain *e, const struct etch_lab_event *at, char *text, size_t size)
{
    struct etch_names names = {0};
    uint32_t place = etch_lab_place(e->cause, e->twin, at, &names);
    char visit[32] = "", brief[128];

    if (at->visit > 1)
        snprintf(visit, sizeof(visit), " #%u", at->visit);
    if (place == ETCH_NOWHERE)
        snprintf(text, size, "T%u 0x%llx%s", at->thread + 1, (unsigned long long)at->site, visit);
    else
        snprintf(text, size, "T%u %s %s:%u%s", at->thread + 1,
                 etch_function_short(names.places.v[place].function, brief, sizeof(brief)),
                 etch_path_name(names.places.v[place].file), names.places.v[place].line, visit);
    etch_names_release(&names);
}

static void order_text(const struct etch_lab_explain *e, const struct etch_lab_order *o, char *text, size_t size)
{
    char before[300], after[300];

    moment_text(e, &o->before, before, sizeof(before));
    moment_text(e, &o->after, after, sizeof(after));
    snprintf(text, size, "%s before %s%s", before, after, o->absent ? " (which the failing run did not reach)" : "");
}

void etch_lab_explain_trial(void *context, const struct etch_lab_trial *trial)
{
    struct etch_lab_explain *e = context;
    char order[700], text[1024];

    if (trial->order) {
        order_text(e, trial->order, order, sizeof(order));
        snprintf(text, sizeof(text), "turned round%s: %s: %s", trial->order->whole ? " as a whole" : "", order,
                 trial->outcome);
        add_line(e, text);
        return;
    }
    for (uint32_t i = 0; i < trial->claim->n; i++) {
        order_text(e, &e->cause->orders.v[trial->claim->orders[i]], order, sizeof(order));
        snprintf(text, sizeof(text), "%s%s", i ? "     and: " : "enforced: ", order);
        add_line(e, text);
    }
    snprintf(text, sizeof(text), "          %u of %u runs fail",
             trial->claim->alone.failed + trial->claim->alone.otherwise, trial->claim->alone.of);
    add_line(e, text);
}

static void explain_chain(struct etch_lab_explain *e, uint32_t order)
{
    const struct etch_lab_orders *orders = &e->cause->orders;
    char text[1024], one[700];

    order_text(e, &orders->v[order], one, sizeof(one));
    snprintf(text, sizeof(text), "necessary %u: %s", order + 1, one);
    add_line(e, text);
    for (uint32_t k = 0; k < orders->n; k++) {
        snprintf(text, sizeof(text), "  without it, %u %s", k + 1,
                 orders->turned[order] >> k & 1 ? "still happens, and the run passes: so it is not enough"
                                                : "does not happen");
        if (k != order)
            add_line(e, text);
    }
}

/* Where the failure was decided, in the order in which it was looked for. */
static void explain_curve(struct etch_lab_explain *e)
{
    const struct etch_lab_curve *curve = &e->cause->curve;
    char text[256];

    for (uint32_t i = 0; i < curve->n; i++) {
        snprintf(text, sizeof(text), "the first %llu of %llu points as in the failing run, then others: %u of %u fail",
                 (unsigned long long)curve->v[i].point, (unsigned long long)curve->points, curve->v[i].failed,
                 curve->v[i].of);
        add_line(e, text);
    }
}

void etch_lab_explain_end(struct etch_lab_explain *e)
{
    const struct etch_claim *c = &e->cause->claim;
    char text[256];

    explain_curve(e);

    for (uint32_t i = 0; i < e->cause->orders.n; i++)
        explain_chain(e, i);
    if (!c->n) {
        add_line(e, "decided: no order alone decides the failure; the comparison of runs gives suspects only");
        return;
    }
    snprintf(text, sizeof(text), "decided: %s by %u order%s: turned round %u of %u fail, enforced %u of %u fail%s",
             etch_claim_is_proven(c) ? "proven" : "necessary", c->n, c->n == 1 ? "" : "s",
             c->turned.failed + c->turned.otherwise, c->turned.of, c->alone.failed + c->alone.otherwise, c->alone.of,
             e->cause->cut ? "; the budget ended before all orders were tried" : "");
    add_line(e, text);
}

void etch_lab_explain_release(struct etch_lab_explain *e)
{
    for (size_t i = 0; i < e->lines.n; i++)
        free(e->lines.v[i]);
    etch_array_free(&e->lines);
}
