/* SPDX-License-Identifier: MIT */
/* Buckets: amounts below 2 * PER_OCTAVE have one each; above, each octave has PER_OCTAVE buckets. */
#include "report/distribution.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SHIFT = 5, PER_OCTAVE = 1 << SHIFT };

uint32_t etch_distribution_bucket(uint64_t amount)
{
    unsigned octave;

    if (amount < 2 * PER_OCTAVE)
        return (uint32_t)amount;
    octave = 63u - (unsigned)__builtin_clzll(amount); /* at least SHIFT + 1 */
    return (octave - SHIFT + 1) * PER_OCTAVE + (uint32_t)(amount >> (octave - SHIFT) & (PER_OCTAVE - 1));
}

uint64_t etch_distribution_least(uint32_t bucket)
{
    unsigned shift;

    if (bucket < 2 * PER_OCTAVE)
        return bucket;
    shift = bucket / PER_OCTAVE - 1;
    return (uint64_t)(PER_OCTAVE + bucket % PER_OCTAVE) << shift;
}

uint64_t etch_distribution_greatest(uint32_t bucket)
{
    return bucket < 2 * PER_OCTAVE ? bucket
                                   : etch_distribution_least(bucket) + (UINT64_C(1) << (bucket / PER_OCTAVE - 1)) - 1;
}

/* Makes the buckets cover low..high. */
static bool cover(struct etch_distribution *d, uint32_t low, uint32_t high)
{
    uint32_t first = d->n && d->first < low ? d->first : low;
    uint32_t end = d->n && d->first + d->n > high + 1 ? d->first + d->n : high + 1;
    uint64_t *counts;

    if (d->n && first == d->first && end == d->first + d->n)
        return true;
    counts = calloc(end - first, sizeof(*counts));
    if (!counts)
        return false;
    if (d->n)
        memcpy(counts + (d->first - first), d->counts, d->n * sizeof(*counts));
    free(d->counts);
    d->counts = counts;
    d->first = first;
    d->n = end - first;
    return true;
}

bool etch_distribution_add(struct etch_distribution *d, uint64_t amount, uint64_t times)
{
    uint32_t bucket = etch_distribution_bucket(amount);

    if (bucket - d->first >= d->n && !cover(d, bucket, bucket))
        return false;
    d->counts[bucket - d->first] += times;
    d->total += times;
    return true;
}

bool etch_distribution_merge(struct etch_distribution *to, const struct etch_distribution *from)
{
    if (!from->n)
        return true;
    if (!cover(to, from->first, from->first + from->n - 1))
        return false;
    for (uint32_t i = 0; i < from->n; i++)
        to->counts[from->first + i - to->first] += from->counts[i];
    to->total += from->total;
    return true;
}

void etch_distribution_release(struct etch_distribution *d)
{
    free(d->counts);
    *d = (struct etch_distribution){0};
}

uint32_t etch_distribution_quantile(const struct etch_distribution *d, double share)
{
    uint64_t rank = (uint64_t)ceil(share * (double)d->total), seen = 0;

    rank = rank ? rank : 1;
    for (uint32_t i = 0; i < d->n; i++) {
        seen += d->counts[i];
        if (seen >= rank)
            return d->first + i;
    }
    return d->n ? d->first + d->n - 1 : 0;
}

uint64_t etch_distribution_between(const struct etch_distribution *d, uint32_t low, uint32_t high)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < d->n; i++)
        if (d->first + i >= low && d->first + i <= high)
            sum += d->counts[i];
    return sum;
}
