/* SPDX-License-Identifier: MIT */
/* A comparison as text and as JSON. */
#include "report/compare.h"

#include "base/printable.h"
#include "report/json.h"
#include "report/quantity.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[ETCH_MEASURES] = {"CPU time", "wall time", "instructions", "calls", "time", "waiting"};
static const char *const keys[ETCH_MEASURES] = {"cpu_ns", "wall_ns", "instructions", "calls", "ns", "wait_ns"};

/* What one unit of the measure is in nanoseconds; 0: no time. */
static double scale_of(const struct etch_comparison *c, int measure)
{
    switch (measure) {
    case ETCH_MEASURE_CPU:
    case ETCH_MEASURE_WALL:
        return 1;
    case ETCH_MEASURE_TIME:
    case ETCH_MEASURE_WAIT:
        return c->ns_per_tick > 0 ? c->ns_per_tick : 1;
    default:
        return 0;
    }
}

static const char *amount(const struct etch_comparison *c, int measure, double value, char *text)
{
    const struct etch_profile nanoseconds = {.ns_per_tick = 1};
    double scale = scale_of(c, measure), size = fabs(value);
    char digits[ETCH_QUANTITY_ROOM];

    if (scale > 0) {
        uint64_t ns = (uint64_t)(size * scale);

        etch_quantity_ticks(&nanoseconds, (struct etch_span){ns, ns}, digits);
    } else
        etch_quantity_count((uint64_t)size, digits);
    snprintf(text, ETCH_QUANTITY_ROOM, "%s%s", value < 0 ? "-" : "", digits);
    return text;
}

static double percent(double part, double whole)
{
    return whole > 0 ? 100 * part / whole : 0;
}

static void print_name(const struct etch_compared_row *row, FILE *out)
{
    if (!row->name[0])
        fputs("whole run", out);
    for (const char *p = row->name; *p; p++)
        if (row->is_path && *p == ';')
            fputs(" > ", out);
        else
            etch_print_bytes(out, p, 1);
}

static void print_claim(const struct etch_comparison *c, const struct etch_compared_row *row, int measure, FILE *out)
{
    const struct etch_compared *of = &row->of[measure];
    char a[ETCH_QUANTITY_ROOM], b[ETCH_QUANTITY_ROOM], by[ETCH_QUANTITY_ROOM];

    fprintf(out, "  %-6s %+8.2f %%  (%+.2f .. %+.2f %%)  %s%s %s: %s -> %s  ", of->shift.by > 0 ? "slower" : "faster",
            percent(of->shift.by, of->a), percent(of->shift.lo, of->a), percent(of->shift.hi, of->a),
            of->shift.by > 0 ? "+" : "", amount(c, measure, of->shift.by, by), names[measure],
            amount(c, measure, of->a, a), amount(c, measure, of->b, b));
    print_name(row, out);
    putc('\n', out);
}

struct claim {
    const struct etch_compared_row *row;
    int measure;
    double weight;
};

static int heavier_first(const void *a, const void *b)
{
    const struct claim *x = a, *y = b;

    return x->measure != y->measure ? x->measure - y->measure
           : x->weight < y->weight  ? 1
           : x->weight > y->weight  ? -1
                                    : 0;
}

static size_t claims_of(const struct etch_comparison *c, bool paths, struct claim *claims)
{
    size_t n = 0;

    for (size_t i = 0; i < c->rows.n; i++)
        for (int m = 0; m < ETCH_MEASURES; m++)
            if (c->rows.v[i].is_path == paths && c->rows.v[i].of[m].verdict == ETCH_COMPARED_DIFFERENT &&
                (!paths || m == ETCH_MEASURE_INSTRUCTIONS))
                claims[n++] = (struct claim){&c->rows.v[i], m, fabs(c->rows.v[i].of[m].shift.by)};
    if (n)
        qsort(claims, n, sizeof(*claims), heavier_first);
    return n;
}

static void print_whole(const struct etch_comparison *c, FILE *out)
{
    static const int measures[] = {ETCH_MEASURE_CPU, ETCH_MEASURE_WALL};
    char a[ETCH_QUANTITY_ROOM], b[ETCH_QUANTITY_ROOM];

    for (size_t i = 0; i < 2; i++) {
        const struct etch_compared *of = &c->rows.v[0].of[measures[i]];

        fprintf(out, "%-10s %s -> %s", names[measures[i]], amount(c, measures[i], of->a, a),
                amount(c, measures[i], of->b, b));
        if (of->shift.known)
            fprintf(out, ", %+.2f %% (%+.2f .. %+.2f %%); runs of one side differ by %.2f %%%s",
                    percent(of->shift.by, of->a), percent(of->shift.lo, of->a), percent(of->shift.hi, of->a),
                    percent(of->noise, of->a),
                    of->verdict == ETCH_COMPARED_DIFFERENT ? "" : ": no difference is claimed");
        putc('\n', out);
    }
}

void etch_comparison_print(const struct etch_comparison *c, const char *a, const char *b, FILE *out)
{
    struct claim *claims = calloc(c->rows.n * ETCH_MEASURES + 1, sizeof(*claims));
    size_t n;

    fprintf(out, "A          %s, %zu run%s\n", etch_shown(a), c->n_a, c->n_a == 1 ? "" : "s");
    fprintf(out, "B          %s, %zu run%s\n", etch_shown(b), c->n_b, c->n_b == 1 ? "" : "s");
    if (!claims || !c->rows.n)
        goto out;
    print_whole(c, out);
    if (c->lost)
        fprintf(out, "functions  not compared: the recordings lost control flow\n");
    if (!c->decided)
        fprintf(out,
                "\nnot decided: so few runs cannot be told from noise; 10 runs of each can (try: etch bench -n 10)\n");
    n = claims_of(c, false, claims);
    if (n)
        fprintf(out, "\nB against A\n");
    else if (c->decided)
        fprintf(out, "\nno difference\n");
    for (size_t i = 0; i < n; i++)
        print_claim(c, claims[i].row, claims[i].measure, out);
    n = claims_of(c, true, claims);
    if (n)
        fprintf(out, "\nby path\n");
    for (size_t i = 0; i < n && i < 20; i++)
        print_claim(c, claims[i].row, claims[i].measure, out);
out:
    free(claims);
}

void etch_comparison_json(const struct etch_comparison *c, FILE *out)
{
    static const char *const verdicts[] = {"same", "different", "unknown"};
    const char *separator = "";

    fprintf(out,
            "{\"runs_a\":%zu,\"runs_b\":%zu,\"decided\":%s,\"risk\":%g,\"tests\":%zu,\"lost\":%s,\"slower\":%s,"
            "\"rows\":[",
            c->n_a, c->n_b, c->decided ? "true" : "false", c->risk, c->tests, c->lost ? "true" : "false",
            etch_comparison_is_slower(c) ? "true" : "false");
    for (size_t i = 0; i < c->rows.n; i++)
        for (int m = 0; m < ETCH_MEASURES; m++) {
            const struct etch_compared *of = &c->rows.v[i].of[m];
            double scale = scale_of(c, m) > 0 ? scale_of(c, m) : 1;

            if (of->verdict == ETCH_COMPARED_SAME && i)
                continue;
            fprintf(out, "%s\n{\"%s\":", separator, c->rows.v[i].is_path ? "path" : "function");
            etch_json_string(out, c->rows.v[i].name);
            fprintf(out, ",\"measure\":\"%s\",\"verdict\":\"%s\",\"a\":%.1f,\"b\":%.1f,\"by\":%.1f", keys[m],
                    verdicts[of->verdict], of->a * scale, of->b * scale, of->shift.by * scale);
            if (of->shift.known)
                fprintf(out, ",\"lo\":%.1f,\"hi\":%.1f", of->shift.lo * scale, of->shift.hi * scale);
            fprintf(out, ",\"noise\":%.1f}", of->noise * scale);
            separator = ",";
        }
    fputs("]}\n", out);
}
