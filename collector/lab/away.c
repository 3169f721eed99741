/* SPDX-License-Identifier: MIT */
/* The holder of the baton may sleep in the kernel, in a call that the lab does not know. If nothing moves for a while,
 * a parked thread takes the baton from it, so that a program never hangs because of the lab. The sleeper comes back to
 * the lab at its next point. */
#include "collector/lab/runtime.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#define LOOKS 2          /* without any point, before the holder is examined */
#define PATIENT_LOOKS 20 /* the same, if the call is known to end by itself */

/* How often the thread has gone to sleep by itself; 0 if it does not sleep now. */
static unsigned long count_sleeps(uint32_t thread)
{
    char path[64], text[4096];
    const char *at;
    long n;
    int fd;

    snprintf(path, sizeof(path), "/proc/self/task/%u/status", lab->thread[thread].tid);
    fd = (int)lab_real_syscall(SYS_openat, (long)AT_FDCWD, path, (long)(O_RDONLY | O_CLOEXEC), 0L);
    n = fd >= 0 ? lab_real_syscall(SYS_read, (long)fd, text, (long)sizeof(text) - 1) : 0;
    if (fd >= 0)
        lab_real_syscall(SYS_close, (long)fd);
    text[n > 0 ? n : 0] = '\0';
    at = strstr(text, "State:\tS");
    at = at ? strstr(at, "\nvoluntary_ctxt_switches:") : NULL;
    return at ? strtoul(strchr(at, ':') + 1, NULL, 10) + 1 : 0;
}

/* Takes the baton from a thread that has slept all the time. While the baton is claimed, the thread would wait. */
static bool rob(uint32_t holder)
{
    unsigned long sleeps = count_sleeps(holder);
    uint32_t expected = holder;

    if (!sleeps ||
        !__atomic_compare_exchange_n(&lab_running, &expected, LAB_CLAIMED, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
        return false;
    if (count_sleeps(holder) != sleeps || lab_threads[holder].state != LAB_READY || lab_choosing) {
        __atomic_store_n(&lab_running, holder, __ATOMIC_SEQ_CST);
        return false;
    }
    lab_threads[holder].back = 0;
    lab_threads[holder].op = (struct etch_lab_op){0};
    lab_threads[holder].state = LAB_AWAY;
    __atomic_store_n(&lab_running, lab_me, __ATOMIC_SEQ_CST);
    return true;
}

static bool is_any_ready(uint32_t holder)
{
    for (uint32_t i = 0; i < lab->threads; i++)
        if (i != holder && (lab_threads[i].state == LAB_READY ||
                            (lab_threads[i].state == LAB_BLOCKED && lab_threads[i].deadline != LAB_NEVER)))
            return true;
    return false;
}

/* A debugger stops the holder for any time. Only a sleep that the debugger did not interrupt counts. */
static bool sleeps_on(struct lab_thread *t, uint32_t holder)
{
    unsigned long sleeps = count_sleeps(holder);

    if (sleeps && sleeps == t->seen_sleeps)
        return true;
    t->seen_sleeps = sleeps;
    t->seen = 0;
    return false;
}

bool lab_look_after(struct lab_thread *t)
{
    uint32_t holder = __atomic_load_n(&lab_running, __ATOMIC_SEQ_CST), nobody = LAB_NOBODY;

    if (holder == LAB_NOBODY)
        return __atomic_compare_exchange_n(&lab_running, &nobody, lab_me, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST) &&
               lab_schedule();
    if (holder >= ETCH_LAB_THREADS || holder != t->seen_holder || lab->points != t->seen_points) {
        t->seen_holder = holder;
        t->seen_points = lab->points;
        t->seen = 0;
        return false;
    }
    if (lab->debugged && !sleeps_on(t, holder))
        return false;
    if (++t->seen < (lab_threads[holder].patient ? PATIENT_LOOKS : LOOKS) || !is_any_ready(holder) || !rob(holder))
        return false;
    return lab_schedule();
}
