/* SPDX-License-Identifier: MIT */
/* One run of a program under a source that starts the program itself; see source.h. */
#include "collector/session/run.h"
#include "base/time.h"
#include "collector/clock_record.h"
#include "collector/privacy.h"
#include "collector/session/host.h"
#include "collector/session/outcome.h"
#include "collector/vpt/exec.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

#define TURN_MS 20u
#define CALIBRATION_NS 500000000u

/* ---- The program ---- */

static int examine_program(struct etch_recorder *r, struct etch_error *err)
{
    struct vpt_exec exec;
    struct etch_error ignored;
    char absolute[sizeof(r->program)] = "";

    if (!vpt_exec_can_follow(r->program, &exec)) {
        etch_error_set(err, "cannot record %s: it is not an x86-64 program or a script that one runs", r->program);
        return etch_error_advise(err, "a 64-bit ELF file without set-user-id; file %s says what it is", r->program);
    }
    memcpy(r->interpreter, exec.interpreter, sizeof(r->interpreter));
    memcpy(r->interpreter_argument, exec.argument, sizeof(r->interpreter_argument));
    if (!exec.interpreter[0] && realpath(r->program, absolute))
        memcpy(r->program, absolute, sizeof(r->program));
    return etch_elf_read(&r->elf, exec.interpreter[0] ? exec.interpreter : r->program, &ignored) == 0
               ? 0
               : etch_error_set(err, "%s", ignored.what);
}

static int write_program(struct etch_recorder *r, uint64_t start_ns, uint64_t start_tsc, struct etch_error *err)
{
    Etch__Program program = ETCH__PROGRAM__INIT;
    Etch__Record record = ETCH__RECORD__INIT;
    char cwd[4096];

    program.etch_version = (char *)(uintptr_t)ETCH_VERSION;
    program.argv = (char **)(uintptr_t)r->options->argv;
    while (r->options->argv[program.n_argv])
        program.n_argv++;
    program.exe = r->interpreter[0] ? r->interpreter : r->program;
    program.build_id.data = r->elf.build_id;
    program.build_id.len = r->elf.build_id_size;
    program.cwd = getcwd(cwd, sizeof(cwd)) ? cwd : (char *)(uintptr_t)"";
    program.pid = (uint32_t)r->pid;
    program.start_unix_ns = start_ns;
    program.start_tsc = start_tsc;
    program.source = r->source->id;
    record.body_case = ETCH__RECORD__BODY_PROGRAM;
    record.program = &program;
    return etch_bundle_write(r->bundle, &record, err);
}

/* ---- Launch and wait ---- */

static _Noreturn void become_target(struct etch_recorder *r, int report)
{
    int cause;

    etch_signals_give_back(&r->signals);
    r->source->launch(r);
    cause = errno;
    if (write(report, &cause, sizeof(cause)) < 0)
        _exit(126);
    _exit(127);
}

/* Starts the program and waits until the exec closes a pipe. */
static int launch(struct etch_recorder *r, struct etch_error *err)
{
    int ends[2], cause = 0;
    ssize_t got;

    if (pipe2(ends, O_CLOEXEC) < 0)
        return etch_error_set_errno(err, errno, "cannot start %s", r->program);
    r->pid = fork();
    if (r->pid < 0) {
        close(ends[0]);
        close(ends[1]);
        r->pid = 0;
        return etch_error_set_errno(err, errno, "cannot start %s", r->program);
    }
    if (r->pid == 0)
        become_target(r, ends[1]);
    close(ends[1]);
    do
        got = read(ends[0], &cause, sizeof(cause));
    while (got < 0 && errno == EINTR);
    close(ends[0]);
    if (got != sizeof(cause))
        return 0;
    waitpid(r->pid, NULL, 0);
    r->pid = 0;
    return etch_error_set_errno(err, cause, "cannot start %s", r->program);
}

/* SIGKILL, because a handler could unwind the stack that we want to see. */
static void enforce_limit(struct etch_recorder *r, double began)
{
    if (r->options->wall_s <= 0 || r->summary->out_of_time || etch_time_seconds() - began < r->options->wall_s)
        return;
    r->summary->out_of_time = true;
    kill(r->pid, SIGKILL);
}

/* Until the program ends. `status` is -1 if nothing can be recorded already. A bundle that cannot be written any more
 * does not disturb the program. */
static int follow(struct etch_recorder *r, int status, struct etch_error *err)
{
    double began = etch_time_seconds();

    for (;;) {
        pid_t done = waitpid(r->pid, &r->summary->status, WNOHANG);

        if (done == r->pid)
            break;
        if (done < 0 && errno != EINTR)
            return etch_error_set_errno(err, errno, "cannot wait for %s", r->program);
        enforce_limit(r, began);
        etch_signals_read(&r->signals, r->pid);
        etch_signals_pass_on(&r->signals, r->pid);
        if (status == 0 && done == 0)
            status = r->source->drain(r, TURN_MS, err);
        else if (status < 0)
            usleep(TURN_MS * 1000u);
    }
    return status;
}

/* ---- The end ---- */

static int write_limit(struct etch_recorder *r, struct etch_error *err)
{
    Etch__Loss loss = ETCH__LOSS__INIT;
    char detail[120];

    return etch_limit_loss(&r->limit, r->options->max_size, &loss, detail) ? etch_recorder_write_loss(r, &loss, err)
                                                                           : 0;
}

static int write_failure(struct etch_recorder *r, struct etch_error *err)
{
    Etch__Failure failure = ETCH__FAILURE__INIT;
    Etch__Record record = ETCH__RECORD__INIT;
    struct etch_record_summary *s = r->summary;
    char message[80];

    /* An exit status is a failure only if it is not 0 and the process or its child had a fault before. With `subject`
     * the status does not count: the process is then only a launcher of the program in question. */
    if (!WIFSIGNALED(s->status) && !(r->failure.seen && r->failure.signal &&
                                     (WEXITSTATUS(s->status) || (r->options->subject && r->failure.deadly))))
        return 0;
    failure.kind = ETCH__FAILURE_KIND__FAILURE_SIGNAL;
    failure.signal = WIFSIGNALED(s->status) ? (uint32_t)WTERMSIG(s->status) : r->failure.signal;
    failure.pid = WIFSIGNALED(s->status) ? (uint32_t)r->pid : r->failure.pid;
    if (r->failure.seen && r->failure.caught && r->failure.pid == failure.pid) {
        failure.signal = r->failure.signal;
        snprintf(message, sizeof(message),
                 WIFSIGNALED(s->status) ? "caught by a handler; then signal %d"
                                        : "caught by a handler; then exit status %d",
                 WIFSIGNALED(s->status) ? WTERMSIG(s->status) : WEXITSTATUS(s->status));
        failure.message = message;
    } else if (!WIFSIGNALED(s->status) && r->failure.pid != (uint32_t)r->pid) {
        failure.message = (char *)(uintptr_t)"in a child process";
    }
    if (r->failure.seen && r->failure.pid == failure.pid) {
        failure.tid = r->failure.tid;
        failure.ip = r->failure.ip;
        failure.tsc = r->failure.tsc;
        failure.fault_address = r->failure.address;
        failure.code = r->failure.code;
        failure.exception = r->exception;
    }
    etch_failure_sum_up(s, &failure, r->failure.address_known);
    record.body_case = ETCH__RECORD__BODY_FAILURE;
    record.failure = &failure;
    return etch_bundle_write(r->bundle, &record, err);
}

static int write_outcome(struct etch_recorder *r, uint64_t end_ns, uint64_t end_tsc, struct etch_error *err)
{
    Etch__Outcome outcome = ETCH__OUTCOME__INIT;
    Etch__Record record = ETCH__RECORD__INIT;

    etch_outcome_set(&outcome, r->summary->status);
    outcome.end_unix_ns = end_ns;
    outcome.end_tsc = end_tsc;
    outcome.cpu_ns = etch_cpu_ns(RUSAGE_CHILDREN);
    outcome.recorder_cpu_ns = etch_cpu_ns(RUSAGE_SELF);
    record.body_case = ETCH__RECORD__BODY_OUTCOME;
    record.outcome = &outcome;
    return etch_bundle_write(r->bundle, &record, err);
}

/* Writes the clock record that orders accesses across CPUs, before the run and again after the run. A machine whose
 * clocks cannot be measured gets no record, and its accesses stay unordered. `first` is NULL before the run. After the
 * run `first` is the measurement from before. */
static int write_clock(struct etch_recorder *r, struct etch_calibration *calibration,
                       const struct etch_calibration *first, struct etch_error *err)
{
    const struct etch_record_options *o = r->options;
    Etch__Record record = ETCH__RECORD__INIT;
    Etch__Clock *measured = NULL;
    int status = 0;

    if (!o->clock && o->n_watches && (!first || first->n_pairs))
        measured = etch_clock_measure(calibration, first, CALIBRATION_NS, true);
    record.body_case = ETCH__RECORD__BODY_CLOCK;
    record.clock = !first && o->clock ? (Etch__Clock *)(uintptr_t)o->clock : measured;
    if (record.clock)
        status = etch_bundle_write(r->bundle, &record, err);
    if (measured)
        etch__clock__free_unpacked(measured, NULL);
    return status;
}

/* The run itself, between the two measurements. */
static int follow_run(struct etch_recorder *r, const struct etch_calibration *first, struct etch_error *err)
{
    uint64_t start_ns = etch_unix_ns(), start_tsc = __rdtsc(), end_ns, end_tsc;
    struct etch_calibration last = {0};
    int status;

    if (launch(r, err) < 0)
        return -1;
    if (follow(r, write_program(r, start_ns, start_tsc, err), err) < 0)
        return -1;
    end_ns = etch_unix_ns();
    end_tsc = __rdtsc();
    if (r->source->never_ran(r, err) || r->source->finish(r, err) < 0 || write_limit(r, err) < 0 ||
        write_failure(r, err) < 0 || write_outcome(r, end_ns, end_tsc, err) < 0)
        return -1;
    status = write_clock(r, &last, first, err);
    etch_calibration_free(&last);
    return status < 0 ? -1 : etch_bundle_finish(r->bundle, err);
}

static int run(struct etch_recorder *r, struct etch_error *err)
{
    struct etch_calibration first = {0};
    int status = -1;

    if (etch_host_write(r->bundle, err) == 0 && write_clock(r, &first, NULL, err) == 0)
        status = follow_run(r, &first, err);
    etch_calibration_free(&first);
    return status;
}

static bool ran(const struct etch_recorder *r)
{
    return r->pid && etch_bundle_ledger(r->bundle)->streams.n > 0;
}

/* Records a program under a source that needs QEMU; see flow.h for programs that run on the CPU itself. */
int etch_run_record(const struct etch_source *source, const struct etch_record_options *options,
                    struct etch_record_summary *summary, struct etch_error *err)
{
    struct etch_recorder *r = calloc(1, sizeof(*r));
    int status = -1;

    if (!r)
        return etch_error_set_errno(err, ENOMEM, "cannot record");
    r->options = options;
    r->summary = summary;
    r->source = source;
    if (etch_record_find_program(options->argv[0], r->program, sizeof(r->program), err) == 0 &&
        examine_program(r, err) == 0) {
        summary->source = r->source->name;
        if (r->source->open(r, err) == 0 && etch_bundle_create(&r->bundle, options->output, err) == 0) {
            etch_privacy_guard(options->privacy, r->bundle);
            if (etch_signals_take(&r->signals, true, err) == 0)
                status = run(r, err);
            etch_signals_give_back(&r->signals);
            etch_record_sum_up(summary, r->bundle);
            if (status < 0 && !ran(r)) {
                etch_bundle_discard(r->bundle); /* nothing was recorded */
            } else {
                status = summary->broken[0] ? 0 : status; /* the summary has the error; the program ran undisturbed */
                etch_bundle_writer_free(r->bundle);
            }
        }
        r->source->close(r);
        if (r->exception)
            etch__exception__free_unpacked(r->exception, NULL);
    }
    free(r);
    return status;
}
