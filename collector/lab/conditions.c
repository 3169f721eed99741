/* SPDX-License-Identifier: MIT */
/* Conditions and semaphores in the lab. A semaphore's value is the C library's; conditions are the lab's own, unless
 * other processes may use them. */
#include "collector/lab/runtime.h"

#include <errno.h>
#include <string.h>

/* ---- Conditions: all of them the lab's own ---- */

#define PSHARED 1 /* in the flags of a condition of the C library */

/* Another process may signal it. */
static int wait_outside(pthread_cond_t *c, pthread_mutex_t *m, uint64_t deadline, uint64_t site)
{
    struct timespec until = {0};
    int result;

    if (deadline != LAB_NEVER) {
        uint64_t ns = deadline > lab->virtual_ns ? deadline - lab->virtual_ns : 0;

        lab_real_clock_gettime(CLOCK_MONOTONIC, &until);
        ns += (uint64_t)until.tv_sec * 1000000000u + (uint64_t)until.tv_nsec;
        until = (struct timespec){(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
    }
    lab_wake(LAB_OBJECT(m), true);
    lab_go_away(site);
    result = deadline == LAB_NEVER ? lab_real_pthread_cond_wait(c, m)
                                   : lab_real_pthread_cond_clockwait(c, m, CLOCK_MONOTONIC, &until);
    lab_come_back();
    return result;
}

/* A robust mutex, or one that is not held, is the C library's to judge. */
static int wait_condition(pthread_cond_t *c, pthread_mutex_t *m, uint64_t deadline, uint64_t site)
{
    bool in_time;
    int result;

    if (c->__data.__wrefs & PSHARED)
        return wait_outside(c, m, deadline, site);
    lab_point(lab_sync_op(c), site);
    pthread_testcancel();
    lab_note_sync(LAB_COND_WAIT_BEGIN, LAB_OBJECT(c), LAB_OBJECT(m), 0, site);
    result = lab_real_pthread_mutex_unlock(m);
    if (result)
        return result;
    lab_wake(LAB_OBJECT(m), true);
    in_time = lab_block(ETCH_LAB_CONDITION, LAB_OBJECT(c), deadline, site);
    result = lab_take_mutex(m, LAB_NEVER, site);
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
    if (!lab_controlled() || !lab_is_time(at))
        return lab_real_pthread_cond_timedwait(c, m, at);
    return wait_condition(c, m, lab_virtual(clock, at), LAB_SITE);
}

LAB_API int pthread_cond_clockwait(pthread_cond_t *c, pthread_mutex_t *m, clockid_t clock, const struct timespec *at);
int pthread_cond_clockwait(pthread_cond_t *c, pthread_mutex_t *m, clockid_t clock, const struct timespec *at)
{
    LAB_ENTER();
    if (!lab_controlled() || !lab_is_time(at))
        return lab_real_pthread_cond_clockwait(c, m, clock, at);
    return wait_condition(c, m, lab_virtual(clock, at), LAB_SITE);
}

LAB_API int pthread_cond_signal(pthread_cond_t *c);
int pthread_cond_signal(pthread_cond_t *c)
{
    LAB_ENTER();
    if (!lab_controlled()) {
        lab_wake_waiters(c);
        return lab_real_pthread_cond_signal(c);
    }
    lab_point(lab_sync_op(c), LAB_SITE);
    lab_note_sync(LAB_COND_SIGNAL, LAB_OBJECT(c), 0, 0, LAB_SITE);
    lab_wake(LAB_OBJECT(c), false);
    return c->__data.__wrefs & PSHARED ? lab_real_pthread_cond_signal(c) : 0;
}

LAB_API int pthread_cond_broadcast(pthread_cond_t *c);
int pthread_cond_broadcast(pthread_cond_t *c)
{
    LAB_ENTER();
    if (!lab_controlled()) {
        lab_wake_waiters(c);
        return lab_real_pthread_cond_broadcast(c);
    }
    lab_point(lab_sync_op(c), LAB_SITE);
    lab_note_sync(LAB_COND_BROADCAST, LAB_OBJECT(c), 0, 0, LAB_SITE);
    lab_wake(LAB_OBJECT(c), true);
    return c->__data.__wrefs & PSHARED ? lab_real_pthread_cond_broadcast(c) : 0;
}

/* ---- Semaphores ---- */

/* The C library keeps this behind the value. */
static bool is_shared(const sem_t *s)
{
    int flags;

    memcpy(&flags, (const char *)s + 8, sizeof(flags));
    return flags != 0;
}

static int take_semaphore(sem_t *s, uint64_t deadline, uint64_t site)
{
    lab_point(lab_sync_op(s), site);
    while (lab_real_sem_trywait(s) < 0) {
        if (errno != EAGAIN)
            return -1;
        pthread_testcancel();
        lab_threads[lab_me].shared = is_shared(s);
        if (!lab_block(ETCH_LAB_SEMAPHORE, LAB_OBJECT(s), deadline, site)) {
            errno = ETIMEDOUT;
            return -1;
        }
        if (lab_threads[lab_me].interrupted) {
            errno = EINTR;
            return -1;
        }
    }
    return lab_noted(LAB_SEM_WAIT, s, 0, site);
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
        lab_point(lab_sync_op(s), LAB_SITE);
    result = lab_real_sem_trywait(s);
    return result == 0 ? lab_noted(LAB_SEM_WAIT, s, 0, LAB_SITE) : result; /* errno stays */
}

LAB_API int sem_timedwait(sem_t *s, const struct timespec *at);
int sem_timedwait(sem_t *s, const struct timespec *at)
{
    LAB_ENTER();
    if (!lab_controlled() || !lab_is_time(at))
        return lab_real_sem_timedwait(s, at);
    return take_semaphore(s, lab_virtual(CLOCK_REALTIME, at), LAB_SITE);
}

LAB_API int sem_clockwait(sem_t *s, clockid_t clock, const struct timespec *at);
int sem_clockwait(sem_t *s, clockid_t clock, const struct timespec *at)
{
    LAB_ENTER();
    if (!lab_controlled() || !lab_is_time(at))
        return lab_real_sem_clockwait(s, clock, at);
    return take_semaphore(s, lab_virtual(clock, at), LAB_SITE);
}

LAB_API int sem_post(sem_t *s);
int sem_post(sem_t *s)
{
    int result;

    LAB_ENTER();
    if (lab_controlled())
        lab_point(lab_sync_op(s), LAB_SITE);
    lab_note_sync(LAB_SEM_POST, LAB_OBJECT(s), 0, 0, LAB_SITE);
    result = lab_real_sem_post(s);
    if (lab_controlled())
        lab_wake(LAB_OBJECT(s), false);
    else
        lab_wake_waiters(s);
    return result;
}
