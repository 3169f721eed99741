/* SPDX-License-Identifier: MIT */
/* Locks in the lab. The C library keeps each lock's state: a lock is tried, and a thread that does not get it waits in
 * the lab until the lock is released. So recursive, error-checking, robust and priority-inheriting mutexes behave as
 * they do outside. */
#include "collector/lab/runtime.h"

#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct etch_lab_op sync_op(const volatile void *object)
{
    return (struct etch_lab_op){.object = LAB_OBJECT(object), .write = true, .interesting = true};
}

static int noted(enum lab_sync op, const volatile void *object, int result, uint64_t site)
{
    lab_note_sync(op, LAB_OBJECT(object), 0, result, site);
    return result;
}

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
static int take_mutex(pthread_mutex_t *m, uint64_t deadline, uint64_t site)
{
    int result;

    while ((result = lab_real_pthread_mutex_trylock(m)) == EBUSY) {
        if (answers_at_once(m))
            return lab_real_pthread_mutex_lock(m);
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
    lab_point(sync_op(m), LAB_SITE);
    return noted(LAB_MUTEX_LOCK, m, take_mutex(m, LAB_NEVER, LAB_SITE), LAB_SITE);
}

LAB_API int pthread_mutex_trylock(pthread_mutex_t *m);
int pthread_mutex_trylock(pthread_mutex_t *m)
{
    LAB_ENTER();
    if (lab_controlled())
        lab_point(sync_op(m), LAB_SITE);
    return noted(LAB_MUTEX_LOCK, m, lab_real_pthread_mutex_trylock(m), LAB_SITE);
}

LAB_API int pthread_mutex_unlock(pthread_mutex_t *m);
int pthread_mutex_unlock(pthread_mutex_t *m)
{
    int result;

    LAB_ENTER();
    if (lab_controlled())
        lab_point(sync_op(m), LAB_SITE);
    lab_note_sync(LAB_MUTEX_UNLOCK, LAB_OBJECT(m), 0, 0, LAB_SITE);
    result = lab_real_pthread_mutex_unlock(m);
    if (lab_controlled())
        lab_wake(LAB_OBJECT(m), true);
    return result;
}

/* ---- Times ---- */

static uint64_t base_of(clockid_t clock)
{
    return clock == CLOCK_REALTIME ? lab->realtime_ns : lab->monotonic_ns;
}

/* An absolute time of a clock, in virtual time. */
static uint64_t virtual_of(clockid_t clock, const struct timespec *at)
{
    uint64_t ns = at->tv_sec < 0 ? 0 : (uint64_t)at->tv_sec * 1000000000u + (uint64_t)at->tv_nsec;

    return ns > base_of(clock) ? ns - base_of(clock) : 0;
}

static bool is_time(const struct timespec *at)
{
    return at->tv_nsec >= 0 && at->tv_nsec < 1000000000;
}

LAB_API int pthread_mutex_timedlock(pthread_mutex_t *m, const struct timespec *at);
int pthread_mutex_timedlock(pthread_mutex_t *m, const struct timespec *at)
{
    LAB_ENTER();
    if (!lab_controlled() || lab->real_time || !is_time(at))
        return lab_real_pthread_mutex_timedlock(m, at);
    lab_point(sync_op(m), LAB_SITE);
    return noted(LAB_MUTEX_LOCK, m, take_mutex(m, virtual_of(CLOCK_REALTIME, at), LAB_SITE), LAB_SITE);
}

/* ---- Spin locks, read-write locks ---- */

LAB_API int pthread_spin_lock(pthread_spinlock_t *l);
int pthread_spin_lock(pthread_spinlock_t *l)
{
    int result;

    LAB_ENTER();
    if (!lab_controlled())
        return lab_real_pthread_spin_lock(l);
    lab_point(sync_op(l), LAB_SITE);
    while ((result = lab_real_pthread_spin_trylock(l)) == EBUSY)
        lab_block(ETCH_LAB_MUTEX, LAB_OBJECT(l), LAB_NEVER, LAB_SITE);
    return noted(LAB_SPIN_LOCK, l, result, LAB_SITE);
}

LAB_API int pthread_spin_trylock(pthread_spinlock_t *l);
int pthread_spin_trylock(pthread_spinlock_t *l)
{
    LAB_ENTER();
    if (lab_controlled())
        lab_point(sync_op(l), LAB_SITE);
    return noted(LAB_SPIN_LOCK, l, lab_real_pthread_spin_trylock(l), LAB_SITE);
}

LAB_API int pthread_spin_unlock(pthread_spinlock_t *l);
int pthread_spin_unlock(pthread_spinlock_t *l)
{
    int result;

    LAB_ENTER();
    if (lab_controlled())
        lab_point(sync_op(l), LAB_SITE);
    lab_note_sync(LAB_SPIN_UNLOCK, LAB_OBJECT(l), 0, 0, LAB_SITE);
    result = lab_real_pthread_spin_unlock(l);
    if (lab_controlled())
        lab_wake(LAB_OBJECT(l), true);
    return result;
}

static int take_rwlock(pthread_rwlock_t *l, int (*attempt)(pthread_rwlock_t *), int (*real)(pthread_rwlock_t *),
                       enum lab_sync op, uint64_t site)
{
    int result;

    if (!lab_controlled())
        return real(l);
    lab_point(sync_op(l), site);
    if (l->__data.__cur_writer == (int)lab->thread[lab_me].tid)
        return EDEADLK; /* as the C library says */
    while ((result = attempt(l)) == EBUSY)
        lab_block(ETCH_LAB_RWLOCK, LAB_OBJECT(l), LAB_NEVER, site);
    return noted(op, l, result, site);
}

LAB_API int pthread_rwlock_rdlock(pthread_rwlock_t *l);
int pthread_rwlock_rdlock(pthread_rwlock_t *l)
{
    LAB_ENTER();
    return take_rwlock(l, lab_real_pthread_rwlock_tryrdlock, lab_real_pthread_rwlock_rdlock, LAB_RWLOCK_RDLOCK,
                       LAB_SITE);
}

LAB_API int pthread_rwlock_wrlock(pthread_rwlock_t *l);
int pthread_rwlock_wrlock(pthread_rwlock_t *l)
{
    LAB_ENTER();
    return take_rwlock(l, lab_real_pthread_rwlock_trywrlock, lab_real_pthread_rwlock_wrlock, LAB_RWLOCK_WRLOCK,
                       LAB_SITE);
}

LAB_API int pthread_rwlock_tryrdlock(pthread_rwlock_t *l);
int pthread_rwlock_tryrdlock(pthread_rwlock_t *l)
{
    LAB_ENTER();
    if (lab_controlled())
        lab_point(sync_op(l), LAB_SITE);
    return noted(LAB_RWLOCK_RDLOCK, l, lab_real_pthread_rwlock_tryrdlock(l), LAB_SITE);
}

LAB_API int pthread_rwlock_trywrlock(pthread_rwlock_t *l);
int pthread_rwlock_trywrlock(pthread_rwlock_t *l)
{
    LAB_ENTER();
    if (lab_controlled())
        lab_point(sync_op(l), LAB_SITE);
    return noted(LAB_RWLOCK_WRLOCK, l, lab_real_pthread_rwlock_trywrlock(l), LAB_SITE);
}

LAB_API int pthread_rwlock_unlock(pthread_rwlock_t *l);
int pthread_rwlock_unlock(pthread_rwlock_t *l)
{
    int result;

    LAB_ENTER();
    if (lab_controlled())
        lab_point(sync_op(l), LAB_SITE);
    lab_note_sync(LAB_RWLOCK_UNLOCK, LAB_OBJECT(l), 0, 0, LAB_SITE);
    result = lab_real_pthread_rwlock_unlock(l);
    if (lab_controlled())
        lab_wake(LAB_OBJECT(l), true);
    return result;
}

/* ---- Conditions: all of them the lab's own ---- */

/* A robust mutex, or one that is not held, is the C library's to judge. */
static int wait_condition(pthread_cond_t *c, pthread_mutex_t *m, uint64_t deadline, uint64_t site)
{
    bool in_time;
    int result;

    lab_point(sync_op(c), site);
    pthread_testcancel();
    lab_note_sync(LAB_COND_WAIT_BEGIN, LAB_OBJECT(c), LAB_OBJECT(m), 0, site);
    result = lab_real_pthread_mutex_unlock(m);
    if (result)
        return result;
    lab_wake(LAB_OBJECT(m), true);
    in_time = lab_block(ETCH_LAB_CONDITION, LAB_OBJECT(c), deadline, site);
    result = take_mutex(m, LAB_NEVER, site);
    lab_note_sync(LAB_COND_WAIT_END, LAB_OBJECT(c), LAB_OBJECT(m), in_time ? 0 : ETIMEDOUT, site);
    pthread_testcancel();
    return result ? result : in_time ? 0 : ETIMEDOUT;
}

LAB_API int pthread_cond_wait(pthread_cond_t *c, pthread_mutex_t *m);
int pthread_cond_wait(pthread_cond_t *c, pthread_mutex_t *m)
{
    LAB_ENTER();
    return lab_controlled() ? wait_condition(c, m, LAB_NEVER, LAB_SITE) : lab_real_pthread_cond_wait(c, m);
}

LAB_API int pthread_cond_timedwait(pthread_cond_t *c, pthread_mutex_t *m, const struct timespec *at);
int pthread_cond_timedwait(pthread_cond_t *c, pthread_mutex_t *m, const struct timespec *at)
{
    clockid_t clock = c->__data.__wrefs & 2 ? CLOCK_MONOTONIC : CLOCK_REALTIME; /* pthread_condattr_setclock() */

    LAB_ENTER();
    if (!lab_controlled() || !is_time(at))
        return lab_real_pthread_cond_timedwait(c, m, at);
    return wait_condition(c, m, virtual_of(clock, at), LAB_SITE);
}

LAB_API int pthread_cond_clockwait(pthread_cond_t *c, pthread_mutex_t *m, clockid_t clock, const struct timespec *at);
int pthread_cond_clockwait(pthread_cond_t *c, pthread_mutex_t *m, clockid_t clock, const struct timespec *at)
{
    LAB_ENTER();
    if (!lab_controlled() || !is_time(at))
        return lab_real_pthread_cond_clockwait(c, m, clock, at);
    return wait_condition(c, m, virtual_of(clock, at), LAB_SITE);
}

LAB_API int pthread_cond_signal(pthread_cond_t *c);
int pthread_cond_signal(pthread_cond_t *c)
{
    LAB_ENTER();
    if (!lab_controlled())
        return lab_real_pthread_cond_signal(c);
    lab_point(sync_op(c), LAB_SITE);
    lab_note_sync(LAB_COND_SIGNAL, LAB_OBJECT(c), 0, 0, LAB_SITE);
    lab_wake(LAB_OBJECT(c), false);
    return 0;
}

LAB_API int pthread_cond_broadcast(pthread_cond_t *c);
int pthread_cond_broadcast(pthread_cond_t *c)
{
    LAB_ENTER();
    if (!lab_controlled())
        return lab_real_pthread_cond_broadcast(c);
    lab_point(sync_op(c), LAB_SITE);
    lab_note_sync(LAB_COND_BROADCAST, LAB_OBJECT(c), 0, 0, LAB_SITE);
    lab_wake(LAB_OBJECT(c), true);
    return 0;
}

/* ---- Semaphores ---- */

static int take_semaphore(sem_t *s, uint64_t deadline, uint64_t site)
{
    lab_point(sync_op(s), site);
    while (lab_real_sem_trywait(s) < 0) {
        if (errno != EAGAIN)
            return -1;
        pthread_testcancel();
        if (!lab_block(ETCH_LAB_SEMAPHORE, LAB_OBJECT(s), deadline, site)) {
            errno = ETIMEDOUT;
            return -1;
        }
    }
    return noted(LAB_SEM_WAIT, s, 0, site);
}

LAB_API int sem_wait(sem_t *s);
int sem_wait(sem_t *s)
{
    LAB_ENTER();
    return lab_controlled() ? take_semaphore(s, LAB_NEVER, LAB_SITE) : lab_real_sem_wait(s);
}

LAB_API int sem_trywait(sem_t *s);
int sem_trywait(sem_t *s)
{
    int result;

    LAB_ENTER();
    if (lab_controlled())
        lab_point(sync_op(s), LAB_SITE);
    result = lab_real_sem_trywait(s);
    return result == 0 ? noted(LAB_SEM_WAIT, s, 0, LAB_SITE) : result; /* errno stays */
}

LAB_API int sem_timedwait(sem_t *s, const struct timespec *at);
int sem_timedwait(sem_t *s, const struct timespec *at)
{
    LAB_ENTER();
    if (!lab_controlled() || !is_time(at))
        return lab_real_sem_timedwait(s, at);
    return take_semaphore(s, virtual_of(CLOCK_REALTIME, at), LAB_SITE);
}

LAB_API int sem_post(sem_t *s);
int sem_post(sem_t *s)
{
    int result;

    LAB_ENTER();
    if (lab_controlled())
        lab_point(sync_op(s), LAB_SITE);
    lab_note_sync(LAB_SEM_POST, LAB_OBJECT(s), 0, 0, LAB_SITE);
    result = lab_real_sem_post(s);
    if (lab_controlled())
        lab_wake(LAB_OBJECT(s), false);
    return result;
}

/* ---- Barriers: the lab's own ---- */

struct barrier {
    const pthread_barrier_t *at;
    unsigned count, inside;
    uint64_t generation;
};

static struct barrier barriers[ETCH_LAB_BARRIERS];

static struct barrier *barrier_of(const pthread_barrier_t *at)
{
    for (size_t i = 0; i < ETCH_LAB_BARRIERS; i++)
        if (barriers[i].at == at)
            return &barriers[i];
    return NULL;
}

LAB_API int pthread_barrier_init(pthread_barrier_t *b, const pthread_barrierattr_t *attributes, unsigned count);
int pthread_barrier_init(pthread_barrier_t *b, const pthread_barrierattr_t *attributes, unsigned count)
{
    int result;

    LAB_ENTER();
    result = lab_real_pthread_barrier_init(b, attributes, count);
    if (result == 0 && lab_controlled()) {
        struct barrier *mine = barrier_of(b);

        mine = mine ? mine : barrier_of(NULL);
        if (!mine)
            lab_stop(ETCH_LAB_BARRIERS_OUT);
        *mine = (struct barrier){.at = b, .count = count};
    }
    return result;
}

LAB_API int pthread_barrier_destroy(pthread_barrier_t *b);
int pthread_barrier_destroy(pthread_barrier_t *b)
{
    struct barrier *mine;

    LAB_ENTER();
    mine = lab_controlled() ? barrier_of(b) : NULL;
    if (mine)
        *mine = (struct barrier){0};
    return lab_real_pthread_barrier_destroy(b);
}

LAB_API int pthread_barrier_wait(pthread_barrier_t *b);
int pthread_barrier_wait(pthread_barrier_t *b)
{
    struct barrier *mine;
    uint64_t generation;

    LAB_ENTER();
    mine = lab_controlled() ? barrier_of(b) : NULL;
    if (!mine)
        return lab_real_pthread_barrier_wait(b);
    lab_point(sync_op(b), LAB_SITE);
    lab_note_sync(LAB_BARRIER_ENTER, LAB_OBJECT(b), 0, 0, LAB_SITE);
    if (++mine->inside == mine->count) {
        mine->inside = 0;
        mine->generation++;
        lab_wake(LAB_OBJECT(b), true);
        return noted(LAB_BARRIER_LEAVE, b, PTHREAD_BARRIER_SERIAL_THREAD, LAB_SITE);
    }
    for (generation = mine->generation; mine->at == b && mine->generation == generation;)
        lab_block(ETCH_LAB_BARRIER, LAB_OBJECT(b), LAB_NEVER, LAB_SITE);
    return noted(LAB_BARRIER_LEAVE, b, 0, LAB_SITE);
}

/* ---- Once, and the guards of static variables: the first runs, the others wait for it ---- */

static const volatile void *busy[ETCH_LAB_ONCES];
static uint32_t busy_by[ETCH_LAB_ONCES];

static size_t busy_slot(const volatile void *object)
{
    size_t i = 0;

    while (i < ETCH_LAB_ONCES && busy[i] != object)
        i++;
    return i;
}

/* Waits until nobody else is at it. */
static void await_once(const volatile void *object, uint64_t site)
{
    size_t i;

    lab_point(sync_op(object), site);
    while ((i = busy_slot(object)) < ETCH_LAB_ONCES && busy_by[i] != lab_me)
        lab_block(ETCH_LAB_ONCE, LAB_OBJECT(object), LAB_NEVER, site);
}

static void begin_once(const volatile void *object)
{
    size_t i = busy_slot(NULL);

    if (i == ETCH_LAB_ONCES)
        lab_stop(ETCH_LAB_ONCES_OUT);
    busy[i] = object;
    busy_by[i] = lab_me;
}

static void end_once(const volatile void *object)
{
    size_t i = busy_slot(object);

    if (i < ETCH_LAB_ONCES)
        busy[i] = NULL;
    lab_wake(LAB_OBJECT(object), true);
}

static void end_once_cleanup(void *object)
{
    end_once(object);
}

LAB_API int pthread_once(pthread_once_t *once, void (*routine)(void));
int pthread_once(pthread_once_t *once, void (*routine)(void))
{
    int result;

    LAB_ENTER();
    if (!lab_controlled())
        return lab_real_pthread_once(once, routine);
    await_once(once, LAB_SITE);
    begin_once(once);
    pthread_cleanup_push(end_once_cleanup, once);
    result = lab_real_pthread_once(once, routine);
    pthread_cleanup_pop(1);
    return result;
}

LAB_API int __cxa_guard_acquire(int64_t *guard);
int __cxa_guard_acquire(int64_t *guard)
{
    int result;

    LAB_ENTER();
    if (!lab_controlled())
        return lab_real___cxa_guard_acquire(guard);
    await_once(guard, LAB_SITE);
    result = lab_real___cxa_guard_acquire(guard);
    if (result)
        begin_once(guard);
    return result;
}

LAB_API void __cxa_guard_release(int64_t *guard);
void __cxa_guard_release(int64_t *guard)
{
    LAB_ENTER();
    lab_real___cxa_guard_release(guard);
    if (lab_controlled())
        end_once(guard);
}

LAB_API void __cxa_guard_abort(int64_t *guard);
void __cxa_guard_abort(int64_t *guard)
{
    LAB_ENTER();
    lab_real___cxa_guard_abort(guard);
    if (lab_controlled())
        end_once(guard);
}
