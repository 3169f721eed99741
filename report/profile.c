/* SPDX-License-Identifier: MIT */
/* The tables of a profile; see profile.h. */
#include "report/profile.h"

#include <string.h>

enum { PATHS_MAX = 1 << 18 }; /* a recursion over several functions has as many paths as calls */

struct etch_profile *etch_profile_new(void)
{
    struct etch_profile *profile = calloc(1, sizeof(*profile));
    struct etch_profile_path root = {.function = ETCH_FUNCTION_NONE, .edge = ETCH_FUNCTION_NONE};

    if (profile && !etch_array_push(&profile->paths, root)) {
        free(profile);
        return NULL;
    }
    return profile;
}

void etch_profile_free(struct etch_profile *profile)
{
    if (!profile)
        return;
    for (size_t i = 0; i < profile->files.n; i++)
        free(profile->files.v[i]);
    for (size_t i = 0; i < profile->functions.n; i++) {
        free(profile->functions.v[i].name);
        free(profile->functions.v[i].module);
    }
    for (size_t i = 0; i < profile->edges.n; i++) {
        etch_distribution_release(&profile->edges.v[i].lo);
        etch_distribution_release(&profile->edges.v[i].hi);
        etch_distribution_release(&profile->edges.v[i].wait);
    }
    for (size_t i = 0; i < profile->waits.n; i++) {
        free(profile->waits.v[i].place);
        free(profile->waits.v[i].what);
    }
    for (size_t i = 0; i < profile->threads.n; i++)
        free(profile->threads.v[i].name);
    etch_array_free(&profile->files);
    etch_array_free(&profile->functions);
    etch_array_free(&profile->edges);
    etch_array_free(&profile->paths);
    etch_array_free(&profile->waits);
    etch_array_free(&profile->slowest);
    etch_array_free(&profile->threads);
    etch_index_release(&profile->by_name);
    etch_index_release(&profile->by_edge);
    etch_index_release(&profile->by_path);
    free(profile);
}

static uint64_t hash_pair(uint32_t a, uint32_t b)
{
    uint32_t pair[2] = {a, b};

    return etch_hash(ETCH_HASH_START, pair, sizeof(pair));
}

static uint32_t add_function(struct etch_profile *profile, uint64_t hash, const char *name, const char *module)
{
    struct etch_profile_function f = {.name = strdup(name), .module = strdup(module)};
    uint32_t number = (uint32_t)profile->functions.n;
    struct etch_profile_slowest none = {0};

    if (!f.name || !f.module || !etch_array_reserve(&profile->slowest, profile->slowest.n + 1) ||
        !etch_array_reserve(&profile->functions, profile->functions.n + 1) ||
        !etch_index_add(&profile->by_name, hash, number)) {
        free(f.name);
        free(f.module);
        return ETCH_FUNCTION_NONE;
    }
    profile->functions.v[profile->functions.n++] = f;
    profile->slowest.v[profile->slowest.n++] = none;
    return number;
}

uint32_t etch_profile_function(struct etch_profile *profile, const char *name, const char *module)
{
    uint64_t hash = etch_hash(etch_hash(ETCH_HASH_START, name, strlen(name) + 1), module, strlen(module));
    size_t probe = 0;
    uint32_t i;

    while ((i = etch_index_next(&profile->by_name, hash, &probe)) != ETCH_INDEX_NONE)
        if (strcmp(profile->functions.v[i].name, name) == 0 && strcmp(profile->functions.v[i].module, module) == 0)
            return i;
    return add_function(profile, hash, name, module);
}

uint32_t etch_profile_edge(struct etch_profile *profile, uint32_t caller, uint32_t function)
{
    uint64_t hash = hash_pair(caller, function);
    struct etch_profile_edge edge = {.caller = caller, .function = function};
    size_t probe = 0;
    uint32_t i;

    while ((i = etch_index_next(&profile->by_edge, hash, &probe)) != ETCH_INDEX_NONE)
        if (profile->edges.v[i].caller == caller && profile->edges.v[i].function == function)
            return i;
    i = (uint32_t)profile->edges.n;
    if (!etch_array_reserve(&profile->edges, i + 1) || !etch_index_add(&profile->by_edge, hash, i))
        return ETCH_FUNCTION_NONE;
    profile->edges.v[profile->edges.n++] = edge;
    return i;
}

uint32_t etch_profile_path(struct etch_profile *profile, uint32_t parent, uint32_t function)
{
    uint64_t hash = hash_pair(parent, function);
    struct etch_profile_path path = {.parent = parent, .function = function};
    size_t probe = 0;
    uint32_t i;

    while ((i = etch_index_next(&profile->by_path, hash, &probe)) != ETCH_INDEX_NONE)
        if (profile->paths.v[i].parent == parent && profile->paths.v[i].function == function)
            return i;
    if (profile->paths.n >= PATHS_MAX && parent != 0) { /* a path of the function alone stands for all further ones */
        profile->merged_paths++;
        return etch_profile_path(profile, 0, function);
    }
    i = (uint32_t)profile->paths.n;
    path.edge = etch_profile_edge(profile, profile->paths.v[parent].function, function);
    if (path.edge == ETCH_FUNCTION_NONE || !etch_array_reserve(&profile->paths, i + 1) ||
        !etch_index_add(&profile->by_path, hash, i))
        return ETCH_FUNCTION_NONE;
    profile->paths.v[profile->paths.n++] = path;
    return i;
}

/* Equal, or equal up to the parameters of a C++ name. */
static bool is_named(const char *function, const char *name)
{
    size_t n = strlen(name);

    return strncmp(function, name, n) == 0 && (!function[n] || function[n] == '(');
}

uint32_t etch_profile_find(const struct etch_profile *profile, const char *name, bool *many)
{
    uint32_t found = ETCH_FUNCTION_NONE;

    *many = false;
    for (uint32_t i = 0; i < profile->functions.n; i++) {
        if (strcmp(profile->functions.v[i].name, name) == 0) {
            *many = false;
            return i;
        }
        if (is_named(profile->functions.v[i].name, name)) {
            *many = found != ETCH_FUNCTION_NONE;
            found = i;
        }
    }
    return *many ? ETCH_FUNCTION_NONE : found;
}

bool etch_profile_distribution(const struct etch_profile *profile, uint32_t function, uint32_t caller,
                               struct etch_distribution *lo, struct etch_distribution *hi,
                               struct etch_distribution *wait)
{
    for (size_t i = 0; i < profile->edges.n; i++) {
        const struct etch_profile_edge *e = &profile->edges.v[i];

        if (e->function != function || (caller != ETCH_ANY_CALLER && e->caller != caller))
            continue;
        if (!etch_distribution_merge(lo, &e->lo) || (wait && !etch_distribution_merge(wait, &e->wait)) ||
            !etch_distribution_merge(hi, profile->unit == ETCH_UNIT_TICKS ? &e->hi : &e->lo))
            return false;
    }
    return true;
}

bool etch_profile_quantile(const struct etch_profile *profile, uint32_t function, uint32_t caller, double share,
                           struct etch_span *span)
{
    struct etch_distribution lo = {0}, hi = {0};
    bool known = etch_profile_distribution(profile, function, caller, &lo, &hi, NULL) && lo.total > 0;

    if (known) {
        span->lo = etch_distribution_least(etch_distribution_quantile(&lo, share));
        span->hi = etch_distribution_greatest(etch_distribution_quantile(&hi, share));
    }
    etch_distribution_release(&lo);
    etch_distribution_release(&hi);
    return known;
}
