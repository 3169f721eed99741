/* SPDX-License-Identifier: MIT */
/* Who can run in the lab, and what is to be done if nobody can: virtual time jumps, or the lab waits for the world
 * outside. */
#include "collector/lab/runtime.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PATIENCE_NS UINT64_C(2000000000) /* for threads that the lab does not control, before it calls a hang */
#define NAP_NS 5000000                   /* between two looks at the world outside */

/* A run that is repeated has no world outside: the schedule says when the thread went on. */
bool lab_fds_ready(const struct lab_thread *t)
{
    return (t->outside && lab->feeds) || lab_real_poll(t->set, t->n_set, 0) != 0;
}

/* A sleep, or a wait with a time limit, may end once its time has come. Its time has come a little early, too: the
 * others may have been slow. */
static bool may_time_out(const struct lab_thread *t)
{
    return t->deadline != LAB_NEVER && t->deadline <= lab->virtual_ns + lab->slack_ns;
}

bool lab_can_run(struct lab_thread *t)
{
    if (t->state == LAB_AWAY && __atomic_load_n(&t->back, __ATOMIC_SEQ_CST)) {
        t->back = 0;
        t->state = LAB_READY;
    }
    if (t->state == LAB_READY)
        return true;
    if (t->state != LAB_BLOCKED)
        return false;
    if (__atomic_load_n(&t->pending, __ATOMIC_SEQ_CST) || t->cancel) {
        t->interrupted = t->pending != 0;
        t->state = LAB_READY;
        return true;
    }
    if (t->wait == ETCH_LAB_DESCRIPTOR && lab_fds_ready(t))
        return true;
    return may_time_out(t);
}

/* ---- Nobody can run ---- */

static uint64_t next_deadline(void)
{
    uint64_t next = lab_timers_next();

    for (uint32_t i = 0; i < lab->threads; i++)
        if (lab_threads[i].state == LAB_BLOCKED && lab_threads[i].deadline < next)
            next = lab_threads[i].deadline;
    return next;
}

static bool is_inner(const struct lab_thread *t)
{
    for (nfds_t i = 0; i < t->n_set; i++)
        if (t->set[i].fd >= 0 && !lab_input_is_inner(t->set[i].fd))
            return false;
    return true;
}

/* The thread may go on without any other thread: something outside may happen. */
static bool awaits_outside(const struct lab_thread *t)
{
    return t->state == LAB_AWAY || (t->state == LAB_BLOCKED && t->wait == ETCH_LAB_SIGNAL) ||
           (t->state == LAB_BLOCKED && t->wait == ETCH_LAB_DESCRIPTOR && !is_inner(t)) ||
           (t->state == LAB_BLOCKED && t->shared);
}

static bool can_any_run(void)
{
    for (uint32_t i = 0; i < lab->threads; i++)
        if (lab_threads[i].state == LAB_BLOCKED && lab_threads[i].wait == ETCH_LAB_SIGNAL &&
            lab_signals_waiting(&lab_threads[i]))
            lab_threads[i].state = LAB_READY;
    for (uint32_t i = 0; i < lab->threads; i++)
        if (lab_can_run(&lab_threads[i]))
            return true;
    return false;
}

static void nap(void)
{
    const struct timespec t = {0, NAP_NS};

    lab_real_syscall(SYS_clock_nanosleep, (long)CLOCK_MONOTONIC, 0L, &t, NULL);
    lab->virtual_ns += NAP_NS;
}

/* Waits for the world outside, in real time, until `deadline` at most. False if nobody waits for it. */
static bool await_world(uint64_t deadline)
{
    bool any = false;

    for (uint32_t i = 0; i < lab->threads; i++)
        any |= awaits_outside(&lab_threads[i]);
    while (any && !can_any_run() && lab->virtual_ns < deadline) {
        nap();
        for (uint32_t i = 0; i < lab->threads; i++)
            if (lab_threads[i].state == LAB_BLOCKED && lab_threads[i].shared)
                lab_threads[i].state = LAB_READY;
    }
    if (any)
        lab_input_jumped();
    return any;
}

bool lab_await_outside(const struct lab_thread *t)
{
    static uint64_t waited;

    if (!awaits_outside(t) || waited >= PATIENCE_NS)
        return false;
    nap();
    waited += NAP_NS;
    return true;
}

static bool is_any_held(void)
{
    for (uint32_t i = 0; i < lab->threads; i++)
        if ((lab_threads[i].state == LAB_READY ||
             (lab_threads[i].state == LAB_BLOCKED && lab_threads[i].deadline <= lab->virtual_ns)) &&
            lab_rules_hold(i))
            return true;
    return false;
}

/* Threads of the process, without those that have ended. */
static uint32_t count_tasks(void)
{
    char buffer[2048];
    int fd = (int)lab_real_syscall(SYS_openat, (long)AT_FDCWD, "/proc/self/task", (long)(O_RDONLY | O_CLOEXEC), 0L);
    uint32_t n = 0;
    long got;

    while ((got = lab_real_syscall(SYS_getdents64, (long)fd, buffer, (long)sizeof(buffer))) > 0)
        for (long at = 0; at < got; at += ((struct dirent64 *)(void *)(buffer + at))->d_reclen)
            n += ((struct dirent64 *)(void *)(buffer + at))->d_name[0] != '.';
    lab_real_syscall(SYS_close, (long)fd);
    return n;
}

/* Somebody whom the lab does not control may release what the threads wait for: a thread of a library's own, or
 * another process. They get a while. */
static bool may_be_released(void)
{
    static uint64_t waited;
    bool main_gone = lab_threads[0].state == LAB_DEAD;

    if (__atomic_exchange_n(&lab_released, 0, __ATOMIC_SEQ_CST)) {
        lab_wake_everybody();
        return true;
    }
    if (waited >= PATIENCE_NS || count_tasks() <= lab_alive + main_gone)
        return false;
    nap();
    waited += NAP_NS;
    lab_wake_everybody();
    return true;
}

void lab_make_runnable(void)
{
    uint64_t deadline = next_deadline();

    /* A thread that is held may also sleep: its time has come, and no other time will. */
    if (is_any_held() && (deadline == LAB_NEVER || deadline <= lab->virtual_ns))
        lab_stop(ETCH_LAB_INFEASIBLE);
    if (await_world(deadline) && can_any_run())
        return;
    if (deadline == LAB_NEVER) {
        if (may_be_released())
            return;
        lab_stop(ETCH_LAB_DEADLOCK);
    }
    if (deadline > lab->virtual_ns)
        lab->virtual_ns = deadline;
    if (lab_timers_next() <= lab->virtual_ns)
        lab_timers_fire();
}
