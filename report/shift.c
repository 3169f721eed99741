/* SPDX-License-Identifier: MIT */
/* See shift.h. */
#include "report/shift.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y ? 1 : 0;
}

static double middle(const double *sorted, size_t n)
{
    return n == 0 ? 0 : n % 2 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
}

double etch_median(const double *values, size_t n)
{
    double *sorted = malloc((n + 1) * sizeof(*sorted)), median = 0;

    if (sorted) {
        memcpy(sorted, values, n * sizeof(*sorted));
        qsort(sorted, n, sizeof(*sorted), compare);
        median = middle(sorted, n);
    }
    free(sorted);
    return median;
}

/* How many of all orders of n_a + n_b different values have the rank sum statistic u: ways[u], for u up to `max`. The
 * exact distribution, because the tails matter and there are few runs. */
static void count_ways(size_t n_a, size_t n_b, double *ways, size_t max)
{
    memset(ways, 0, (max + 1) * sizeof(*ways));
    ways[0] = 1;
    for (size_t i = 1; i <= n_a; i++) { /* times (1 - q^(n_b + i)) / (1 - q^i) */
        for (size_t u = max; u + 1 > n_b + i; u--)
            ways[u] -= ways[u - (n_b + i)];
        for (size_t u = i; u <= max; u++)
            ways[u] += ways[u - i];
    }
}

/* The greatest k such that at most risk / 2 of all orders have a statistic below k; 0: none. */
static size_t critical(size_t n_a, size_t n_b, double risk)
{
    size_t max = n_a * n_b / 2, k = 0;
    double *ways = malloc((max + 1) * sizeof(*ways)), all, sum = 0;

    if (!ways)
        return 0;
    count_ways(n_a, n_b, ways, max);
    all = exp(lgamma((double)(n_a + n_b) + 1) - lgamma((double)n_a + 1) - lgamma((double)n_b + 1));
    while (k <= max && (sum += ways[k]) <= risk / 2 * all)
        k++;
    free(ways);
    return k;
}

int etch_shift(const double *a, size_t n_a, const double *b, size_t n_b, double risk, struct etch_shift *shift)
{
    size_t n = n_a * n_b, k;
    double *all = malloc((n + 1) * sizeof(*all));

    *shift = (struct etch_shift){0};
    if (!all)
        return -1;
    for (size_t i = 0; i < n_a; i++)
        for (size_t j = 0; j < n_b; j++)
            all[i * n_b + j] = b[j] - a[i];
    qsort(all, n, sizeof(*all), compare);
    shift->by = middle(all, n);
    k = critical(n_a, n_b, risk);
    if (k > 0) {
        shift->known = true;
        shift->lo = all[k - 1];
        shift->hi = all[n - k];
    }
    free(all);
    return 0;
}
