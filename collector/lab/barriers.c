/* SPDX-License-Identifier: MIT */
/* Barriers, initialisation once, and the guards of static variables, in the lab. */
#include "collector/lab/runtime.h"

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

/* Other processes may use it: it is the C library's own. */
static bool is_shared(const pthread_barrierattr_t *attributes)
{
    int shared = PTHREAD_PROCESS_PRIVATE;

    return attributes && pthread_barrierattr_getpshared(attributes, &shared) == 0 && shared == PTHREAD_PROCESS_SHARED;
}

static int wait_outside(pthread_barrier_t *b, uint64_t site)
{
    int result;

    lab_go_away(site);
    result = lab_real_pthread_barrier_wait(b);
    lab_come_back();
    return result;
}

LAB_API int pthread_barrier_init(pthread_barrier_t *b, const pthread_barrierattr_t *attributes, unsigned count);
int pthread_barrier_init(pthread_barrier_t *b, const pthread_barrierattr_t *attributes, unsigned count)
{
    int result;

    LAB_ENTER();
    result = lab_real_pthread_barrier_init(b, attributes, count);
    if (result == 0 && !is_shared(attributes) && lab_controlled()) {
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
        return lab_controlled() ? wait_outside(b, LAB_SITE) : lab_real_pthread_barrier_wait(b);
    lab_point(lab_sync_op(b), LAB_SITE);
    lab_note_sync(LAB_BARRIER_ENTER, LAB_OBJECT(b), 0, 0, LAB_SITE);
    if (++mine->inside == mine->count) {
        mine->inside = 0;
        mine->generation++;
        lab_wake(LAB_OBJECT(b), true);
        return lab_noted(LAB_BARRIER_LEAVE, b, PTHREAD_BARRIER_SERIAL_THREAD, LAB_SITE);
    }
    for (generation = mine->generation; mine->at == b && mine->generation == generation;)
        lab_block(ETCH_LAB_BARRIER, LAB_OBJECT(b), LAB_NEVER, LAB_SITE);
    return lab_noted(LAB_BARRIER_LEAVE, b, 0, LAB_SITE);
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

    lab_point(lab_sync_op(object), site);
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
