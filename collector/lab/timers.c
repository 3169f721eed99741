/* SPDX-License-Identifier: MIT */
/* Timers in the lab: alarm(), setitimer() and timer_create() run in virtual time. */
#include "collector/lab/runtime.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#define TIMERS 64
#define SECOND UINT64_C(1000000000)

/* The first is that of alarm() and setitimer(). */
static struct timer {
    bool used, armed;
    uint64_t due, interval;
    int overrun;
    struct sigevent event;
} timers[TIMERS] = {{.used = true, .event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGALRM}}};

static uint64_t next_due = LAB_NEVER;

uint64_t lab_timers_next(void)
{
    return next_due;
}

static void find_next(void)
{
    next_due = LAB_NEVER;
    for (size_t i = 0; i < TIMERS; i++)
        if (timers[i].armed && timers[i].due < next_due)
            next_due = timers[i].due;
}

void lab_timers_forget(void)
{
    for (size_t i = 0; i < TIMERS; i++)
        timers[i].armed = false;
    find_next();
}

static void *notify(void *timer)
{
    const struct timer t = *(struct timer *)timer;

    t.event.sigev_notify_function(t.event.sigev_value);
    return NULL;
}

static void start_thread(struct timer *t)
{
    pthread_attr_t attributes;
    pthread_t made;

    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    lab_make_thread(&made, &attributes, notify, t, 0);
    pthread_attr_destroy(&attributes);
}

static void fire(struct timer *t)
{
    t->overrun = 0;
    t->armed = t->interval != 0;
    if (t->armed) {
        t->due += t->interval;
        if (t->due <= lab->virtual_ns) {
            t->overrun = (int)((lab->virtual_ns - t->due) / t->interval) + 1;
            t->due += (uint64_t)t->overrun * t->interval;
        }
    }
    if (t->event.sigev_notify == SIGEV_THREAD)
        start_thread(t);
    else if (t->event.sigev_notify != SIGEV_NONE)
        lab_signals_post(t->event.sigev_signo, &t->event.sigev_value);
}

void lab_timers_fire(void)
{
    for (size_t i = 0; i < TIMERS; i++)
        if (timers[i].armed && timers[i].due <= lab->virtual_ns)
            fire(&timers[i]);
    find_next();
}

static bool is_virtual(void)
{
    return lab_controlled() && !lab->real_time;
}

static uint64_t left(const struct timer *t)
{
    return t->armed && t->due > lab->virtual_ns ? t->due - lab->virtual_ns : 0;
}

static void arm(struct timer *t, uint64_t after, uint64_t interval)
{
    t->armed = after != 0;
    t->due = lab->virtual_ns + after;
    t->interval = interval;
    find_next();
}

/* ---- The timer of the process ---- */

static uint64_t of_timeval(const struct timeval *t)
{
    return (uint64_t)t->tv_sec * SECOND + (uint64_t)t->tv_usec * 1000;
}

static struct timeval to_timeval(uint64_t ns)
{
    return (struct timeval){(time_t)(ns / SECOND), (suseconds_t)(ns % SECOND / 1000)};
}

LAB_API unsigned alarm(unsigned seconds);
unsigned alarm(unsigned seconds)
{
    uint64_t before;

    LAB_ENTER();
    if (!is_virtual())
        return lab_real_alarm(seconds);
    before = left(&timers[0]);
    arm(&timers[0], seconds * SECOND, 0);
    return (unsigned)((before + SECOND - 1) / SECOND);
}

LAB_API int setitimer(__itimer_which_t which, const struct itimerval *restrict value, struct itimerval *restrict old);
int setitimer(__itimer_which_t which, const struct itimerval *restrict value, struct itimerval *restrict old)
{
    struct itimerval before;

    LAB_ENTER();
    if (!is_virtual() || which != ITIMER_REAL || !value)
        return lab_real_setitimer(which, value, old);
    before = (struct itimerval){to_timeval(timers[0].interval), to_timeval(left(&timers[0]))};
    arm(&timers[0], of_timeval(&value->it_value), of_timeval(&value->it_interval));
    if (old)
        *old = before;
    return 0;
}

LAB_API int getitimer(__itimer_which_t which, struct itimerval *value);
int getitimer(__itimer_which_t which, struct itimerval *value)
{
    LAB_ENTER();
    if (!is_virtual() || which != ITIMER_REAL)
        return lab_real_getitimer(which, value);
    *value = (struct itimerval){to_timeval(timers[0].interval), to_timeval(left(&timers[0]))};
    return 0;
}

/* ---- Timers by number: ours are small numbers, those of the C library are none of these ---- */

static struct timer *timer_of(timer_t id)
{
    uintptr_t i = (uintptr_t)id - UINT32_C(0x4c414200);

    return i > 0 && i < TIMERS && timers[i].used ? &timers[i] : NULL;
}

LAB_API int timer_create(clockid_t clock, struct sigevent *restrict event, timer_t *restrict id);
int timer_create(clockid_t clock, struct sigevent *restrict event, timer_t *restrict id)
{
    size_t i = 1;

    LAB_ENTER();
    if (!is_virtual() || clock == CLOCK_PROCESS_CPUTIME_ID || clock == CLOCK_THREAD_CPUTIME_ID || clock < 0)
        return lab_real_timer_create(clock, event, id);
    while (i < TIMERS && timers[i].used)
        i++;
    if (i == TIMERS)
        return lab_real_timer_create(clock, event, id);
    timers[i] = (struct timer){.used = true};
    timers[i].event = event ? *event : (struct sigevent){.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGALRM};
    *id = (timer_t)(uintptr_t)(UINT32_C(0x4c414200) + i);
    if (!event)
        timers[i].event.sigev_value.sival_ptr = *id;
    return 0;
}

static uint64_t of_timespec(const struct timespec *t)
{
    return (uint64_t)t->tv_sec * SECOND + (uint64_t)t->tv_nsec;
}

static struct timespec to_timespec(uint64_t ns)
{
    return (struct timespec){(time_t)(ns / SECOND), (long)(ns % SECOND)};
}

LAB_API int timer_settime(timer_t id, int flags, const struct itimerspec *restrict value,
                          struct itimerspec *restrict old);
int timer_settime(timer_t id, int flags, const struct itimerspec *restrict value, struct itimerspec *restrict old)
{
    struct timer *t = timer_of(id);
    struct itimerspec before;
    uint64_t after;

    LAB_ENTER();
    if (!t)
        return lab_real_timer_settime(id, flags, value, old);
    before = (struct itimerspec){to_timespec(t->interval), to_timespec(left(t))};
    after = of_timespec(&value->it_value);
    if (flags & TIMER_ABSTIME && after) {
        uint64_t at = lab_virtual(after > lab->realtime_ns / 2 ? CLOCK_REALTIME : CLOCK_MONOTONIC, &value->it_value);

        after = at > lab->virtual_ns ? at - lab->virtual_ns : 1;
    }
    arm(t, after, of_timespec(&value->it_interval));
    if (old)
        *old = before;
    return 0;
}

LAB_API int timer_gettime(timer_t id, struct itimerspec *value);
int timer_gettime(timer_t id, struct itimerspec *value)
{
    const struct timer *t = timer_of(id);

    LAB_ENTER();
    if (!t)
        return lab_real_timer_gettime(id, value);
    *value = (struct itimerspec){to_timespec(t->interval), to_timespec(left(t))};
    return 0;
}

LAB_API int timer_getoverrun(timer_t id);
int timer_getoverrun(timer_t id)
{
    const struct timer *t = timer_of(id);

    LAB_ENTER();
    return t ? t->overrun : lab_real_timer_getoverrun(id);
}

LAB_API int timer_delete(timer_t id);
int timer_delete(timer_t id)
{
    struct timer *t = timer_of(id);

    LAB_ENTER();
    if (!t)
        return lab_real_timer_delete(id);
    *t = (struct timer){0};
    find_next();
    return 0;
}
