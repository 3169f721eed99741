/* SPDX-License-Identifier: MIT */
/* Threads in the lab: making, joining, ending, cancelling; POSIX and C11. */
#include "collector/lab/runtime.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <threads.h>

/* The start of a new thread. It is not in the heap, because the heap belongs to the program. */
struct start {
    void *(*routine)(void *);
    void *argument;
};

static struct start starts[ETCH_LAB_THREADS];
static pthread_key_t ending;
static pthread_once_t ending_made = PTHREAD_ONCE_INIT;

/* Destructors of the program's own keys and of thread_local objects run before: this one asks to be called again until
 * the last round. */
static void end_thread(void *rounds)
{
    uintptr_t left = (uintptr_t)rounds;

    if (left > 1)
        pthread_setspecific(ending, (void *)(left - 1));
    else
        lab_end_thread();
}

static void make_ending(void)
{
    pthread_key_create(&ending, end_thread);
}

static void *begin(void *number)
{
    uint32_t thread = (uint32_t)(uintptr_t)number;
    struct start s = starts[thread];

    pthread_setspecific(ending, (void *)(uintptr_t)PTHREAD_DESTRUCTOR_ITERATIONS);
    lab_begin_thread(thread);
    return s.routine(s.argument);
}

/* Without a site it is the lab itself that makes the thread, and no point. */
int lab_make_thread(pthread_t *made, const pthread_attr_t *attributes, void *(*routine)(void *), void *argument,
                    uint64_t site)
{
    uint32_t thread;
    int result;

    lab_real_pthread_once(&ending_made, make_ending);
    if (!lab_me && !pthread_getspecific(ending)) /* the first thread may call pthread_exit() */
        pthread_setspecific(ending, (void *)(uintptr_t)PTHREAD_DESTRUCTOR_ITERATIONS);
    thread = lab_new_thread((uint64_t)(uintptr_t)routine);
    starts[thread] = (struct start){routine, argument};
    result = lab_real_pthread_create(made, attributes, begin, (void *)(uintptr_t)thread);
    if (result) {
        lab_threads[thread].state = LAB_DEAD;
        lab_alive--;
        return result;
    }
    lab_threads[thread].self = *made;
    lab_note_sync(LAB_THREAD_CREATE, (uint64_t)(uintptr_t)routine, (uint64_t)*made, 0, site);
    if (site)
        lab_point((struct etch_lab_op){.made = thread + 1}, site);
    return 0;
}

LAB_API int pthread_create(pthread_t *made, const pthread_attr_t *attributes, void *(*routine)(void *), void *argument);
int pthread_create(pthread_t *made, const pthread_attr_t *attributes, void *(*routine)(void *), void *argument)
{
    LAB_ENTER();
    if (!lab_controlled())
        return lab_real_pthread_create(made, attributes, routine, argument);
    return lab_make_thread(made, attributes, routine, argument, LAB_SITE);
}

/* The newest of that name: the C library uses names again. */
static struct lab_thread *find(pthread_t self)
{
    for (uint32_t i = lab->threads; i-- > 0;)
        if (lab_threads[i].self == self)
            return &lab_threads[i];
    return NULL;
}

/* False if the time is up first. */
static bool await_end(pthread_t self, uint64_t deadline, uint64_t site)
{
    struct lab_thread *t = find(self);

    lab_point((struct etch_lab_op){.object = LAB_OBJECT(t),
                                   .write = true,
                                   .interesting = true,
                                   .sync = true,
                                   .joined = t && deadline == LAB_NEVER ? (uint32_t)(t - lab_threads) + 1 : 0},
              site);
    while (t && t->state != LAB_DEAD) {
        pthread_testcancel();
        if (!lab_block(ETCH_LAB_JOIN, LAB_OBJECT(t), deadline, site))
            return false;
    }
    return true;
}

LAB_API int pthread_join(pthread_t self, void **result);
int pthread_join(pthread_t self, void **result)
{
    int status;

    LAB_ENTER();
    if (lab_controlled() && self != pthread_self())
        await_end(self, LAB_NEVER, LAB_SITE);
    status = lab_real_pthread_join(self, result);
    lab_note_sync(LAB_THREAD_JOIN, (uint64_t)self, (uint64_t)self, status, LAB_SITE);
    return status;
}

LAB_API int pthread_tryjoin_np(pthread_t self, void **result);
int pthread_tryjoin_np(pthread_t self, void **result)
{
    struct lab_thread *t;

    LAB_ENTER();
    if (!lab_controlled())
        return lab_real_pthread_tryjoin_np(self, result);
    t = find(self);
    lab_point((struct etch_lab_op){.object = LAB_OBJECT(t), .sync = true}, LAB_SITE);
    return t && t->state != LAB_DEAD ? EBUSY : lab_real_pthread_join(self, result);
}

static int join_until(pthread_t self, void **result, clockid_t clock, const struct timespec *at, uint64_t site)
{
    if (self == pthread_self())
        return EDEADLK;
    if (!await_end(self, lab_virtual(clock, at), site))
        return ETIMEDOUT;
    return lab_real_pthread_join(self, result);
}

LAB_API int pthread_timedjoin_np(pthread_t self, void **result, const struct timespec *at);
int pthread_timedjoin_np(pthread_t self, void **result, const struct timespec *at)
{
    LAB_ENTER();
    if (!lab_controlled() || !at || !lab_is_time(at))
        return at ? lab_real_pthread_timedjoin_np(self, result, at) : pthread_join(self, result);
    return join_until(self, result, CLOCK_REALTIME, at, LAB_SITE);
}

LAB_API int pthread_clockjoin_np(pthread_t self, void **result, clockid_t clock, const struct timespec *at);
int pthread_clockjoin_np(pthread_t self, void **result, clockid_t clock, const struct timespec *at)
{
    LAB_ENTER();
    if (!lab_controlled() || !at || !lab_is_time(at))
        return at ? lab_real_pthread_clockjoin_np(self, result, clock, at) : pthread_join(self, result);
    return join_until(self, result, clock, at, LAB_SITE);
}

/* The thread is cancelled when it runs next, by itself: it must not be while it waits for the baton. */
LAB_API int pthread_cancel(pthread_t self);
int pthread_cancel(pthread_t self)
{
    struct lab_thread *t;

    LAB_ENTER();
    if (!lab_controlled())
        return lab_real_pthread_cancel(self);
    t = find(self);
    lab_point((struct etch_lab_op){.object = LAB_OBJECT(t), .write = true, .interesting = true, .sync = true}, LAB_SITE);
    if (!t || t->state == LAB_DEAD || self == pthread_self())
        return lab_real_pthread_cancel(self);
    t->cancel = true;
    return 0;
}

/* ---- C11 ---- */

struct c11 {
    thrd_start_t routine;
    void *argument;
};

static void *begin_c11(void *context)
{
    struct c11 c = *(struct c11 *)context;

    free(context);
    return (void *)(intptr_t)c.routine(c.argument);
}

LAB_API int thrd_create(thrd_t *made, thrd_start_t routine, void *argument);
int thrd_create(thrd_t *made, thrd_start_t routine, void *argument)
{
    struct c11 *c = malloc(sizeof(*c));

    if (!c)
        return thrd_nomem;
    *c = (struct c11){routine, argument};
    if (pthread_create(made, NULL, begin_c11, c) == 0)
        return thrd_success;
    free(c);
    return thrd_error;
}

LAB_API int thrd_join(thrd_t self, int *result);
int thrd_join(thrd_t self, int *result)
{
    void *value;

    if (pthread_join(self, &value) != 0)
        return thrd_error;
    if (result)
        *result = (int)(intptr_t)value;
    return thrd_success;
}

static int c11_status(int result)
{
    return result == 0 ? thrd_success : result == EBUSY ? thrd_busy : result == ETIMEDOUT ? thrd_timedout : thrd_error;
}

/* mtx_t and cnd_t are the C library's pthread_mutex_t and pthread_cond_t by another name. */
LAB_API int mtx_lock(mtx_t *m);
int mtx_lock(mtx_t *m)
{
    return c11_status(pthread_mutex_lock((pthread_mutex_t *)m));
}

LAB_API int mtx_trylock(mtx_t *m);
int mtx_trylock(mtx_t *m)
{
    return c11_status(pthread_mutex_trylock((pthread_mutex_t *)m));
}

LAB_API int mtx_unlock(mtx_t *m);
int mtx_unlock(mtx_t *m)
{
    return c11_status(pthread_mutex_unlock((pthread_mutex_t *)m));
}

LAB_API int cnd_wait(cnd_t *c, mtx_t *m);
int cnd_wait(cnd_t *c, mtx_t *m)
{
    return c11_status(pthread_cond_wait((pthread_cond_t *)c, (pthread_mutex_t *)m));
}

LAB_API int cnd_timedwait(cnd_t *c, mtx_t *m, const struct timespec *at);
int cnd_timedwait(cnd_t *c, mtx_t *m, const struct timespec *at)
{
    return c11_status(pthread_cond_timedwait((pthread_cond_t *)c, (pthread_mutex_t *)m, at));
}

LAB_API int cnd_signal(cnd_t *c);
int cnd_signal(cnd_t *c)
{
    return c11_status(pthread_cond_signal((pthread_cond_t *)c));
}

LAB_API int cnd_broadcast(cnd_t *c);
int cnd_broadcast(cnd_t *c)
{
    return c11_status(pthread_cond_broadcast((pthread_cond_t *)c));
}

LAB_API int mtx_timedlock(mtx_t *restrict m, const struct timespec *restrict at);
int mtx_timedlock(mtx_t *restrict m, const struct timespec *restrict at)
{
    return c11_status(pthread_mutex_timedlock((pthread_mutex_t *)m, at));
}

LAB_API void mtx_destroy(mtx_t *m);
void mtx_destroy(mtx_t *m)
{
    pthread_mutex_destroy((pthread_mutex_t *)m);
}

LAB_API void call_once(once_flag *flag, void (*routine)(void));
void call_once(once_flag *flag, void (*routine)(void))
{
    pthread_once((pthread_once_t *)flag, routine);
}

LAB_API int thrd_sleep(const struct timespec *t, struct timespec *left);
int thrd_sleep(const struct timespec *t, struct timespec *left)
{
    return nanosleep(t, left) == 0 ? 0 : errno == EINTR ? -1 : -2;
}

LAB_API void thrd_exit(int result);
void thrd_exit(int result)
{
    pthread_exit((void *)(intptr_t)result);
}

LAB_API void thrd_yield(void);
void thrd_yield(void)
{
    sched_yield();
}
