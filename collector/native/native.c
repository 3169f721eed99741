/* SPDX-License-Identifier: MIT */
/* Recording a program on this CPU itself; see native.h. */
#include "collector/native/native.h"
#include "base/time.h"
#include "collector/native/arm.h"
#include "collector/native/hang.h"
#include "collector/native/launch.h"
#include "collector/native/watch_list.h"
#include "collector/session/host.h"
#include "collector/session/records.h"
#include "collector/session/signals.h"
#include "collector/sync/exception.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

#define TICK_MS 100           /* between two looks at the rings */
#define IDLE_TICK_MS 1000     /* where there are none: the watchdog wants to see us move */
#define CONTINUE_NS 30000000u /* SIGCONT to the whole group reaches the program within this */
#define BUSY_TICK_MS 2        /* while the synchronisation rings fill fast */
#define TRACER_STACK (8u << 20)
#define POLL_MAX 4096

/* ---- Control flow ---- */

int etch_native_flow_start(struct native *n, struct etch_error *err)
{
    bool joins = n->options->pid && n->flow && n->flow->join;

    n->flow_started = n->flow != NULL;
    if (joins && n->flow->join(n->flow_state, &n->target, err) < 0)
        return -1;
    if (n->flow && !joins && n->flow->start(n->flow_state, n->target.pid, err) < 0)
        return -1;
    n->followed = true;
    return 0;
}

/* ---- What the target does ---- */

static int on_exec(void *context, struct etch_target *target, bool first)
{
    struct native *n = context;

    if (first) {
        n->recorder.start_tsc = __rdtsc();
        etch_native_write_program(n);
        etch_native_write_images(n);
        if (etch_native_arm(n, n->err) < 0 || etch_native_flow_start(n, n->err) < 0)
            return -1;
        etch_watchdog_set_target(n->watchdog, n->target.pid); /* now: what was done so far may take its time */
        return 0;
    }
    (void)target;
    n->became_another = true;
    etch_native_drain(n, false);
    for (size_t i = 0; i < n->n_list && n->watches; i++)
        n->list[i].counted += etch_watches_count(n->watches, (uint32_t)i);
    if (n->watches && n->n_list) {
        etch_watches_disarm_all(n->watches);
        etch_recorder_note(&n->recorder, "the program became another by exec; its watches ended there");
    }
    n->images.n = 0;
    etch_native_write_images(n);
    return 0;
}

static void on_thread_start(void *context, struct etch_target *target, const struct etch_target_thread *thread)
{
    (void)context;
    (void)target;
    (void)thread;
}

void etch_native_capture(struct native *n, Etch__FailureKind kind, pid_t tid, const siginfo_t *signal, bool hold,
                         const char *words)
{
    struct etch_failure failure;
    struct etch_error err;

    if (n->failure_written)
        return;
    if (n->flow && n->flow->freeze)
        n->flow->freeze(n->flow_state);
    etch_native_drain(n, false);
    if (etch_failure_capture(&failure, &n->target, kind, tid, signal, hold, n->options->keep_stack, words, &err) == 0) {
        if (n->sync && tid)
            failure.record.exception = etch_sync_exception(etch_sync_reader_memory(n->sync), (uint32_t)tid);
        etch_native_write_failure(n, &failure);
    }
    etch_failure_release(&failure);
}

static void on_thread_exit(void *context, struct etch_target *target, const struct etch_target_thread *thread,
                           int wait_status)
{
    struct native *n = context;

    if (n->options->fail_on_exit && WIFEXITED(wait_status) && WEXITSTATUS(wait_status))
        etch_native_capture(n, ETCH__FAILURE_KIND__FAILURE_EXIT, thread->tid, NULL, false, "");
    if (thread->tid == target->pid || target->threads.n == 1)
        etch_native_write_images(n); /* the last chance to see the libraries */
    etch_native_write_thread(n, thread, true);
}
/* On some virtual machines a debug trap rarely arrives without its cause. The kernel knows no owner of the trap and
 * sends a signal that would end the program. An int1 instruction of the program looks the same, except for its byte
 * 0xf1. The byte lies before the instruction pointer, or at the instruction pointer if the virtual machine did not step
 * over it. */
static bool is_stray_trap(const struct native *n, pid_t tid, const siginfo_t *info)
{
    struct user_regs_struct r;
    long word;

    if (!n->watches || !etch_trap_is_ours(info) || ptrace(PTRACE_GETREGS, tid, NULL, &r) < 0)
        return false;
    errno = 0;
    word = ptrace(PTRACE_PEEKTEXT, tid, (void *)(uintptr_t)(r.rip - 1), NULL);
    return errno != 0 || ((word & 0xff) != 0xf1 && (word >> 8 & 0xff) != 0xf1);
}

static bool on_signal(void *context, struct etch_target *target, pid_t tid, const siginfo_t *info)
{
    struct native *n = context;
    struct etch_process_status status;
    int number = info->si_signo;

    if (number == SIGTRAP && info->si_code == ETCH_TRAP_PERF)
        return etch_native_arrive(n, tid);
    if (is_stray_trap(n, tid, info)) {
        etch_native_write_loss(n, ETCH__LOSS_CAUSE__LOSS_SIDEBAND, 0, (uint32_t)tid, 1,
                               "a debug trap came without its cause: an access was not recorded");
        return true;
    }
    etch_signals_seen(n->signals, info);
    if (etch_signal_is_failure(number) && etch_process_status(target->pid, tid, &status) == 0 &&
        etch_signal_is_fatal(&status, number))
        etch_native_capture(n, ETCH__FAILURE_KIND__FAILURE_SIGNAL, tid, info, true, "");
    return false;
}

/* After Ctrl-Z the shell waits for etch, so that etch stops as well; SIGCONT goes to the whole group. After SIGSTOP to
 * the program alone, the sender must resume the program, and etch must be awake for this. */
static void on_stopped(void *context, struct etch_target *target, int signal)
{
    struct native *n = context;

    if (!target->launched || signal == SIGSTOP || getpgid(target->pid) != getpgrp())
        return;
    etch_watchdog_rest(n->watchdog, true);
    raise(SIGSTOP); /* to this thread: another thread could take a signal to the process, and this thread would go on */
    etch_watchdog_rest(n->watchdog, false);
    n->continue_due_ns = etch_time_ns() + CONTINUE_NS;
}

/* Somebody may have resumed etch alone. SIGCONT is passed on only if the program did not get its own: it would undo a
 * Ctrl-Z that came meanwhile. */
static void pass_on_continue(struct native *n)
{
    if (!n->continue_due_ns || (n->target.stopped && etch_time_ns() < n->continue_due_ns))
        return;
    n->continue_due_ns = 0;
    if (n->target.stopped)
        kill(n->target.pid, SIGCONT);
}

/* ---- Running ---- */

struct loop {
    struct etch_signals signals;
    struct rlimit files_before;
    bool finish; /* leave a joined process */
    struct native_hang hang;
    struct pollfd *fds;
};

static int prepare_loop(struct loop *l, struct etch_error *err)
{
    struct rlimit files;

    if (etch_signals_take(&l->signals, false, err) < 0)
        return -1;
    getrlimit(RLIMIT_NOFILE, &l->files_before);
    files = l->files_before;
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    l->fds = calloc(POLL_MAX, sizeof(*l->fds));
    return l->fds ? 0 : etch_error_set_errno(err, ENOMEM, "cannot record");
}

static void release_loop(struct loop *l)
{
    if (l->files_before.rlim_max)
        setrlimit(RLIMIT_NOFILE, &l->files_before);
    free(l->fds);
    etch_signals_give_back(&l->signals);
}

static int next_wait_ms(const struct native *n)
{
    if (etch_signals_wait(n->signals) || n->continue_due_ns)
        return 10;
    if (n->watches || n->sync || n->flow || n->options->hang_s > 0 || n->options->wall_s > 0)
        return n->busy ? BUSY_TICK_MS : TICK_MS;
    return IDLE_TICK_MS;
}

static int follow(struct native *n, struct loop *l, struct etch_error *err)
{
    l->hang.started_ns = l->hang.ran_changed_ns = etch_time_ns();
    while (!n->target.gone && !l->finish) {
        size_t fds = 1;

        etch_watchdog_beat(n->watchdog);
        n->starved = etch_watchdog_barked(n->watchdog);
        if (n->starved)
            break;
        if (etch_target_pump(&n->target, err) < 0)
            return -1;
        if (n->target.gone)
            break;
        pass_on_continue(n);
        l->fds[0] = (struct pollfd){.fd = l->signals.fd, .events = POLLIN};
        if (n->watches)
            fds += etch_watches_poll(n->watches, l->fds + 1, POLL_MAX - 1);
        if (n->flow && n->flow->poll)
            fds += n->flow->poll(n->flow_state, l->fds + fds, POLL_MAX - fds);
        if (poll(l->fds, fds, next_wait_ms(n)) < 0 && errno != EINTR)
            return etch_error_set_errno(err, errno, "cannot wait");
        l->finish |= etch_signals_read(&l->signals, n->target.launched ? n->target.pid : 0);
        etch_signals_pass_on(&l->signals, n->target.pid);
        etch_native_drain(n, false);
        if (n->flow && n->flow->drain)
            n->flow->drain(n->flow_state);
        l->finish |= etch_native_hang_check(n, &l->hang, etch_time_ns());
    }
    return 0;
}

/* ---- Tracing ---- */

static int begin(struct native *n, struct loop *l, struct etch_error *err)
{
    return n->options->pid ? etch_native_join(n, err) : etch_native_launch(n, &l->signals, &l->files_before, err);
}

struct tracing {
    struct native *n;
    struct loop *loop;
    struct etch_error *err;
    int status;
};

/* The tracer is a thread of its own. When this thread ends, the kernel detaches all traced threads without a stop,
 * whatever they do. */
static void *trace(void *context)
{
    struct tracing *t = context;
    struct native *n = t->n;

    t->status = begin(n, t->loop, t->err) < 0 || follow(n, t->loop, t->err) < 0 ? -1 : 0;
    etch_native_leave_sites(n, t->err);
    if (n->options->pid && n->followed && !n->target.gone && n->flow && n->flow->leave)
        n->flow->leave(n->flow_state, &n->target);
    return NULL;
}

static int trace_apart(struct native *n, struct loop *l, struct etch_error *err)
{
    struct tracing t = {.n = n, .loop = l, .err = err, .status = -1};
    pthread_attr_t attributes;
    pthread_t thread;
    int cause;

    n->watchdog = n->recorder.watchdog = etch_watchdog_start();
    if (!n->watchdog)
        etch_recorder_note(&n->recorder, "no process for a watchdog: while etch is stopped, so is the program");
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, TRACER_STACK);
    cause = pthread_create(&thread, &attributes, trace, &t);
    pthread_attr_destroy(&attributes);
    if (cause == 0)
        pthread_join(thread, NULL);
    else
        etch_error_set_errno(err, cause, "cannot make a thread");
    etch_watchdog_end(n->watchdog);
    n->watchdog = n->recorder.watchdog = NULL;
    return t.status;
}

/* The program goes on without a tracer, and etch waits for it as a parent. Etch stops again first, because somebody had
 * stopped etch. Etch ends with the program. */
static void wait_untraced(struct native *n, struct loop *l)
{
    if (!n->starved || !n->target.launched)
        return;
    raise(SIGSTOP);
    for (;;) {
        siginfo_t info;
        pid_t done = waitpid(n->target.pid, &n->summary->status, WNOHANG);

        if (done == n->target.pid || (done < 0 && errno != EINTR))
            break;
        if (sigtimedwait(&l->signals.mask, &info, &(struct timespec){.tv_nsec = TICK_MS * 1000000l}) > 0 &&
            info.si_signo != SIGCHLD && info.si_signo != SIGPIPE && info.si_code == SI_USER)
            kill(n->target.pid, info.si_signo);
    }
    n->summary->left_running = false;
}

/* ---- The end ---- */

static void write_outcome(struct native *n)
{
    const struct etch_ending ending = {.gone = n->target.gone,
                                       .wait_status = n->target.wait_status,
                                       .unix_ns = etch_unix_ns(),
                                       .tsc = __rdtsc(),
                                       .cpu_ns = n->target.usage_known ? etch_rusage_ns(&n->target.usage) : 0};

    etch_recorder_write_outcome(&n->recorder, &ending);
    n->summary->hit_ns = n->watches ? etch_watches_hit_ns(n->watches) : 0;
}

static void conclude(struct native *n)
{
    if (n->flow)
        n->flow->stop(n->flow_state);
    if (!n->target.gone) {
        etch_native_write_images(n);
        for (size_t i = 0; i < n->target.threads.n; i++)
            etch_native_write_thread(n, &n->target.threads.v[i], false);
    }
    etch_native_drain(n, true);
    etch_recorder_write_beyond(&n->recorder);
    if (n->starved)
        etch_native_write_loss(n, ETCH__LOSS_CAUSE__LOSS_STARVED, 0, 0, 1,
                               "etch was stopped while the program waited for it, and let go of the program");
    etch_native_watches_account(n);
    if (n->sync && !etch_sync_reader_joined(n->sync))
        etch_recorder_note(&n->recorder, "no synchronisation events: etch-sync.so did not come up in the program");
    if (n->watches && !etch_watches_see_kernel(n->watches))
        etch_recorder_note(&n->recorder,
                           "accesses by the kernel for the program (read(2) into it) were not seen: needs CAP_PERFMON");
    n->summary->threads += n->target.threads_seen;
    n->summary->processes++;
    n->summary->status = n->target.wait_status;
    n->summary->left_running = !n->target.gone;
    write_outcome(n); /* first: what follows is not part of the run */
    etch_native_write_clock(n, ETCH__CLOCK_PHASE__CLOCK_AFTER);
}

static int run(struct native *n, struct loop *l, struct etch_error *err)
{
    if (etch_host_write(&n->recorder, err) < 0)
        return -1;
    etch_clock_pairs_take(&n->first_pair, 1, CLOCK_MONOTONIC_RAW, 0);
    etch_native_write_clock(n, ETCH__CLOCK_PHASE__CLOCK_BEFORE);
    etch_recorder_begin(&n->recorder);
    if (trace_apart(n, l, err) < 0)
        return -1;
    if (!n->program_written)
        etch_native_write_program(n); /* the program was killed before its start */
    conclude(n);
    etch_recorder_finish(&n->recorder);
    wait_untraced(n, l);
    return 0;
}

int etch_native_record(const struct etch_record_options *options, const struct etch_source *flow,
                       struct etch_record_summary *summary, struct etch_error *err)
{
    struct native *n = calloc(1, sizeof(*n));
    struct loop loop = {0};
    int status = -1;

    if (!n)
        return etch_error_no_memory(err);
    n->options = options;
    n->summary = summary;
    n->err = err;
    n->signals = &loop.signals;
    n->target.watcher =
        (struct etch_target_watcher){n, on_exec, on_thread_start, on_thread_exit, on_signal, on_stopped};
    n->flow = flow;
    etch_recorder_init(&n->recorder, options->max_size, summary);
    summary->source = flow ? flow->name : "none";
    if (etch_native_watches_choose(n, err) == 0 &&
        (!flow || flow->open(&n->flow_state, options, &n->recorder.sink, err) == 0)) {
        etch_native_set_choose(n);
        if (etch_recorder_create(&n->recorder, options->output, options->privacy, err) == 0) {
            if (prepare_loop(&loop, err) == 0)
                status = run(n, &loop, err);
            release_loop(&loop);
            etch_recorder_close(&n->recorder, status == 0 || n->followed);
        }
    }
    etch_calibration_free(&n->calibration);
    if (flow)
        flow->close(n->flow_state);
    etch_watches_free(n->watches);
    etch_sync_reader_free(n->sync);
    etch_target_free(&n->target);
    etch_array_free(&n->images);
    etch_mappings_release(&n->mapped);
    etch_array_free(&n->libraries);
    free(n);
    return status;
}
