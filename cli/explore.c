/* SPDX-License-Identifier: MIT */
/* etch explore: looks for a schedule under which a program fails. */
#include "base/input.h"
#include "base/path.h"
#include "base/printable.h"
#include "cli/command.h"
#include "cli/lab_file.h"
#include "cli/summaries.h"
#include "collector/lab_explore.h"
#include "collector/lab_journal.h"
#include "diagnose/lab_cause.h"
#include "diagnose/lab_like.h"
#include "diagnose/lab_names.h"
#include "diagnose/lab_runs.h"
#include "diagnose/lab_twin.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define TEXT_SIZE ((size_t)1 << 20) /* of a policy or a script */

struct options {
    struct etch_lab_explore explore;
    const char *strategy, *output, *input, *bundles, *policy, *script, *like;
    struct etch_lab_like pattern; /* of `like` */
    struct etch_lab_enforced enforced;
    struct etch_lab_script orders;
    const char *twin;
    uint64_t unkept; /* runs in which the orders of the script were not kept */
    bool quiet;
    bool plain; /* no experiments with the failing schedule */
};

static volatile sig_atomic_t stopped;

static void on_signal(int number)
{
    (void)number;
    stopped = 1;
}

static bool is_stopped(void *context)
{
    (void)context;
    return stopped;
}

static bool observe(void *context, uint64_t done, const struct etch_lab_result *result)
{
    struct options *o = context;

    if (o->like && etch_lab_like_adapt(&o->pattern, &o->enforced, result))
        o->explore.request.n_rules = o->enforced.n;
    if (o->orders.orders.n && result->shared->kept < o->orders.orders.n && o->unkept++ == 0)
        etch_lab_print_unkept(result, &o->orders, o->twin, stdout);
    if (!o->quiet && isatty(2) && done % 50 == 0)
        fprintf(stderr, "\retch explore: %" PRIu64 " schedules", done);
    return !stopped;
}

static bool read_number(const char *text, double least, double most, double *value)
{
    char *end;

    errno = 0;
    *value = strtod(text, &end);
    return end != text && !*end && !errno && *value >= least && *value <= most;
}

/* Returns a status other than 0 if the option is wrong. */
static int take_option(const struct etch_command *self, int c, char **argv, struct options *o)
{
    double number = 0;

    switch (c) {
    case 's':
        o->strategy = optarg;
        if (strncmp(optarg, "script:", 7) == 0) {
            o->script = optarg + 7;
            return 0;
        }
        if (!etch_lab_spec_parse(&o->explore.request.spec, optarg))
            return etch_command_usage(self, "--strategy takes queue, random, pct, pos or surw, not '%s'", optarg);
        o->explore.given = true;
        o->explore.seed = o->explore.request.spec.seed;
        return 0;
    case 'n':
        if (!read_number(optarg, 1, 1e12, &number))
            return etch_command_usage(self, "--schedules takes a number from 1 on, not '%s'", optarg);
        o->explore.schedules = (uint64_t)number;
        return 0;
    case 't':
        if (!read_number(optarg, 0.001, 1e9, &o->explore.seconds))
            return etch_command_usage(self, "--time takes seconds, not '%s'", optarg);
        return 0;
    case 'T':
        if (!read_number(optarg, 0.001, 1e6, &o->explore.request.timeout))
            return etch_command_usage(self, "--timeout takes seconds, not '%s'", optarg);
        return 0;
    case 'S':
        if (!read_number(optarg, 0, 9e15, &number))
            return etch_command_usage(self, "--seed takes a number, not '%s'", optarg);
        o->explore.seed = (uint64_t)number;
        return 0;
    case 'j':
        if (!read_number(optarg, 1, 1024, &number) || number != (unsigned)number)
            return etch_command_usage(self, "--jobs takes a number from 1 on, not '%s'", optarg);
        o->explore.jobs = (unsigned)number;
        return 0;
    case 'e':
        if (!read_number(optarg, 0, 16, &number) || number != (unsigned)number)
            return etch_command_usage(self, "--exhaustive takes a number of preemptions up to 16, not '%s'", optarg);
        o->explore.exhaustive = true;
        o->explore.preemptions = (unsigned)number;
        return 0;
    case 'i':
        o->input = optarg;
        return 0;
    case 'o':
        o->output = optarg;
        return 0;
    case 'm':
        return etch_lab_memory_parse(&o->explore.request.memory, optarg)
                   ? 0
                   : etch_command_usage(self, "--memory takes sc, tso or c11, not '%s'", optarg);
    case 'a':
        o->explore.all = true;
        return 0;
    case 'H':
        o->explore.request.no_heap_check = true;
        return 0;
    case 'x':
        o->script = optarg;
        return 0;
    case 'L':
        o->like = optarg;
        return 0;
    case 'P':
        o->policy = optarg;
        return 0;
    case 'b':
        o->bundles = optarg;
        return 0;
    case 'p':
        o->plain = true;
        return 0;
    case 'r':
        o->explore.request.real_time = true;
        return 0;
    default:
        return etch_command_bad_option(self, c, argv);
    }
}

/* PROG-1.schedule.etch, or the next free number. */
static const char *free_name(char name[PATH_MAX], const char *program)
{
    for (unsigned i = 1; i < 10000; i++) {
        snprintf(name, PATH_MAX, "%.200s-%u.schedule.etch", etch_path_name(program), i);
        if (access(name, F_OK) < 0)
            break;
    }
    return name;
}

/* Repeats the schedule three times: it must give the same failure again. */
static int check_repeats(const struct options *o, const struct etch_lab_schedule *s, const char *twin, unsigned *same,
                         struct etch_error *err)
{
    for (unsigned i = 0; i < 3; i++) {
        struct etch_lab_result r;
        bool is_same;

        if (etch_lab_repeat(&r, s, &o->explore.request, &is_same, err) < 0)
            return -1;
        *same += is_same;
        if (i == 0)
            etch_lab_print_threads(&r, twin, stdout);
        etch_lab_result_release(&r);
    }
    return 0;
}

/* Names the switches of the failing schedule, or of the shortened one, so that they can be found in another build. */
static void name_schedule(const struct options *o, const struct etch_lab_found *f, const struct etch_lab_cause *cause,
                          const struct etch_lab_twin *twin, const char *program, struct etch_lab_script *script)
{
    struct etch_lab_schedule shortened = cause->schedule;
    struct etch_lab_names *names;
    struct etch_error err;
    int status = -1;

    shortened.sites = (uint64_t *)cause->sites;
    shortened.end = f->schedule.end;
    shortened.number = f->schedule.number;
    names = etch_lab_names_new(twin->path, program, &err);
    if (names && shortened.segments.n)
        status = etch_lab_names_of(names, &shortened, &o->explore.request, script, &err);
    if (names && status < 0) {
        etch_lab_script_release(script);
        status = etch_lab_names_of(names, &f->schedule, &o->explore.request, script, &err);
    }
    if (status < 0)
        etch_lab_script_release(script);
    if (status < 0)
        printf("note       the schedule is for this build only: %s\n", err.what);
    etch_lab_names_free(names);
}

static int keep(const struct options *o, const struct etch_lab_found *found, const struct etch_lab_experiment *e,
                const struct etch_lab_twin *twin, char **argv, struct etch_error *err)
{
    struct etch_lab_file file = {.real_time = o->explore.request.real_time,
                                 .no_heap_check = o->explore.request.no_heap_check,
                                 .memory = o->explore.request.memory,
                                 .schedule = found->schedule};
    char name[PATH_MAX];
    const char *path = o->output ? o->output : free_name(name, argv[0]);
    bool good = true;
    int status;

    memcpy(file.program, twin->program, sizeof(file.program));
    if (!realpath(argv[0], file.exe))
        return etch_error_set_errno(err, errno, "cannot find %s", argv[0]);
    if (o->input && !realpath(o->input, file.input))
        return etch_error_set_errno(err, errno, "cannot find %s", o->input);
    for (char **a = argv; *a; a++)
        good = good && etch_array_push(&file.argv, *a);
    file.scripted = o->script || o->like;
    if (file.scripted)
        file.script = o->like ? o->pattern.script : o->orders;
    else if (found->schedule.points)
        name_schedule(o, found, &e->cause, twin, file.exe, &file.script);
    status = good ? etch_lab_file_write(path, &file, err) : etch_error_no_memory(err);
    if (!file.scripted)
        etch_lab_script_release(&file.script);
    etch_array_free(&file.argv);
    if (status == 0)
        printf("again      etch replay %s\n", path);
    return status;
}

static void print_input(const struct etch_lab_schedule *s)
{
    if (s->answers)
        printf("input      %" PRIu64 " answer%s from outside, %zu bytes: the run can be repeated without the world "
               "outside\n",
               s->answers, s->answers == 1 ? "" : "s", s->journal.n * sizeof(uint64_t));
    if (s->cut)
        printf("note       there was more input than etch keeps: the run cannot be repeated\n");
}

/* "1 preemption", "2 preemptions", ... */
static const char *preemptions(unsigned n, char text[32])
{
    snprintf(text, 32, "%u preemption%s", n, n == 1 ? "" : "s");
    return text;
}

static void print_found(const struct etch_lab_found *f)
{
    const struct etch_lab_schedule *s = &f->schedule;
    struct etch_lab_result like = {.end = s->end, .number = s->number};
    char text[64], how[64], most[32];

    etch_lab_describe(&like, text, sizeof(text));
    if (s->spec.kind == ETCH_LAB_STAY)
        snprintf(how, sizeof(how), "with %s", preemptions(f->level, most));
    else
        snprintf(how, sizeof(how), "%s:%" PRIu64, etch_lab_strategy_name(s->spec.kind), s->spec.seed);
    printf("%s in schedule %" PRIu64 " (%s), %" PRIu64 " points, %zu switches\n", text, f->first, how, s->points,
           s->segments.n ? s->segments.n - 1 : 0);
}

/* Makes experiments with the failing schedule, and prints the results. */
static int print_cause(const struct options *o, const struct etch_lab_found *f, struct etch_lab_experiment *e,
                       const char *twin, struct etch_error *err)
{
    const struct etch_lab_budget budget = {.runs = 500, .is_over = is_stopped};

    if (etch_lab_experiment(e, f, &o->explore, &budget, NULL, err) < 0)
        return -1;
    etch_lab_print_cause(&e->cause, twin, stdout);
    return 0;
}

/* Records the failing run and passing runs, and says how to look at them. */
static int keep_runs(const struct options *o, const struct etch_lab_found *f, const struct etch_lab_experiment *e,
                     char **argv, struct etch_error *err)
{
    struct etch_lab_runs runs;

    if (mkdir(o->bundles, 0700) < 0 && errno != EEXIST)
        return etch_error_set_errno(err, errno, "cannot make %s", o->bundles);
    if (etch_lab_runs_record(&runs, f, e->cause.orders.n ? &e->cause : NULL,
                             e->known.learnt ? e->known.learnt : f->learnt, &o->explore, NULL, o->bundles, err) < 0)
        return -1;
    printf("recorded   %u failing and %u passing runs: etch sketch %s %s/*.etch\n", runs.failing, runs.passing, argv[0],
           o->bundles);
    return 0;
}

static void print_partly(const struct etch_lab_found *f)
{
    if (f->partly)
        printf("note       %" PRIu64
               " schedules had more memory, heap blocks, instructions or points than the lab keeps; "
               "the lab followed these schedules in part\n",
               f->partly);
}

/* How far an exhaustive search without a failure came. */
static void print_extent(const struct options *o, const struct etch_lab_found *f)
{
    char most[32];

    if (!o->explore.exhaustive)
        return;
    if (f->complete && !f->gaps) {
        printf("exhaustive no interleaving with at most %s at these points fails: %" PRIu64 " schedules, and %" PRIu64
               " more that lead to the same states\n",
               preemptions(o->explore.preemptions, most), f->covered, f->equal);
        return;
    }
    printf("exhaustive not complete: ");
    if (f->complete || f->gaps)
        printf("%" PRIu64 " of %" PRIu64 " schedules did not end, did not fit, or had more than the lab follows\n",
               f->gaps, f->covered);
    else if (f->level)
        printf("all interleavings with at most %s pass, some with %u were not tried\n", preemptions(f->level - 1, most),
               f->level);
    else
        printf("some interleavings without a preemption were not tried\n");
}

static int report(const struct options *o, const struct etch_lab_found *f, struct etch_lab_experiment *e,
                  const struct etch_lab_twin *twin, char **argv, struct etch_error *err)
{
    unsigned same = 0;

    if (o->unkept)
        printf("orders     not kept in %" PRIu64 " of %" PRIu64 " schedules\n", o->unkept, f->schedules);
    if (o->like && o->pattern.dropped)
        printf("orders     %zu cannot be kept in the lab, and were dropped\n", o->pattern.dropped);
    if (!f->first) {
        print_extent(o, f);
        printf("no failure in %" PRIu64 " schedules of %s; %" PRIu64 " instructions share memory, %" PRIu64
               " points in a run, hash of all %016" PRIx64 "\n",
               f->schedules, argv[0], f->sites, f->points, f->hash);
        if (f->unended)
            printf("%" PRIu64 " schedules did not end within the limits: they count as neither passing nor failing\n",
                   f->unended);
        print_partly(f);
        return ETCH_EXIT_FAILED;
    }
    print_found(f);
    print_partly(f);
    if (check_repeats(o, &f->schedule, twin->path, &same, err) < 0)
        return -1;
    if (o->explore.all)
        printf("failing    %" PRIu64 " of %" PRIu64 " schedules, in %u ways\n", f->failing, f->schedules, f->distinct);
    if (!f->schedule.points)
        printf("note       no other thread had begun: the failure does not depend on the schedule\n");
    else if (same == 3 && !o->plain && !o->script && !o->like && print_cause(o, f, e, twin->path, err) < 0)
        return -1;
    if (o->bundles && keep_runs(o, f, e, argv, err) < 0)
        return -1;
    print_input(&f->schedule);
    printf("repeated   %u of 3 times at the same points\n", same);
    if (same < 3)
        printf("note       the program has input that the lab does not control (see docs/lab.md, \"Input\")\n");
    return keep(o, f, e, twin, argv, err) < 0 ? -1 : ETCH_EXIT_DONE;
}

/* All of a file. Returns NULL with `err` set if it cannot be read. */
static char *read_text(const char *path, size_t *size, struct etch_error *err)
{
    int fd = etch_input_open(path);
    char *text = fd < 0 ? NULL : etch_input_read(fd, TEXT_SIZE, size);

    if (!text)
        etch_error_set_errno(err, errno, "cannot read %s", path);
    if (fd >= 0)
        close(fd);
    return text;
}

/* Reads which sources are input. */
static int read_policy(struct options *o, struct etch_error *err)
{
    size_t size;
    char *text = o->policy ? read_text(o->policy, &size, err) : NULL;
    uint32_t kept;
    int status;

    if (!text)
        return o->policy ? -1 : 0;
    status = etch_lab_policy_parse(&kept, text, size, err);
    o->explore.request.asked = ETCH_LAB_ALL_SOURCES & ~kept;
    free(text);
    return status < 0 ? etch_error_prefix(err, "%s", o->policy) : 0;
}

/* Reads the orders to enforce in each run, and finds their lines in the lab build. */
static int read_script(struct options *o, const char *program, struct etch_lab_enforced *orders, struct etch_error *err)
{
    size_t size;
    char *text = o->script ? read_text(o->script, &size, err) : NULL;
    struct etch_lab_names *names = NULL;
    int status = -1;

    if (!text)
        return o->script ? -1 : 0;
    if (etch_lab_script_parse(&o->orders, text, size, err) == 0 &&
        (names = etch_lab_names_new(o->twin, program, err)) != NULL)
        status = etch_lab_names_resolve(names, &o->orders, orders, err);
    etch_lab_names_free(names);
    free(text);
    o->explore.request.rules = orders->rules;
    o->explore.request.n_rules = orders->n;
    o->explore.request.lines = orders->lines;
    return status < 0 ? etch_error_prefix(err, "%s", o->script) : 0;
}

static bool is_like(void *context, const struct etch_lab_result *result)
{
    const struct options *o = context;

    return etch_lab_like_is(&o->pattern, result);
}

/* The orders that a native recording proves are enforced in each run. */
static int read_like(struct options *o, struct etch_error *err)
{
    struct etch_lab_names *names = o->like ? etch_lab_names_new(o->twin, o->pattern.exe, err) : NULL;
    struct etch_lab_result failure = {.end = o->pattern.end, .number = o->pattern.number};
    char text[64];
    int status;

    if (!names)
        return o->like ? -1 : 0;
    status = etch_lab_like_resolve(&o->pattern, names, &o->enforced, err);
    etch_lab_names_free(names);
    o->explore.request.rules = o->enforced.rules;
    o->explore.request.n_rules = o->enforced.n;
    o->explore.request.lines = o->enforced.lines;
    o->explore.accept = is_like;
    etch_lab_describe(&failure, text, sizeof(text));
    printf("recorded   %s; %zu synchronisations, %zu with lines, %zu orders proven, %" PRIu32 " enforced\n", text,
           o->pattern.syncs, o->pattern.named, o->pattern.orders, o->enforced.n);
    return status;
}

static int explore(const struct etch_command *self, struct options *o, char **argv)
{
    struct sigaction action = {.sa_handler = on_signal}, before;
    struct etch_lab_experiment experiment = {0};
    struct etch_lab_enforced orders = {0};
    struct etch_lab_found found = {0};
    struct etch_lab_twin twin;
    struct etch_error err;
    int status = -1;

    if (o->like && etch_lab_like_read(&o->pattern, o->like, &err) < 0)
        return etch_command_failed(self, &err);
    if (o->like && !argv[0]) {
        if (!etch_array_push(&o->pattern.argv, NULL))
            return etch_error_no_memory(&err), etch_command_failed(self, &err);
        argv = o->pattern.argv.v;
    }
    if (read_policy(o, &err) < 0 || etch_lab_twin(&twin, argv[0], &err) < 0)
        return etch_command_failed(self, &err);
    if (twin.note[0])
        printf("note       %s\n", etch_shown(twin.note));
    o->explore.request.program = o->twin = twin.path;
    o->explore.request.argv = argv;
    o->explore.request.input = o->input;
    o->explore.request.silent = true;
    o->explore.observe = observe;
    o->explore.context = o;
    o->explore.request.stop = &stopped;
    sigaction(SIGINT, &action, &before);
    if (read_script(o, argv[0], &orders, &err) == 0 && read_like(o, &err) == 0 &&
        etch_lab_explore(&found, &o->explore, &err) == 0)
        status = report(o, &found, &experiment, &twin, argv, &err);
    sigaction(SIGINT, &before, NULL);
    etch_lab_experiment_release(&experiment);
    etch_lab_found_release(&found);
    etch_lab_enforced_release(&orders);
    etch_lab_script_release(&o->orders);
    etch_lab_enforced_release(&o->enforced);
    etch_lab_like_release(&o->pattern);
    return etch_command_close_output(self, status < 0 ? etch_command_failed(self, &err) : status);
}

static int run(const struct etch_command *self, int argc, char **argv)
{
    static const struct option long_options[] = {{"help", no_argument, NULL, 'h'},
                                                 {"strategy", required_argument, NULL, 's'},
                                                 {"schedules", required_argument, NULL, 'n'},
                                                 {"time", required_argument, NULL, 't'},
                                                 {"timeout", required_argument, NULL, 'T'},
                                                 {"seed", required_argument, NULL, 'S'},
                                                 {"exhaustive", required_argument, NULL, 'e'},
                                                 {"jobs", required_argument, NULL, 'j'},
                                                 {"input", required_argument, NULL, 'i'},
                                                 {"script", required_argument, NULL, 'x'},
                                                 {"like", required_argument, NULL, 'L'},
                                                 {"input-policy", required_argument, NULL, 'P'},
                                                 {"all", no_argument, NULL, 'a'},
                                                 {"no-heap-check", no_argument, NULL, 'H'},
                                                 {"no-cause", no_argument, NULL, 'p'},
                                                 {"bundles", required_argument, NULL, 'b'},
                                                 {"real-time", no_argument, NULL, 'r'},
                                                 {"memory", required_argument, NULL, 'm'},
                                                 {0}};
    struct options o = {0};
    int c, status;

    o.explore.request.timeout = 10;
    o.explore.request.max_points = 5000000;
    while ((c = getopt_long(argc, argv, "+:ho:", long_options, NULL)) != -1) {
        if (c == 'h')
            return etch_command_help(self);
        status = take_option(self, c, argv, &o);
        if (status)
            return status;
    }
    if (optind == argc && !o.like)
        return etch_command_usage(self, "which program?");
    if (o.like && (o.script || o.explore.exhaustive || o.explore.jobs > 1))
        return etch_command_usage(self, "--like excludes --script, --exhaustive and --jobs");
    if (o.explore.exhaustive && (o.explore.given || o.script || o.explore.request.memory))
        return etch_command_usage(self, "--exhaustive excludes --strategy, --script and --memory");
    if (o.explore.exhaustive && !o.explore.schedules)
        o.explore.schedules = UINT64_MAX;
    if (!o.explore.schedules)
        o.explore.schedules = 1000;
    return explore(self, &o, argv + optind);
}

const struct etch_command etch_command_explore = {
    .name = "explore",
    .summary = ETCH_SUMMARY_EXPLORE,
    .help =
        "usage: etch explore [OPTION...] [--] PROG [ARGUMENT...]\n\n"
        "Runs PROG again and again, and decides each switch between its threads. etch explore stops at the first run\n"
        "that fails. A run fails by a signal, by an exit status other than 0, by misuse of the heap, or because no "
        "thread\n"
        "can run any more. That run can be repeated: the same schedule gives the same failure. PROG must be built and\n"
        "linked by etch cc or etch c++. etch makes a lab build from the bitcode in PROG, and keeps the lab build in "
        "the\n"
        "user's cache.\n\n"
        "  --strategy S     queue, random, pct[:SEED,DEPTH], pos or surw (default: surw, after a few random runs\n"
        "                   that learn which instructions share memory)\n"
        "  --exhaustive D   try all interleavings with at most D preemptions, those with few first. A preemption is a\n"
        "                   switch away from a thread that could go on\n"
        "  --schedules N    make at most N runs (default 1000; with --exhaustive no limit)\n"
        "  --jobs N         make up to N runs at once, at most 16. The result is the same (default 1)\n"
        "  --time S         stop after S seconds\n"
        "  --timeout S      a run that takes longer than S seconds counts as neither passing nor failing (default 10)\n"
        "  --script FILE    enforce the orders in FILE in each run, for example: main.1 queue.c:18 after main "
        "queue.c:39\n"
        "  --like BUNDLE    enforce the orders of synchronisations that a recording of a failed run proves, until a "
        "run\n"
        "                   fails like that one. PROG is the recorded one if none is named\n"
        "  --seed N         the seed of the first run (default 0); each run takes the next seed\n"
        "  --no-heap-check  do not count uses of freed memory, double frees and accesses behind a block as failures\n"
        "  --no-cause       make no experiments with the failing schedule\n"
        "  --bundles DIR    record the failing run and some passing runs into DIR, for etch sketch\n"
        "  --all            do not stop at the first failure; count the failures\n"
        "  --input FILE     standard input of each run (default: none)\n"
        "  --input-policy FILE  which answers from outside are recorded, and which are asked for again in a replay\n"
        "  --memory M       sc: loads read the newest value; tso: stores of other threads come late, as on x86; c11: "
        "loads\n"
        "                   read any value that C11 allows, except by load buffering (default sc)\n"
        "  --real-time      use the machine's sleeps and clocks; by default they are virtual and cost no time\n"
        "  -o FILE          write the schedule to FILE (default PROG-1.schedule.etch, or the next free number)\n\n"
        "Exit status: 0: a failing schedule was found, 1: none was found, or etch could not look for one.\n\n"
        "examples:\n"
        "  etch cc -g -pthread queue.c -o queue && etch explore ./queue\n"
        "  etch explore --strategy pct:1,3 --schedules 5000 -- ./server --once\n",
    .run = run,
    .keeps_signals = true,
};
