/* SPDX-License-Identifier: MIT */
/* The software recorder in a lab build. Its settings come from etch by the shared memory, and its memory lies far from
 * the program's: with and without a recorder the program has the same environment and the same addresses. The locks of
 * its rings are no points: the build renames the functions that it calls. */
#include "collector/lab/runtime.h"

#define PLACE INT64_C(0x100000000000) /* far from the program, its libraries and its stack */
#define WORDS 8u

char **etch_soft_settings(void);
char **etch_soft_settings(void)
{
    static char *words[WORDS + 1];
    size_t n = 0, at = 0;

    if (!lab)
        return NULL;
    while (n < WORDS && at < sizeof(lab->words) && lab->words[at]) {
        words[n++] = &lab->words[at];
        while (at < sizeof(lab->words) && lab->words[at])
            at++;
        at++;
    }
    return words;
}

long etch_soft_place(void);
long etch_soft_place(void)
{
    return PLACE;
}

int etch_soft_trylock(void *mutex);
int etch_soft_trylock(void *mutex)
{
    LAB_ENTER();
    return lab_real_pthread_mutex_trylock(mutex);
}

int etch_soft_unlock(void *mutex);
int etch_soft_unlock(void *mutex)
{
    LAB_ENTER();
    return lab_real_pthread_mutex_unlock(mutex);
}
