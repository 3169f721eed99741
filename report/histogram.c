/* SPDX-License-Identifier: MIT */
/* The distribution of one function's calls as bars. A call whose duration is a span counts in the row of its upper
 * bound, and the rows show how many are certain to be there. */
#include "report/table.h"

#include "base/printable.h"
#include "report/json.h"
#include "report/quantity.h"

#include <inttypes.h>
#include <string.h>

enum { BAR = 40, PER_ROW = 16 }; /* buckets: half an octave */

struct shape {
    struct etch_distribution lo, hi, wait;
};

static void shape_release(struct shape *s)
{
    etch_distribution_release(&s->lo);
    etch_distribution_release(&s->hi);
    etch_distribution_release(&s->wait);
}

/* The first bucket of the row that holds `bucket`: rows are as wide everywhere, in buckets. */
static uint32_t row_of(uint32_t bucket)
{
    return bucket / PER_ROW * PER_ROW;
}

static void print_bar(uint64_t n, uint64_t most, FILE *out)
{
    uint64_t width = most ? (n * BAR + most - 1) / most : 0;

    for (uint64_t i = 0; i < width; i++)
        putc('#', out);
    fprintf(out, "%*s", (int)(BAR - width + 1), "");
}

static uint64_t highest_row(const struct etch_distribution *d)
{
    uint64_t most = 0;

    for (uint32_t row = row_of(d->first); row < d->first + d->n; row += PER_ROW) {
        uint64_t n = etch_distribution_between(d, row, row + PER_ROW - 1);

        most = n > most ? n : most;
    }
    return most;
}

static void print_rows(const struct etch_profile *profile, const struct etch_distribution *d, bool ticks, FILE *out)
{
    uint64_t most = highest_row(d);

    for (uint32_t row = row_of(d->first); row < d->first + d->n; row += PER_ROW) {
        uint64_t n = etch_distribution_between(d, row, row + PER_ROW - 1);
        uint64_t top = etch_distribution_greatest(row + PER_ROW - 1);
        char text[ETCH_QUANTITY_ROOM];

        if (ticks)
            etch_quantity_ticks(profile, (struct etch_span){top, top}, text);
        else
            etch_quantity_count(top, text);
        fprintf(out, "  up to %10s ", text);
        print_bar(n, most, out);
        fprintf(out, "%" PRIu64 "\n", n);
    }
}

static void print_quantiles(const struct etch_profile *profile, uint32_t function, uint32_t caller, FILE *out)
{
    static const double shares[] = {0.5, 0.9, 0.99, 0.999};
    static const char *const names[] = {"p50", "p90", "p99", "p99.9"};
    char text[ETCH_QUANTITY_ROOM];
    struct etch_span span;

    for (size_t i = 0; i < 4; i++)
        if (etch_profile_quantile(profile, function, caller, shares[i], &span))
            fprintf(out, "  %s %s", names[i], etch_quantity(profile, span, text));
    putc('\n', out);
}

static bool is_bounded_only(const struct shape *s)
{
    return etch_distribution_quantile(&s->lo, 0.5) + PER_ROW < etch_distribution_quantile(&s->hi, 0.5);
}

static int print_shape(const struct etch_profile *profile, uint32_t function, uint32_t caller, FILE *out)
{
    bool ticks = profile->unit == ETCH_UNIT_TICKS;
    struct shape s = {0};
    int status = etch_profile_distribution(profile, function, caller, &s.lo, &s.hi, &s.wait) ? 0 : -1;

    if (status == 0 && s.hi.total) {
        print_quantiles(profile, function, caller, out);
        print_rows(profile, &s.hi, ticks, out);
        if (ticks && is_bounded_only(&s))
            fprintf(out, "  Rows are upper bounds: half of these calls are shorter than the distance of the time "
                         "stamps.\n");
        if (s.wait.total) {
            fprintf(out, "  off-CPU: %" PRIu64 " of these calls waited\n", s.wait.total);
            print_rows(profile, &s.wait, true, out);
        }
    } else if (status == 0)
        fprintf(out, "  no whole call was recorded\n");
    shape_release(&s);
    return status;
}

static const char *caller_name(const struct etch_profile *profile, uint32_t caller)
{
    return caller == ETCH_FUNCTION_NONE ? "(caller not recorded)" : profile->functions.v[caller].name;
}

int etch_histogram_print(const struct etch_profile *profile, uint32_t function, bool by_caller, FILE *out)
{
    int status = 0;

    etch_print(out, profile->functions.v[function].name);
    fprintf(out, ": %" PRIu64 " calls\n", profile->functions.v[function].calls);
    if (!by_caller)
        return print_shape(profile, function, ETCH_ANY_CALLER, out);
    for (size_t i = 0; i < profile->edges.n && status == 0; i++) {
        const struct etch_profile_edge *e = &profile->edges.v[i];

        if (e->function != function)
            continue;
        fprintf(out, "\nby ");
        etch_print(out, caller_name(profile, e->caller));
        fprintf(out, ": %" PRIu64 " calls\n", e->calls);
        status = print_shape(profile, function, e->caller, out);
    }
    return status;
}

/* ---- JSON ---- */

static void json_buckets(const struct etch_distribution *d, double scale, FILE *out)
{
    const char *separator = "";

    putc('[', out);
    for (uint32_t i = 0; i < d->n; i++)
        if (d->counts[i]) {
            fprintf(out, "%s{\"from\":%.1f,\"to\":%.1f,\"count\":%" PRIu64 "}", separator,
                    scale * (double)etch_distribution_least(d->first + i),
                    scale * (double)etch_distribution_greatest(d->first + i), d->counts[i]);
            separator = ",";
        }
    putc(']', out);
}

static int json_shape(const struct etch_profile *profile, uint32_t function, uint32_t caller, FILE *out)
{
    double tick = profile->ns_per_tick > 0 ? profile->ns_per_tick : 1;
    double scale = profile->unit == ETCH_UNIT_TICKS ? tick : 1;
    struct shape s = {0};
    int status = etch_profile_distribution(profile, function, caller, &s.lo, &s.hi, &s.wait) ? 0 : -1;

    fputs(",\"least\":", out);
    json_buckets(&s.lo, scale, out);
    fputs(",\"most\":", out);
    json_buckets(&s.hi, scale, out);
    fputs(",\"wait_ns\":", out);
    json_buckets(&s.wait, tick, out);
    shape_release(&s);
    return status;
}

int etch_histogram_json(const struct etch_profile *profile, uint32_t function, bool by_caller, FILE *out)
{
    int status = 0;

    fputs("{\"function\":", out);
    etch_json_string(out, profile->functions.v[function].name);
    fprintf(out, ",\"unit\":\"%s\"", profile->unit == ETCH_UNIT_TICKS ? "ns" : "instructions");
    if (!by_caller)
        status = json_shape(profile, function, ETCH_ANY_CALLER, out);
    else {
        const char *separator = "";

        fputs(",\"callers\":[", out);
        for (size_t i = 0; i < profile->edges.n && status == 0; i++)
            if (profile->edges.v[i].function == function) {
                fprintf(out, "%s{\"caller\":", separator);
                etch_json_string(out, caller_name(profile, profile->edges.v[i].caller));
                status = json_shape(profile, function, profile->edges.v[i].caller, out);
                putc('}', out);
                separator = ",";
            }
        putc(']', out);
    }
    fputs("}\n", out);
    return status;
}
