/* SPDX-License-Identifier: MIT */
/* Text formats: folded stacks (flamegraph.pl, inferno) and speedscope. */
#include "report/export.h"

#include "report/json.h"
#include "report/quantity.h"

#include <math.h>

enum { DEEPEST = 4096 };

double etch_path_weight(const struct etch_profile *profile, uint32_t path)
{
    const struct etch_profile_path *p = &profile->paths.v[path];

    return profile->unit == ETCH_UNIT_TICKS ? etch_quantity_ns(profile, p->estimate) : (double)p->instructions;
}

/* The paths from the root down to `path`. Returns how many. */
static uint32_t chain_of(const struct etch_profile *profile, uint32_t path, uint32_t chain[DEEPEST])
{
    uint32_t n = 0, depth = 0;

    for (uint32_t p = path; p; p = profile->paths.v[p].parent)
        depth++;
    for (uint32_t p = path; p; p = profile->paths.v[p].parent)
        if (--depth < DEEPEST) {
            chain[depth] = p;
            n++;
        }
    return n;
}

/* A name as one frame of a folded stack: ';' and line ends separate there. */
static void folded_name(const char *name, FILE *out)
{
    for (; *name; name++)
        putc(*name == ';' ? ':' : (unsigned char)*name < 0x20 ? ' ' : *name, out);
}

void etch_export_folded(const struct etch_profile *profile, FILE *out)
{
    uint32_t chain[DEEPEST];

    for (uint32_t i = 1; i < profile->paths.n; i++) {
        double weight = round(etch_path_weight(profile, i));
        uint32_t n = chain_of(profile, i, chain);

        if (weight < 1)
            continue;
        for (uint32_t k = 0; k < n; k++) {
            fputs(k ? ";" : "", out);
            folded_name(profile->functions.v[profile->paths.v[chain[k]].function].name, out);
        }
        fprintf(out, " %.0f\n", weight);
    }
}

void etch_export_speedscope(const struct etch_profile *profile, FILE *out)
{
    uint32_t chain[DEEPEST];
    double sum = 0;
    bool first = true;

    fputs("{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\"exporter\":\"etch\",\"name\":", out);
    etch_json_string(out, profile->files.n ? profile->files.v[0] : "etch");
    fputs(",\n\"shared\":{\"frames\":[", out);
    for (size_t i = 0; i < profile->functions.n; i++) {
        fputs(i ? ",\n{\"name\":" : "\n{\"name\":", out);
        etch_json_string(out, profile->functions.v[i].name);
        fputs(",\"file\":", out);
        etch_json_string(out, profile->functions.v[i].module);
        putc('}', out);
    }
    fputs("]},\n\"profiles\":[{\"type\":\"sampled\",\"name\":\"all threads\",\"unit\":", out);
    fputs(profile->unit == ETCH_UNIT_TICKS && profile->ns_per_tick > 0 ? "\"nanoseconds\"" : "\"none\"", out);
    fputs(",\"startValue\":0,\"samples\":[", out);
    for (uint32_t i = 1; i < profile->paths.n; i++) {
        uint32_t n = chain_of(profile, i, chain);

        if (etch_path_weight(profile, i) <= 0)
            continue;
        fputs(first ? "\n[" : ",\n[", out);
        first = false;
        for (uint32_t k = 0; k < n; k++)
            fprintf(out, k ? ",%u" : "%u", profile->paths.v[chain[k]].function);
        putc(']', out);
    }
    fputs("],\n\"weights\":[", out);
    first = true;
    for (uint32_t i = 1; i < profile->paths.n; i++) {
        double weight = etch_path_weight(profile, i);

        if (weight <= 0)
            continue;
        fprintf(out, first ? "%.3f" : ",%.3f", weight);
        first = false;
        sum += weight;
    }
    fprintf(out, "],\"endValue\":%.3f}]}\n", sum);
}
