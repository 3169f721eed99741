/* SPDX-License-Identifier: MIT */
/* One run of a program in the lab: etch's side of lab/layout.h. */
#ifndef ETCH_COLLECTOR_LAB_RUN_H
#define ETCH_COLLECTOR_LAB_RUN_H

#include "base/error.h"
#include "collector/lab/layout.h"

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* The lines and the threads that rules name, and the code of no line of the program's own. */
struct etch_lab_lines {
    struct etch_lab_place places[ETCH_LAB_PLACES];
    struct etch_lab_range ranges[ETCH_LAB_RANGES], foreign[ETCH_LAB_RANGES];
    struct etch_lab_name names[ETCH_LAB_NAMES];
    uint32_t n_places, n_ranges, n_foreign, n_names;
};

/* gdb attaches to the run before it begins, and goes on to a place. Without a place gdb goes on to the failure. */
struct etch_lab_debugger {
    const char *gdb;        /* its path */
    char *const *arguments; /* behind ours; NULL behind the last */
    int signal;             /* of the failure; 0: none */
    bool at_exit;           /* the failure is an exit status */
    uint64_t point;         /* to halt at, from 1; 0: none */
    bool is_moment;         /* halts at `moment`, of any thread if `any_thread` */
    bool any_thread;
    struct etch_lab_moment moment;
    uint32_t n_ruled; /* places of the request's lines that rules name; the others are only for `moment` */
};

struct etch_lab_request {
    const char *program; /* the lab build */
    char *const *argv;   /* as the program sees it, NULL behind the last */
    const char *input;   /* standard input; NULL: none */
    bool silent;         /* standard output and error go nowhere */
    struct etch_lab_spec spec;
    uint64_t max_points;
    double timeout; /* seconds of real time; 0: none */
    bool real_time, all_points, no_heap_check;
    bool keeps_choices; /* the run keeps who could run at each point */
    enum etch_lab_memory memory;
    const uint64_t *sites;    /* ETCH_LAB_SITES; NULL: none are known yet */
    const uint64_t *expected; /* ETCH_LAB_THREADS; NULL: unknown */
    const uint64_t *chosen;   /* at most ETCH_LAB_CHOSEN */
    uint32_t n_chosen;
    const struct etch_lab_segment *repeat; /* NULL: the strategy decides */
    bool loosely;                          /* as ETCH_LAB_LOOSELY; else exactly */
    const struct etch_lab_rule *rules;
    uint32_t n_rules;                   /* at most ETCH_LAB_MOST_RULES */
    const struct etch_lab_lines *lines; /* that the rules name; NULL: none */
    uint32_t n_repeat;
    uint32_t asked;        /* sources (enum etch_lab_source) that are no input: asked again in each run */
    const void *feed;      /* answers from outside, as a run kept them; NULL: the world outside answers */
    size_t feed_size;      /* at most ETCH_LAB_JOURNAL */
    const uint32_t *flows; /* hashes to compare with, of the first points */
    uint32_t n_flows;
    const char *output; /* a file for standard output and error; NULL: see `silent` */
    /* Judges a run that ended by itself, by its output and its wait status; NULL: its exit status says whether it
     * failed. */
    bool (*fails)(void *context, const char *output, int status);
    void *fails_context;
    const struct etch_lab_debugger *debugger; /* NULL: none */
    const volatile sig_atomic_t *stop;        /* set by a signal handler: the run is ended at once; NULL: never */
};

#define ETCH_LAB_CHECK 256 /* `number` of a run that ended by itself, if `fails` says that it failed */

/* How the run ended, by itself or in the lab. */
enum etch_lab_end {
    ETCH_LAB_EXITED,   /* `number` is the status */
    ETCH_LAB_SIGNALED, /* `number` is the signal */
    ETCH_LAB_WRONG,    /* memory was misused; `number` is enum etch_lab_misuse */
    ETCH_LAB_HUNG,     /* no thread could run any more */
    ETCH_LAB_ENDLESS,  /* the limit of points or of time was reached */
    ETCH_LAB_UNLIKE,   /* the schedule to repeat did not fit */
    ETCH_LAB_UNKEPT,   /* a rule could not be kept */
};

struct etch_lab_result {
    enum etch_lab_end end;
    int number;
    double seconds;
    struct etch_lab_shared *shared; /* unmapped by etch_lab_result_release() */
};

/* Runs the program to its end. Returns 0, or -1 with `err` set if it could not be run. */
int etch_lab_run(struct etch_lab_result *result, const struct etch_lab_request *request, struct etch_error *err);

/* A run that goes on beside others. */
struct etch_lab_running {
    pid_t pid;
    double begin;
    struct etch_lab_shared *shared; /* NULL: none */
};

/* The same in two steps: starts the program, and waits for its end. Both get the same request. A run that was started
 * is finished or abandoned. */
int etch_lab_start(struct etch_lab_running *run, const struct etch_lab_request *request, struct etch_error *err);
int etch_lab_finish(struct etch_lab_result *result, struct etch_lab_running *run,
                    const struct etch_lab_request *request, struct etch_error *err);
void etch_lab_abandon(struct etch_lab_running *run);

void etch_lab_result_release(struct etch_lab_result *result);

/* "SIGSEGV", "exit status 3", "no thread can run", ... */
void etch_lab_describe(const struct etch_lab_result *result, char *text, size_t size);

/* Reads "sc", "tso" or "c11". False if `text` is none of these. */
bool etch_lab_memory_parse(enum etch_lab_memory *memory, const char *text);

const char *etch_lab_memory_name(enum etch_lab_memory memory);

#endif
