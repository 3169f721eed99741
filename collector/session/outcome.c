/* SPDX-License-Identifier: MIT */
/* How a run ended; see outcome.h. */
#include "collector/session/outcome.h"

#include <stdio.h>
#include <sys/wait.h>
#include <time.h>

void etch_outcome_set(Etch__Outcome *outcome, int wait_status)
{
    if (WIFSIGNALED(wait_status)) {
        outcome->how_case = ETCH__OUTCOME__HOW_SIGNAL;
        outcome->signal = (uint32_t)WTERMSIG(wait_status);
    } else {
        outcome->how_case = ETCH__OUTCOME__HOW_EXIT_STATUS;
        outcome->exit_status = (uint32_t)WEXITSTATUS(wait_status);
    }
}

void etch_failure_sum_up(struct etch_record_summary *s, const Etch__Failure *f, bool address_known)
{
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

uint64_t etch_rusage_ns(const struct rusage *use)
{
    return (uint64_t)(use->ru_utime.tv_sec + use->ru_stime.tv_sec) * 1000000000u +
           (uint64_t)(use->ru_utime.tv_usec + use->ru_stime.tv_usec) * 1000u;
}

uint64_t etch_cpu_ns(int who)
{
    struct rusage use;

    getrusage(who, &use);
    return etch_rusage_ns(&use);
}

uint64_t etch_unix_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}
