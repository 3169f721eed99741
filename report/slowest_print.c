/* SPDX-License-Identifier: MIT */
/* The slowest calls as text and as JSON. */
#include "report/slowest.h"

#include "base/printable.h"
#include "report/json.h"
#include "report/quantity.h"

#include <inttypes.h>

static const struct etch_profile_function *function_of(const struct etch_slowest *s, uint32_t function)
{
    return &s->profile->functions.v[function];
}

/* The callees from the slow call down to the part: "insert -> rehash". */
static void print_path(const struct etch_slowest *s, const struct etch_call_detail *detail, uint32_t part, FILE *out)
{
    uint32_t chain[64], n = 0;

    for (; part && n < 64; part = detail->parts.v[part].parent)
        chain[n++] = part;
    if (!n)
        fputs("the function itself", out);
    while (n) {
        etch_print(out, function_of(s, detail->parts.v[chain[--n]].function)->name);
        fputs(n ? " -> " : "", out);
    }
}

static void print_wait(const struct etch_slowest *s, const struct etch_difference *d, FILE *out)
{
    const struct etch_profile_wait *wait = &s->profile->waits.v[d->wait];
    struct etch_span more = {(uint64_t)d->more, (uint64_t)d->more},
                     typical = {(uint64_t)d->typical, (uint64_t)d->typical};
    char text[ETCH_QUANTITY_ROOM], usual[ETCH_QUANTITY_ROOM];

    fprintf(out, "waits %s longer in ", etch_quantity_ticks(s->profile, more, text));
    etch_print(out, function_of(s, wait->function)->name);
    fputs(", ", out);
    etch_print(out, wait->place);
    if (wait->what)
        fprintf(out, ", %s", wait->what);
    if (d->typical > 0)
        fprintf(out, " (the typical call waits %s there)", etch_quantity_ticks(s->profile, typical, usual));
    else
        fputs(" (the typical call does not wait there)", out);
}

static void print_ran(const struct etch_slowest *s, const struct etch_slow_call *slow, const struct etch_difference *d,
                      FILE *out)
{
    const struct etch_call_part *part = &slow->detail.parts.v[d->part];
    char text[ETCH_QUANTITY_ROOM], usual[ETCH_QUANTITY_ROOM];

    if (d->kind == ETCH_DIFFERENCE_PATH) {
        fputs("calls ", out);
        print_path(s, &slow->detail, d->part, out);
        fprintf(out, ", which typical calls do not: %" PRIu64 " time%s, %s instructions", part->calls,
                part->calls == 1 ? "" : "s", etch_quantity_count(part->instructions, text));
        return;
    }
    print_path(s, &slow->detail, d->part, out);
    fprintf(out, " runs %s more instructions than the %s of the typical call",
            etch_quantity_count((uint64_t)d->more, text), etch_quantity_count((uint64_t)d->typical, usual));
}

static void print_call(const struct etch_slowest *s, const struct etch_slow_call *slow, FILE *out)
{
    const struct etch_profile_call *call = &slow->detail.call;
    struct etch_span waited = {call->wait, call->wait};
    char cost[ETCH_QUANTITY_ROOM], more[ETCH_QUANTITY_ROOM], wait[ETCH_QUANTITY_ROOM];
    double sum = 0;

    fprintf(out, "\ncall %" PRIu64 ", thread %" PRIu32 ": %s%s", call->number, call->tid,
            etch_quantity(s->profile, call->cost, cost),
            s->profile->unit == ETCH_UNIT_INSTRUCTIONS ? " instructions" : "");
    if (call->wait)
        fprintf(out, ", %swaiting %s", s->profile->unit == ETCH_UNIT_TICKS ? "of them " : "",
                etch_quantity_ticks(s->profile, waited, wait));
    fprintf(out, " (%s more than typical calls)\n", etch_quantity(s->profile, slow->more, more));
    for (size_t i = 0; i < slow->differences.n; i++) {
        const struct etch_difference *d = &slow->differences.v[i];

        fprintf(out, "  %3.0f %%%s  ", d->share * 100,
                s->profile->unit == ETCH_UNIT_TICKS ? ""
                : d->kind == ETCH_DIFFERENCE_WAIT   ? " of the waiting"
                                                    : " of the instructions");
        if (d->kind == ETCH_DIFFERENCE_WAIT)
            print_wait(s, d, out);
        else
            print_ran(s, slow, d, out);
        putc('\n', out);
        sum += d->share;
    }
    if (sum < 0.9 && s->profile->unit == ETCH_UNIT_TICKS)
        fprintf(out,
                "  %3.0f %%  not explained by calls, instructions or recorded waits: slower memory, a page fault, or "
                "other work on the CPU\n",
                (1 - sum) * 100);
}

void etch_slowest_print(const struct etch_slowest *s, FILE *out)
{
    const struct etch_profile_function *f = function_of(s, s->function);
    struct etch_span median;
    char text[ETCH_QUANTITY_ROOM];

    etch_print(out, f->name);
    fprintf(out, ": %" PRIu64 " calls", f->calls);
    if (etch_profile_quantile(s->profile, s->function, ETCH_ANY_CALLER, 0.5, &median))
        fprintf(out, ", median %s", etch_quantity(s->profile, median, text));
    fprintf(out, "; compared with %zu typical calls\n", s->typical.n);
    for (size_t i = 0; i < s->slow.n; i++)
        print_call(s, &s->slow.v[i], out);
    if (!s->slow.n)
        fputs("\nno call is certain to be slower than typical calls\n", out);
    if (s->uncertain)
        fprintf(out,
                "\nnot shown: %" PRIu32 " call%s that no time stamp near by bounds: as quick as typical calls, or "
                "as slow as those above\n",
                s->uncertain, s->uncertain == 1 ? "" : "s");
}

static void json_difference(const struct etch_slowest *s, const struct etch_slow_call *slow,
                            const struct etch_difference *d, FILE *out)
{
    static const char *const kinds[] = {"wait", "path", "ran_more"};
    double tick = s->profile->ns_per_tick > 0 ? s->profile->ns_per_tick : 1;

    fprintf(out, "{\"kind\":\"%s\",\"share\":%.4f", kinds[d->kind], d->share);
    if (d->kind == ETCH_DIFFERENCE_WAIT) {
        const struct etch_profile_wait *wait = &s->profile->waits.v[d->wait];

        fprintf(out, ",\"ns\":%.1f,\"typical_ns\":%.1f,\"function\":", d->more * tick, d->typical * tick);
        etch_json_string(out, function_of(s, wait->function)->name);
        fputs(",\"place\":", out);
        etch_json_string(out, wait->place);
        if (wait->what) {
            fputs(",\"what\":", out);
            etch_json_string(out, wait->what);
        }
    } else {
        fprintf(out,
                ",\"instructions\":%.0f,\"typical_instructions\":%.1f,\"calls\":%" PRIu64 ",\"function\":", d->more,
                d->typical, slow->detail.parts.v[d->part].calls);
        etch_json_string(out, function_of(s, slow->detail.parts.v[d->part].function)->name);
    }
    putc('}', out);
}

void etch_slowest_json(const struct etch_slowest *s, FILE *out)
{
    fputs("{\"function\":", out);
    etch_json_string(out, function_of(s, s->function)->name);
    fprintf(out, ",\"calls\":%" PRIu64 ",\"typical\":%zu,\"uncertain\":%" PRIu32 ",\"slowest\":[",
            function_of(s, s->function)->calls, s->typical.n, s->uncertain);
    for (size_t i = 0; i < s->slow.n; i++) {
        const struct etch_slow_call *slow = &s->slow.v[i];

        fprintf(out, "%s\n{\"number\":%" PRIu64 ",\"tid\":%" PRIu32 ",\"file\":%" PRIu32 ",\"wait_ns\":%.1f,\"cost\":",
                i ? "," : "", slow->detail.call.number, slow->detail.call.tid, slow->detail.call.file,
                etch_quantity_ns(s->profile, (double)slow->detail.call.wait));
        etch_json_cost(out, s->profile, slow->detail.call.cost);
        fputs(",\"more\":", out);
        etch_json_cost(out, s->profile, slow->more);
        fprintf(out, ",\"pruned\":%" PRIu64 ",\"differences\":[", slow->detail.pruned);
        for (size_t k = 0; k < slow->differences.n; k++) {
            fputs(k ? "," : "", out);
            json_difference(s, slow, &slow->differences.v[k], out);
        }
        fputs("]}", out);
    }
    fputs("]}\n", out);
}
