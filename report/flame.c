/* SPDX-License-Identifier: MIT */
/* The flame graph and the flame chart: one page, without anything from elsewhere. */
#include "report/export.h"

#include "report/json.h"
#include "report/quantity.h"
#include "report/report_flame_css.h"
#include "report/report_flame_js.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* What the same path weighed before: by the names of its functions. */
struct earlier {
    const struct etch_profile *profile;
    uint32_t *of; /* path of the profile that is shown -> path of `profile`; ETCH_FUNCTION_NONE: it had none */
};

static uint32_t child_named(const struct etch_profile *profile, uint32_t parent, const char *name)
{
    for (uint32_t i = 1; i < profile->paths.n; i++)
        if (profile->paths.v[i].parent == parent &&
            strcmp(profile->functions.v[profile->paths.v[i].function].name, name) == 0)
            return i;
    return ETCH_FUNCTION_NONE;
}

/* A parent comes before its children, so one pass is enough. */
static bool match(struct earlier *earlier, const struct etch_profile *profile)
{
    earlier->of = malloc((profile->paths.n + 1) * sizeof(*earlier->of));
    if (!earlier->of)
        return false;
    earlier->of[0] = 0;
    for (uint32_t i = 1; i < profile->paths.n; i++) {
        uint32_t parent = earlier->of[profile->paths.v[i].parent];

        earlier->of[i] =
            parent == ETCH_FUNCTION_NONE
                ? ETCH_FUNCTION_NONE
                : child_named(earlier->profile, parent, profile->functions.v[profile->paths.v[i].function].name);
    }
    return true;
}

static void put_node(const struct etch_profile *profile, const struct earlier *earlier, uint32_t i, FILE *out)
{
    const struct etch_profile_path *p = &profile->paths.v[i];
    double before = 0;

    if (earlier->profile && i && earlier->of[i] != ETCH_FUNCTION_NONE)
        before = etch_path_weight(earlier->profile, earlier->of[i]);
    fprintf(out, "%s[%" PRIu32 ",%" PRIu32 ",%.1f,%" PRIu64 ",%.1f,%.1f,%.1f,%.1f]", i ? ",\n" : "", p->parent,
            i ? p->function : 0, i ? etch_path_weight(profile, i) : 0, p->calls,
            etch_quantity_ns(profile, (double)p->self.lo), etch_quantity_ns(profile, (double)p->self.hi),
            etch_quantity_ns(profile, (double)p->wait), before);
}

static void put_chart(const struct etch_profile *profile, FILE *out)
{
    const char *separator = "";
    uint64_t begin = UINT64_MAX;

    for (size_t i = 0; i < profile->slowest.n; i++)
        for (uint32_t k = 0; k < profile->slowest.v[i].n; k++)
            if (profile->slowest.v[i].calls[k].entered && profile->slowest.v[i].calls[k].entered < begin)
                begin = profile->slowest.v[i].calls[k].entered;
    for (uint32_t i = 0; i < profile->slowest.n && profile->unit == ETCH_UNIT_TICKS; i++)
        for (uint32_t k = 0; k < profile->slowest.v[i].n; k++) {
            const struct etch_profile_call *c = &profile->slowest.v[i].calls[k];
            double from = etch_quantity_ns(profile, (double)(c->entered - begin));

            if (!c->entered || !c->cost.lo)
                continue;
            fprintf(out, "%s[%" PRIu32 ",%.1f,%.1f,%" PRIu32 ",%" PRIu32 ",%.1f,%.1f,%.1f]", separator, i, from,
                    from + etch_quantity_ns(profile, (double)c->cost.hi), c->depth, c->tid,
                    etch_quantity_ns(profile, (double)c->wait), etch_quantity_ns(profile, (double)c->cost.lo),
                    etch_quantity_ns(profile, (double)c->cost.hi));
            separator = ",\n";
        }
}

static void put_data(const struct etch_profile *profile, const struct earlier *earlier, FILE *out)
{
    fprintf(out, "const DATA = {\"unit\":\"%s\",\"waitUnit\":\"%s\",\"diff\":%s,\"names\":[",
            profile->unit == ETCH_UNIT_TICKS ? "ns" : "instructions", profile->ns_per_tick > 0 ? "ns" : "ticks",
            earlier->profile ? "true" : "false");
    for (size_t i = 0; i < profile->functions.n; i++) {
        fputs(i ? ",\n" : "", out);
        etch_json_string(out, profile->functions.v[i].name);
    }
    fputs("],\n\"nodes\":[", out);
    for (uint32_t i = 0; i < profile->paths.n; i++)
        put_node(profile, earlier, i, out);
    fputs("],\n\"chart\":[", out);
    put_chart(profile, out);
    fputs("]};\n", out);
}

static void put_head(const struct etch_profile *profile, const struct earlier *earlier, FILE *out)
{
    fputs("<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
          "<meta name=\"viewport\" content=\"width=device-width\"><title>etch: where the time went</title>\n<style>",
          out);
    fputs((const char *)report_flame_css, out);
    fputs("</style></head><body>\n<header><h1>Where the time went</h1>"
          "<button id=\"graph\" aria-pressed=\"true\">Paths</button>"
          "<button id=\"chart\" aria-pressed=\"false\">Longest calls in time</button>"
          "<label>Search <input id=\"search\" type=\"search\"></label><button id=\"reset\">Whole run</button>"
          "<span id=\"found\"></span></header>\n<p class=\"note\">",
          out);
    fprintf(out, "%zu run%s, %" PRIu64 " instructions. ", profile->files.n, profile->files.n == 1 ? "" : "s",
            profile->instructions);
    if (profile->unit == ETCH_UNIT_TICKS)
        fputs(
            "The width is time. Between two time stamps of the recorder the time is shared by instructions; the exact "
            "bounds of each path are shown below. Blue paths mostly wait.",
            out);
    else
        fputs("The width is instructions.", out);
    if (earlier->profile)
        fputs(" Red paths grew against the run before, blue ones shrank.", out);
    if (profile->losses)
        fprintf(out, " %" PRIu64 " stretches of the recording are lost.", profile->losses);
    fputs("</p>\n<div id=\"flame\"></div><div id=\"detail\"></div>\n<script>", out);
}

int etch_flame_html(const struct etch_profile *profile, const struct etch_profile *before, FILE *out)
{
    struct earlier earlier = {.profile = before};

    if (before && !match(&earlier, profile))
        return -1;
    put_head(profile, &earlier, out);
    put_data(profile, &earlier, out);
    fputs((const char *)report_flame_js, out);
    fputs("</script></body></html>\n", out);
    free(earlier.of);
    return 0;
}
