/* SPDX-License-Identifier: MIT */
/* Recorded runs of a program, several at a time, each in a process of its own, and the verdict on each. */
#ifndef ETCH_CLI_RUNNER_H
#define ETCH_CLI_RUNNER_H

#include "base/error.h"
#include "collector/record.h"

#include <stdbool.h>
#include <sys/types.h>

#define RUNNER_JOBS_MAX 64u

struct runner_job {
    pid_t pid;      /* of the recording etch; 0: free */
    double started; /* seconds */
    double limit;   /* who takes longer hangs */
    char bundle[4096], output[4096];
    int64_t number;
    uint32_t sigma, set;
};

struct runner {
    char **argv;
    const char *source;
    const char *subject;  /* the program in question, where argv starts it; NULL: argv's own */
    const char *fails_if; /* a shell command; NULL: a signal, a hang or a status other than 0 */
    const char *input;    /* a file; NULL: none */
    double timeout;
    double tracked_timeout; /* where this is longer: watches make a program slow */
    bool sync;              /* under vpt: record synchronisation too */
    unsigned jobs;
    const struct Etch__Clock *clock;
    struct runner_job job[RUNNER_JOBS_MAX];
    struct runner_report *reports; /* shared with the children, one per job */
};

struct runner_result {
    int64_t number;
    uint32_t sigma, set; /* what it watched */
    char bundle[4096];
    const char *verdict; /* "pass", "fail", "hang"; NULL: etch itself failed, `err` says why */
    double seconds;
    struct etch_error err;
};

double runner_now(void);

int runner_open(struct runner *r, struct etch_error *err);

/* What a run watches. */
struct runner_watches {
    char *const *list; /* for vpt */
    size_t n;
    const char *plan; /* a file, for sources that use the debug registers; NULL: nothing */
    uint32_t set;     /* which of its sets */
    uint32_t sigma;   /* for how many statements this is */
};

/* Starts a run. Returns false where all jobs are taken. */
bool runner_start(struct runner *r, int64_t number, const char *bundle, const struct runner_watches *watches);

/* Waits up to `seconds` for a run to end. Returns whether one did. */
bool runner_wait(struct runner *r, double seconds, struct runner_result *result);

unsigned runner_busy(const struct runner *r);

/* Ends the recorders and their programs, at once; a signal's handler may call it. */
void runner_kill(const struct runner *r);

/* Ends all that still run. */
void runner_close(struct runner *r);

#endif
