/* SPDX-License-Identifier: MIT */
/* Runs a program and records it into a bundle. The program keeps its own input, output, status and signals; the bundle
 * is whole on exit, crash and kill alike, and readable up to the last moment if etch itself is killed. */
#ifndef ETCH_COLLECTOR_RECORD_H
#define ETCH_COLLECTOR_RECORD_H

#include "base/error.h"
#include "binary/object.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ETCH_RECORD_MAX_WATCHES 256u
#define ETCH_RECORD_MAX_FILTERS 64u
#define ETCH_RECORD_MAX_PIDS 64u
#define ETCH_RECORD_MAX_SIZE ((uint64_t)4 << 30)  /* of a bundle, unless another bound is asked for */
#define ETCH_RECORD_MAX_RINGS ((uint64_t)1 << 30) /* of rings in memory */

struct etch_record_options {
    const char *output;
    const char *source;                               /* "pt", "soft", "lab", "vpt", "none" or "auto" */
    char *const *argv;                                /* NULL at the end */
    const char *watches[ETCH_RECORD_MAX_WATCHES];     /* in the grammar of session/place.h, which all sources share */
    const char *watch_names[ETCH_RECORD_MAX_WATCHES]; /* their names in the bundle; NULL: as above */
    size_t n_watches;
    const char *truth; /* folder for the truth log; NULL: none */
    const struct Etch__Clock
        *clock;          /* the clocks as measured before, for the bundle; NULL: measured where something is watched */
    const char *subject; /* the program that sites to watch are in, where argv starts it; NULL: argv's own */
    uint64_t
        snapshot;  /* keep the newest bytes of each thread (vpt) or CPU (pt) only; 0: all (vpt), or as many as fit */
    double wall_s; /* the run took so long: a failure, and with vpt the end of the program; 0: no limit */
    uint64_t max_size;            /* bytes of the bundle, about; 0: no bound */
    uint64_t max_rings;           /* of vpt: bytes of rings in memory at a time; 0: no bound */
    const char *policy;           /* the file with the policy; NULL: as etch_policy_find() finds it */
    bool keep_stack;              /* stacks as they are, with all that is in them */
    struct etch_privacy *privacy; /* etch_record()'s own */
    bool sync;                    /* for vpt: preload the synchronisation library (other sources do, unless no_sync) */

    /* For a run in the lab (source "lab"). */
    struct etch_lab_shared *lab;        /* mapped, and filled in */
    int lab_fd;                         /* the same, for the program */
    const struct etch_source *lab_flow; /* etch_record()'s own: the source of the control flow */
    const char *file;                   /* the file to run, where argv's first word names another; NULL: that word */

    /* For Intel PT (source "pt"). */
    bool full;                                    /* record all, rather than keep the newest */
    uint64_t full_ring;                           /* bytes of each CPU's ring then; 0: as many as fit */
    const char *pt_words;                         /* settings, as etch_pt_setting_choose() has them; NULL: none */
    const char *filters[ETCH_RECORD_MAX_FILTERS]; /* "plan", START-END, or a function: trace these only */
    size_t n_filters;
    int pids[ETCH_RECORD_MAX_PIDS]; /* follow these processes without joining them; at least two */
    size_t n_pids;
    const char *cgroup;    /* follow all of this control group, without joining them; NULL: none */
    const char *for_cores; /* keep the rings of `pids` or `cgroup` for etch core, which has this folder; NULL: record */

    /* For a program that runs on this CPU itself (sources "pt", "soft" and "none"). */
    int pid;                   /* join this process instead of starting argv; 0: start */
    bool no_sync;              /* leave the synchronisation library out */
    bool fail_on_exit;         /* a status other than 0 is a failure */
    bool allow_breakpoints;    /* watches also in a program that opens perf events itself */
    bool allow_ptrace;         /* also a program that calls ptrace itself */
    double hang_s;             /* no thread ran for so long: a failure; 0: not looked for */
    bool kill_on_hang;         /* kill the program after hang_s or wall_s; else leave the program as it is */
    uint64_t watch_hits_per_s; /* a watch with more hits is cut; 0: no limit */
    double watch_share;        /* a watch that costs more than this share of a CPU is cut; 0: no limit */
    uint32_t slots;            /* watches at a time; 0: as many as the CPU has */
    double clock_s;            /* for measuring the CPUs' clocks before, and again after; 0: not done */
    bool clock_fresh;          /* measured for this recording, even if an earlier measurement was kept */
    const char *plan;          /* a file with watches in sets; NULL: none */
    bool set_given;
    uint32_t set; /* number of the set of watches to arm */
};

struct etch_record_summary {
    const char *source;
    int status; /* as waitpid has it */
    uint64_t threads, processes, flow_bytes, accesses, bundle_bytes;
    uint64_t losses;  /* by the bundle's ledger, at the end */
    char lost[400];   /* which, or "nothing" */
    char loss[200];   /* the first one's words */
    char broken[512]; /* why the bundle is not whole; empty: it is */
    bool out_of_time; /* ended by etch after wall_s (vpt) */
    bool failed;
    uint32_t failure_signal, failure_tid;
    bool failure_placed; /* the next two are known */
    uint64_t failure_ip, failure_address;
    bool failure_address_known;

    int failure_kind; /* Etch__FailureKind, of source "none" */
    char failure_message[256];
    uint64_t duration_ns, syncs, cuts, cut_ns, skipped_watches;
    uint64_t target_cpu_ns, recorder_cpu_ns, hit_ns;
    uint64_t locked_bytes; /* of memory, for rings */
    uint64_t traces;       /* of processes that crashed, with `for_cores` */
    bool left_running;
    char notes[6][256]; /* texts for the user */
    size_t n_notes;
};

/* Finds the file that `name` runs, along PATH unless `name` has a slash. Returns 0, or -1 with `err` set. */
int etch_record_find_program(const char *name, char *path, size_t size, struct etch_error *err);

/* Returns true if the program was built with etch cc --record. The program is found as execvp would. */
bool etch_record_has_recorder(const char *program);

/* Returns true if the program was linked by etch cc: a lab build can be made of it. */
bool etch_record_has_lab(const char *program);

/* The source that `auto` takes if the program has neither a recorder nor a lab build: vpt or none. */
const char *etch_record_source_without_lab(void);

/* The source that `auto` takes to run the program: pt, soft, lab, vpt or none, the first of them that works here. */
const char *etch_record_auto_source(const char *program);

/* Returns 0 if the program ran and was recorded, also if the program failed (`summary` says); -1 with `err` set if etch
 * failed. `summary->status` is set as soon as the program ran. */
int etch_record(const struct etch_record_options *options, struct etch_record_summary *summary, struct etch_error *err);

#endif
