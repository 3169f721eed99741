/* SPDX-License-Identifier: MIT */
/* A program that runs as a child of etch, untraced; see child.h. */
#include "collector/session/child.h"
#include "base/time.h"
#include "collector/clock_record.h"
#include "collector/session/host.h"
#include "collector/session/process.h"
#include "collector/session/records.h"
#include "collector/session/signals.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#include <x86intrin.h>

#define TURN_MS 20u
#define CALIBRATION_NS 500000000u

struct child {
    const struct etch_record_options *options;
    const struct etch_source *source;
    void *state; /* the source's */
    struct etch_recorder recorder;
    struct etch_signals signals;
    pid_t pid; /* 0: not yet launched */
    struct etch_ending ending;
    struct etch_record_summary *summary;
};

/* ---- Launch ---- */

static _Noreturn void become_target(struct child *c, int report)
{
    int cause;

    etch_signals_give_back(&c->signals);
    c->source->runner->launch(c->state);
    cause = errno;
    if (write(report, &cause, sizeof(cause)) < 0)
        _exit(126);
    _exit(127);
}

static int cannot_start(struct child *c, int cause, struct etch_error *err)
{
    c->pid = 0;
    return etch_error_set_errno(err, cause, "cannot start %s", c->options->argv[0]);
}

/* Starts the program and waits until the exec closes a pipe. */
static int launch(struct child *c, struct etch_error *err)
{
    int ends[2], cause = 0;
    ssize_t got;

    if (pipe2(ends, O_CLOEXEC) < 0)
        return cannot_start(c, errno, err);
    c->pid = fork();
    if (c->pid == 0)
        become_target(c, ends[1]);
    cause = errno;
    close(ends[1]);
    if (c->pid < 0) {
        close(ends[0]);
        return cannot_start(c, cause, err);
    }
    do
        got = read(ends[0], &cause, sizeof(cause));
    while (got < 0 && errno == EINTR);
    close(ends[0]);
    if (got != sizeof(cause))
        return c->source->start(c->state, c->pid, err);
    waitpid(c->pid, NULL, 0);
    return cannot_start(c, cause, err);
}

/* ---- While it runs ---- */

/* SIGKILL, because a handler could unwind the stack that we want to see. */
static void enforce_limit(struct child *c, double began)
{
    if (c->options->wall_s <= 0 || c->summary->out_of_time || etch_time_seconds() - began < c->options->wall_s)
        return;
    c->summary->out_of_time = true;
    kill(c->pid, SIGKILL);
}

/* A bundle that cannot be written any more does not disturb the program. */
static void take_turn(struct child *c)
{
    if (c->recorder.broken) {
        usleep(TURN_MS * 1000u);
        return;
    }
    c->source->drain(c->state);
    if (c->recorder.broken)
        c->source->runner->let_go(c->state);
    else
        c->source->runner->wait(c->state, TURN_MS);
}

/* Until the program ends. */
static int follow(struct child *c, struct etch_error *err)
{
    double began = etch_time_seconds();
    struct rusage usage = {0};

    for (;;) {
        pid_t done = wait4(c->pid, &c->summary->status, WNOHANG, &usage);

        if (done == c->pid)
            break;
        if (done < 0 && errno != EINTR)
            return etch_error_set_errno(err, errno, "cannot wait for %s", c->options->argv[0]);
        enforce_limit(c, began);
        etch_signals_read(&c->signals, c->pid);
        etch_signals_pass_on(&c->signals, c->pid);
        take_turn(c);
    }
    c->ending = (struct etch_ending){.gone = true,
                                     .wait_status = c->summary->status,
                                     .unix_ns = etch_unix_ns(),
                                     .tsc = __rdtsc(),
                                     .cpu_ns = etch_rusage_ns(&usage)};
    return 0;
}

/* ---- Records ---- */

static void write_program(struct child *c)
{
    Etch__Program program = ETCH__PROGRAM__INIT;
    char cwd[4096];

    etch_process_cwd(getpid(), cwd, sizeof(cwd));
    etch_program_set_argv(&program, c->options->argv);
    c->source->runner->program(c->state, &program);
    program.cwd = cwd;
    program.pid = (uint32_t)c->pid;
    program.source = c->source->id;
    etch_recorder_write_program(&c->recorder, &program);
}

static void write_failure(struct child *c)
{
    bool address_known = false;
    Etch__Failure *failure = c->source->runner->failure(c->state, c->summary->status, &address_known);

    if (failure)
        etch_recorder_write_failure(&c->recorder, failure, address_known);
}

/* Writes the clock record that orders accesses across CPUs, before the run and again after the run. A machine whose
 * clocks cannot be measured gets no record, and its accesses stay unordered. `first` is NULL before the run. After the
 * run `first` is the measurement from before. */
static void write_clock(struct child *c, struct etch_calibration *calibration, const struct etch_calibration *first)
{
    const struct etch_record_options *o = c->options;
    Etch__Clock *measured = NULL, *clock;

    if (!o->clock && o->n_watches && (!first || first->n_pairs))
        measured = etch_clock_measure(calibration, first, CALIBRATION_NS, true, o->clock_fresh);
    clock = !first && o->clock ? (Etch__Clock *)(uintptr_t)o->clock : measured;
    if (clock)
        etch_recorder_write(&c->recorder, ETCH__RECORD__BODY_CLOCK, clock);
    if (measured)
        etch__clock__free_unpacked(measured, NULL);
}

/* The run itself, between the two measurements. */
static int follow_run(struct child *c, const struct etch_calibration *first, struct etch_error *err)
{
    struct etch_calibration last = {0};

    etch_recorder_begin(&c->recorder);
    if (launch(c, err) < 0)
        return -1;
    write_program(c);
    if (follow(c, err) < 0 || c->source->runner->never_ran(c->state, err))
        return -1;
    c->source->stop(c->state);
    etch_recorder_write_beyond(&c->recorder);
    write_failure(c);
    etch_recorder_write_outcome(&c->recorder, &c->ending);
    write_clock(c, &last, first);
    etch_calibration_free(&last);
    etch_recorder_finish(&c->recorder);
    return etch_recorder_check(&c->recorder, err);
}

static int run(struct child *c, struct etch_error *err)
{
    struct etch_calibration first = {0};
    int status = -1;

    if (etch_host_write(&c->recorder, err) < 0)
        return -1;
    write_clock(c, &first, NULL);
    if (etch_recorder_check(&c->recorder, err) == 0)
        status = follow_run(c, &first, err);
    etch_calibration_free(&first);
    return status;
}

static int record(struct child *c, struct etch_error *err)
{
    bool kept;
    int status = -1;

    if (etch_recorder_create(&c->recorder, c->options->output, c->options->privacy, err) < 0)
        return -1;
    if (etch_signals_take(&c->signals, true, err) == 0)
        status = run(c, err);
    etch_signals_give_back(&c->signals);
    kept = status == 0 || (c->pid && etch_bundle_ledger(c->recorder.bundle)->streams.n > 0);
    etch_recorder_close(&c->recorder, kept);
    return kept && c->recorder.broken ? 0 : status; /* the summary has the error; the program ran undisturbed */
}

int etch_child_record(const struct etch_record_options *options, const struct etch_source *source,
                      struct etch_record_summary *summary, struct etch_error *err)
{
    struct child *c = calloc(1, sizeof(*c));
    int status = -1;

    if (!c)
        return etch_error_no_memory(err);
    c->options = options;
    c->source = source;
    c->summary = summary;
    summary->source = source->name;
    etch_recorder_init(&c->recorder, options->max_size, summary);
    if (source->open(&c->state, options, &c->recorder.sink, err) == 0)
        status = record(c, err);
    source->close(c->state);
    free(c);
    return status;
}
