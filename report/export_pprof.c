/* SPDX-License-Identifier: MIT */
/* pprof's profile.proto, not compressed: pprof takes both. A sample is a path, a location is a function. */
#include "report/export.h"
#include "report/protobuf.h"

#include <math.h>

/* Fields of Profile, Sample, Location, Line, Function and ValueType in profile.proto. */
enum { SAMPLE_TYPE = 1, SAMPLE = 2, LOCATION = 4, FUNCTION = 5, STRING = 6 };

/* Strings: "", the names of the two values, and then name and module of each function. */
enum { S_CALLS = 1, S_COUNT, S_VALUE, S_UNIT, S_FIRST };

static void put_type(struct etch_text *all, struct etch_text *part, uint64_t type, uint64_t unit)
{
    etch_pb_number(part, 1, type);
    etch_pb_number(part, 2, unit);
    etch_pb_message(all, SAMPLE_TYPE, part);
}

static void put_sample(const struct etch_profile *profile, uint32_t path, struct etch_text *all, struct etch_text *part)
{
    double weight = etch_path_weight(profile, path);

    if (weight <= 0 && !profile->paths.v[path].calls)
        return;
    for (uint32_t p = path; p; p = profile->paths.v[p].parent) /* the leaf first */
        etch_pb_number(part, 1, (uint64_t)profile->paths.v[p].function + 1);
    etch_pb_number(part, 2, profile->paths.v[path].calls);
    etch_pb_number(part, 2, (uint64_t)llround(weight));
    etch_pb_message(all, SAMPLE, part);
}

static void put_function(uint32_t i, struct etch_text *all, struct etch_text *part)
{
    struct etch_text line = {0};

    etch_pb_number(part, 1, (uint64_t)i + 1);
    etch_pb_number(&line, 1, (uint64_t)i + 1);
    etch_pb_message(part, 4, &line);
    etch_pb_message(all, LOCATION, part);
    etch_pb_number(part, 1, (uint64_t)i + 1);
    etch_pb_number(part, 2, S_FIRST + 2 * (uint64_t)i);
    etch_pb_number(part, 3, S_FIRST + 2 * (uint64_t)i);
    etch_pb_number(part, 4, S_FIRST + 2 * (uint64_t)i + 1);
    etch_pb_message(all, FUNCTION, part);
    free(line.v);
}

int etch_export_pprof(const struct etch_profile *profile, FILE *out)
{
    bool ticks = profile->unit == ETCH_UNIT_TICKS;
    struct etch_text all = {0}, part = {0};
    bool ok;

    put_type(&all, &part, S_CALLS, S_COUNT);
    put_type(&all, &part, S_VALUE, S_UNIT);
    for (uint32_t i = 1; i < profile->paths.n; i++)
        put_sample(profile, i, &all, &part);
    for (uint32_t i = 0; i < profile->functions.n; i++)
        put_function(i, &all, &part);
    etch_pb_string(&all, STRING, "");
    etch_pb_string(&all, STRING, "calls");
    etch_pb_string(&all, STRING, "count");
    etch_pb_string(&all, STRING, ticks ? "time" : "instructions");
    etch_pb_string(&all, STRING, ticks ? "nanoseconds" : "count");
    for (size_t i = 0; i < profile->functions.n; i++) {
        etch_pb_string(&all, STRING, profile->functions.v[i].name);
        etch_pb_string(&all, STRING, profile->functions.v[i].module);
    }
    ok = !all.failed && !part.failed;
    if (ok)
        fwrite(all.v, 1, all.n, out);
    free(all.v);
    free(part.v);
    return ok ? 0 : -1;
}
