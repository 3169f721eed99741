/* SPDX-License-Identifier: MIT */
/* Watched accesses on their way to the bundle; see batch.h. */
#include "collector/session/batch.h"

Etch__Access *etch_batch_add(struct etch_batch *b)
{
    Etch__Access *access = &b->accesses[b->n++];

    etch__access__init(access);
    return access;
}

void etch_batch_flush(struct etch_batch *b, const struct etch_sink *sink)
{
    Etch__Accesses accesses = ETCH__ACCESSES__INIT;
    Etch__Access *pointers[ETCH_BATCH_MAX];

    for (size_t i = 0; i < b->n; i++)
        pointers[i] = &b->accesses[i];
    accesses.n_accesses = b->n;
    accesses.accesses = pointers;
    if (b->n)
        sink->write(sink->context, ETCH__RECORD__BODY_ACCESSES, &accesses);
    b->n = 0;
}
