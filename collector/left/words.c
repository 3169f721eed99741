/* SPDX-License-Identifier: MIT */
/* See words.h. */
#include "collector/left/words.h"

#include <stdbool.h>
#include <string.h>

/* The next text, which ends within the words; NULL: there are no more. */
static const char *next(const struct etch_soft_pool *pool, size_t *at)
{
    size_t size = pool->words_size < sizeof(pool->words) ? pool->words_size : sizeof(pool->words);
    const char *text = pool->words + *at, *end = *at < size ? memchr(text, '\0', size - *at) : NULL;

    if (!end)
        return NULL;
    *at += (size_t)(end - text) + 1;
    return text;
}

void etch_left_words_open(struct etch_left_words *words, const struct etch_soft_pool *pool)
{
    size_t at = 0;
    const char *text;

    words->exe = next(pool, &at);
    words->cwd = words->exe ? next(pool, &at) : NULL;
    words->exe = words->exe ? words->exe : "";
    words->cwd = words->cwd ? words->cwd : "";
    words->n_arguments = 0;
    words->cut = pool->words_cut;
    while ((text = next(pool, &at))) {
        if (words->n_arguments < ETCH_LEFT_ARGUMENTS)
            words->arguments[words->n_arguments++] = text;
        else
            words->cut++;
    }
}

static bool is_noted(const struct etch_soft_death *d, uint32_t pid)
{
    return d->state >= ETCH_SOFT_DEATH_REGISTERS && d->pid == pid && d->signal > 0 && d->signal < 65;
}

/* Several threads may fail at the same time. A record that is whole is preferred: the process was gone before the other
 * was. */
const struct etch_soft_death *etch_left_death_of(const struct etch_soft_pool *pool, uint32_t pid)
{
    const struct etch_soft_death *found = NULL;

    for (uint32_t i = 0; i < pool->n_deaths && i < ETCH_SOFT_DEATHS; i++) {
        const struct etch_soft_death *d = &pool->deaths[i];

        if (is_noted(d, pid) && (!found || d->state == ETCH_SOFT_DEATH_WHOLE || found->state != ETCH_SOFT_DEATH_WHOLE))
            found = d;
    }
    return found;
}
