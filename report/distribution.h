/* SPDX-License-Identifier: MIT */
/* How often which amount occurred, in bounded memory: buckets of equal relative width. An amount is known to about 3 %,
 * and a quantile is an interval that holds the true one. */
#ifndef ETCH_REPORT_DISTRIBUTION_H
#define ETCH_REPORT_DISTRIBUTION_H

#include <stdbool.h>
#include <stdint.h>

struct etch_distribution {
    uint64_t *counts; /* of the buckets first .. first + n - 1 */
    uint32_t first, n;
    uint64_t total;
};

/* False, and nothing changed, when memory is short. */
bool etch_distribution_add(struct etch_distribution *d, uint64_t amount, uint64_t times);
bool etch_distribution_merge(struct etch_distribution *to, const struct etch_distribution *from);
void etch_distribution_release(struct etch_distribution *d);

/* The bucket of an amount, and the least and the greatest amount of a bucket. */
uint32_t etch_distribution_bucket(uint64_t amount);
uint64_t etch_distribution_least(uint32_t bucket);
uint64_t etch_distribution_greatest(uint32_t bucket);

/* The bucket that holds the amount of rank ceil(share * total); share is within 0..1. 0 for an empty distribution. */
uint32_t etch_distribution_quantile(const struct etch_distribution *d, double share);

/* How many amounts are in buckets low..high. */
uint64_t etch_distribution_between(const struct etch_distribution *d, uint32_t low, uint32_t high);

#endif
