/* SPDX-License-Identifier: MIT */
/* A growable array of any type:
 *
 *     ETCH_ARRAY(struct step) steps = {0};
 *     if (!etch_array_push(&steps, step)) return out_of_memory(err);
 *     for (size_t i = 0; i < steps.n; i++) use(&steps.v[i]);
 *     etch_array_free(&steps);
 */
#ifndef ETCH_BASE_ARRAY_H
#define ETCH_BASE_ARRAY_H

#include <stdbool.h>
#include <stdlib.h>

#define ETCH_ARRAY(type)                                                                                               \
    struct {                                                                                                           \
        type *v;                                                                                                       \
        size_t n;                                                                                                      \
        size_t capacity;                                                                                               \
    }

/* Room for `want` elements in all, contents kept. False, and nothing changed, when memory is short. */
#define etch_array_reserve(a, want)                                                                                    \
    ((want) <= (a)->capacity || etch_array_grow((void **)&(a)->v, &(a)->capacity, sizeof(*(a)->v), (want)))

/* Appends a copy of `value`. False, and nothing changed, when memory is short. */
#define etch_array_push(a, value) (etch_array_reserve((a), (a)->n + 1) && ((a)->v[(a)->n++] = (value), true))

#define etch_array_free(a)                                                                                             \
    do {                                                                                                               \
        free((a)->v);                                                                                                  \
        (a)->v = NULL;                                                                                                 \
        (a)->n = (a)->capacity = 0;                                                                                    \
    } while (0)

/* Behind etch_array_reserve(): doubles, so that n pushes cost O(n). */
bool etch_array_grow(void **v, size_t *capacity, size_t element, size_t want);

#endif
