/* SPDX-License-Identifier: MIT */
/* Launching, joining and following the recorded program; see target.h. */
#include "collector/target.h"

#include "base/log.h"
#include "base/time.h"
#include "collector/session/guarded.h"
#include "collector/session/process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

#define LAUNCH_TURN_MS 10 /* between two looks whether the process lives that shall become the program */

/* No PTRACE_O_EXITKILL: the program must outlive us. No fork options: children by fork are not recorded. */
#define OPTIONS (PTRACE_O_TRACEEXEC | PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXIT)

static int explain_ptrace(struct etch_error *err, int cause, const char *what, pid_t pid)
{
    struct etch_process_status status;

    etch_error_set_errno(err, cause, "cannot %s process %d", what, (int)pid);
    if (cause == EPERM && etch_process_status(pid, pid, &status) == 0 && status.tracer) {
        char name[32];

        etch_thread_name(status.tracer, status.tracer, name);
        etch_error_set(err, "cannot %s process %d: process %d (%s) traces it already", what, (int)pid,
                       (int)status.tracer, name);
        return etch_error_advise(err, "end that debugger or tracer first; a process can have only one");
    }
    if (cause == EPERM || cause == EACCES)
        return etch_error_advise(err, "run as the same user or as root; sysctl kernel.yama.ptrace_scope=0 for --pid; "
                                      "in a container allow ptrace (--cap-add SYS_PTRACE)");
    if (cause == ENOSYS)
        return etch_error_advise(err, "a seccomp filter forbids ptrace here; run outside of it");
    return -1;
}

/* ---- Threads ---- */

static struct etch_target_thread *find_thread(struct etch_target *target, pid_t tid)
{
    for (size_t i = 0; i < target->threads.n; i++)
        if (target->threads.v[i].tid == tid)
            return &target->threads.v[i];
    return NULL;
}

static struct etch_target_thread *add_thread(struct etch_target *t, pid_t tid, uint64_t start_tsc)
{
    struct etch_target_thread thread = {.tid = tid, .start_tsc = start_tsc};

    if (!etch_array_push(&t->threads, thread))
        return NULL;
    t->threads_seen++;
    return &t->threads.v[t->threads.n - 1];
}

static void remove_thread(struct etch_target *t, pid_t tid)
{
    struct etch_target_thread *thread = find_thread(t, tid);

    if (thread)
        *thread = t->threads.v[--t->threads.n];
}

/* ---- Launch ---- */

/* The child's side, up to exec. The child waits for the tracer's word. If the tracer dies first, the child goes on
 * alone. */
static void become(const struct etch_launch *launch, int go, int report)
{
    char word = 'g';
    ssize_t got;
    int cause;

    do
        got = read(go, &word, 1);
    while (got < 0 && errno == EINTR);
    if (got == 1 && word == 'n')
        _exit(125);
    etch_guarded_forget();
    signal(SIGCHLD, launch->sigchld_ignored ? SIG_IGN : SIG_DFL);
    if (launch->descriptors)
        setrlimit(RLIMIT_NOFILE, launch->descriptors);
    sigprocmask(SIG_SETMASK, launch->signal_mask, NULL);
    execve(launch->path, launch->argv, launch->environment);
    cause = errno;
    if (write(report, &cause, sizeof(cause)) < 0)
        _exit(126);
    _exit(127);
}

/* Kills the process. A traced process stops once more before its end, and is resumed. */
static void put_down(pid_t pid)
{
    int status;

    kill(pid, SIGKILL);
    while (waitpid(pid, &status, __WALL) == pid && WIFSTOPPED(status))
        ptrace(PTRACE_CONT, pid, NULL, NULL);
}

/* Somebody else may kill or stop the child before etch traces it. */
static bool has_died(struct etch_target *t)
{
    t->gone = waitpid(t->pid, &t->wait_status, __WALL | WNOHANG) == t->pid;
    return t->gone;
}

static int cannot_seize(struct etch_target *t, struct etch_error *err)
{
    int cause = errno;

    if (has_died(t))
        return 0;
    explain_ptrace(err, cause, "trace", t->pid);
    put_down(t->pid);
    return -1;
}

/* The pipe closes at a successful exec. The exec is also a ptrace stop, and the pump reports it. Before the exec the
 * child may get signals or be killed. The child then stops with the pipe still open, so that a wait for the pipe alone
 * would never end. */
static int await_exec(struct etch_target *t, int report, const char *path, struct etch_error *err)
{
    struct pollfd poller = {.fd = report, .events = POLLIN};
    int cause = 0;

    while (poll(&poller, 1, LAUNCH_TURN_MS) <= 0) {
        if (etch_target_pump(t, err) < 0)
            return -1;
        if (t->gone)
            return 0;
    }
    if (read(report, &cause, sizeof(cause)) != sizeof(cause))
        return 0;
    put_down(t->pid);
    return etch_error_set_errno(err, cause, "cannot run %s", path);
}

static int let_go(struct etch_target *t, int go, int report, const char *path, struct etch_error *err)
{
    if (ptrace(PTRACE_SEIZE, t->pid, NULL, (void *)(uintptr_t)OPTIONS) < 0)
        return cannot_seize(t, err);
    if (write(go, "g", 1) != 1 && errno != EPIPE) { /* EPIPE: the child is dead; the pump will report its death */
        etch_error_set_errno(err, errno, "cannot start %s", path);
        put_down(t->pid);
        return -1;
    }
    return await_exec(t, report, path, err);
}

int etch_target_launch(struct etch_target *target, const struct etch_launch *launch, struct etch_error *err)
{
    int go[2], report[2], status;

    if (pipe2(go, O_CLOEXEC) < 0)
        return etch_error_set_errno(err, errno, "cannot make a pipe");
    if (pipe2(report, O_CLOEXEC) < 0) {
        close(go[0]);
        close(go[1]);
        return etch_error_set_errno(err, errno, "cannot make a pipe");
    }
    target->launched = true;
    target->pid = fork();
    if (target->pid == 0) {
        close(go[1]);
        close(report[0]);
        become(launch, go[0], report[1]);
    }
    close(go[0]);
    close(report[1]);
    if (target->pid < 0) {
        status = etch_error_set_errno(err, errno, "cannot start a process");
    } else if (!add_thread(target, target->pid, __rdtsc())) {
        put_down(target->pid);
        status = etch_error_no_memory(err);
    } else {
        status = let_go(target, go[1], report[0], launch->path, err);
    }
    close(go[1]);
    close(report[0]);
    return status;
}

/* ---- Join ---- */

/* Seizes the threads not yet known. Returns how many, or -1. */
static int seize_new(struct etch_target *t, struct etch_error *err)
{
    struct etch_tids tids;
    int seized = 0;

    if (etch_process_threads(t->pid, &tids) < 0)
        return etch_error_set(err, "there is no process %d", (int)t->pid);
    for (size_t i = 0; i < tids.list.n; i++) {
        pid_t tid = tids.list.v[i];

        if (find_thread(t, tid))
            continue;
        if (ptrace(PTRACE_SEIZE, tid, NULL, (void *)(uintptr_t)OPTIONS) == 0) {
            if (!add_thread(t, tid, 0))
                seized = -1;
            seized++;
        } else if (errno != ESRCH && !(errno == EPERM && t->threads.n)) {
            /* EPERM on a later thread: a seized thread has just made this thread, and etch traces it already. */
            seized = explain_ptrace(err, errno, "trace", t->pid);
            break;
        }
    }
    etch_array_free(&tids.list);
    return seized;
}

int etch_target_attach(struct etch_target *target, pid_t pid, struct etch_error *err)
{
    struct etch_process_status status;
    int seized;

    if (etch_process_status(pid, pid, &status) < 0)
        return etch_error_set(err, "there is no process %d", (int)pid);
    if (status.tracer)
        return explain_ptrace(err, EPERM, "trace", pid);
    target->pid = status.pid;
    target->started = true;
    do
        seized = seize_new(target, err);
    while (seized > 0);
    return seized;
}

/* ---- Following ---- */

static void resume(pid_t tid, int signal)
{
    if (ptrace(PTRACE_CONT, tid, NULL, (void *)(uintptr_t)(unsigned)signal) < 0 && errno != ESRCH)
        etch_log(ETCH_LOG_SESSION, ETCH_LOG_WARN, "cannot let thread %d go on: %s", (int)tid, strerror(errno));
}

static void know_thread(struct etch_target *t, pid_t tid, pid_t parent)
{
    struct etch_target_thread *thread = find_thread(t, tid);
    bool is_new = !thread;

    if (is_new)
        thread = add_thread(t, tid, __rdtsc());
    if (!thread)
        return;
    if (parent)
        thread->parent = parent;
    if (is_new && t->watcher.thread_start)
        t->watcher.thread_start(t->watcher.context, t, thread);
}

static int on_exec(struct etch_target *t, struct etch_error *err)
{
    bool first = !t->started;

    t->started = true;
    for (size_t i = t->threads.n; i-- > 0;) /* the others are gone, some without a word */
        if (t->threads.v[i].tid != t->pid)
            remove_thread(t, t->threads.v[i].tid);
    if (!t->watcher.exec || t->watcher.exec(t->watcher.context, t, first) == 0) {
        resume(t->pid, 0);
        return 0;
    }
    (void)err; /* the watcher has it */
    t->given_up = true;
    put_down(t->pid); /* before its first instruction: nobody will miss it */
    t->gone = true;
    return -1;
}

static void on_thread_exit(struct etch_target *t, pid_t tid)
{
    struct etch_target_thread *thread = find_thread(t, tid);
    unsigned long status = 0;

    ptrace(PTRACE_GETEVENTMSG, tid, NULL, &status);
    if (t->started && thread && t->watcher.thread_exit)
        t->watcher.thread_exit(t->watcher.context, t, thread, (int)status);
    resume(tid, 0);
}

static bool is_stop_signal(int signal)
{
    return signal == SIGSTOP || signal == SIGTSTP || signal == SIGTTIN || signal == SIGTTOU;
}

static void note_begun(struct etch_target *t, pid_t tid)
{
    struct etch_target_thread *thread = find_thread(t, tid);

    if (thread)
        thread->begun = true;
}

/* Resumes a new thread before its maker goes on. Otherwise the maker would gain the time until etch looks again, and
 * would win races that it loses without etch. Any other event of the new thread stays in the kernel's list. */
static void let_begin(struct etch_target *t, pid_t tid)
{
    const struct etch_target_thread *thread = find_thread(t, tid);
    siginfo_t info = {0};
    int status = 0;

    if (!thread || thread->begun || waitid(P_PID, (id_t)tid, &info, WEXITED | WSTOPPED | WNOWAIT | __WALL) < 0)
        return;
    if (info.si_code != CLD_TRAPPED || info.si_status >> 8 != PTRACE_EVENT_STOP ||
        is_stop_signal(info.si_status & 0xff) || waitpid(tid, &status, __WALL | WNOHANG) != tid)
        return;
    note_begun(t, tid);
    resume(tid, 0);
}

/* A stop that is an event of ptrace's, taken from the kernel's list already. */
static int on_event(struct etch_target *t, pid_t tid, int event, int signal, struct etch_error *err)
{
    unsigned long child = 0;

    switch (event) {
    case PTRACE_EVENT_EXEC:
        return on_exec(t, err);
    case PTRACE_EVENT_CLONE:
        if (ptrace(PTRACE_GETEVENTMSG, tid, NULL, &child) == 0 && child) {
            know_thread(t, (pid_t)child, tid);
            let_begin(t, (pid_t)child);
        }
        resume(tid, 0);
        return 0;
    case PTRACE_EVENT_EXIT:
        on_thread_exit(t, tid);
        return 0;
    case PTRACE_EVENT_STOP:
        know_thread(t, tid, 0);
        note_begun(t, tid);
        if (tid == t->pid)
            t->stopped = is_stop_signal(signal);
        if (!is_stop_signal(signal)) {
            resume(tid, 0);
            return 0;
        }
        ptrace(PTRACE_LISTEN, tid, NULL, NULL);
        if (tid == t->pid && t->watcher.stopped)
            t->watcher.stopped(t->watcher.context, t, signal);
        return 0;
    default:
        resume(tid, 0);
        return 0;
    }
}

bool etch_trap_is_ours(const siginfo_t *info)
{
    return info->si_signo == SIGTRAP &&
           (info->si_code == ETCH_TRAP_PERF || info->si_code == TRAP_BRKPT || info->si_code == TRAP_HWBKPT);
}

/* A signal is about to be delivered. The stop stays in the kernel's list (WNOWAIT) until etch passes the signal on: if
 * etch is killed in between, the kernel delivers the signal as without a tracer. A signal that etch itself caused is
 * taken from the list first, so that the signal is lost if etch is killed. */
static void on_signal(struct etch_target *t, pid_t tid, int signal)
{
    siginfo_t info = {0};
    bool swallow = false;

    if (ptrace(PTRACE_GETSIGINFO, tid, NULL, &info) < 0)
        info.si_signo = signal;
    if (etch_trap_is_ours(&info))
        waitpid(tid, NULL, __WALL | WNOHANG);
    if (t->started && t->watcher.signal)
        swallow = t->watcher.signal(t->watcher.context, t, tid, &info);
    resume(tid, swallow ? 0 : signal);
}

static void on_end(struct etch_target *t, pid_t tid)
{
    int status = 0;
    struct rusage usage;

    if (wait4(tid, &status, __WALL | WNOHANG, &usage) != tid)
        return;
    remove_thread(t, tid);
    if (tid != t->pid)
        return;
    t->gone = true;
    t->wait_status = status;
    t->usage = usage;
    t->usage_known = true;
}

int etch_target_pump(struct etch_target *target, struct etch_error *err)
{
    for (;;) {
        siginfo_t info = {0};
        pid_t tid;
        int stop, event;

        if (waitid(P_ALL, 0, &info, WEXITED | WSTOPPED | WNOHANG | WNOWAIT | __WALL) < 0 || info.si_pid == 0)
            return 0;
        tid = info.si_pid;
        if (info.si_code != CLD_TRAPPED && info.si_code != CLD_STOPPED) {
            on_end(target, tid);
            continue;
        }
        stop = info.si_status & 0xff;
        event = info.si_status >> 8;
        if (event == 0) {
            on_signal(target, tid, stop);
            continue;
        }
        waitpid(tid, NULL, __WALL | WNOHANG);
        if (on_event(target, tid, event, stop, err) < 0)
            return -1;
    }
}

/* ---- Holding ---- */

static uint64_t now_ms(void)
{
    return etch_time_ns() / 1000000;
}

/* Returns true if the thread has stopped. A stop for a signal or for the thread's end stays in the kernel's list, for
 * the pump. */
static bool has_stopped(pid_t tid, bool *ours)
{
    siginfo_t info = {0};

    *ours = false;
    if (waitid(P_PID, (id_t)tid, &info, WEXITED | WSTOPPED | WNOHANG | WNOWAIT | __WALL) < 0 || info.si_pid == 0)
        return false;
    *ours = info.si_code == CLD_TRAPPED && info.si_status >> 8 == PTRACE_EVENT_STOP;
    if (*ours)
        waitpid(tid, NULL, __WALL | WNOHANG);
    return true;
}

static bool is_unnoticed(pid_t pid, pid_t tid)
{
    struct etch_thread_wait wait;

    etch_thread_wait(pid, tid, &wait);
    return !wait.call_plus_1 || wait.call_plus_1 == SYS_futex + 1 || wait.call_plus_1 == SYS_nanosleep + 1 ||
           wait.call_plus_1 == SYS_clock_nanosleep + 1 || wait.call_plus_1 == SYS_sched_yield + 1;
}

void etch_target_hold(struct etch_target *target, pid_t except, unsigned ms, bool gently)
{
    uint64_t until = now_ms() + ms;
    size_t waiting = 0;
    ETCH_ARRAY(pid_t) todo = {0};

    for (size_t i = 0; i < target->threads.n; i++) {
        pid_t tid = target->threads.v[i].tid;

        if (tid != except && (!gently || is_unnoticed(target->pid, tid)) &&
            ptrace(PTRACE_INTERRUPT, tid, NULL, NULL) == 0 && etch_array_push(&todo, tid))
            waiting++;
    }
    while (waiting && now_ms() < until) {
        for (size_t i = 0; i < todo.n; i++) {
            bool ours;

            if (todo.v[i] && has_stopped(todo.v[i], &ours)) {
                struct etch_target_thread *thread = find_thread(target, todo.v[i]);

                if (thread)
                    thread->held = ours;
                todo.v[i] = 0;
                waiting--;
            }
        }
        if (waiting)
            nanosleep(&(struct timespec){0, 50000}, NULL);
    }
    etch_array_free(&todo);
}

void etch_target_release_held(struct etch_target *target)
{
    for (size_t i = 0; i < target->threads.n; i++)
        if (target->threads.v[i].held) {
            target->threads.v[i].held = false;
            resume(target->threads.v[i].tid, 0);
        }
}

void etch_target_free(struct etch_target *target)
{
    etch_array_free(&target->threads);
}
