/* SPDX-License-Identifier: MIT */
/* etch diagnose: the whole loop on one machine. Runs the program until it fails, slices from where it did, watches what
 * the slice's nearest statements use, runs on, ranks what failing runs do that passing ones do not, and widens until
 * the best answer is strong and stays. */
#include "calibrate/calibration.h"
#include "cli/command.h"
#include "cli/runner.h"
#include "cli/sketching.h"
#include "cli/summaries.h"
#include "collector/clock_record.h"
#include "sketch/store.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FIRST_SIGMA 16u       /* of vpt: an emulated watch costs no debug register, so the first round may be wide */
#define FIRST_SIGMA_NATIVE 8u /* about what four debug registers can hold, or two runs' worth */
#define SLOTS 4u              /* debug registers */
#define STRONG 0.999
#define FAILING_ENOUGH 2u /* failing runs of which a strong predictor is true */
#define FAILING_MAX 4u    /* kept of a round for each set of watches; then it is widened or given up */
#define PASSING_ENOUGH 5u /* passing runs of which it is known not to be */

struct diagnose_options {
    char **argv;
    unsigned runs, jobs;
    uint32_t sigma; /* statements to begin with; 0: as the source takes best */
    double time, timeout;
    const char *fails_if, *store, *source;
    bool fresh;
    struct sketching_output output;
};

struct diagnosis {
    const struct diagnose_options *o;
    struct sketching s;
    struct runner runner;
    struct etch_store *store;
    char folder[4096];
    Etch__Clock *clock;
    double began;
    unsigned runs, failures, stored; /* of this call, with those of the store, and how many those were */
    unsigned unplaced;               /* failed, but nowhere in the program */
    unsigned failing_tracked, passing_tracked, failing_at_round, passing_at_round;
    unsigned round;
    uint32_t sigma;
    ETCH_ARRAY(char *) watches;
    char plan[4200]; /* for source none: the file with this round's watches, in sets; empty: none */
    uint32_t sets;
    char *best; /* the top predictor's words */
    double best_f;
    unsigned best_true, best_passing; /* failing runs of which it is true, passing ones that can tell */
    bool best_is_value;
    unsigned needed; /* failures when it became the best, and strong */
    bool exhausted, done;
    bool terminal;
};

static volatile sig_atomic_t interrupted;

static void on_interrupt(int number)
{
    (void)number;
    interrupted = 1;
}

/* ---- Progress ---- */

static void progress(const struct diagnosis *d)
{
    if (!d->terminal)
        return;
    fprintf(stderr, "\r\033[K%u runs, %u failed", d->runs, d->failures);
    if (d->round)
        fprintf(stderr, ", round %u (%u statements)", d->round, d->sigma);
    if (d->best)
        fprintf(stderr, ": F %.2f %.60s", d->best_f, d->best);
    fflush(stderr);
}

static void clear_progress(const struct diagnosis *d)
{
    if (d->terminal)
        fputs("\r\033[K", stderr);
}

/* ---- The store ---- */

static uint64_t mix(uint64_t hash, const void *bytes, size_t n)
{
    const unsigned char *p = bytes;

    for (size_t i = 0; i < n; i++)
        hash = (hash ^ p[i]) * 0x100000001b3u;
    return hash;
}

/* One folder for each build, arguments and check: runs of others are not to be mixed in. */
static int choose_folder(struct diagnosis *d, struct etch_error *err)
{
    uint64_t hash = 0xcbf29ce484222325u;
    const char *name = strrchr(d->o->argv[0], '/');
    struct etch_elf elf;

    if (etch_elf_read(&elf, d->o->argv[0], err) < 0)
        return -1;
    hash = mix(hash, elf.build_id, elf.build_id_size);
    if (!elf.build_id_size) {
        struct stat st;

        if (stat(d->o->argv[0], &st) == 0)
            hash = mix(hash, &st.st_mtim, sizeof(st.st_mtim));
    }
    for (char **a = d->o->argv + 1; *a; a++)
        hash = mix(hash, *a, strlen(*a) + 1);
    hash = mix(hash, d->o->source, strlen(d->o->source) + 1);
    if (d->o->fails_if)
        hash = mix(hash, d->o->fails_if, strlen(d->o->fails_if) + 1);
    snprintf(d->folder, sizeof(d->folder), "%.3800s/%.200s-%016" PRIx64, d->o->store, name ? name + 1 : d->o->argv[0],
             hash);
    return 0;
}

static const char *verdict_of(const char *text)
{
    return strcmp(text, "pass") == 0 ? "pass" : strcmp(text, "hang") == 0 ? "hang" : "fail";
}

static void account(struct diagnosis *d, const char *verdict, uint32_t sigma)
{
    bool failing = strcmp(verdict, "pass") != 0 && strcmp(verdict, "unplaced") != 0;

    d->runs++;
    d->unplaced += strcmp(verdict, "unplaced") == 0;
    d->failures += failing;
    if (sigma) {
        d->failing_tracked += failing;
        d->passing_tracked += strcmp(verdict, "pass") == 0;
    }
}

static int take_stored(void *context, const struct etch_store_run *run)
{
    struct diagnosis *d = context;
    struct etch_error ignored;
    char path[4400];

    snprintf(path, sizeof(path), "%s/%s", d->folder, run->bundle);
    if (sketching_add(&d->s, path, verdict_of(run->verdict), &ignored) < 0)
        return 0; /* a bundle that is gone or damaged is as if it had not run */
    account(d, d->s.bundles.v[d->s.bundles.n - 1].unplaced ? "unplaced" : run->verdict, run->sigma);
    d->sigma = run->sigma > d->sigma ? run->sigma : d->sigma;
    d->stored++;
    return 0;
}

static int open_store(struct diagnosis *d, struct etch_error *err)
{
    char command[4300];

    if (choose_folder(d, err) < 0)
        return -1;
    if (d->o->fresh) {
        snprintf(command, sizeof(command), "%s/runs.db", d->folder);
        if (unlink(command) < 0 && errno != ENOENT)
            return etch_error_set_errno(err, errno, "cannot remove %s", command);
        snprintf(command, sizeof(command), "%s/runs.db-wal", d->folder);
        unlink(command);
        snprintf(command, sizeof(command), "%s/runs.db-shm", d->folder);
        unlink(command);
    }
    if (etch_store_open(&d->store, d->folder, err) < 0)
        return -1;
    return etch_store_list(d->store, take_stored, d, err);
}

static bool has_failing_enough(const struct diagnosis *d)
{
    return d->failing_tracked - d->failing_at_round >= FAILING_MAX * (d->sets > 1 ? d->sets : 1);
}

/* A program that nearly always fails: what counts then is to see it pass. */
static bool is_one_too_many(const struct diagnosis *d, const struct runner_result *result)
{
    return result->sigma && strcmp(result->verdict, "pass") != 0 && has_failing_enough(d);
}

static int keep(struct diagnosis *d, const struct runner_result *result, struct etch_error *err)
{
    struct etch_store_run run = {.id = result->number, .sigma = result->sigma, .seconds = result->seconds};
    const char *slash = strrchr(result->bundle, '/');

    if (sketching_add(&d->s, result->bundle, result->verdict, err) < 0)
        return -1;
    snprintf(run.bundle, sizeof(run.bundle), "%s", slash ? slash + 1 : result->bundle);
    snprintf(run.verdict, sizeof(run.verdict), "%s", result->verdict);
    account(d, d->s.bundles.v[d->s.bundles.n - 1].unplaced ? "unplaced" : result->verdict, result->sigma);
    return etch_store_add(d->store, &run, err);
}

/* ---- The plan ---- */

static void drop_watches(struct diagnosis *d)
{
    for (size_t i = 0; i < d->watches.n; i++)
        free(d->watches.v[i]);
    d->watches.n = 0;
}

static bool has_watch(const struct diagnosis *d, const char *text)
{
    for (size_t i = 0; i < d->watches.n; i++)
        if (strcmp(d->watches.v[i], text) == 0)
            return true;
    return false;
}

static bool is_native(const struct diagnosis *d)
{
    return strcmp(d->o->source, "none") == 0;
}

/* A debug register takes shared memory only, four at a time: runs take turns at the sets of the plan. */
static int plan_sets(struct diagnosis *d, struct etch_error *err)
{
    Etch__Plan *plan = etch_slice_plan(d->s.slicing, d->sigma, SLOTS);
    int status = -1;

    if (!plan)
        return etch_error_set(err, "out of memory");
    d->sets = (uint32_t)plan->n_sets;
    snprintf(d->plan, sizeof(d->plan), "%.4000s/round-%u.plan", d->folder, d->round);
    status = sketching_write_plan(d->plan, plan, err);
    if (!d->sets)
        d->plan[0] = '\0';
    etch__plan__free_unpacked(plan, NULL);
    return status;
}

/* What the first `sigma` statements use: shared memory wherever it is used from then on, a thread's own where it is. */
static int plan(struct diagnosis *d, struct etch_error *err)
{
    const Etch__Slice *slice = d->s.slice;

    if (is_native(d))
        return plan_sets(d, err);
    drop_watches(d);
    for (size_t i = 0; i < slice->n_statements && i < d->sigma; i++) {
        for (size_t k = 0; k < slice->statements[i]->n_operands; k++) {
            const Etch__Operand *op = slice->statements[i]->operands[k];
            char text[64], *copy;

            if (!op->address || !op->size || op->size > 8 || d->watches.n == ETCH_RECORD_MAX_WATCHES)
                continue;
            snprintf(text, sizeof(text), "@0x%" PRIx64 ":%u%s", op->address, op->size, op->shared ? "" : ":here");
            if (has_watch(d, text))
                continue;
            copy = strdup(text);
            if (!copy || !etch_array_push(&d->watches, copy)) {
                free(copy);
                return etch_error_set(err, "out of memory");
            }
        }
    }
    return 0;
}

static int next_round(struct diagnosis *d, uint32_t sigma, struct etch_error *err)
{
    uint32_t statements = (uint32_t)d->s.slice->n_statements;

    d->round++;
    d->sigma = sigma < statements ? sigma : statements;
    d->exhausted = d->sigma == statements;
    d->failing_at_round = d->failing_tracked;
    d->passing_at_round = d->passing_tracked;
    d->runner.sync = sketching_hangs(&d->s); /* else it would only shift the times at which threads start */
    return plan(d, err);
}

static uint32_t first_sigma(const struct diagnosis *d)
{
    if (d->sigma)
        return d->sigma; /* goes on where the call before ended */
    if (d->o->sigma)
        return d->o->sigma;
    return is_native(d) ? FIRST_SIGMA_NATIVE : FIRST_SIGMA;
}

/* ---- After each run ---- */

/* Ranks anew and remembers whether the best is still the best. */
static int rank(struct diagnosis *d, struct etch_error *err)
{
    Etch__Sketch *sketch;
    const Etch__Predictor *top;

    if (sketching_prepare(&d->s, err) < 0)
        return -1;
    sketch = sketching_compose(&d->s, d->round, d->sigma, false, err);
    if (!sketch)
        return -1;
    top = sketch->n_predictors ? sketch->predictors[0] : NULL;
    if (top && (!d->best || strcmp(d->best, top->text) != 0 || d->best_f < STRONG))
        d->needed = d->failures;
    if (top && (!d->best || strcmp(d->best, top->text) != 0)) {
        free(d->best);
        d->best = strdup(top->text);
    }
    d->best_f = top ? top->f : 0;
    d->best_is_value = top && strcmp(top->kind, "value") == 0;
    d->best_true = top ? top->failing_true : 0;
    d->best_passing = top ? top->passing : 0;
    etch__sketch__free_unpacked(sketch, NULL);
    return 0;
}

/* Where threads share it, a value is what came of it: as long as there is more to watch, the cause may be nearer. */
static bool is_symptom(const struct diagnosis *d)
{
    return d->best_is_value && !d->exhausted && sketching_is_threaded(&d->s);
}

static bool is_enough(const struct diagnosis *d)
{
    return d->best && !is_symptom(d) && d->best_f >= STRONG && d->best_true >= FAILING_ENOUGH &&
           d->best_passing >= PASSING_ENOUGH;
}

static int consider(struct diagnosis *d, const char *verdict, struct etch_error *err)
{
    bool failing = strcmp(verdict, "pass") != 0;

    if (!d->failures)
        return 0;
    if (!d->round) {
        if (sketching_prepare(&d->s, err) < 0 || next_round(d, first_sigma(d), err) < 0)
            return -1;
        return rank(d, err);
    }
    if (!failing && d->best_f < STRONG && d->passing_tracked - d->passing_at_round > PASSING_ENOUGH &&
        !has_failing_enough(d))
        return 0; /* only failing runs can still make it stronger */
    if (rank(d, err) < 0)
        return -1;
    if (is_enough(d))
        d->done = true;
    else if (has_failing_enough(d) && d->passing_tracked - d->passing_at_round >= PASSING_ENOUGH) {
        if (d->exhausted)
            d->done = true;
        else
            return next_round(d, d->sigma * 2, err);
    }
    return 0;
}

/* ---- The loop ---- */

static int start_more(struct diagnosis *d, unsigned limit, struct etch_error *err)
{
    while (runner_busy(&d->runner) < d->runner.jobs && d->runs - d->stored + runner_busy(&d->runner) < limit) {
        int64_t number = etch_store_reserve(d->store, err);
        struct runner_watches watches = {.list = d->watches.v,
                                         .n = d->watches.n,
                                         .plan = d->plan[0] ? d->plan : NULL,
                                         .set = d->sets && number > 0 ? (uint32_t)((uint64_t)number % d->sets) : 0,
                                         .sigma = d->round ? d->sigma : 0};
        char bundle[4200];

        if (number < 0)
            return -1;
        snprintf(bundle, sizeof(bundle), "%.4000s/%06" PRId64 ".etch", d->folder, number);
        if (!runner_start(&d->runner, number, bundle, &watches))
            return etch_error_set_errno(err, errno, "cannot start a run");
    }
    return 0;
}

static bool is_over(const struct diagnosis *d)
{
    return d->done || interrupted || (d->o->time > 0 && runner_now() - d->began > d->o->time);
}

static int loop(struct diagnosis *d, struct etch_error *err)
{
    while (!is_over(d)) {
        struct runner_result result;

        if (start_more(d, d->o->runs, err) < 0)
            return -1;
        if (!runner_busy(&d->runner))
            return 0;
        progress(d);
        if (!runner_wait(&d->runner, 0.2, &result))
            continue;
        if (!result.verdict) {
            *err = result.err;
            return -1;
        }
        if (is_one_too_many(d, &result)) {
            d->runs++;
            d->failures++;
            unlink(result.bundle);
            continue;
        }
        if (keep(d, &result, err) < 0 || consider(d, result.verdict, err) < 0)
            return -1;
    }
    return 0;
}

/* What orders accesses across CPUs; measured once for all runs. A crowded machine may need another try. */
static void measure_clocks(struct diagnosis *d)
{
    struct etch_calibration_options options = {.skip_trap = true};
    struct etch_calibration calibration;
    struct etch_error ignored;

    for (int i = 0; i < 3 && !(d->clock && d->clock->n_skews); i++) {
        if (d->clock)
            etch__clock__free_unpacked(d->clock, NULL);
        d->clock = NULL;
        if (etch_calibrate(&calibration, &options, &ignored) == 0) {
            d->clock = etch_clock_record(&calibration, ETCH__CLOCK_PHASE__CLOCK_BEFORE);
            etch_calibration_free(&calibration);
        }
    }
}

static int begin(struct diagnosis *d, struct etch_error *err)
{
    d->s.program = d->o->argv[0];
    if (open_store(d, err) < 0)
        return -1;
    measure_clocks(d);
    d->runner = (struct runner){.argv = d->o->argv,
                                .source = d->o->source,
                                .fails_if = d->o->fails_if,
                                .timeout = d->o->timeout,
                                .jobs = d->o->jobs,
                                .clock = d->clock};
    if (runner_open(&d->runner, err) < 0)
        return -1;
    return d->failures ? consider(d, "pass", err) : 0;
}

/* Returns the exit status, or -1 with `err` set. */
static int conclude(struct diagnosis *d, struct etch_error *err)
{
    Etch__Sketch *sketch;
    int status;

    if (!d->failures && d->unplaced) {
        etch_error_set(err, "%u of %u runs failed, none of them at a known place of %s", d->unplaced, d->runs,
                       d->o->argv[0]);
        return etch_error_advise(err, "a longer --timeout, if they hang; build it with etch cc -g");
    }
    if (!d->failures) {
        printf("no failure in %u runs of %s\n", d->runs, d->o->argv[0]);
        return ETCH_EXIT_FAILED;
    }
    if (sketching_prepare(&d->s, err) < 0)
        return -1;
    sketch = sketching_compose(&d->s, d->round, d->sigma, d->o->output.all, err);
    if (!sketch)
        return -1;
    status = sketching_write(&d->s, sketch, &d->o->output, err);
    etch__sketch__free_unpacked(sketch, NULL);
    return status < 0 ? -1 : ETCH_EXIT_DONE;
}

static const char *needed_text(const struct diagnosis *d, char *text, size_t size)
{
    text[0] = '\0';
    if (d->best && d->best_f >= STRONG)
        snprintf(text, size, ", the cause stood after %u failure%s", d->needed, d->needed == 1 ? "" : "s");
    return text;
}

static int diagnose(const struct etch_command *self, const struct diagnose_options *o)
{
    struct diagnosis *d = calloc(1, sizeof(*d));
    struct sigaction act = {.sa_handler = on_interrupt};
    struct etch_error err;
    char needed[80];
    int status;

    if (!d)
        return ETCH_EXIT_FAILED;
    d->o = o;
    d->began = runner_now();
    d->terminal = isatty(2);
    sigaction(SIGINT, &act, NULL);
    status = begin(d, &err);
    if (status == 0)
        status = loop(d, &err);
    runner_close(&d->runner);
    clear_progress(d);
    if (status == 0) {
        status = conclude(d, &err);
        if (status >= 0)
            fprintf(stderr, "etch diagnose: %u runs, %u failed, %.1f s%s; kept in %s\n", d->runs, d->failures,
                    runner_now() - d->began, needed_text(d, needed, sizeof(needed)), d->folder);
    }
    drop_watches(d);
    etch_array_free(&d->watches);
    sketching_release(&d->s);
    etch_store_close(d->store);
    if (d->clock)
        etch__clock__free_unpacked(d->clock, NULL);
    free(d->best);
    free(d);
    return status < 0 ? etch_command_failed(self, &err) : etch_command_close_output(self, status);
}

/* ---- The command ---- */

static bool number(const char *text, double least, double most, double *value)
{
    char *end;

    *value = strtod(text, &end);
    return end != text && !*end && *value >= least && *value <= most;
}

static int bad_number(const struct etch_command *self, const char *option, const char *text)
{
    return etch_command_usage(self, "%s does not take '%s'", option, text);
}

static int run(const struct etch_command *self, int argc, char **argv)
{
    static const struct option long_options[] = {{"help", no_argument, NULL, 'h'},
                                                 {"runs", required_argument, NULL, 'r'},
                                                 {"time", required_argument, NULL, 't'},
                                                 {"jobs", required_argument, NULL, 'J'},
                                                 {"timeout", required_argument, NULL, 'T'},
                                                 {"fails-if", required_argument, NULL, 'f'},
                                                 {"store", required_argument, NULL, 'S'},
                                                 {"fresh", no_argument, NULL, 'F'},
                                                 {"html", required_argument, NULL, 'H'},
                                                 {"json", required_argument, NULL, 'j'},
                                                 {"sarif", required_argument, NULL, 's'},
                                                 {"all", no_argument, NULL, 'a'},
                                                 {"source", required_argument, NULL, 'o'},
                                                 {"sigma", required_argument, NULL, 'g'},
                                                 {0}};
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    struct diagnose_options o = {
        .runs = 300, .jobs = cpus > 0 ? (unsigned)cpus : 1, .timeout = 10, .store = ".etch", .source = "vpt"};
    double value;
    int c;

    while ((c = getopt_long(argc, argv, "+:h", long_options, NULL)) != -1) {
        switch (c) {
        case 'h':
            return etch_command_help(self);
        case 'r':
            if (!number(optarg, 1, 1e6, &value))
                return bad_number(self, "--runs", optarg);
            o.runs = (unsigned)value;
            break;
        case 'g':
            if (!number(optarg, 1, 1e6, &value))
                return bad_number(self, "--sigma", optarg);
            o.sigma = (uint32_t)value;
            break;
        case 't':
            if (!number(optarg, 0.1, 1e7, &o.time))
                return bad_number(self, "--time", optarg);
            break;
        case 'J':
            if (!number(optarg, 1, RUNNER_JOBS_MAX, &value))
                return bad_number(self, "--jobs", optarg);
            o.jobs = (unsigned)value;
            break;
        case 'T':
            if (!number(optarg, 0.1, 1e6, &o.timeout))
                return bad_number(self, "--timeout", optarg);
            break;
        case 'f':
            o.fails_if = optarg;
            break;
        case 'S':
            o.store = optarg;
            break;
        case 'F':
            o.fresh = true;
            break;
        case 'H':
            o.output.html = optarg;
            break;
        case 'j':
            o.output.json = optarg;
            break;
        case 's':
            o.output.sarif = optarg;
            break;
        case 'a':
            o.output.all = true;
            break;
        case 'o':
            if (strcmp(optarg, "vpt") != 0 && strcmp(optarg, "none") != 0)
                return etch_command_usage(self, "--source takes vpt or none");
            o.source = optarg;
            break;
        default:
            return etch_command_bad_option(self, c, argv);
        }
    }
    if (optind == argc)
        return etch_command_usage(self, "which program?");
    if (o.jobs > RUNNER_JOBS_MAX)
        o.jobs = RUNNER_JOBS_MAX;
    o.argv = argv + optind;
    return diagnose(self, &o);
}

const struct etch_command etch_command_diagnose = {
    .name = "diagnose",
    .summary = ETCH_SUMMARY_DIAGNOSE,
    .help =
        "usage: etch diagnose [OPTION...] [--] PROG [ARG...]\n\n"
        "Runs PROG, which was built with etch cc, again and again under the recorder, with the given "
        "arguments,\n"
        "no input, and its output out of sight. Once it fails, what the statements nearest to the failure use is "
        "watched in\n"
        "the runs that follow, until what sets failing runs apart is clear, or nothing more is to be had. Then prints "
        "the\n"
        "sketch. A run fails by a signal, by taking too long, or by an exit status other than 0. Ctrl-C prints the "
        "best\n"
        "sketch so far. Runs are kept: a second call goes on where the first stopped. Exit status 1: no run failed.\n\n"
        "  --runs N       at most N more runs (300)\n"
        "  --time S       at most S seconds\n"
        "  --jobs N       N runs at a time (as many as CPUs)\n"
        "  --timeout S    a run that takes longer than S seconds hangs (10)\n"
        "  --fails-if CMD a run that ends by itself fails if this shell command succeeds: it gets the output on "
        "standard\n"
        "                 input and as the file $ETCH_OUTPUT, and the exit status as $ETCH_STATUS\n"
        "  --source S     vpt: every step, under QEMU; none: at native speed, on this CPU itself, with its four "
        "hardware\n"
        "                 watchpoints, which runs take turns at, and without control flow (vpt)\n"
        "  --sigma N      begin with the N statements nearest to the failure (16; with none 8); each round doubles it\n"
        "  --store DIR    where runs are kept (.etch)\n"
        "  --fresh        forget the runs kept before\n"
        "  --html FILE, --json FILE, --sarif FILE, --all\n"
        "                 as etch sketch has them\n\n"
        "examples:\n"
        "  etch diagnose -- ./server --test\n"
        "  etch diagnose --html sketch.html --time 120 -- ./a.out input.txt\n"
        "  etch diagnose --fails-if 'grep -q corrupt' -- ./logger\n",
    .run = run,
};
