/* SPDX-License-Identifier: MIT */
/* See nearest.h. The number of mistakes is the distance of Damerau and Levenshtein, without edits of swapped letters.
 */
#include "base/nearest.h"

#include <string.h>

enum { LONGEST = sizeof(((struct etch_nearest *)0)->best) };

static unsigned int least(unsigned int a, unsigned int b)
{
    return a < b ? a : b;
}

/* Both words are shorter than LONGEST. Three rows of the usual table: a swap looks two rows back. */
static unsigned int distance(const char *a, size_t n_a, const char *b, size_t n_b)
{
    unsigned int rows[3][LONGEST + 1];

    for (size_t j = 0; j <= n_b; j++)
        rows[0][j] = (unsigned int)j;
    for (size_t i = 1; i <= n_a; i++) {
        const unsigned int *above = rows[(i - 1) % 3];
        unsigned int *row = rows[i % 3];

        row[0] = (unsigned int)i;
        for (size_t j = 1; j <= n_b; j++) {
            row[j] = least(least(above[j], row[j - 1]) + 1, above[j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = least(row[j], rows[(i - 2) % 3][j - 2] + 1);
        }
    }
    return rows[n_a % 3][n_b];
}

void etch_nearest_begin(struct etch_nearest *n, const char *word, size_t size)
{
    *n = (struct etch_nearest){.word = word, .size = size};
}

void etch_nearest_try(struct etch_nearest *n, const char *known, size_t size)
{
    unsigned int steps;

    if (n->size >= LONGEST || size >= LONGEST || size == 0)
        return;
    steps = distance(n->word, n->size, known, size);
    if (steps > (size < 6 ? 1 : size / 3) || (n->best[0] && steps >= n->steps))
        return;
    memcpy(n->best, known, size);
    n->best[size] = '\0';
    n->steps = steps;
}
