/* SPDX-License-Identifier: MIT */
/* Recorded runs in processes of their own; see runner.h. */
#include "diagnose/runner.h"

#include "diagnose/inputs.h"
#include "diagnose/lab_runner.h"
#include "diagnose/ring_runner.h"

#include "base/log.h"
#include "base/output.h"
#include "base/time.h"

#include "proto/etch.pb-c.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define WATCH_HITS 20000 /* a second, of source none: a watch that is hit more often is cut, and said to be */
#define GRACE 10.0       /* seconds that a recorder has to finish its bundle, before it is killed */

/* The report of a child, in memory that both processes share. */
struct etch_runner_report {
    bool recorded;
    bool out_of_time, hung, crashed;
    int status;
    double ended; /* when the bundle was whole */
    struct etch_error err;
};

int etch_runner_open(struct etch_runner *r, struct etch_error *err)
{
    void *map = mmap(NULL, ETCH_RUNNER_JOBS_MAX * sizeof(*r->reports), PROT_READ | PROT_WRITE,
                     MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (map == MAP_FAILED)
        return etch_error_set_errno(err, errno, "cannot get memory");
    r->reports = map;
    if (!r->twin)
        return 0;
    map = mmap(NULL, sizeof(*r->learnt), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED)
        return etch_error_set_errno(err, errno, "cannot get memory");
    r->learnt = map;
    return 0;
}

/* The lab records all accesses to shared memory, so it needs no plan. */
static int record(const struct etch_runner *r, int64_t number, struct etch_record_options *options,
                  struct etch_record_summary *summary, struct etch_error *err)
{
    if (r->subject && strcmp(r->source, "soft") == 0)
        return etch_ring_runner_record(options, summary, err);
    if (!r->twin)
        return etch_record(options, summary, err);
    options->plan = NULL;
    options->n_watches = 0;
    return etch_lab_runner_record(r->twin, number, r->learnt, options, summary, err);
}

/* Only a check needs the output of the program, and a program may print without end. */
static int redirect(const struct etch_runner *r, const struct etch_runner_job *job, struct etch_error *err)
{
    const char *input = job->input ? job->input
                        : r->input ? r->input
                                   : "/dev/null",
               *output = r->fails_if ? job->output : "/dev/null";
    int in = open(input, O_RDONLY | O_CLOEXEC),
        out = r->fails_if ? etch_output_fresh(output) : open(output, O_WRONLY | O_CLOEXEC);

    if (in < 0 || dup2(in, 0) < 0)
        return etch_error_set_errno(err, errno, "cannot read %s", input);
    if (out < 0 || dup2(out, 1) < 0 || dup2(out, 2) < 0)
        return etch_error_set_errno(err, errno, "cannot write %s", output);
    return 0;
}

static _Noreturn void become_recorder(struct etch_runner *r, const struct etch_runner_job *job,
                                      struct etch_runner_report *report, const struct etch_runner_watches *watches)
{
    bool bare = strcmp(r->source, "none") == 0; /* only watches and the failure itself give information */
    struct etch_record_options options = {.output = job->bundle,
                                          .max_size = ETCH_RECORD_MAX_SIZE,
                                          .max_rings = ETCH_RECORD_MAX_RINGS,
                                          .source = r->source,
                                          .argv = job->argv ? job->argv : r->argv,
                                          .clock = r->clock,
                                          .sync = r->sync,
                                          .plan = watches->plan,
                                          .set_given = true,
                                          .set = watches->set,
                                          .fail_on_exit = bare && !r->fails_if,
                                          .wall_s = job->limit,
                                          .subject = r->subject,
                                          .kill_on_hang = true,
                                          .watch_hits_per_s = bare ? WATCH_HITS : 100000,
                                          .watch_share = bare ? 0 : 0.25};
    struct etch_record_summary summary = {0};
    char number[24], unknown[8];

    close_range(3, UINT_MAX, 0); /* the store is not this process's business, nor the program's */
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGTERM); /* a killed diagnose leaves no program behind */
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    signal(SIGHUP, SIG_DFL);
    snprintf(number, sizeof(number), "%lld", (long long)job->number);
    setenv("ETCH_RUN", number, 1);
    for (size_t i = 0; i < watches->n && i < ETCH_RECORD_MAX_WATCHES; i++)
        options.watches[options.n_watches++] = watches->list[i];
    etch_log_set("warn", unknown, sizeof(unknown)); /* standard error becomes the output that --fails-if reads */
    report->recorded =
        redirect(r, job, &report->err) == 0 && record(r, job->number, &options, &summary, &report->err) == 0;
    if (report->recorded && summary.broken[0]) {
        etch_error_set(&report->err, "%s", summary.broken);
        etch_error_advise(&report->err, "room on the disk, or --store DIR on another");
        report->recorded = false;
    }
    report->status = summary.status;
    report->out_of_time = summary.out_of_time;
    report->crashed = summary.failed && summary.failure_placed;
    report->hung = summary.failure_kind == ETCH__FAILURE_KIND__FAILURE_HANG ||
                   summary.failure_kind == ETCH__FAILURE_KIND__FAILURE_TIMEOUT;
    report->ended = etch_time_seconds();
    _exit(0);
}

bool etch_runner_start(struct etch_runner *r, int64_t number, const char *bundle,
                       const struct etch_runner_watches *watches, const struct etch_runner_input *input)
{
    unsigned i = 0;
    struct etch_runner_job *job;

    while (i < r->jobs && r->job[i].pid)
        i++;
    if (i == r->jobs)
        return false;
    job = &r->job[i];
    *job = (struct etch_runner_job){
        .number = number, .sigma = watches->sigma, .set = watches->set, .started = etch_time_seconds()};
    if (input) {
        job->argv = input->argv;
        job->input = input->file;
        job->which = input->which;
    }
    job->limit = watches->sigma && r->tracked_timeout > r->timeout ? r->tracked_timeout : r->timeout;
    snprintf(job->bundle, sizeof(job->bundle), "%s", bundle);
    snprintf(job->output, sizeof(job->output), "%.4080s.output", bundle);
    memset(&r->reports[i], 0, sizeof(r->reports[i]));
    job->pid = fork();
    if (job->pid == 0)
        become_recorder(r, job, &r->reports[i], watches);
    if (job->pid < 0)
        job->pid = 0;
    else
        setpgid(job->pid, job->pid);
    return job->pid != 0;
}

bool etch_runner_check(const char *fails_if, const char *output, int status)
{
    char number[16];
    pid_t pid = fork();
    int result = 0;

    if (pid == 0) {
        int in = open(output, O_RDONLY | O_CLOEXEC), null = open("/dev/null", O_WRONLY | O_CLOEXEC);

        snprintf(number, sizeof(number), "%d", WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status));
        setenv("ETCH_STATUS", number, 1);
        setenv("ETCH_OUTPUT", output, 1);
        if (in >= 0)
            dup2(in, 0);
        if (null >= 0)
            dup2(null, 1);
        execl("/bin/sh", "sh", "-c", fails_if, (char *)NULL);
        _exit(127);
    }
    while (pid > 0 && waitpid(pid, &result, 0) < 0 && errno == EINTR)
        ;
    return pid > 0 && WIFEXITED(result) && WEXITSTATUS(result) == 0;
}

static enum etch_verdict judge(const struct etch_runner *r, const struct etch_runner_job *job,
                               const struct etch_runner_report *report)
{
    int status = report->status;
    bool killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;

    if (r->subject && report->crashed && !report->hung)
        return ETCH_VERDICT_FAIL;
    if ((report->hung || report->out_of_time) && killed)
        return ETCH_VERDICT_HANG;
    if (r->fails_if && !WIFSIGNALED(status))
        return etch_runner_check(r->fails_if, job->output, status) ? ETCH_VERDICT_FAIL : ETCH_VERDICT_PASS;
    return WIFSIGNALED(status) || WEXITSTATUS(status) ? ETCH_VERDICT_FAIL : ETCH_VERDICT_PASS;
}

static void finish(struct etch_runner *r, unsigned i, int wait_status, struct etch_runner_result *result)
{
    struct etch_runner_job *job = &r->job[i];
    const struct etch_runner_report *report = &r->reports[i];

    *result = (struct etch_runner_result){.number = job->number,
                                          .sigma = job->sigma,
                                          .set = job->set,
                                          .which = job->which,
                                          .seconds = report->ended - job->started};
    snprintf(result->bundle, sizeof(result->bundle), "%s", job->bundle);
    result->recorded = report->recorded;
    if (report->recorded)
        result->verdict = judge(r, job, report);
    else if (report->err.what[0])
        result->err = report->err;
    else
        etch_error_set(&result->err, "the recorder of a run died (status %d)", wait_status);
    kill(-job->pid, SIGKILL); /* the processes that the program left */
    unlink(job->output);
    etch_inputs_free_argv(job->argv);
    job->argv = NULL;
    job->pid = 0;
}

/* A recorder ends its run in time by itself. A recorder that does not is killed. */
static void enforce_limits(struct etch_runner *r)
{
    double now = etch_time_seconds();

    for (unsigned i = 0; i < r->jobs; i++)
        if (r->job[i].pid && now > r->job[i].started + r->job[i].limit + GRACE)
            kill(-r->job[i].pid, SIGKILL);
}

bool etch_runner_wait(struct etch_runner *r, double seconds, struct etch_runner_result *result)
{
    double until = etch_time_seconds() + seconds;
    const struct timespec nap = {0, 5000000};

    /* Ended runs come first: the caller may have been away for longer than a run may take. */
    do {
        for (unsigned i = 0; i < r->jobs; i++) {
            int status;

            if (r->job[i].pid && waitpid(r->job[i].pid, &status, WNOHANG) == r->job[i].pid) {
                finish(r, i, status, result);
                return true;
            }
        }
        enforce_limits(r);
        nanosleep(&nap, NULL);
    } while (etch_time_seconds() < until);
    return false;
}

unsigned etch_runner_busy(const struct etch_runner *r)
{
    unsigned n = 0;

    for (unsigned i = 0; i < r->jobs; i++)
        n += r->job[i].pid != 0;
    return n;
}

void etch_runner_kill(const struct etch_runner *r)
{
    for (unsigned i = 0; i < r->jobs; i++)
        if (r->job[i].pid)
            kill(-r->job[i].pid, SIGKILL);
}

void etch_runner_close(struct etch_runner *r)
{
    etch_runner_kill(r);
    for (unsigned i = 0; i < r->jobs; i++) {
        if (!r->job[i].pid)
            continue;
        while (waitpid(r->job[i].pid, NULL, 0) < 0 && errno == EINTR)
            ;
        unlink(r->job[i].output);
        unlink(r->job[i].bundle);
        etch_inputs_free_argv(r->job[i].argv);
        r->job[i].argv = NULL;
        r->job[i].pid = 0;
    }
    if (r->reports)
        munmap(r->reports, ETCH_RUNNER_JOBS_MAX * sizeof(*r->reports));
    r->reports = NULL;
    if (r->learnt)
        munmap(r->learnt, sizeof(*r->learnt));
    r->learnt = NULL;
}
