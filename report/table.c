/* SPDX-License-Identifier: MIT */
/* The table of functions; see table.h. */
#include "report/table.h"

#include "base/printable.h"
#include "report/json.h"
#include "report/quantity.h"

#include <inttypes.h>
#include <string.h>

struct row {
    uint32_t function;
    double weight;
};

static double weight_of(const struct etch_profile *profile, const struct etch_profile_function *f)
{
    return profile->unit == ETCH_UNIT_TICKS ? etch_span_middle(f->total)
                                            : (double)f->total_instructions + (double)f->total_wait / 1e9;
}

static int compare(const void *a, const void *b)
{
    const struct row *x = a, *y = b;

    if (x->weight != y->weight)
        return x->weight < y->weight ? 1 : -1;
    return x->function < y->function ? -1 : 1;
}

static bool passes(const struct etch_profile *profile, uint32_t i, const struct etch_table_filter *filter)
{
    const struct etch_profile_slowest *slowest = &profile->slowest.v[i];
    uint64_t most = 0;

    if (filter->function && !strstr(profile->functions.v[i].name, filter->function))
        return false;
    for (uint32_t k = 0; k < slowest->n; k++)
        most = slowest->calls[k].cost.hi > most ? slowest->calls[k].cost.hi : most;
    return !filter->above || most >= filter->above;
}

long etch_table_rows(const struct etch_profile *profile, const struct etch_table_filter *filter, uint32_t **rows)
{
    ETCH_ARRAY(struct row) sorted = {0};
    size_t n;

    *rows = malloc((profile->functions.n + 1) * sizeof(**rows));
    if (!*rows || !etch_array_reserve(&sorted, profile->functions.n + 1)) {
        free(*rows);
        return -1;
    }
    for (uint32_t i = 0; i < profile->functions.n; i++)
        if (passes(profile, i, filter))
            sorted.v[sorted.n++] = (struct row){i, weight_of(profile, &profile->functions.v[i])};
    qsort(sorted.v, sorted.n, sizeof(*sorted.v), compare);
    n = filter->rows && filter->rows < sorted.n ? filter->rows : sorted.n;
    for (size_t i = 0; i < n; i++)
        (*rows)[i] = sorted.v[i].function;
    etch_array_free(&sorted);
    return (long)n;
}

/* The greatest bounds among the kept calls: what is known of the slowest one. */
static struct etch_span slowest_of(const struct etch_profile *profile, uint32_t function)
{
    const struct etch_profile_slowest *slowest = &profile->slowest.v[function];
    struct etch_span most = {0, 0};

    for (uint32_t i = 0; i < slowest->n; i++) {
        most.lo = slowest->calls[i].cost.lo > most.lo ? slowest->calls[i].cost.lo : most.lo;
        most.hi = slowest->calls[i].cost.hi > most.hi ? slowest->calls[i].cost.hi : most.hi;
    }
    return most;
}

static const char *quantile_text(const struct etch_profile *profile, uint32_t function, double share, char *text)
{
    struct etch_span span;

    if (!etch_profile_quantile(profile, function, ETCH_ANY_CALLER, share, &span))
        return strcpy(text, "-");
    return etch_quantity(profile, span, text);
}

static void print_row(const struct etch_profile *profile, uint32_t function, FILE *out)
{
    const struct etch_profile_function *f = &profile->functions.v[function];
    char total[ETCH_QUANTITY_ROOM], self[ETCH_QUANTITY_ROOM], wait[ETCH_QUANTITY_ROOM], p50[ETCH_QUANTITY_ROOM],
        p90[ETCH_QUANTITY_ROOM], p99[ETCH_QUANTITY_ROOM], most[ETCH_QUANTITY_ROOM], share[16];
    struct etch_span waits = {f->total_wait, f->total_wait};

    if (profile->unit == ETCH_UNIT_TICKS) {
        etch_quantity_ticks(profile, f->unbounded && !f->total.hi ? (struct etch_span){0, UINT64_MAX} : f->total,
                            total);
        etch_quantity_ticks(profile, f->unbounded && !f->self.hi ? (struct etch_span){0, UINT64_MAX} : f->self, self);
    } else {
        etch_quantity_count(f->total_instructions, total);
        etch_quantity_count(f->instructions, self);
    }
    if (f->total_wait)
        etch_quantity_ticks(profile, waits, wait);
    else
        strcpy(wait, "-");
    quantile_text(profile, function, 0.5, p50);
    quantile_text(profile, function, 0.9, p90);
    quantile_text(profile, function, 0.99, p99);
    if (profile->slowest.v[function].n)
        etch_quantity(profile, slowest_of(profile, function), most);
    else
        strcpy(most, "-");
    snprintf(share, sizeof(share), "%.1f",
             profile->instructions ? 100.0 * (double)f->instructions / (double)profile->instructions : 0);
    fprintf(out, "%10" PRIu64 "  %-16s %-16s %5s  %-10s %-16s %-16s %-16s %-16s ", f->calls, total, self, share, wait,
            p50, p90, p99, most);
    etch_print(out, f->name);
    putc('\n', out);
}

static void print_losses(const struct etch_profile *profile, FILE *out)
{
    uint64_t left_out = 0, sum = 0;
    char text[512];

    for (size_t i = 0; i < profile->functions.n; i++)
        left_out += profile->functions.v[i].left_out;
    for (size_t i = 0; i < ETCH_LOSS_CAUSES; i++)
        sum += profile->lost[i];
    if (sum)
        fprintf(out, "lost       %s\n", etch_losses_text(profile->lost, text, sizeof(text)));
    if (profile->losses)
        fprintf(out, "           %" PRIu64 " stretch%s of the control flow missing\n", profile->losses,
                profile->losses == 1 ? " is" : "es are");
    if (left_out)
        fprintf(out,
                "left out   %" PRIu64
                " call%s not whole (running at an end of the trace, or across a loss): not in the "
                "percentiles\n",
                left_out, left_out == 1 ? " is" : "s are");
    if (profile->merged_paths)
        fprintf(out, "paths      %" PRIu64 " calls had a new path after the limit: counted by their function alone\n",
                profile->merged_paths);
}

static void print_head(const struct etch_profile *profile, FILE *out)
{
    fprintf(out, "%zu run%s, %zu thread%s, %" PRIu64 " instructions, %" PRIu64 " branches\n", profile->files.n,
            profile->files.n == 1 ? "" : "s", profile->threads.n, profile->threads.n == 1 ? "" : "s",
            profile->instructions, profile->branches);
    if (profile->unit == ETCH_UNIT_INSTRUCTIONS)
        fprintf(out, "durations are in instructions: this recording has no times of the program on a real CPU; waits "
                     "are in the time of the recording\n");
    print_losses(profile, out);
}

int etch_table_print(const struct etch_profile *profile, const struct etch_table_filter *filter, FILE *out)
{
    uint32_t *rows;
    long n = etch_table_rows(profile, filter, &rows);

    if (n < 0)
        return -1;
    print_head(profile, out);
    fprintf(out, "\n%10s  %-16s %-16s %5s  %-10s %-16s %-16s %-16s %-16s %s\n", "calls", "total", "self", "insn%",
            "waiting", "p50", "p90", "p99", "max", "function");
    for (long i = 0; i < n; i++)
        print_row(profile, rows[i], out);
    if (!n)
        fprintf(out, "no function passes the filter\n");
    free(rows);
    return 0;
}

/* ---- JSON ---- */

static void json_function(const struct etch_profile *profile, uint32_t i, FILE *out)
{
    static const double shares[] = {0.5, 0.9, 0.99};
    static const char *const names[] = {"p50", "p90", "p99"};
    const struct etch_profile_function *f = &profile->functions.v[i];
    struct etch_span span;

    fputs("{\"name\":", out);
    etch_json_string(out, f->name);
    fputs(",\"module\":", out);
    etch_json_string(out, f->module);
    fprintf(out,
            ",\"calls\":%" PRIu64 ",\"left_out\":%" PRIu64 ",\"instructions\":%" PRIu64
            ",\"total_instructions\":%" PRIu64,
            f->calls, f->left_out, f->instructions, f->total_instructions);
    etch_json_span(out, ",\"self_ns\"", profile, f->self);
    etch_json_span(out, ",\"total_ns\"", profile, f->total);
    fprintf(out, ",\"self_wait_ns\":%.1f,\"wait_ns\":%.1f,\"unbounded\":%s", etch_quantity_ns(profile, (double)f->wait),
            etch_quantity_ns(profile, (double)f->total_wait), f->unbounded ? "true" : "false");
    for (size_t k = 0; k < 3; k++)
        if (etch_profile_quantile(profile, i, ETCH_ANY_CALLER, shares[k], &span)) {
            fprintf(out, ",\"%s\":", names[k]);
            etch_json_cost(out, profile, span);
        }
    if (profile->slowest.v[i].n) {
        fputs(",\"max\":", out);
        etch_json_cost(out, profile, slowest_of(profile, i));
    }
    putc('}', out);
}

static void json_thread(const struct etch_profile *profile, const struct etch_profile_thread *t, FILE *out)
{
    fprintf(out, "{\"file\":%" PRIu32 ",\"pid\":%" PRIu32 ",\"tid\":%" PRIu32 ",\"name\":", t->file, t->pid, t->tid);
    etch_json_string(out, t->name);
    fprintf(out, ",\"instructions\":%" PRIu64 ",\"losses\":%" PRIu64 ",\"wait_ns\":%.1f", t->instructions, t->losses,
            etch_quantity_ns(profile, (double)t->wait));
    if (t->elapsed.hi != UINT64_MAX)
        etch_json_span(out, ",\"elapsed_ns\"", profile, t->elapsed);
    putc('}', out);
}

int etch_table_json(const struct etch_profile *profile, const struct etch_table_filter *filter, FILE *out)
{
    uint32_t *rows;
    long n = etch_table_rows(profile, filter, &rows);

    if (n < 0)
        return -1;
    fprintf(out,
            "{\"unit\":\"%s\",\"rate_known\":%s,\"instructions\":%" PRIu64 ",\"branches\":%" PRIu64
            ",\"losses\":%" PRIu64 ",\"merged_paths\":%" PRIu64 ",\n\"threads\":[",
            profile->unit == ETCH_UNIT_TICKS ? "ns" : "instructions", profile->ns_per_tick > 0 ? "true" : "false",
            profile->instructions, profile->branches, profile->losses, profile->merged_paths);
    for (size_t i = 0; i < profile->threads.n; i++) {
        fputs(i ? ",\n" : "\n", out);
        json_thread(profile, &profile->threads.v[i], out);
    }
    fputs("],\n\"functions\":[", out);
    for (long i = 0; i < n; i++) {
        fputs(i ? ",\n" : "\n", out);
        json_function(profile, rows[i], out);
    }
    fputs("],\n\"waits\":[", out);
    for (size_t i = 0; i < profile->waits.n; i++) {
        const struct etch_profile_wait *w = &profile->waits.v[i];

        fputs(i ? ",\n{\"function\":" : "\n{\"function\":", out);
        etch_json_string(out, profile->functions.v[w->function].name);
        fputs(",\"place\":", out);
        etch_json_string(out, w->place);
        if (w->what) {
            fputs(",\"what\":", out);
            etch_json_string(out, w->what);
        }
        fprintf(out, ",\"count\":%" PRIu64 ",\"ns\":%.1f,\"longest_ns\":%.1f}", w->count,
                etch_quantity_ns(profile, (double)w->ticks), etch_quantity_ns(profile, (double)w->longest));
    }
    fputs("]}\n", out);
    free(rows);
    return 0;
}
