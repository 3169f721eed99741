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

/* ---- Sleeps ---- */

static void sleep_until(uint64_t deadline, uint64_t site)
{
    pthread_testcancel();
    if (lab_alive < 2) {
        if (deadline > lab->virtual_ns)
            lab->virtual_ns = deadline;
        return;
    }
    lab_block(ETCH_LAB_SLEEP, 0, deadline, site);
    pthread_testcancel();
}

LAB_API int nanosleep(const struct timespec *t, struct timespec *left);
int nanosleep(const struct timespec *t, struct timespec *left)
{
    LAB_ENTER();
    if (!is_virtual() || !is_time(t))
        return lab_real_nanosleep(t, left);
    sleep_until(lab_now() + in_ns(t), LAB_SITE);
    return 0;
}

LAB_API int clock_nanosleep(clockid_t clock, int flags, const struct timespec *t, struct timespec *left);
int clock_nanosleep(clockid_t clock, int flags, const struct timespec *t, struct timespec *left)
{
    uint64_t base;

    LAB_ENTER();
    if (!is_virtual() || !is_time(t))
        return lab_real_clock_nanosleep(clock, flags, t, left);
    base = clock == CLOCK_REALTIME ? lab->realtime_ns : lab->monotonic_ns;
    if (!(flags & TIMER_ABSTIME))
        sleep_until(lab_now() + in_ns(t), LAB_SITE);
    else
        sleep_until(in_ns(t) > base ? in_ns(t) - base : 0, LAB_SITE);
    return 0;
}

LAB_API int usleep(useconds_t us);
int usleep(useconds_t us)
{
    LAB_ENTER();
    if (!is_virtual())
        return lab_real_usleep(us);
    sleep_until(lab_now() + (uint64_t)us * 1000, LAB_SITE);
    return 0;
}

LAB_API unsigned sleep(unsigned s);
unsigned sleep(unsigned s)
{
    LAB_ENTER();
    if (!is_virtual())
        return lab_real_sleep(s);
    sleep_until(lab_now() + s * SECOND, LAB_SITE);
    return 0;
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

/* Asking for the time takes time, or a loop until a moment would never end. */
static uint64_t read_clock(uint64_t base)
{
    lab->virtual_ns += 100;
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
    now = read_clock(clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE ? lab->realtime_ns : lab->monotonic_ns);
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
    now = is_virtual() ? read_clock(lab->realtime_ns) : real_time_now();
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
    now = (time_t)((is_virtual() ? read_clock(lab->realtime_ns) : real_time_now()) / SECOND);
    if (t)
        *t = now;
    return now;
}

/* ---- Futexes of the program's own, and of the C++ library's atomic waits ---- */

static long wait_futex(const int *at, int value, const struct timespec *t, bool absolute, uint64_t site)
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
        deadline = in_ns(t) > lab->monotonic_ns ? in_ns(t) - lab->monotonic_ns : 0;
    if (lab_block(ETCH_LAB_FUTEX, LAB_OBJECT(at), deadline, site))
        return 0;
    errno = ETIMEDOUT;
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
                              LAB_SITE);
        if (command == FUTEX_WAKE || command == FUTEX_WAKE_BITSET)
            return wake_futex((const int *)a[0], (int)a[2], LAB_SITE);
    }
    return lab_real_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
