/* SPDX-License-Identifier: MIT */
/* Private to the preloaded library: mutexes, read-write locks, spin locks. */
#include "collector/sync/real.h"
#include "collector/sync/writer.h"

#include "proto/soft_layout.h"

#include <errno.h>

/* ---- Mutexes ---- */

EXPORT int pthread_mutex_init(pthread_mutex_t *mutex, const pthread_mutexattr_t *attr)
{
    int result;

    READY();
    result = etch_shim_real.mutex_init(mutex, attr);
    put(MUTEX_INIT, ADDRESS(mutex), 0, result, CALLER);
    return result;
}

EXPORT int pthread_mutex_destroy(pthread_mutex_t *mutex)
{
    READY();
    put(MUTEX_DESTROY, ADDRESS(mutex), 0, 0, CALLER);
    return etch_shim_real.mutex_destroy(mutex);
}

EXPORT int pthread_mutex_lock(pthread_mutex_t *mutex)
{
    struct before before;
    int result;

    READY();
    if (!etch_shim_joined->memory)
        return etch_shim_real.mutex_lock(mutex);
    before = before_call();
    /* trylock returns EBUSY if lock would wait. Any other result is the one that lock would return. */
    result = etch_shim_real.mutex_trylock(mutex);
    if (result == EBUSY) {
        put(MUTEX_BLOCKED, ADDRESS(mutex), 0, 0, CALLER);
        result = etch_shim_real.mutex_lock(mutex);
    }
    put_since(before, MUTEX_LOCK, ADDRESS(mutex), result, CALLER);
    return result;
}

/* One by which the software recorder finds a ring for its thread: nothing of the program's. */
static bool is_recorders(const pthread_mutex_t *mutex)
{
    return mutex->__data.__nusers & ETCH_SOFT_LOCK_MARK;
}

EXPORT int pthread_mutex_trylock(pthread_mutex_t *mutex)
{
    struct before before;
    int result;

    READY();
    if (is_recorders(mutex))
        return etch_shim_real.mutex_trylock(mutex);
    before = before_call();
    result = etch_shim_real.mutex_trylock(mutex);
    put_since(before, MUTEX_LOCK, ADDRESS(mutex), result, CALLER);
    return result;
}

EXPORT int pthread_mutex_timedlock(pthread_mutex_t *mutex, const struct timespec *until)
{
    struct before before;
    int result;

    READY();
    before = before_call();
    result = etch_shim_real.mutex_timedlock(mutex, until);
    put_since(before, MUTEX_LOCK, ADDRESS(mutex), result, CALLER);
    return result;
}

EXPORT int pthread_mutex_clocklock(pthread_mutex_t *mutex, clockid_t clock, const struct timespec *until)
{
    struct before before;
    int result;

    READY();
    before = before_call();
    result = etch_shim_real.mutex_clocklock(mutex, clock, until);
    put_since(before, MUTEX_LOCK, ADDRESS(mutex), result, CALLER);
    return result;
}

EXPORT int pthread_mutex_unlock(pthread_mutex_t *mutex)
{
    struct etch_sync_event *event;
    int result;

    READY();
    if (is_recorders(mutex))
        return etch_shim_real.mutex_unlock(mutex);
    event = put(MUTEX_UNLOCK, ADDRESS(mutex), 0, 0, CALLER);
    result = etch_shim_real.mutex_unlock(mutex);
    call_over(event);
    return result;
}

/* ---- Read-write locks ---- */

EXPORT int pthread_rwlock_rdlock(pthread_rwlock_t *lock)
{
    struct before before;
    int result;

    READY();
    before = before_call();
    result = etch_shim_real.rdlock(lock);
    put_since(before, RWLOCK_RDLOCK, ADDRESS(lock), result, CALLER);
    return result;
}

EXPORT int pthread_rwlock_tryrdlock(pthread_rwlock_t *lock)
{
    struct before before;
    int result;

    READY();
    before = before_call();
    result = etch_shim_real.tryrdlock(lock);
    put_since(before, RWLOCK_RDLOCK, ADDRESS(lock), result, CALLER);
    return result;
}

EXPORT int pthread_rwlock_timedrdlock(pthread_rwlock_t *lock, const struct timespec *until)
{
    struct before before;
    int result;

    READY();
    before = before_call();
    result = etch_shim_real.timedrdlock(lock, until);
    put_since(before, RWLOCK_RDLOCK, ADDRESS(lock), result, CALLER);
    return result;
}

EXPORT int pthread_rwlock_wrlock(pthread_rwlock_t *lock)
{
    struct before before;
    int result;

    READY();
    before = before_call();
    result = etch_shim_real.wrlock(lock);
    put_since(before, RWLOCK_WRLOCK, ADDRESS(lock), result, CALLER);
    return result;
}

EXPORT int pthread_rwlock_trywrlock(pthread_rwlock_t *lock)
{
    struct before before;
    int result;

    READY();
    before = before_call();
    result = etch_shim_real.trywrlock(lock);
    put_since(before, RWLOCK_WRLOCK, ADDRESS(lock), result, CALLER);
    return result;
}

EXPORT int pthread_rwlock_timedwrlock(pthread_rwlock_t *lock, const struct timespec *until)
{
    struct before before;
    int result;

    READY();
    before = before_call();
    result = etch_shim_real.timedwrlock(lock, until);
    put_since(before, RWLOCK_WRLOCK, ADDRESS(lock), result, CALLER);
    return result;
}

EXPORT int pthread_rwlock_unlock(pthread_rwlock_t *lock)
{
    struct etch_sync_event *event;
    int result;

    READY();
    event = put(RWLOCK_UNLOCK, ADDRESS(lock), 0, 0, CALLER);
    result = etch_shim_real.rwunlock(lock);
    call_over(event);
    return result;
}

/* ---- Spin locks ---- */

EXPORT int pthread_spin_lock(pthread_spinlock_t *lock)
{
    struct before before;
    int result;

    READY();
    before = before_call();
    result = etch_shim_real.spin_lock(lock);
    put_since(before, SPIN_LOCK, ADDRESS(lock), result, CALLER);
    return result;
}

EXPORT int pthread_spin_trylock(pthread_spinlock_t *lock)
{
    struct before before;
    int result;

    READY();
    before = before_call();
    result = etch_shim_real.spin_trylock(lock);
    put_since(before, SPIN_LOCK, ADDRESS(lock), result, CALLER);
    return result;
}

EXPORT int pthread_spin_unlock(pthread_spinlock_t *lock)
{
    READY();
    put(SPIN_UNLOCK, ADDRESS(lock), 0, 0, CALLER);
    return etch_shim_real.spin_unlock(lock);
}
