/* SPDX-License-Identifier: MIT */
/* See lab_record.h. The recorder is a process of its own: it takes signals, and becomes the program's tracer. */
#include "collector/lab_record.h"

#include "base/log.h"
#include "base/time.h"
#include "collector/lab/shared.h"
#include "collector/record.h"
#include "proto/etch.pb-c.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define HANG_S 0.3 /* no thread ran for so long: a run that is expected to hang does */

/* The recorder's answer, in memory that both processes have. */
struct report {
    bool recorded, out_of_time;
    int status;
    struct etch_error err;
};

static _Noreturn void become_recorder(const struct etch_lab_request *r, struct etch_lab_shared *shared, int fd,
                                      bool hangs, const char *bundle, struct report *report)
{
    struct etch_record_options options = {.output = bundle,
                                          .max_size = ETCH_RECORD_MAX_SIZE,
                                          .source = "lab",
                                          .argv = r->argv,
                                          .file = r->program,
                                          .lab = shared,
                                          .lab_fd = fd,
                                          .no_sync = true,
                                          .allow_ptrace = true,
                                          .wall_s = r->timeout,
                                          .hang_s = hangs ? HANG_S : 0,
                                          .kill_on_hang = true};
    struct etch_record_summary summary = {0};
    char unknown[8];

    prctl(PR_SET_PDEATHSIG, SIGTERM); /* a killed etch leaves no program behind */
    etch_log_set("warn", unknown, sizeof(unknown));
    etch_lab_settle_in(r);
    report->recorded = etch_record(&options, &summary, &report->err) == 0 && !summary.broken[0];
    if (summary.broken[0])
        etch_error_set(&report->err, "%s", summary.broken);
    report->status = summary.status;
    report->out_of_time = summary.failure_kind == ETCH__FAILURE_KIND__FAILURE_TIMEOUT;
    _exit(0);
}

static int conclude(struct etch_lab_result *result, const struct report *report, const struct etch_lab_request *request,
                    struct etch_error *err)
{
    if (!report->recorded) {
        if (report->err.what[0])
            *err = report->err;
        else
            etch_error_set(err, "the recorder of a run in the lab died");
        return -1;
    }
    if (!result->shared->started)
        return etch_error_set(err, "%s ended before the lab had control of it", request->program);
    etch_lab_judge(result, report->status, report->out_of_time);
    etch_lab_check(result, request, report->status);
    return 0;
}

int etch_lab_record(struct etch_lab_result *result, const struct etch_lab_request *request, bool hangs,
                    const char *bundle, struct etch_error *err)
{
    double begin = etch_time_seconds();
    struct report *report = mmap(NULL, sizeof(*report), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int fd, status = -1;
    pid_t pid;

    memset(result, 0, sizeof(*result));
    if (report == MAP_FAILED)
        return etch_error_no_memory(err);
    fd = etch_lab_share(&result->shared, request, err);
    if (fd >= 0) {
        result->shared->recorded = true;
        pid = fork();
        if (pid == 0)
            become_recorder(request, result->shared, fd, hangs, bundle, report);
        close(fd);
        while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
            ;
        result->seconds = etch_time_seconds() - begin;
        status =
            pid < 0 ? etch_error_set_errno(err, errno, "cannot record a run") : conclude(result, report, request, err);
    }
    if (status < 0)
        etch_lab_result_release(result);
    munmap(report, sizeof(*report));
    return status;
}

int etch_lab_record_here(struct etch_lab_result *result, const struct etch_lab_request *request,
                         const struct etch_record_options *options, struct etch_record_summary *summary,
                         struct etch_error *err)
{
    struct etch_record_options lab = *options;
    double begin = etch_time_seconds();
    int status;

    memset(result, 0, sizeof(*result));
    lab.lab_fd = etch_lab_share(&result->shared, request, err);
    if (lab.lab_fd < 0)
        return -1;
    result->shared->recorded = true;
    lab.source = "lab";
    lab.lab = result->shared;
    lab.file = request->program;
    lab.argv = request->argv;
    lab.no_sync = lab.allow_ptrace = true; /* the lab records synchronisation itself */
    personality(ADDR_NO_RANDOMIZE);
    status = etch_record(&lab, summary, err);
    close(lab.lab_fd);
    result->seconds = etch_time_seconds() - begin;
    if (status == 0 && !result->shared->started)
        status = etch_error_set(err, "%s ended before the lab had control of it", request->argv[0]);
    if (status == 0)
        status = etch_lab_refuse(result->shared->outcome, request->argv[0], err);
    if (status < 0)
        etch_lab_result_release(result);
    else
        etch_lab_judge(result, summary->status, summary->failure_kind == ETCH__FAILURE_KIND__FAILURE_TIMEOUT);
    return status;
}
