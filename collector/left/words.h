/* SPDX-License-Identifier: MIT */
/* The notes that a process left in the head of its file of rings. Nothing in them is trusted. */
#ifndef ETCH_COLLECTOR_LEFT_WORDS_H
#define ETCH_COLLECTOR_LEFT_WORDS_H

#include "proto/soft_layout.h"

#include <stddef.h>

#define ETCH_LEFT_ARGUMENTS 1024u

/* Texts of `pool`, which must not change meanwhile. */
struct etch_left_words {
    const char *exe, *cwd;
    const char *arguments[ETCH_LEFT_ARGUMENTS];
    size_t n_arguments;
    uint64_t cut; /* arguments that are not there */
};

void etch_left_words_open(struct etch_left_words *words, const struct etch_soft_pool *pool);

/* The last death that this process noted; NULL: none. */
const struct etch_soft_death *etch_left_death_of(const struct etch_soft_pool *pool, uint32_t pid);

#endif
