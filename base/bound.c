/* SPDX-License-Identifier: MIT */
/* See bound.h. */
#include "base/bound.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MIB ((uint64_t)1 << 20)
#define GIB ((uint64_t)1 << 30)

static uint64_t set[ETCH_BOUNDS]; /* 0: the default */

static int parse(const char *text, uint64_t *bytes)
{
    static const char units[] = "KMGT";
    const char *unit;
    unsigned shift = 0;
    char *end;

    errno = 0;
    *bytes = strtoull(text, &end, 10);
    if (errno || text[0] < '0' || text[0] > '9')
        return -1;
    unit = *end ? strchr(units, *end >= 'a' ? *end - 'a' + 'A' : *end) : NULL;
    if (unit) {
        shift = 10 * (unsigned)(unit - units + 1);
        end++;
    }
    if (*end || !*bytes || *bytes > UINT64_MAX >> shift)
        return -1;
    *bytes <<= shift;
    return 0;
}

int etch_bound_set(enum etch_bound_kind which, const char *size)
{
    uint64_t bytes;

    if (parse(size, &bytes) < 0)
        return -1;
    set[which] = bytes;
    return 0;
}

const char *etch_bound_set_by_environment(void)
{
    static const char *const names[ETCH_BOUNDS] = {"ETCH_MAX_MEMORY", "ETCH_MAX_UNPACKED", "ETCH_MAX_OUTPUT"};

    for (unsigned i = 0; i < ETCH_BOUNDS; i++) {
        const char *size = getenv(names[i]);

        if (size && *size && etch_bound_set((enum etch_bound_kind)i, size) < 0)
            return names[i];
    }
    return NULL;
}

static uint64_t times(uint64_t n, uint64_t factor)
{
    return n > UINT64_MAX / 2 / factor ? UINT64_MAX / 2 : n * factor;
}

static uint64_t default_memory(uint64_t read)
{
    long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
    uint64_t half = pages > 0 && size > 0 ? (uint64_t)pages * (uint64_t)size / 2 : GIB;
    uint64_t bound = times(read, 256);

    bound = bound > 256 * MIB ? bound : 256 * MIB;
    return bound < half ? bound : half;
}

uint64_t etch_bound(enum etch_bound_kind which, uint64_t read)
{
    if (set[which])
        return set[which];
    switch (which) {
    case ETCH_BOUND_MEMORY:
        return default_memory(read);
    case ETCH_BOUND_UNPACKED:
        return 4 * GIB + times(read, 1024);
    default:
        return 64 * GIB;
    }
}

bool etch_budget_take(struct etch_budget *budget, uint64_t bytes, uint64_t read)
{
    uint64_t limit = etch_bound(ETCH_BOUND_MEMORY, read);

    if (budget->used <= limit && bytes <= limit - budget->used) {
        budget->used += bytes;
        return true;
    }
    budget->refused++;
    return false;
}
