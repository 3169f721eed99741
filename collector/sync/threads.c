/* SPDX-License-Identifier: MIT */
/* Private to the preloaded library: beginnings, ends and joins of threads. */
#include "collector/sync/real.h"
#include "collector/sync/writer.h"

#include <stdlib.h>

struct birth {
    void *(*routine)(void *);
    void *argument;
};

static void *live(void *at)
{
    struct birth birth = *(struct birth *)at;

    free(at);
    put(THREAD_START, ADDRESS(pthread_self()), ADDRESS(birth.routine), 0, 0);
    if (etch_shim_ring)
        etch_shim_ring->start_routine = ADDRESS(birth.routine);
    return birth.routine(birth.argument);
}

static void leave(void *unused)
{
    (void)unused;
    put(THREAD_EXIT, ADDRESS(pthread_self()), 0, 0, 0);
}

/* Also when the thread ends by pthread_exit() or is cancelled. */
static void *live_and_leave(void *at)
{
    void *result;

    pthread_cleanup_push(leave, NULL);
    result = live(at);
    pthread_cleanup_pop(1);
    return result;
}

EXPORT int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*routine)(void *), void *argument)
{
    struct etch_sync_memory *memory;
    struct birth *birth;
    struct etch_sync_event *event;
    uint64_t caller = CALLER, index;
    int result;

    READY();
    memory = etch_shim_joined->memory;
    if (!memory)
        return etch_shim_real.create(thread, attr, routine, argument);
    birth = malloc(sizeof(*birth));
    if (!birth) {
        __atomic_fetch_add(&memory->unplaced, 1, __ATOMIC_RELAXED);
        return etch_shim_real.create(thread, attr, routine, argument);
    }
    *birth = (struct birth){routine, argument};
    /* Stamped before, as all that releases: the new thread may run before the call returns. Its name is known after. */
    event = begin_event(&index);
    result = etch_shim_real.create(thread, attr, live_and_leave, birth);
    call_over(event);
    if (event)
        finish_event(event, index, THREAD_CREATE, ADDRESS(routine), result ? 0 : ADDRESS(*thread), result, caller);
    if (result)
        free(birth);
    return result;
}

EXPORT int pthread_join(pthread_t thread, void **value)
{
    int result;

    READY();
    result = etch_shim_real.join(thread, value);
    put(THREAD_JOIN, ADDRESS(thread), ADDRESS(thread), result, CALLER);
    return result;
}

EXPORT int pthread_tryjoin_np(pthread_t thread, void **value)
{
    int result;

    READY();
    result = etch_shim_real.tryjoin(thread, value);
    put(THREAD_JOIN, ADDRESS(thread), ADDRESS(thread), result, CALLER);
    return result;
}

EXPORT int pthread_timedjoin_np(pthread_t thread, void **value, const struct timespec *until)
{
    int result;

    READY();
    result = etch_shim_real.timedjoin(thread, value, until);
    put(THREAD_JOIN, ADDRESS(thread), ADDRESS(thread), result, CALLER);
    return result;
}
