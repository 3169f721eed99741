/* SPDX-License-Identifier: MIT */
/* Misused locks in the lab: a mutex that is destroyed while a thread holds it, or used after it was destroyed, ends the
 * run as a failure. */
#include "collector/lab/runtime.h"

#define GONE 4096u /* locks that were destroyed and are remembered; a power of two */

static struct gone {
    uint64_t lock, site;
    uint32_t by;
} gone[GONE];

/* The entry of a lock, or where it would be. Two locks may share an entry: the younger one is remembered. */
static struct gone *entry(const pthread_mutex_t *lock)
{
    return &gone[LAB_OBJECT(lock) * UINT64_C(0x9e3779b97f4a7c15) >> 52];
}

static void report(enum etch_lab_misuse misuse, const pthread_mutex_t *lock, const struct gone *g, uint64_t site)
{
    lab->misuse = misuse;
    lab->misuse_address = LAB_OBJECT(lock);
    lab->misuse_freed = g ? g->site : 0;
    lab->misuse_freed_by = g ? g->by : 0;
    lab->thread[lab_me].site = site;
    lab_stop(ETCH_LAB_MISUSED);
}

void lab_lock_destroyed(const pthread_mutex_t *lock, uint64_t site)
{
    if (!lab->heap_check)
        return;
    lab_lock_check(lock, site);
    if (lock->__data.__lock && lock->__data.__owner)
        report(ETCH_LAB_DESTROYED_HELD, lock, NULL, site);
    *entry(lock) = (struct gone){LAB_OBJECT(lock), site, lab_me};
}

/* The C library marks a mutex that was destroyed. An initialiser or other use of the memory overwrites the mark. */
void lab_lock_check(const pthread_mutex_t *lock, uint64_t site)
{
    const struct gone *g = entry(lock);

    if (lab->heap_check && g->lock == LAB_OBJECT(lock) && lock->__data.__kind == -1)
        report(ETCH_LAB_AFTER_DESTROY, lock, g, site);
}
