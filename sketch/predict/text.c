/* SPDX-License-Identifier: MIT */
/* Predictors in words; see predictor.h. */
#include "base/function_name.h"
#include "base/path.h"
#include "sketch/predictor.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

const char *etch_predictor_kind_name(enum etch_predictor_kind kind)
{
    static const char *const names[] = {"lock_order", "wait",   "atomicity", "order",
                                        "value",      "origin", "branch",    "executed"};

    return kind < ETCH_PREDICTOR_KINDS ? names[kind] : "";
}

static void place_text(const struct etch_names *names, uint32_t place, char *text, size_t size)
{
    const struct etch_line_place *p = place < names->places.n ? &names->places.v[place] : NULL;
    char function[128];

    if (p)
        snprintf(text, size, "%s %s:%u", etch_function_short(p->function, function, sizeof(function)),
                 etch_path_name(p->file), p->line);
    else
        snprintf(text, size, "elsewhere");
}

static void value_text(const struct etch_predictor *p, const char *variable, const char *second, const char *place,
                       char *text, size_t size)
{
    switch (p->test) {
    case ETCH_VALUE_ZERO:
        snprintf(text, size, "%s == 0 at %s", variable, place);
        break;
    case ETCH_VALUE_EQUAL:
        if (p->value < 1000000)
            snprintf(text, size, "%s == %" PRIu64 " at %s", variable, p->value, place);
        else
            snprintf(text, size, "%s == 0x%" PRIx64 " at %s", variable, p->value, place);
        break;
    case ETCH_VALUE_NEGATIVE:
        snprintf(text, size, "%s < 0 at %s", variable, place);
        break;
    case ETCH_VALUE_BELOW:
        snprintf(text, size, "%s < %" PRId64 ", the least of passing runs, at %s", variable, (int64_t)p->value, place);
        break;
    case ETCH_VALUE_ABOVE:
        snprintf(text, size, "%s > %" PRId64 ", the most of passing runs, at %s", variable, (int64_t)p->value, place);
        break;
    case ETCH_VALUE_LESS:
    case ETCH_VALUE_SAME:
    case ETCH_VALUE_GREATER:
        snprintf(text, size, "%s %s %s at %s", variable,
                 p->test == ETCH_VALUE_LESS   ? "<"
                 : p->test == ETCH_VALUE_SAME ? "=="
                                              : ">",
                 second, place);
        break;
    }
}

/* "forth a.c:12 holds what back a.c:30 waits for, back a.c:28 holds what forth a.c:14 waits for": the thread that took
 * the lock at a place waits at the next place. */
static void ring_text(const struct etch_predictor *p, const struct etch_names *names, char *text, size_t size)
{
    size_t length = 0;

    text[0] = '\0';
    for (uint32_t i = 0; i + 1 < p->n_places && length < size; i += 2) {
        char taken[300], waits[300];

        place_text(names, p->places[i], taken, sizeof(taken));
        place_text(names, p->places[(i + p->n_places - 1) % p->n_places], waits, sizeof(waits));
        length += (size_t)snprintf(text + length, size - length, "%sthe lock taken at %s is waited for at %s",
                                   i ? ", " : "", taken, waits);
    }
}

static void outcome_text(const struct etch_names *names, uint32_t to, bool taken, const char *goes,
                         const char *branches, char *text, size_t size)
{
    if (to != ETCH_NOWHERE)
        snprintf(text, size, "%s to line %u", goes, names->places.v[to].line);
    else
        snprintf(text, size, "%s %s", branches, taken ? "away" : "on");
}

static void branch_text(const struct etch_predictor *p, const struct etch_names *names, char *text, size_t size)
{
    char place[300], before[300], outcome[64], was[64];

    place_text(names, p->places[p->n_places - 1], place, sizeof(place));
    outcome_text(names, p->to, p->taken, "goes on", "branches", outcome, sizeof(outcome));
    switch (p->branch) {
    case ETCH_BRANCH_NEVER:
        snprintf(text, size, "%s never %s", place, outcome);
        break;
    case ETCH_BRANCH_AT_LAST:
        snprintf(text, size, "%s %s the last time", place, outcome);
        break;
    case ETCH_BRANCH_AFTER:
        place_text(names, p->places[0], before, sizeof(before));
        outcome_text(names, p->before_to, p->before_taken, "went on", "branched", was, sizeof(was));
        snprintf(text, size, "%s %s after %s %s", place, outcome, before, was);
        break;
    default:
        snprintf(text, size, "%s %s", place, outcome);
    }
}

void etch_predictor_text(const struct etch_predictor *p, const struct etch_names *names, char *text, size_t size)
{
    const char *variable = p->variable < names->variables.n ? names->variables.v[p->variable] : "";
    const char *second = p->second < names->variables.n ? names->variables.v[p->second] : "";
    char place[4][300] = {"", "", "", ""};

    for (uint32_t i = 0; i < p->n_places && i < 4; i++)
        place_text(names, p->places[i], place[i], sizeof(place[i]));
    switch (p->kind) {
    case ETCH_PREDICTOR_LOCK_ORDER:
        ring_text(p, names, text, size);
        break;
    case ETCH_PREDICTOR_WAIT:
        if (p->n_places == 2)
            snprintf(text, size, "%s before %s begins to wait for it, and never again", place[0], place[1]);
        else
            snprintf(text, size, "%s waits for what nobody signals", place[0]);
        break;
    case ETCH_PREDICTOR_ORIGIN:
        snprintf(text, size, "%s at %s was written by %s", variable, place[1], place[0]);
        break;
    case ETCH_PREDICTOR_ATOMICITY:
        if (p->n_places == 4) {
            snprintf(text, size, "%s before %s, and yet %s before %s (%s is new, %s is old)", place[0], place[1],
                     place[2], place[3], variable, second);
            break;
        }
        snprintf(text, size, "%s between %s and %s (%s%s%s)", place[1], place[0], place[2], p->pattern,
                 variable[0] ? " of " : "", variable);
        break;
    case ETCH_PREDICTOR_ORDER:
        snprintf(text, size, "%s before %s (%s%s%s)", place[0], place[1], p->pattern, variable[0] ? " of " : "",
                 variable);
        break;
    case ETCH_PREDICTOR_VALUE:
        value_text(p, variable, second, place[0], text, size);
        break;
    case ETCH_PREDICTOR_BRANCH:
        branch_text(p, names, text, size);
        break;
    default:
        snprintf(text, size, "%s is %s", place[0], p->negated ? "not executed" : "executed");
        break;
    }
}

const char *etch_predictor_pattern(const struct etch_predictor *p)
{
    static const char *const tests[] = {"== 0", "==", "< 0", "<", ">", "less", "same", "greater"};

    switch (p->kind) {
    case ETCH_PREDICTOR_VALUE:
        return p->test == ETCH_VALUE_ZERO && p->size == 8 ? "null" : tests[p->test];
    case ETCH_PREDICTOR_BRANCH:
        return p->branch == ETCH_BRANCH_NEVER     ? p->taken ? "never taken" : "always taken"
               : p->branch == ETCH_BRANCH_AT_LAST ? p->taken ? "taken last" : "not taken last"
               : p->branch == ETCH_BRANCH_AFTER   ? p->taken ? "taken after" : "not taken after"
               : p->taken                         ? "taken"
                                                  : "not taken";
    case ETCH_PREDICTOR_LOCK_ORDER:
        return "ring";
    case ETCH_PREDICTOR_WAIT:
        return p->n_places == 2 ? "too late" : "never";
    case ETCH_PREDICTOR_EXECUTED:
        return p->negated ? "not executed" : "executed";
    default:
        return p->pattern;
    }
}
