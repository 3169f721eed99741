/* SPDX-License-Identifier: MIT */
/* The known word that a mistyped one is nearest to, for "did you mean". */
#ifndef ETCH_BASE_NEAREST_H
#define ETCH_BASE_NEAREST_H

#include <stddef.h>

struct etch_nearest {
    const char *word;   /* as typed */
    size_t size;        /* of `word` */
    char best[48];      /* the nearest known word; "" while none is near */
    unsigned int steps; /* typing mistakes between `word` and `best`; 0: they are equal */
};

void etch_nearest_begin(struct etch_nearest *n, const char *word, size_t size);

/* Takes the known word for the best if it is nearer than all before. A word is near if a third of its letters, and at
 * least one, may be wrong: a letter too many, missing, another, or swapped with the next. */
void etch_nearest_try(struct etch_nearest *n, const char *known, size_t size);

#endif
