/* SPDX-License-Identifier: MIT */
/* Stops all threads of a traced process at once, so that the program does not notice; see target.h. */
#include "collector/session/process.h"
#include "collector/target.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>

#define STOP_MS 2000u
#define SYSCALL_SIZE 2u /* of the instruction */

/* The calls that end with EINTR after a stop, and that can be made again with the same arguments. The kernel makes most
 * other calls again by itself. */
static bool can_repeat(uint64_t call)
{
    static const uint16_t calls[] = {SYS_epoll_wait, SYS_epoll_pwait,     SYS_epoll_pwait2, SYS_semop,
                                     SYS_semtimedop, SYS_rt_sigtimedwait, SYS_recvfrom,     SYS_recvmsg,
                                     SYS_accept,     SYS_accept4,         SYS_read,         SYS_io_uring_enter};

    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
        if (call == calls[i])
            return true;
    return false;
}

static uint64_t signal_set(const char *text, const char *name)
{
    const char *at = strstr(text, name);

    return at ? strtoull(at + strlen(name), NULL, 16) : 0;
}

/* A signal that will be delivered ends the call by itself. If the status cannot be read: true. */
static bool has_signals(pid_t pid, pid_t tid)
{
    char path[64], text[4096];

    snprintf(path, sizeof(path), "/proc/%d/task/%d/status", (int)pid, (int)tid);
    if (etch_process_text(path, text, sizeof(text)) < 0)
        return true;
    return ((signal_set(text, "\nSigPnd:") | signal_set(text, "\nShdPnd:")) & ~signal_set(text, "\nSigBlk:")) != 0;
}

static void repeat_call(pid_t pid, pid_t tid)
{
    struct user_regs_struct r;

    if (ptrace(PTRACE_GETREGS, tid, NULL, &r) < 0 || r.rax != (uint64_t)-EINTR || !can_repeat(r.orig_rax) ||
        has_signals(pid, tid))
        return;
    r.rip -= SYSCALL_SIZE;
    r.rax = r.orig_rax;
    ptrace(PTRACE_SETREGS, tid, NULL, &r);
}

/* A thread of the process that may run: one that the kernel could not stop in time. 0: none. */
static pid_t running_thread(pid_t pid)
{
    struct etch_process_status status;
    struct etch_tids tids = {0};
    pid_t running = 0;

    if (etch_process_threads(pid, &tids) < 0)
        return pid;
    for (size_t i = 0; i < tids.list.n && !running; i++)
        if (etch_process_status(pid, tids.list.v[i], &status) == 0 && !strchr("tZX", status.state))
            running = tids.list.v[i];
    etch_array_free(&tids.list);
    return running;
}

int etch_target_stop_all(struct etch_target *target, struct etch_error *err)
{
    pid_t running;

    if (target->stopped) {
        etch_error_set(err, "process %d is stopped by job control", (int)target->pid);
        return etch_error_advise(err, "kill -CONT %d", (int)target->pid);
    }
    etch_target_hold(target, 0, STOP_MS, false);
    for (size_t i = 0; i < target->threads.n; i++)
        if (target->threads.v[i].held)
            repeat_call(target->pid, target->threads.v[i].tid);
    running = running_thread(target->pid);
    if (!running)
        return 0;
    etch_target_release_held(target);
    return etch_error_set(err, "thread %d of process %d cannot be stopped for a moment: it waits in the kernel",
                          (int)running, (int)target->pid);
}
