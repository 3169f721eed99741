/* SPDX-License-Identifier: MIT */
/* Recorded runs of a program, several at a time, each in a process of its own, and the verdict on each. */
#ifndef ETCH_DIAGNOSE_RUNNER_H
#define ETCH_DIAGNOSE_RUNNER_H

#include "base/error.h"
#include "collector/record.h"
#include "sketch/verdict.h"

#include <stdbool.h>
#include <sys/types.h>

#define ETCH_RUNNER_JOBS_MAX 64u

struct etch_runner_job {
    pid_t pid;      /* of the recording etch; 0: free */
    double started; /* seconds */
    double limit;   /* who takes longer hangs */
    char bundle[4096], output[4096];
    int64_t number;
    uint32_t sigma, set;
    char **argv;       /* of this run alone, owned; NULL: the runner's */
    const char *input; /* likewise, not owned */
    size_t which;      /* of several inputs */
};

struct etch_runner {
    char **argv;
    const char *source;
    const char *subject;  /* the program in question, where argv starts it; NULL: argv's own */
    const char *fails_if; /* a shell command; NULL: a signal, a hang or a status other than 0 */
    const char *input;    /* a file; NULL: none */
    double timeout;
    double tracked_timeout; /* where this is longer: watches make a program slow */
    bool sync;              /* under vpt: record synchronisation too */
    const char *twin;       /* the lab build, with source lab; else NULL */
    unsigned jobs;
    const struct Etch__Clock *clock;
    struct etch_runner_job job[ETCH_RUNNER_JOBS_MAX];
    struct etch_runner_report *reports; /* shared with the children, one per job */
    struct etch_lab_learnt *learnt;     /* likewise: what runs in the lab have found out */
};

struct etch_runner_result {
    int64_t number;
    uint32_t sigma, set; /* what it watched */
    size_t which;        /* its input, of several */
    char bundle[4096];
    bool recorded; /* false: etch itself failed, `err` says why */
    enum etch_verdict verdict;
    double seconds;
    struct etch_error err;
};

int etch_runner_open(struct etch_runner *r, struct etch_error *err);

/* The watches of a run. */
struct etch_runner_watches {
    char *const *list; /* for vpt */
    size_t n;
    const char *plan; /* a file, for sources that use the debug registers; NULL: nothing */
    uint32_t set;     /* which of its sets */
    uint32_t sigma;   /* for how many statements this is */
};

/* The input of one run. */
struct etch_runner_input {
    char **argv;      /* taken over, as etch_inputs_argv() made it */
    const char *file; /* standard input; NULL: the runner's */
    size_t which;
};

/* Starts a run. `input`: NULL where all runs have the same. Returns false where all jobs are taken. */
bool etch_runner_start(struct etch_runner *r, int64_t number, const char *bundle,
                       const struct etch_runner_watches *watches, const struct etch_runner_input *input);

/* Waits up to `seconds` for a run to end. Returns whether one did. */
bool etch_runner_wait(struct etch_runner *r, double seconds, struct etch_runner_result *result);

/* True if the user's own command judges a run a failure, by the file of its output and by its wait status. */
bool etch_runner_check(const char *fails_if, const char *output, int status);

unsigned etch_runner_busy(const struct etch_runner *r);

/* Ends the recorders and their programs, at once; a signal's handler may call it. */
void etch_runner_kill(const struct etch_runner *r);

/* Ends all that still run. */
void etch_runner_close(struct etch_runner *r);

#endif
