/* SPDX-License-Identifier: MIT */
/* See json.h. */
#include "report/json.h"

#include "report/quantity.h"

#include <inttypes.h>

void etch_json_string(FILE *out, const char *text)
{
    putc('"', out);
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;

        if (c == '"' || c == '\\')
            fprintf(out, "\\%c", c);
        else if (c < 0x20 || c >= 0x7f || c == '<') /* JSON within HTML must not end the script */
            fprintf(out, "\\u%04x", c);
        else
            putc(c, out);
    }
    putc('"', out);
}

void etch_json_span(FILE *out, const char *key, const struct etch_profile *profile, struct etch_span ticks)
{
    fprintf(out, "%s:{\"lo\":%.1f,\"hi\":%.1f}", key, etch_quantity_ns(profile, (double)ticks.lo),
            etch_quantity_ns(profile, (double)ticks.hi));
}

void etch_json_cost(FILE *out, const struct etch_profile *profile, struct etch_span cost)
{
    if (profile->unit == ETCH_UNIT_TICKS)
        etch_json_span(out, "{\"ns\"", profile, cost);
    else
        fprintf(out, "{\"instructions\":{\"lo\":%" PRIu64 ",\"hi\":%" PRIu64 "}", cost.lo, cost.hi);
    putc('}', out);
}
