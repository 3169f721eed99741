/* SPDX-License-Identifier: MIT */
/* Private to the preloaded library: conditions, barriers, semaphores. */
#include "collector/sync/real.h"
#include "collector/sync/writer.h"

#include <errno.h>

/* ---- Conditions: waiting releases the mutex at its beginning and acquires it at its end ---- */

EXPORT int pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex)
{
    int result;

    READY();
    put(COND_WAIT_BEGIN, ADDRESS(cond), ADDRESS(mutex), 0, CALLER);
    result = etch_shim_real.cond_wait(cond, mutex);
    put(COND_WAIT_END, ADDRESS(cond), ADDRESS(mutex), result, CALLER);
    return result;
}

EXPORT int pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex, const struct timespec *until)
{
    int result;

    READY();
    put(COND_WAIT_BEGIN, ADDRESS(cond), ADDRESS(mutex), 0, CALLER);
    result = etch_shim_real.cond_timedwait(cond, mutex, until);
    put(COND_WAIT_END, ADDRESS(cond), ADDRESS(mutex), result, CALLER);
    return result;
}

EXPORT int pthread_cond_clockwait(pthread_cond_t *cond, pthread_mutex_t *mutex, clockid_t clock,
                                  const struct timespec *until)
{
    int result;

    READY();
    put(COND_WAIT_BEGIN, ADDRESS(cond), ADDRESS(mutex), 0, CALLER);
    result = etch_shim_real.cond_clockwait(cond, mutex, clock, until);
    put(COND_WAIT_END, ADDRESS(cond), ADDRESS(mutex), result, CALLER);
    return result;
}

EXPORT int pthread_cond_signal(pthread_cond_t *cond)
{
    struct etch_sync_event *event;
    int result;

    READY();
    event = put(COND_SIGNAL, ADDRESS(cond), 0, 0, CALLER);
    result = etch_shim_real.cond_signal(cond);
    call_over(event);
    return result;
}

EXPORT int pthread_cond_broadcast(pthread_cond_t *cond)
{
    struct etch_sync_event *event;
    int result;

    READY();
    event = put(COND_BROADCAST, ADDRESS(cond), 0, 0, CALLER);
    result = etch_shim_real.cond_broadcast(cond);
    call_over(event);
    return result;
}

/* ---- Barriers and semaphores ---- */

/* One that other processes may use too, unseen, is not to be counted: it lets through 0 at a time. */
EXPORT int pthread_barrier_init(pthread_barrier_t *barrier, const pthread_barrierattr_t *attr, unsigned count)
{
    int result, shared = PTHREAD_PROCESS_PRIVATE;

    READY();
    result = etch_shim_real.barrier_init(barrier, attr, count);
    if (attr)
        pthread_barrierattr_getpshared(attr, &shared);
    put(BARRIER_INIT, ADDRESS(barrier), shared == PTHREAD_PROCESS_PRIVATE ? count : 0, result, CALLER);
    return result;
}

EXPORT int pthread_barrier_wait(pthread_barrier_t *barrier)
{
    int result;

    READY();
    put(BARRIER_ENTER, ADDRESS(barrier), 0, 0, CALLER);
    result = etch_shim_real.barrier_wait(barrier);
    put(BARRIER_LEAVE, ADDRESS(barrier), 0, result, CALLER);
    return result;
}

/* Only of one that this process has for itself; without its first value nothing is counted. */
EXPORT int sem_init(sem_t *sem, int shared, unsigned value)
{
    int result;

    READY();
    result = etch_shim_real.sem_init(sem, shared, value);
    if (result == 0 && !shared)
        put(SEM_INIT, ADDRESS(sem), value, 0, CALLER);
    return result;
}

EXPORT int sem_post(sem_t *sem)
{
    struct etch_sync_event *event;
    int result;

    READY();
    event = put(SEM_POST, ADDRESS(sem), 0, 0, CALLER);
    result = etch_shim_real.sem_post(sem);
    call_over(event);
    return result;
}

/* These functions report errors through errno. This library does not change errno. */
EXPORT int sem_wait(sem_t *sem)
{
    struct before before;
    int result;

    READY();
    before = before_call();
    result = etch_shim_real.sem_wait(sem);
    put_since(before, SEM_WAIT, ADDRESS(sem), result ? errno : 0, CALLER);
    return result;
}

EXPORT int sem_trywait(sem_t *sem)
{
    struct before before;
    int result;

    READY();
    before = before_call();
    result = etch_shim_real.sem_trywait(sem);
    put_since(before, SEM_WAIT, ADDRESS(sem), result ? errno : 0, CALLER);
    return result;
}

EXPORT int sem_timedwait(sem_t *sem, const struct timespec *until)
{
    struct before before;
    int result;

    READY();
    before = before_call();
    result = etch_shim_real.sem_timedwait(sem, until);
    put_since(before, SEM_WAIT, ADDRESS(sem), result ? errno : 0, CALLER);
    return result;
}
