/* SPDX-License-Identifier: MIT */
/* Recorded runs in processes of their own; see runner.h. */
#include "cli/runner.h"

#include "proto/etch.pb-c.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define WATCH_HITS 20000 /* a second: a hardware watch that is hit more often is cut, and said to be */
#define GRACE 3.0        /* seconds from the request to end to the end by force */

/* What a child has to say, in memory that both see. */
struct runner_report {
    bool recorded, hung;
    int status;
    struct etch_error err;
};

double runner_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

int runner_open(struct runner *r, struct etch_error *err)
{
    void *map =
        mmap(NULL, RUNNER_JOBS_MAX * sizeof(*r->reports), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (map == MAP_FAILED)
        return etch_error_set_errno(err, errno, "cannot get memory");
    r->reports = map;
    return 0;
}

/* The program's own output goes to a file, which the check may look at. */
static void redirect(const char *output)
{
    int in = open("/dev/null", O_RDONLY), out = open(output, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);

    if (in >= 0)
        dup2(in, 0);
    if (out >= 0) {
        dup2(out, 1);
        dup2(out, 2);
    }
}

static bool is_native(const struct runner *r)
{
    return strcmp(r->source, "none") == 0;
}

/* Source "none" sees a run that takes too long by itself, and takes down where its threads stand. */
static _Noreturn void become_recorder(struct runner *r, const struct runner_job *job, struct runner_report *report,
                                      const struct runner_watches *watches)
{
    struct etch_record_options options = {.output = job->bundle,
                                          .source = r->source,
                                          .argv = r->argv,
                                          .clock = r->clock,
                                          .sync = r->sync,
                                          .plan = watches->plan,
                                          .set_given = true,
                                          .set = watches->set,
                                          .fail_on_exit = !r->fails_if,
                                          .wall_s = is_native(r) ? r->timeout : 0,
                                          .kill_on_hang = true,
                                          .watch_hits_per_s = WATCH_HITS};
    struct etch_record_summary summary = {0};

    setpgid(0, 0);
    signal(SIGINT, SIG_DFL);
    redirect(job->output);
    for (size_t i = 0; i < watches->n && i < ETCH_RECORD_MAX_WATCHES; i++)
        options.watches[options.n_watches++] = watches->list[i];
    report->recorded = etch_record(&options, &summary, &report->err) == 0;
    report->status = summary.status;
    report->hung = summary.failure_kind == ETCH__FAILURE_KIND__FAILURE_HANG ||
                   summary.failure_kind == ETCH__FAILURE_KIND__FAILURE_TIMEOUT;
    _exit(0);
}

bool runner_start(struct runner *r, int64_t number, const char *bundle, const struct runner_watches *watches)
{
    unsigned i = 0;
    struct runner_job *job;

    while (i < r->jobs && r->job[i].pid)
        i++;
    if (i == r->jobs)
        return false;
    job = &r->job[i];
    *job = (struct runner_job){.number = number, .sigma = watches->sigma, .started = runner_now()};
    job->ends = job->started + r->timeout + (is_native(r) ? GRACE : 0);
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

/* Whether the user's own command takes the run for a failure. */
static bool check_fails(const struct runner *r, const struct runner_job *job, int status)
{
    char number[16];
    pid_t pid = fork();
    int result = 0;

    if (pid == 0) {
        int in = open(job->output, O_RDONLY | O_CLOEXEC), null = open("/dev/null", O_WRONLY | O_CLOEXEC);

        snprintf(number, sizeof(number), "%d", WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status));
        setenv("ETCH_STATUS", number, 1);
        setenv("ETCH_OUTPUT", job->output, 1);
        if (in >= 0)
            dup2(in, 0);
        if (null >= 0)
            dup2(null, 1);
        execl("/bin/sh", "sh", "-c", r->fails_if, (char *)NULL);
        _exit(127);
    }
    while (pid > 0 && waitpid(pid, &result, 0) < 0 && errno == EINTR)
        ;
    return pid > 0 && WIFEXITED(result) && WEXITSTATUS(result) == 0;
}

static const char *judge(const struct runner *r, const struct runner_job *job, const struct runner_report *report)
{
    int status = report->status;

    if (job->told || report->hung)
        return "hang";
    if (r->fails_if && !WIFSIGNALED(status))
        return check_fails(r, job, status) ? "fail" : "pass";
    return WIFSIGNALED(status) || WEXITSTATUS(status) ? "fail" : "pass";
}

static void finish(struct runner *r, unsigned i, int wait_status, struct runner_result *result)
{
    struct runner_job *job = &r->job[i];
    const struct runner_report *report = &r->reports[i];

    *result =
        (struct runner_result){.number = job->number, .sigma = job->sigma, .seconds = runner_now() - job->started};
    snprintf(result->bundle, sizeof(result->bundle), "%s", job->bundle);
    if (report->recorded)
        result->verdict = judge(r, job, report);
    else if (report->err.what[0])
        result->err = report->err;
    else
        etch_error_set(&result->err, "the recorder of a run died (status %d)", wait_status);
    kill(-job->pid, SIGKILL); /* whatever the program left behind */
    unlink(job->output);
    job->pid = 0;
}

/* Ends runs that take too long: first by request, so that their recorder can finish the bundle. */
static void enforce_limits(struct runner *r)
{
    double now = runner_now();

    for (unsigned i = 0; i < r->jobs; i++) {
        struct runner_job *job = &r->job[i];

        if (!job->pid || now < job->ends)
            continue;
        if (!job->told) {
            job->told = true;
            kill(job->pid, SIGTERM);
            job->ends = now + GRACE;
        } else {
            kill(-job->pid, SIGKILL);
        }
    }
}

bool runner_wait(struct runner *r, double seconds, struct runner_result *result)
{
    double until = runner_now() + seconds;
    const struct timespec nap = {0, 5000000};

    do {
        enforce_limits(r);
        for (unsigned i = 0; i < r->jobs; i++) {
            int status;

            if (r->job[i].pid && waitpid(r->job[i].pid, &status, WNOHANG) == r->job[i].pid) {
                finish(r, i, status, result);
                return true;
            }
        }
        nanosleep(&nap, NULL);
    } while (runner_now() < until);
    return false;
}

unsigned runner_busy(const struct runner *r)
{
    unsigned n = 0;

    for (unsigned i = 0; i < r->jobs; i++)
        n += r->job[i].pid != 0;
    return n;
}

void runner_close(struct runner *r)
{
    for (unsigned i = 0; i < r->jobs; i++) {
        if (!r->job[i].pid)
            continue;
        kill(-r->job[i].pid, SIGKILL);
        while (waitpid(r->job[i].pid, NULL, 0) < 0 && errno == EINTR)
            ;
        unlink(r->job[i].output);
        unlink(r->job[i].bundle);
        r->job[i].pid = 0;
    }
    if (r->reports)
        munmap(r->reports, RUNNER_JOBS_MAX * sizeof(*r->reports));
    r->reports = NULL;
}
