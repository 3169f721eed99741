/* SPDX-License-Identifier: MIT */
/* Time in the lab: sleeps and clocks are virtual. Futexes of the program's own. */
#include "collector/lab/runtime.h"

#include <errno.h>
#include <linux/futex.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SECOND UINT64_C(1000000000)

static bool is_virtual(void)
{
    return lab_controlled() && !lab->real_time;
}

static bool is_time(const struct timespec *t)
{
    return t && t->tv_sec >= 0 && t->tv_nsec >= 0 && t->tv_nsec < (long)SECOND;
}

static uint64_t in_ns(const struct timespec *t)
{
    return (uint64_t)t->tv_sec * SECOND + (uint64_t)t->tv_nsec;
}

/* ---- Times ---- */

bool lab_is_time(const struct timespec *at)
{
    return at->tv_nsec >= 0 && at->tv_nsec < (long)SECOND;
}

uint64_t lab_virtual(clockid_t clock, const struct timespec *at)
{
    uint64_t base = clock == CLOCK_REALTIME ? lab->realtime_ns : lab->monotonic_ns;
    struct timespec now;

    if (lab->real_time) { /* the program's clocks are the machine's own */
        lab_real_clock_gettime(clock, &now);
        base = in_ns(&now) - lab->virtual_ns;
    }
    return at->tv_sec >= 0 && in_ns(at) > base ? in_ns(at) - base : 0;
}

/* ---- Sleeps ---- */

/* Returns how much of it is left: a signal ends a sleep. */
static uint64_t sleep_until(uint64_t deadline, uint64_t site)
{
    pthread_testcancel();
    while (lab_block(ETCH_LAB_SLEEP, 0, deadline, site) && !lab_threads[lab_me].interrupted)
        pthread_testcancel();
    pthread_testcancel();
    return lab_threads[lab_me].interrupted && deadline > lab_now() ? deadline - lab_now() : 0;
}

static int end_sleep(uint64_t left_ns, struct timespec *left)
{
    if (!left_ns)
        return 0;
    if (left)
        *left = (struct timespec){(time_t)(left_ns / SECOND), (long)(left_ns % SECOND)};
    errno = EINTR;
    return -1;
}

LAB_API int nanosleep(const struct timespec *t, struct timespec *left);
int nanosleep(const struct timespec *t, struct timespec *left)
{
    LAB_ENTER();
    if (!is_virtual() || !is_time(t))
        return lab_real_nanosleep(t, left);
    return end_sleep(sleep_until(lab_now() + in_ns(t), LAB_SITE), left);
}

LAB_API int clock_nanosleep(clockid_t clock, int flags, const struct timespec *t, struct timespec *left);
int clock_nanosleep(clockid_t clock, int flags, const struct timespec *t, struct timespec *left)
{
    bool absolute = flags & TIMER_ABSTIME;
    uint64_t rest;

    LAB_ENTER();
    if (!is_virtual() || !is_time(t))
        return lab_real_clock_nanosleep(clock, flags, t, left);
    rest = sleep_until(absolute ? lab_virtual(clock, t) : lab_now() + in_ns(t), LAB_SITE);
    return end_sleep(rest, absolute ? NULL : left) ? EINTR : 0;
}

LAB_API int usleep(useconds_t us);
int usleep(useconds_t us)
{
    LAB_ENTER();
    if (!is_virtual())
        return lab_real_usleep(us);
    return end_sleep(sleep_until(lab_now() + (uint64_t)us * 1000, LAB_SITE), NULL);
}

LAB_API unsigned sleep(unsigned s);
unsigned sleep(unsigned s)
{
    LAB_ENTER();
    if (!is_virtual())
        return lab_real_sleep(s);
    return (unsigned)((sleep_until(lab_now() + s * SECOND, LAB_SITE) + SECOND - 1) / SECOND);
}

LAB_API int sched_yield(void);
int sched_yield(void)
{
    LAB_ENTER();
    if (!lab_controlled())
        return lab_real_sched_yield();
    lab_yield(LAB_SITE);
    return 0;
}

/* ---- Clocks ---- */

/* Asking for the time takes time, or a loop until a moment would never end. A thread that asks all the time waits in a
 * loop: it gives way, and time passes faster for it. */
static uint64_t read_clock(uint64_t base, uint64_t site)
{
    static uint64_t asked, points;

    asked = lab->points == points ? asked + 1 : 0;
    points = lab->points;
    lab->virtual_ns += asked < 1000 ? 100 : 100000;
    if (asked % 64 == 63)
        lab_yield(site);
    return base + lab->virtual_ns;
}

/* The machine's own clock is input. */
static int read_real_clock(clockid_t clock, struct timespec *t)
{
    struct iovec part = {t, sizeof(*t)};
    enum lab_way way = lab_input_way_of(ETCH_LAB_CLOCKS);
    int result =
        way == LAB_GIVE ? (int)lab_input_take(ETCH_LAB_CALL_CLOCK, clock, &part, 1) : lab_real_clock_gettime(clock, t);

    return way == LAB_KEEP ? (int)lab_input_keep(ETCH_LAB_CALL_CLOCK, clock, result, &part, 1, sizeof(*t)) : result;
}

LAB_API int clock_gettime(clockid_t clock, struct timespec *t);
int clock_gettime(clockid_t clock, struct timespec *t)
{
    uint64_t now;

    LAB_ENTER();
    if (!is_virtual() || clock == CLOCK_PROCESS_CPUTIME_ID || clock == CLOCK_THREAD_CPUTIME_ID || clock < 0)
        return read_real_clock(clock, t);
    now = read_clock(clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE ? lab->realtime_ns : lab->monotonic_ns,
                     LAB_SITE);
    *t = (struct timespec){(time_t)(now / SECOND), (long)(now % SECOND)};
    return 0;
}

static uint64_t real_time_now(void)
{
    struct timespec t = {0};

    read_real_clock(CLOCK_REALTIME, &t);
    return in_ns(&t);
}

LAB_API int gettimeofday(struct timeval *restrict t, void *restrict zone);
int gettimeofday(struct timeval *restrict t, void *restrict zone)
{
    uint64_t now;

    LAB_ENTER();
    if (zone || !lab_controlled())
        return lab_real_gettimeofday(t, zone);
    now = is_virtual() ? read_clock(lab->realtime_ns, LAB_SITE) : real_time_now();
    *t = (struct timeval){(time_t)(now / SECOND), (long)(now % SECOND / 1000)};
    return 0;
}

LAB_API time_t time(time_t *t);
time_t time(time_t *t)
{
    time_t now;

    LAB_ENTER();
    if (!lab_controlled())
        return lab_real_time(t);
    now = (time_t)((is_virtual() ? read_clock(lab->realtime_ns, LAB_SITE) : real_time_now()) / SECOND);
    if (t)
        *t = now;
    return now;
}

/* ---- Futexes of the program's own, and of the C++ library's atomic waits ---- */

static long wait_futex(const int *at, int value, const struct timespec *t, bool absolute, clockid_t clock,
                       uint64_t site)
{
    uint64_t deadline = LAB_NEVER;

    lab_point((struct etch_lab_op){.object = LAB_OBJECT(at), .write = true, .interesting = true}, site);
    if (__atomic_load_n(at, __ATOMIC_SEQ_CST) != value) {
        errno = EAGAIN;
        return -1;
    }
    if (is_time(t) && !absolute)
        deadline = lab_now() + in_ns(t);
    else if (is_time(t))
        deadline = lab_virtual(clock, t);
    if (lab_block(ETCH_LAB_FUTEX, LAB_OBJECT(at), deadline, site) && !lab_threads[lab_me].interrupted)
        return 0;
    errno = lab_threads[lab_me].timed_out ? ETIMEDOUT : EINTR;
    return -1;
}

static long wake_futex(const int *at, int most, uint64_t site)
{
    long woken = 0;

    lab_point((struct etch_lab_op){.object = LAB_OBJECT(at), .write = true, .interesting = true}, site);
    while (woken < most && lab_wake(LAB_OBJECT(at), false))
        woken++;
    return woken;
}

LAB_API long syscall(long number, ...);
long syscall(long number, ...)
{
    long a[6];
    va_list list;

    LAB_ENTER();
    va_start(list, number);
    for (size_t i = 0; i < 6; i++)
        a[i] = va_arg(list, long);
    va_end(list);
    if (number == SYS_futex && lab_controlled()) {
        int command = (int)a[1] & FUTEX_CMD_MASK;

        if (command == FUTEX_WAIT || command == FUTEX_WAIT_BITSET)
            return wait_futex((const int *)a[0], (int)a[2], (const struct timespec *)a[3], command == FUTEX_WAIT_BITSET,
                              a[1] & FUTEX_CLOCK_REALTIME ? CLOCK_REALTIME : CLOCK_MONOTONIC, LAB_SITE);
        if (command == FUTEX_WAKE || command == FUTEX_WAKE_BITSET)
            return wake_futex((const int *)a[0], (int)a[2], LAB_SITE);
    }
    return lab_real_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
