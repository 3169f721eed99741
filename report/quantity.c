/* SPDX-License-Identifier: MIT */
/* See quantity.h. */
#include "report/quantity.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct unit {
    double size;
    const char *name;
};

static const struct unit times[] = {{1e9, " s"}, {1e6, " ms"}, {1e3, " us"}, {1, " ns"}};
static const struct unit counts[] = {{1e9, " G"}, {1e6, " M"}, {1e3, " k"}, {1, ""}};

static const struct unit *unit_of(const struct unit *units, double amount)
{
    size_t i = 0;

    while (i < 3 && amount < units[i].size)
        i++;
    return &units[i];
}

/* Three digits, whatever the size. */
static void digits(double value, char *text, size_t size)
{
    snprintf(text, size, value >= 99.95 || value == 0 ? "%.0f" : value >= 9.995 ? "%.1f" : "%.2f", value);
}

static const char *print(const struct unit *units, double lo, double hi, const char *what, char *text)
{
    const struct unit *unit = unit_of(units, hi);
    char low[24], high[24];

    digits(lo / unit->size, low, sizeof(low));
    digits(hi / unit->size, high, sizeof(high));
    if (hi - lo <= hi * 0.04)
        snprintf(text, ETCH_QUANTITY_ROOM, "%s%s%s", high, unit->name, what);
    else if (lo <= hi * 0.01)
        snprintf(text, ETCH_QUANTITY_ROOM, "<= %s%s%s", high, unit->name, what);
    else
        snprintf(text, ETCH_QUANTITY_ROOM, "%s..%s%s%s", low, high, unit->name, what);
    return text;
}

double etch_quantity_ns(const struct etch_profile *profile, double ticks)
{
    return profile->ns_per_tick > 0 ? ticks * profile->ns_per_tick : ticks;
}

const char *etch_quantity_ticks(const struct etch_profile *profile, struct etch_span ticks, char *text)
{
    if (ticks.hi == UINT64_MAX) {
        snprintf(text, ETCH_QUANTITY_ROOM, "?");
        return text;
    }
    if (profile->ns_per_tick > 0)
        return print(times, etch_quantity_ns(profile, (double)ticks.lo), etch_quantity_ns(profile, (double)ticks.hi),
                     "", text);
    return print(counts, (double)ticks.lo, (double)ticks.hi, " ticks", text);
}

const char *etch_quantity_count(uint64_t count, char *text)
{
    return print(counts, (double)count, (double)count, "", text);
}

const char *etch_quantity(const struct etch_profile *profile, struct etch_span amount, char *text)
{
    if (profile->unit == ETCH_UNIT_TICKS)
        return etch_quantity_ticks(profile, amount, text);
    return print(counts, (double)amount.lo, (double)amount.hi, "", text);
}

double etch_span_middle(struct etch_span span)
{
    return span.hi == UINT64_MAX ? (double)span.lo : ((double)span.lo + (double)span.hi) / 2;
}
