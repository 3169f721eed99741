/* SPDX-License-Identifier: MIT */
/* The records that every recording has; see records.h. */
#include "collector/session/records.h"

#include "collector/session/process.h"

#include <stdio.h>
#include <sys/wait.h>
#include <time.h>

void etch_program_set_file(Etch__Program *program, pid_t pid, struct etch_program_file *file)
{
    etch_process_exe(pid, file->path, sizeof(file->path));
    program->exe = file->path;
    program->build_id.data = file->build_id;
    program->build_id.len = file->path[0] ? etch_process_build_id(pid, file->path, file->build_id) : 0;
}

void etch_program_set_argv(Etch__Program *program, char *const *argv)
{
    program->argv = (char **)(uintptr_t)argv;
    for (program->n_argv = 0; argv[program->n_argv];)
        program->n_argv++;
}

void etch_recorder_write_program(struct etch_recorder *r, Etch__Program *program)
{
    program->etch_version = (char *)(uintptr_t)ETCH_VERSION;
    program->start_unix_ns = r->start_unix_ns;
    program->start_tsc = r->start_tsc;
    etch_recorder_write(r, ETCH__RECORD__BODY_PROGRAM, program);
}

void etch_recorder_write_failure(struct etch_recorder *r, Etch__Failure *f, bool address_known)
{
    struct etch_record_summary *s = r->sink.summary;

    etch_recorder_write(r, ETCH__RECORD__BODY_FAILURE, f);
    s->failed = true;
    s->failure_kind = (int)f->kind;
    s->failure_signal = f->signal;
    s->failure_tid = f->tid;
    s->failure_ip = f->ip;
    s->failure_placed = f->tid != 0;
    s->failure_address = f->fault_address;
    s->failure_address_known = address_known;
    snprintf(s->failure_message, sizeof(s->failure_message), "%s", f->message);
}

static void set_how(Etch__Outcome *outcome, int wait_status)
{
    if (WIFSIGNALED(wait_status)) {
        outcome->how_case = ETCH__OUTCOME__HOW_SIGNAL;
        outcome->signal = (uint32_t)WTERMSIG(wait_status);
    } else {
        outcome->how_case = ETCH__OUTCOME__HOW_EXIT_STATUS;
        outcome->exit_status = (uint32_t)WEXITSTATUS(wait_status);
    }
}

void etch_recorder_write_outcome(struct etch_recorder *r, const struct etch_ending *ending)
{
    struct etch_record_summary *s = r->sink.summary;
    Etch__Outcome outcome = ETCH__OUTCOME__INIT;

    if (ending->gone)
        set_how(&outcome, ending->wait_status);
    outcome.end_unix_ns = ending->unix_ns;
    outcome.end_tsc = ending->tsc;
    outcome.cpu_ns = ending->cpu_ns;
    outcome.recorder_cpu_ns = etch_cpu_ns() - r->start_cpu_ns;
    etch_recorder_write(r, ETCH__RECORD__BODY_OUTCOME, &outcome);
    s->duration_ns = outcome.end_unix_ns - r->start_unix_ns;
    s->target_cpu_ns = outcome.cpu_ns;
    s->recorder_cpu_ns = outcome.recorder_cpu_ns;
}

uint64_t etch_rusage_ns(const struct rusage *use)
{
    return (uint64_t)(use->ru_utime.tv_sec + use->ru_stime.tv_sec) * 1000000000u +
           (uint64_t)(use->ru_utime.tv_usec + use->ru_stime.tv_usec) * 1000u;
}

uint64_t etch_cpu_ns(void)
{
    struct rusage use;

    getrusage(RUSAGE_SELF, &use);
    return etch_rusage_ns(&use);
}

uint64_t etch_unix_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}
