/* SPDX-License-Identifier: MIT */
/* Locks in the lab. The C library keeps each lock's state: a lock is tried, and a thread that does not get it waits in
 * the lab until the lock is released. So recursive, error-checking, robust and priority-inheriting mutexes behave as
 * they do outside. */
#include "collector/lab/runtime.h"

#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PSHARED 128 /* in the kind of a mutex of the C library */

/* ---- Mutexes ---- */

/* Locking it again would not wait: the C library has an answer at once. */
static bool answers_at_once(const pthread_mutex_t *m)
{
    int kind = m->__data.__kind & 3;

    return kind == PTHREAD_MUTEX_ERRORCHECK && m->__data.__owner == (int)lab->thread[lab_me].tid;
}

static uint32_t holder_of(const pthread_mutex_t *m)
{
    for (uint32_t i = 0; i < lab->threads; i++)
        if ((int)lab->thread[i].tid == m->__data.__owner)
            return i;
    return UINT32_MAX;
}

/* The part of a lock behind its point. */
int lab_take_mutex(pthread_mutex_t *m, uint64_t deadline, uint64_t site)
{
    int result;

    lab_lock_check(m, site);
    while ((result = lab_real_pthread_mutex_trylock(m)) == EBUSY) {
        if (answers_at_once(m))
            return lab_real_pthread_mutex_lock(m);
        lab_threads[lab_me].shared = m->__data.__kind & PSHARED;
        lab->thread[lab_me].holder = holder_of(m);
        lab_note_sync(LAB_MUTEX_BLOCKED, LAB_OBJECT(m), 0, 0, site);
        if (!lab_block(ETCH_LAB_MUTEX, LAB_OBJECT(m), deadline, site))
            return ETIMEDOUT;
    }
    return result;
}

LAB_API int pthread_mutex_lock(pthread_mutex_t *m);
int pthread_mutex_lock(pthread_mutex_t *m)
{
    LAB_ENTER();
    if (!lab_controlled())
        return lab_real_pthread_mutex_lock(m);
    lab_point(lab_sync_op(m), LAB_SITE);
    return lab_noted(LAB_MUTEX_LOCK, m, lab_take_mutex(m, LAB_NEVER, LAB_SITE), LAB_SITE);
}

LAB_API int pthread_mutex_trylock(pthread_mutex_t *m);
int pthread_mutex_trylock(pthread_mutex_t *m)
{
    LAB_ENTER();
    if (lab_controlled()) {
        lab_point(lab_sync_op(m), LAB_SITE);
        lab_lock_check(m, LAB_SITE);
    }
    return lab_noted(LAB_MUTEX_LOCK, m, lab_real_pthread_mutex_trylock(m), LAB_SITE);
}

LAB_API int pthread_mutex_unlock(pthread_mutex_t *m);
int pthread_mutex_unlock(pthread_mutex_t *m)
{
    int result;

    LAB_ENTER();
    if (lab_controlled()) {
        lab_point(lab_release_op(m), LAB_SITE);
        lab_lock_check(m, LAB_SITE);
    }
    lab_note_sync(LAB_MUTEX_UNLOCK, LAB_OBJECT(m), 0, 0, LAB_SITE);
    result = lab_real_pthread_mutex_unlock(m);
    lab_wake_waiters(m);
    return result;
}

/* A mutex that is destroyed while a thread holds it, or used after that, is a failure. */
LAB_API int pthread_mutex_destroy(pthread_mutex_t *m);
int pthread_mutex_destroy(pthread_mutex_t *m)
{
    LAB_ENTER();
    if (lab_controlled()) {
        lab_point(lab_sync_op(m), LAB_SITE);
        lab_lock_destroyed(m, LAB_SITE);
    }
    return lab_real_pthread_mutex_destroy(m);
}

static int lock_until(pthread_mutex_t *m, clockid_t clock, const struct timespec *at, uint64_t site)
{
    lab_point(lab_sync_op(m), site);
    return lab_noted(LAB_MUTEX_LOCK, m, lab_take_mutex(m, lab_virtual(clock, at), site), site);
}

LAB_API int pthread_mutex_timedlock(pthread_mutex_t *m, const struct timespec *at);
int pthread_mutex_timedlock(pthread_mutex_t *m, const struct timespec *at)
{
    LAB_ENTER();
    if (!lab_controlled() || !lab_is_time(at))
        return lab_real_pthread_mutex_timedlock(m, at);
    return lock_until(m, CLOCK_REALTIME, at, LAB_SITE);
}

LAB_API int pthread_mutex_clocklock(pthread_mutex_t *m, clockid_t clock, const struct timespec *at);
int pthread_mutex_clocklock(pthread_mutex_t *m, clockid_t clock, const struct timespec *at)
{
    LAB_ENTER();
    if (!lab_controlled() || !lab_is_time(at))
        return lab_real_pthread_mutex_clocklock(m, clock, at);
    return lock_until(m, clock, at, LAB_SITE);
}

/* ---- Spin locks, read-write locks ---- */

LAB_API int pthread_spin_lock(pthread_spinlock_t *l);
int pthread_spin_lock(pthread_spinlock_t *l)
{
    int result;

    LAB_ENTER();
    if (!lab_controlled())
        return lab_real_pthread_spin_lock(l);
    lab_point(lab_sync_op(l), LAB_SITE);
    while ((result = lab_real_pthread_spin_trylock(l)) == EBUSY)
        lab_block(ETCH_LAB_MUTEX, LAB_OBJECT(l), LAB_NEVER, LAB_SITE);
    return lab_noted(LAB_SPIN_LOCK, l, result, LAB_SITE);
}

LAB_API int pthread_spin_trylock(pthread_spinlock_t *l);
int pthread_spin_trylock(pthread_spinlock_t *l)
{
    LAB_ENTER();
    if (lab_controlled())
        lab_point(lab_sync_op(l), LAB_SITE);
    return lab_noted(LAB_SPIN_LOCK, l, lab_real_pthread_spin_trylock(l), LAB_SITE);
}

LAB_API int pthread_spin_unlock(pthread_spinlock_t *l);
int pthread_spin_unlock(pthread_spinlock_t *l)
{
    int result;

    LAB_ENTER();
    if (lab_controlled())
        lab_point(lab_release_op(l), LAB_SITE);
    lab_note_sync(LAB_SPIN_UNLOCK, LAB_OBJECT(l), 0, 0, LAB_SITE);
    result = lab_real_pthread_spin_unlock(l);
    lab_wake_waiters(l);
    return result;
}

/* A lock of that kind lets no reader in while a writer waits, not even one that reads already. */
static bool must_let_writer(const pthread_rwlock_t *l)
{
    if (l->__data.__flags != PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP)
        return false;
    for (uint32_t i = 0; i < lab->threads; i++)
        if (lab_threads[i].state == LAB_BLOCKED && lab_threads[i].wait == ETCH_LAB_RWLOCK && lab_threads[i].writes &&
            lab_threads[i].object == LAB_OBJECT(l))
            return true;
    return false;
}

static int take_rwlock(pthread_rwlock_t *l, bool write, uint64_t deadline, uint64_t site)
{
    int (*attempt)(pthread_rwlock_t *) = write ? lab_real_pthread_rwlock_trywrlock : lab_real_pthread_rwlock_tryrdlock;
    int result;

    lab_point(lab_sync_op(l), site);
    if (l->__data.__cur_writer == (int)lab->thread[lab_me].tid)
        return EDEADLK; /* as the C library says */
    while ((result = !write && must_let_writer(l) ? EBUSY : attempt(l)) == EBUSY) {
        lab_threads[lab_me].writes = write;
        lab_threads[lab_me].shared = l->__data.__shared;
        if (!lab_block(ETCH_LAB_RWLOCK, LAB_OBJECT(l), deadline, site))
            return ETIMEDOUT;
    }
    return lab_noted(write ? LAB_RWLOCK_WRLOCK : LAB_RWLOCK_RDLOCK, l, result, site);
}

#define RWLOCK(kind, write)                                                                                            \
    LAB_API int pthread_rwlock_##kind(pthread_rwlock_t *l);                                                            \
    int pthread_rwlock_##kind(pthread_rwlock_t *l)                                                                     \
    {                                                                                                                  \
        LAB_ENTER();                                                                                                   \
        return lab_controlled() ? take_rwlock(l, write, LAB_NEVER, LAB_SITE) : lab_real_pthread_rwlock_##kind(l);      \
    }                                                                                                                  \
    LAB_API int pthread_rwlock_timed##kind(pthread_rwlock_t *l, const struct timespec *at);                            \
    int pthread_rwlock_timed##kind(pthread_rwlock_t *l, const struct timespec *at)                                     \
    {                                                                                                                  \
        LAB_ENTER();                                                                                                   \
        if (!lab_controlled() || !lab_is_time(at))                                                                     \
            return lab_real_pthread_rwlock_timed##kind(l, at);                                                         \
        return take_rwlock(l, write, lab_virtual(CLOCK_REALTIME, at), LAB_SITE);                                       \
    }                                                                                                                  \
    LAB_API int pthread_rwlock_clock##kind(pthread_rwlock_t *l, clockid_t clock, const struct timespec *at);           \
    int pthread_rwlock_clock##kind(pthread_rwlock_t *l, clockid_t clock, const struct timespec *at)                    \
    {                                                                                                                  \
        LAB_ENTER();                                                                                                   \
        if (!lab_controlled() || !lab_is_time(at))                                                                     \
            return lab_real_pthread_rwlock_clock##kind(l, clock, at);                                                  \
        return take_rwlock(l, write, lab_virtual(clock, at), LAB_SITE);                                                \
    }

RWLOCK(rdlock, false)
RWLOCK(wrlock, true)

LAB_API int pthread_rwlock_tryrdlock(pthread_rwlock_t *l);
int pthread_rwlock_tryrdlock(pthread_rwlock_t *l)
{
    LAB_ENTER();
    if (lab_controlled())
        lab_point(lab_sync_op(l), LAB_SITE);
    return lab_noted(LAB_RWLOCK_RDLOCK, l, lab_real_pthread_rwlock_tryrdlock(l), LAB_SITE);
}

LAB_API int pthread_rwlock_trywrlock(pthread_rwlock_t *l);
int pthread_rwlock_trywrlock(pthread_rwlock_t *l)
{
    LAB_ENTER();
    if (lab_controlled())
        lab_point(lab_sync_op(l), LAB_SITE);
    return lab_noted(LAB_RWLOCK_WRLOCK, l, lab_real_pthread_rwlock_trywrlock(l), LAB_SITE);
}

LAB_API int pthread_rwlock_unlock(pthread_rwlock_t *l);
int pthread_rwlock_unlock(pthread_rwlock_t *l)
{
    int result;

    LAB_ENTER();
    if (lab_controlled())
        lab_point(lab_release_op(l), LAB_SITE);
    lab_note_sync(LAB_RWLOCK_UNLOCK, LAB_OBJECT(l), 0, 0, LAB_SITE);
    result = lab_real_pthread_rwlock_unlock(l);
    lab_wake_waiters(l);
    return result;
}

/* ---- Locks of streams ---- */

LAB_API void flockfile(FILE *f);
void flockfile(FILE *f)
{
    LAB_ENTER();
    if (!lab_controlled()) {
        lab_real_flockfile(f);
        return;
    }
    lab_point(lab_sync_op(f), LAB_SITE);
    while (lab_real_ftrylockfile(f) != 0)
        lab_block(ETCH_LAB_MUTEX, LAB_OBJECT(f), LAB_NEVER, LAB_SITE);
}

LAB_API void funlockfile(FILE *f);
void funlockfile(FILE *f)
{
    LAB_ENTER();
    lab_real_funlockfile(f);
    lab_wake_waiters(f);
}
