/* SPDX-License-Identifier: MIT */
/* etch record: runs a program and records it. */
#include "collector/record.h"
#include "binary/variable.h"
#include "cli/command.h"
#include "cli/record_lab.h"
#include "cli/record_left.h"
#include "cli/record_summary.h"
#include "collector/core_keep.h"
#include "collector/pt.h"
#include "collector/target.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int parse_size(const char *text, uint64_t most, uint64_t *size)
{
    char *end;
    unsigned long long value;

    errno = 0;
    value = strtoull(text, &end, 10);
    if (end == text || errno || text[0] == '-')
        return -1;
    if (*end == 'k' || *end == 'K')
        value <<= 10, end++;
    else if (*end == 'm' || *end == 'M')
        value <<= 20, end++;
    else if (*end == 'g' || *end == 'G')
        value <<= 30, end++;
    *size = value;
    return *end || value < 4096 || value > most ? -1 : 0;
}

/* The exit status that a shell would report. */
static int status_of(int status)
{
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* Returns true if `text` has a field or an element that only types explain. A dot before a digit is part of a name that
 * the compiler made (counter.0). An element with a length (table[3]:4) needs no types. */
static bool needs_types(const char *text)
{
    const char *suffix = strrchr(text, ':'), *dot = strchr(text, '.');

    return etch_variable_has_parts(text) && !(suffix && isdigit((unsigned char)suffix[1])) &&
           !(dot && isdigit((unsigned char)dot[1]));
}

/* The collector knows no types: name.field becomes NAME+OFFSET:LENGTH, with the mode (:w) of the original. `natively`:
 * a debug register must cover the part. */
static int explain_parts(struct etch_record_options *options, bool natively, char texts[][400], struct etch_error *err)
{
    char path[4096];

    if (options->pid)
        snprintf(path, sizeof(path), "/proc/%d/exe", options->pid);
    for (size_t i = 0; i < options->n_watches; i++) {
        struct etch_variable part;
        const char *mode = strrchr(options->watches[i], ':');

        if (!needs_types(options->watches[i]))
            continue;
        if (!options->pid && etch_record_find_program(options->argv[0], path, sizeof(path), err) < 0)
            return -1;
        if (etch_variable_find(&part, path, options->watches[i], err) < 0)
            return -1;
        if (natively && part.size != 1 && part.size != 2 && part.size != 4 && part.size != 8)
            return etch_error_set(
                err, "cannot watch '%s': the variable has %" PRIu64 " bytes, and a watchpoint covers 1, 2, 4 or 8",
                options->watches[i], part.size);
        snprintf(texts[i], sizeof(texts[i]), "%s%s+%" PRIu64 ":%" PRIu64 "%s", part.dereference ? "*" : "", part.name,
                 part.offset, part.size, mode ? mode : "");
        options->watch_names[i] = options->watches[i];
        options->watches[i] = texts[i];
    }
    return 0;
}

/* Returns true if the watches use debug registers, false if QEMU watches. The collector decides in the same way. */
static bool runs_natively(struct etch_record_options *options, bool lab)
{
    if (options->pid || options->n_pids || options->cgroup)
        return true;
    if (strcmp(options->source, "auto") == 0) {
        options->source = etch_record_auto_source(options->argv[0]);
        if (strcmp(options->source, "lab") == 0 && !lab)
            options->source = etch_record_source_without_lab();
        if (strcmp(options->source, "none") == 0)
            fprintf(stderr, "etch record: " ETCH_NO_CONTROL_FLOW "\n");
    }
    return strcmp(options->source, "vpt") != 0;
}

static int print_traces(const struct etch_record_options *options, const struct etch_record_summary *summary)
{
    for (size_t i = 0; i < summary->n_notes; i++)
        fprintf(stderr, "etch record: %s\n", summary->notes[i]);
    fprintf(stderr, "etch record: %" PRIu64 " trace%s of crashed processes in %s\n", summary->traces,
            summary->traces == 1 ? "" : "s", options->for_cores);
    return 0;
}

/* The lab records all accesses to shared memory. A watch or a plan is for the other sources. */
static bool wants_lab(const struct etch_record_options *options)
{
    return options->argv && !options->pid && !options->n_pids && !options->cgroup &&
           (strcmp(options->source, "lab") == 0 ||
            (strcmp(options->source, "auto") == 0 && !options->n_watches && !options->plan && !options->truth &&
             strcmp(etch_record_auto_source(options->argv[0]), "lab") == 0));
}

static int record(const struct etch_command *self, struct etch_record_options *options, struct etch_record_lab *lab)
{
    static char texts[ETCH_RECORD_MAX_WATCHES][400];
    bool in_lab = wants_lab(options);
    struct etch_record_summary summary;
    struct etch_error err;

    lab->automatic = strcmp(options->source, "auto") == 0;
    if (explain_parts(options, runs_natively(options, in_lab), texts, &err) < 0) {
        etch_command_failed(self, &err);
        return ETCH_EXIT_RECORD;
    }
    if ((in_lab ? etch_record_in_lab(lab, options, &summary, &err) : etch_record(options, &summary, &err)) < 0) {
        etch_command_failed(self, &err);
        return ETCH_EXIT_RECORD;
    }
    if (options->for_cores)
        return print_traces(options, &summary);
    etch_record_summary_print(options, &summary);
    if (summary.broken[0]) {
        fprintf(stderr, "etch record: the recording is not whole: %s\n", summary.broken);
        return ETCH_EXIT_RECORD;
    }
    return status_of(summary.status);
}

static int usage(const struct etch_command *self, const char *what, const char *word)
{
    etch_command_usage(self, "%s%s", what, word);
    return ETCH_EXIT_RECORD;
}

enum {
    OPTION_SOURCE = 256,
    OPTION_WATCH,
    OPTION_POLICY,
    OPTION_KEEP_STACK,
    OPTION_TRUTH,
    OPTION_SNAPSHOT,
    OPTION_PID,
    OPTION_NO_SYNC,
    OPTION_FAIL_ON_EXIT,
    OPTION_ALLOW_PTRACE,
    OPTION_ALLOW_BREAKPOINTS,
    OPTION_HANG,
    OPTION_WALL,
    OPTION_KILL,
    OPTION_BUDGET,
    OPTION_SHARE,
    OPTION_SET,
    OPTION_PLAN,
    OPTION_CLOCK,
    OPTION_FULL,
    OPTION_PT,
    OPTION_FILTER,
    OPTION_CGROUP,
    OPTION_FOR_CORES,
    OPTION_RINGS,
    OPTION_RECOVER,
    OPTION_MAX_SIZE,
    OPTION_MAX_RINGS,
    OPTION_SCHEDULE,
    OPTION_MEMORY,
};

static const struct option long_options[] = {{"help", no_argument, NULL, 'h'},
                                             {"output", required_argument, NULL, 'o'},
                                             {"source", required_argument, NULL, OPTION_SOURCE},
                                             {"watch", required_argument, NULL, OPTION_WATCH},
                                             {"truth", required_argument, NULL, OPTION_TRUTH},
                                             {"snapshot", required_argument, NULL, OPTION_SNAPSHOT},
                                             {"full", optional_argument, NULL, OPTION_FULL},
                                             {"pt", required_argument, NULL, OPTION_PT},
                                             {"filter", required_argument, NULL, OPTION_FILTER},
                                             {"cgroup", required_argument, NULL, OPTION_CGROUP},
                                             {"for-cores", optional_argument, NULL, OPTION_FOR_CORES},
                                             {"pid", required_argument, NULL, OPTION_PID},
                                             {"no-sync", no_argument, NULL, OPTION_NO_SYNC},
                                             {"fail-on-exit", no_argument, NULL, OPTION_FAIL_ON_EXIT},
                                             {"allow-breakpoints", no_argument, NULL, OPTION_ALLOW_BREAKPOINTS},
                                             {"allow-ptrace", no_argument, NULL, OPTION_ALLOW_PTRACE},
                                             {"hang", required_argument, NULL, OPTION_HANG},
                                             {"wall", required_argument, NULL, OPTION_WALL},
                                             {"kill", no_argument, NULL, OPTION_KILL},
                                             {"watch-budget", required_argument, NULL, OPTION_BUDGET},
                                             {"watch-share", required_argument, NULL, OPTION_SHARE},
                                             {"set", required_argument, NULL, OPTION_SET},
                                             {"clock", required_argument, NULL, OPTION_CLOCK},
                                             {"plan", required_argument, NULL, OPTION_PLAN},
                                             {"policy", required_argument, NULL, OPTION_POLICY},
                                             {"keep-stack", no_argument, NULL, OPTION_KEEP_STACK},
                                             {"rings", required_argument, NULL, OPTION_RINGS},
                                             {"max-size", required_argument, NULL, OPTION_MAX_SIZE},
                                             {"max-rings", required_argument, NULL, OPTION_MAX_RINGS},
                                             {"recover", optional_argument, NULL, OPTION_RECOVER},
                                             {"schedule", required_argument, NULL, OPTION_SCHEDULE},
                                             {"memory", required_argument, NULL, OPTION_MEMORY},
                                             {0}};

static int parse_number(const char *text, double least, double most, double *value)
{
    char *end;

    *value = strtod(text, &end);
    return end == text || *end || !(*value >= least && *value <= most) ? -1 : 0;
}

static int take_bound(const struct etch_command *self, uint64_t *bound)
{
    if (strcmp(optarg, "none") == 0) {
        *bound = 0;
        return 0;
    }
    return parse_size(optarg, (uint64_t)1 << 50, bound) < 0
               ? usage(self, "a limit is a size of at least 4K, or none, not ", optarg)
               : 0;
}

/* Takes an option with a number. Returns 0, or the usage error's status. */
static int take_number(const struct etch_command *self, int c, struct etch_record_options *options)
{
    double value;

    if (c == OPTION_SNAPSHOT)
        return parse_size(optarg, 1u << 30, &options->snapshot) < 0
                   ? usage(self, "--snapshot takes a size from 4K to 1024M, not ", optarg)
                   : 0;
    if (c == OPTION_MAX_SIZE || c == OPTION_MAX_RINGS)
        return take_bound(self, c == OPTION_MAX_SIZE ? &options->max_size : &options->max_rings);
    if (c == OPTION_BUDGET && strcmp(optarg, "none") == 0)
        return options->watch_hits_per_s = 0;
    if (parse_number(optarg, 0, 1e9, &value) < 0)
        return usage(self, "the option does not take this value: ", optarg);
    if (c == OPTION_HANG) {
        options->hang_s = value;
    } else if (c == OPTION_CLOCK) {
        options->clock_s = value;
        options->clock_fresh = true;
    } else if (c == OPTION_WALL) {
        options->wall_s = value;
    } else if (c == OPTION_BUDGET) {
        options->watch_hits_per_s = (uint64_t)value;
    } else if (c == OPTION_SHARE) {
        options->watch_share = value / 100;
    } else {
        options->set_given = true;
        options->set = (uint32_t)value;
    }
    return 0;
}

/* A single process is joined. Several processes, separated by commas, are followed from outside. */
static int take_pids(const struct etch_command *self, struct etch_record_options *options)
{
    const char *text = optarg;
    char *end;

    options->n_pids = 0;
    do {
        long pid = strtol(text, &end, 10);

        if (end == text || (*end && *end != ',') || pid < 1 || pid > 1 << 22)
            return usage(self, "--pid takes a process number, or several separated by commas, not ", optarg);
        if (options->n_pids == ETCH_RECORD_MAX_PIDS)
            return usage(self, "too many processes, at most 64", "");
        options->pids[options->n_pids++] = (int)pid;
        text = end + 1;
    } while (*end);
    if (options->n_pids == 1) {
        options->pid = options->pids[0];
        options->n_pids = 0;
    }
    return 0;
}

/* Takes an option of Intel PT. */
static int take_pt(const struct etch_command *self, int c, struct etch_record_options *options)
{
    switch (c) {
    case OPTION_PT:
        options->pt_words = optarg;
        return 0;
    case OPTION_CGROUP:
        options->cgroup = optarg;
        return 0;
    case OPTION_FOR_CORES:
        options->for_cores = optarg ? optarg : ETCH_CORE_FOLDER;
        return 0;
    case OPTION_FILTER:
        if (options->n_filters == ETCH_RECORD_MAX_FILTERS)
            return usage(self, "too many filters, at most 64", "");
        options->filters[options->n_filters++] = optarg;
        return 0;
    default:
        options->full = true;
        return optarg && parse_size(optarg, 1u << 30, &options->full_ring) < 0
                   ? usage(self, "--full takes a size from 4K to 1024M, not ", optarg)
                   : 0;
    }
}

/* Takes an option. Returns 0, or the usage error's status. */
static int take_option(const struct etch_command *self, int c, char **argv, struct etch_record_options *options)
{
    switch (c) {
    case 'o':
        options->output = optarg;
        return 0;
    case OPTION_SOURCE:
        options->source = optarg;
        return 0;
    case OPTION_WATCH:
        if (options->n_watches == ETCH_RECORD_MAX_WATCHES)
            return usage(self, "too many watches, at most 256", "");
        options->watches[options->n_watches++] = optarg;
        return 0;
    case OPTION_PLAN:
        options->plan = optarg;
        return 0;
    case OPTION_TRUTH:
        options->truth = optarg;
        return 0;
    case OPTION_NO_SYNC:
        options->no_sync = true;
        return 0;
    case OPTION_FAIL_ON_EXIT:
        options->fail_on_exit = true;
        return 0;
    case OPTION_POLICY:
        options->policy = optarg;
        return 0;
    case OPTION_KEEP_STACK:
        options->keep_stack = true;
        return 0;
    case OPTION_ALLOW_PTRACE:
        options->allow_ptrace = true;
        return 0;
    case OPTION_ALLOW_BREAKPOINTS:
        options->allow_breakpoints = true;
        return 0;
    case OPTION_KILL:
        options->kill_on_hang = true;
        return 0;
    case OPTION_PID:
        return take_pids(self, options);
    case OPTION_FULL:
    case OPTION_PT:
    case OPTION_FILTER:
    case OPTION_CGROUP:
    case OPTION_FOR_CORES:
        return take_pt(self, c, options);
    case ':':
    case '?':
        etch_command_bad_option(self, c, argv);
        return ETCH_EXIT_RECORD;
    default:
        return take_number(self, c, options);
    }
}

/* Returns the first free name of run.etch, run.2.etch, ...: etch overwrites a recording only if -o names it. */
static const char *free_name(char *name, size_t size)
{
    snprintf(name, size, "run.etch");
    for (unsigned i = 2; access(name, F_OK) == 0 && i < 100000; i++)
        snprintf(name, size, "run.%u.etch", i);
    return name;
}

static int run(const struct etch_command *self, int argc, char **argv)
{
    char name[32];
    struct etch_record_options options = {.output = free_name(name, sizeof(name)),
                                          .source = "auto",
                                          .watch_hits_per_s = 100000,
                                          .watch_share = 0.25,
                                          .max_size = ETCH_RECORD_MAX_SIZE,
                                          .max_rings = ETCH_RECORD_MAX_RINGS,
                                          .clock_s = 0.2};
    struct etch_record_lab lab = {.argv = argv};
    const char *rings = NULL, *folder = NULL;
    bool running, recovers = false;
    int c, status;

    while ((c = getopt_long(argc, argv, "+:ho:", long_options, NULL)) != -1) {
        if (c == 'h')
            return etch_command_help(self);
        if (c == OPTION_RINGS) {
            rings = optarg;
            continue;
        }
        if (c == OPTION_RECOVER) {
            recovers = true;
            folder = optarg;
            continue;
        }
        if (c == OPTION_SCHEDULE || c == OPTION_MEMORY) {
            *(c == OPTION_MEMORY ? &lab.memory : &lab.schedule) = optarg;
            continue;
        }
        status = take_option(self, c, argv, &options);
        if (status)
            return status;
    }
    if ((lab.schedule || lab.memory) && strcmp(options.source, "lab") != 0)
        return usage(self, "--schedule and --memory are for --source lab", "");
    if (rings)
        return optind == argc ? etch_record_rings(self, rings, &options)
                              : usage(self, "--rings takes no program, but got ", argv[optind]);
    if (recovers)
        return optind == argc ? etch_record_recover(self, folder, options.output)
                              : usage(self, "--recover takes no program, but got ", argv[optind]);
    if (options.for_cores && options.pid) { /* a process that etch joined would wait for etch, not for the handler */
        options.n_pids = 1;
        options.pid = 0;
    }
    running = options.pid || options.n_pids || options.cgroup;
    if (running && optind != argc)
        return usage(self, "--pid and --cgroup take no program, but got ", argv[optind]);
    if (options.cgroup && (options.pid || options.n_pids))
        return usage(self, "--pid and --cgroup cannot be combined", "");
    if (options.for_cores && !running)
        return usage(self, "--for-cores needs --pid or --cgroup", "");
    if (!running && optind == argc)
        return usage(self, "which program?", "");
    if (!running)
        options.argv = argv + optind;
    etch_record_mention_killed();
    return record(self, &options, &lab);
}

const struct etch_command etch_command_record = {
    .name = "record",
    .summary = "runs a program, or joins one, and records what every thread does",
    .help =
        "usage: etch record [-o FILE] [--source S] [--watch WHAT]... [OPTION...] [--] PROG [ARG...]\n"
        "       etch record [-o FILE] [--watch WHAT]... [OPTION...] --pid PID[,PID...] | --cgroup NAME\n\n"
        "Runs PROG with its own input, output and arguments, and records the run in FILE. The exit status is PROG's "
        "own,\n"
        "or 128+N after signal N. The exit status is 125 if etch itself failed, or if the recording is not whole "
        "because\n"
        "the disk is full. At the end etch prints on standard error what was recorded and what was lost.\n\n"
        "  -o, --output FILE  the file to write (run.etch, or run.2.etch and so on if that name is taken). An older\n"
        "                     recording of that name is kept as FILE.old until the new one is whole. etch does not "
        "replace\n"
        "                     a file that etch did not write\n"
        "  --source S         pt: control flow by the CPU's Intel PT; soft: by the recorder that etch cc --record put\n"
        "                     into PROG; lab: one thread at a time, under etch's control,\n"
        "                     with all accesses to shared memory, if PROG was built with etch cc; vpt: control flow\n"
        "                     under QEMU, on any machine, as real Intel PT packets;\n"
        "                     none: no control flow, but hardware watches, synchronisation and failures at full\n"
        "                     speed, which pt and soft have too; auto: the first available source in this order\n"
        "  --watch WHAT       also record each read and write of a variable, with its value. WHAT is NAME of a "
        "global,\n"
        "                     NAME[3]:4, NAME+16:8, ADDRESS:LENGTH, or NAME.field and NAME[3].x by the debug\n"
        "                     information. Add :w to record writes only. May be repeated. All sources take these "
        "forms\n\n"
        "  --max-size SIZE    limit the bundle to about SIZE (4G; none: no limit). Control flow, accesses and\n"
        "                     synchronisation beyond the limit are left out and counted as a loss\n"
        "  --policy FILE      the policy for arguments and values (ETCH_POLICY, /etc/etch/policy,\n"
        "                     ~/.config/etch/policy; else arguments that look like secrets are masked)\n"
        "  --keep-stack       record whole stacks, with the environment and everything else in them, instead of\n"
        "                     addresses only\n\n"
        "  --rings FOLDER     run nothing; make a bundle of the rings that a program left in FOLDER. The program was "
        "built\n"
        "                     with etch cc --record and started with ETCH_RING=FOLDER in its environment. Takes the "
        "newest\n"
        "                     process that failed, with its children, or the process of --pid. etch sketch PROG "
        "--rings\n"
        "                     FOLDER shows how it failed\n\n"
        "  --recover[=FOLDER] run nothing; make a bundle of the recording of a killed etch, with soft or vpt: its "
        "bundle\n"
        "                     and the data still in the rings. Takes the newest, or that in FOLDER "
        "(/dev/shm/etch-UID/...)\n\n"
        "with source soft:\n"
        "  --snapshot SIZE    the size of each thread's ring (64K)\n"
        "  --pid PID          switch the recorder of a running program on, until Ctrl-C or --wall\n\n"
        "with source lab:\n"
        "  --schedule S       which thread runs when: queue, random:SEED, pct:SEED,DEPTH, pos:SEED or surw:SEED "
        "(queue)\n"
        "  --memory M         sc: loads read the newest value; tso: stores of other threads come late, as on x86; c11: "
        "loads\n"
        "                     read any value that C11 allows (sc)\n"
        "  --snapshot SIZE    the size of each thread's ring (512K)\n\n"
        "with source vpt:\n"
        "  --watch @PLACE:LENGTH\n"
        "                     the memory that the instruction at PLACE of the program's file (an address, "
        "NAME+OFFSET)\n"
        "                     reads or writes. After the instruction's first access, accesses by all instructions are\n"
        "                     recorded. With :here added, only accesses by that instruction\n"
        "  --snapshot SIZE    keep only the newest SIZE bytes (64K, 1M) of each thread, as a flight recorder does\n"
        "  --max-rings SIZE   limit the memory for rings at a time, about 1.1M a thread (1G; none: no limit). Threads "
        "beyond\n"
        "                     the limit are not recorded and counted as a loss\n"
        "  --truth DIR        for tests: also write each instruction that ran to DIR/PID.TID.truth\n\n"
        "with source pt:\n"
        "  --snapshot SIZE    keep the newest SIZE bytes of each CPU (4M, or less if etch may not lock so much "
        "memory)\n"
        "  --full[=SIZE]      record everything, through a ring of SIZE on each CPU (8M)\n"
        "  --filter WHAT      trace this code only: a function, START-END as nm shows addresses, or plan for the code "
        "of\n"
        "                     --plan. May be repeated; more ranges than the CPU has filters are joined\n"
        "  --pt SETTINGS      mtc=0, cyc, noretcomp, psb_period=N, mtc_period=N, cyc_thresh=N, separated by commas\n"
        "  --pid PID,PID...   follow several processes from outside, or\n"
        "  --cgroup NAME      all processes of a control group, until Ctrl-C or --wall; no watches, and failures are "
        "not seen\n"
        "  --for-cores[=FOLDER]\n"
        "                     with --pid or --cgroup: write nothing until one of the processes crashes. etch core, "
        "the\n"
        "                     handler of cores (etch core --install), then finds the trace beside the core in FOLDER\n"
        "                     (" ETCH_CORE_FOLDER ")\n\n"
        "with sources pt, soft and none:\n"
        "  --watch *NAME+8:4  the memory that the pointer NAME points to when the watch is set; POINTER->field "
        "likewise\n"
        "  --watch @PLACE=BASE,INDEX,SCALE,OFFSET:LENGTH\n"
        "                     the location that these registers give when the instruction at PLACE (an address,\n"
        "                     NAME+OFFSET) is first reached\n"
        "  --pid PID          join a running process; Ctrl-C leaves the process as it was\n"
        "  --plan FILE        watch what a plan of etch slice says, one of its sets in each run\n"
        "  --set N            take the N-th set, if there are more watches than the CPU has debug registers. Default: "
        "the\n"
        "                     set after that of the run in FILE\n"
        "  --watch-budget N   pause a watch that is hit more than N times a second (100000; none: no limit)\n"
        "  --watch-share P    pause a watch that costs more than P percent of a CPU (25; 0: no limit)\n"
        "  --no-sync          do not preload the library that records pthread synchronisation\n"
        "  --hang S           the run fails if no thread runs for S seconds\n"
        "  --wall S           the run fails if it takes longer than S seconds; with --pid the recording ends then\n"
        "  --kill             end the program after a hang or the time limit, instead of leaving it; etch does not "
        "wait\n"
        "                     for a hang that is certain\n"
        "  --fail-on-exit     the run fails by an exit status other than 0\n"
        "  --clock S          measure how far the CPUs' clocks are apart, for S seconds before and again after the "
        "run.\n"
        "                     Without it, etch measures once and keeps the result for a day (etch calibrate). 0: not\n"
        "                     measured, and the clocks cannot order events of different CPUs\n"
        "  --allow-ptrace     record a program although it calls ptrace\n"
        "  --allow-breakpoints  watch in a program although it opens perf events, perhaps breakpoints, itself\n\n"
        "examples:\n"
        "  etch record -- ./server --port 8080\n"
        "  etch record -o crash.etch --watch counter ./a.out && etch info crash.etch\n"
        "  etch record --snapshot 1M ./long-runner\n"
        "  etch record --source none --watch jobs --hang 10 ./server\n"
        "  etch record --pid 4711 --watch 'queue->length'\n"
        "  etch record --pid 4711 --source soft --wall 10\n"
        "  etch record --source pt --snapshot 16M ./server\n"
        "  etch record --recover -o killed.etch\n"
        "  etch record --source pt --cgroup system.slice/nginx.service --wall 10\n"
        "  etch record --source pt --for-cores --cgroup system.slice/nginx.service\n",
    .run = run,
    .keeps_signals = true,
};
