/* SPDX-License-Identifier: MIT */
/* etch replay: repeats a run of the lab. */
#include "base/printable.h"
#include "cli/command.h"
#include "cli/lab_file.h"
#include "cli/summaries.h"
#include "collector/record.h"
#include "diagnose/lab_names.h"
#include "diagnose/lab_twin.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct options {
    unsigned long times;
    double timeout;
    bool orders, by_names;
    bool gdb;
    const char *to; /* where gdb halts, as text; NULL: see `debugger` */
    struct etch_lab_debugger debugger;
    char gdb_path[PATH_MAX];
};

/* Finds gdb, and says where it is to halt. */
static int prepare_gdb(struct options *o, const struct etch_lab_schedule *s, struct etch_error *err)
{
    if (etch_record_find_program("gdb", o->gdb_path, sizeof(o->gdb_path), err) < 0) {
        etch_error_set(err, "gdb is not installed");
        return etch_error_advise(err, "install the package gdb: apt install gdb");
    }
    if (o->debugger.point > s->points)
        return etch_error_set(err, "there is no point %" PRIu64 ": the run has %" PRIu64 " points", o->debugger.point,
                              s->points);
    o->debugger.gdb = o->gdb_path;
    o->debugger.signal = s->end == ETCH_LAB_SIGNALED ? s->number : 0;
    o->debugger.at_exit = s->end == ETCH_LAB_EXITED && s->number && !o->debugger.point && !o->to;
    return 0;
}

/* Finds the code of the place at which gdb is to halt. */
static int find_place(struct options *o, struct etch_lab_names *names, struct etch_lab_enforced *orders,
                      struct etch_error *err)
{
    struct etch_lab_named named;
    bool any_thread;

    return etch_lab_named_parse(&named, o->to, &any_thread, err) < 0
               ? -1
               : etch_lab_names_halt(names, &named, any_thread, orders, &o->debugger, err);
}

/* gdb has ended. The run may have been ended before its end: only what is certain is said. */
static int conclude(const struct etch_lab_result *r, const char *twin, struct options *o)
{
    const struct etch_lab_shared *s = r->shared;

    etch_lab_print_desync(r, twin, stdout);
    if ((o->to || o->debugger.point) && !s->halted)
        printf("the run did not come to %s%s\n", o->to ? "" : "the point", o->to ? etch_shown(o->to) : "");
    else if (!s->strayed && r->end != ETCH_LAB_UNLIKE)
        printf("under gdb: the recorded run, as far as it went: %" PRIu64 " points\n", s->points);
    return s->strayed || r->end == ETCH_LAB_UNLIKE || ((o->to || o->debugger.point) && !s->halted) ? ETCH_EXIT_FAILED
                                                                                                   : ETCH_EXIT_DONE;
}

static void print_difference(const struct etch_lab_result *r, const struct etch_lab_schedule *s, const char *twin,
                             const char *text)
{
    struct etch_lab_result before = {.end = s->end, .number = s->number};
    char recorded[64];

    etch_lab_describe(&before, recorded, sizeof(recorded));
    etch_lab_print_desync(r, twin, stdout);
    if (r->end != ETCH_LAB_UNLIKE)
        printf("not the same: %s after %" PRIu64 " points; recorded was %s after %" PRIu64 " points\n", text,
               r->shared->points, recorded, s->points);
}

static struct etch_lab_request request_of(const struct etch_lab_file *f, const char *twin, const struct options *o)
{
    return (struct etch_lab_request){.program = twin,
                                     .argv = f->argv.v,
                                     .input = f->input[0] ? f->input : NULL,
                                     .timeout = o->gdb ? 0 : o->timeout,
                                     .debugger = o->gdb ? &o->debugger : NULL,
                                     .real_time = f->real_time,
                                     .no_heap_check = f->no_heap_check,
                                     .memory = f->memory};
}

/* Enforces the orders of the schedule by their names: the program is another build. */
static int enforce(const struct etch_lab_file *f, const struct etch_lab_enforced *orders, const char *twin,
                   struct options *o, struct etch_error *err)
{
    struct etch_lab_request like = request_of(f, twin, o);
    unsigned long good = 0;
    char text[64];

    for (unsigned long i = 0; i < o->times; i++) {
        struct etch_lab_result r;
        bool same;

        fflush(stdout);
        if (etch_lab_enforce(&r, orders, &f->schedule, &like, err) < 0)
            return -1;
        if (o->gdb) {
            int status = conclude(&r, twin, o);

            etch_lab_result_release(&r);
            return status;
        }
        etch_lab_describe(&r, text, sizeof(text));
        same = r.end == f->schedule.end && (r.end == ETCH_LAB_HUNG || r.number == f->schedule.number);
        good += same;
        if (i == 0)
            etch_lab_print_threads(&r, twin, stdout);
        if (!same)
            etch_lab_print_unkept(&r, &f->script, twin, stdout);
        if (r.end == ETCH_LAB_UNLIKE)
            etch_lab_print_desync(&r, twin, stdout);
        etch_lab_result_release(&r);
    }
    printf("%s, %lu of %lu times the same failure by name\n", text, good, o->times);
    return good == o->times ? ETCH_EXIT_DONE : ETCH_EXIT_FAILED;
}

/* Repeats the schedule in another build, if its moments are there. */
static int replay_by_names(const struct etch_lab_file *f, const char *path, const char *twin, struct options *o,
                           struct etch_error *err)
{
    struct etch_lab_enforced orders = {0};
    struct etch_lab_names *names;
    int status = -1;

    if (!f->script.orders.n) {
        etch_error_set(err, "the schedule in %s is of another build of %s, and has no names for its moments", path,
                       f->exe);
        return etch_error_advise(err, "build the program as it was, or search again: etch explore %s", f->argv.v[0]);
    }
    printf("%s%zu order%s by name\n", o->by_names ? "" : "another build: ", f->script.orders.n,
           f->script.orders.n == 1 ? "" : "s");
    names = etch_lab_names_new(twin, f->exe, err);
    if (names && etch_lab_names_resolve(names, &f->script, &orders, err) == 0)
        status = o->to && find_place(o, names, &orders, err) < 0 ? -1 : enforce(f, &orders, twin, o, err);
    else if (names)
        etch_error_prefix(err, "hard desync: the program has changed");
    etch_lab_enforced_release(&orders);
    etch_lab_names_free(names);
    return status;
}

static int print_orders(const struct etch_lab_file *f, const char *path, struct etch_error *err)
{
    char text[2048];

    if (!f->script.orders.n)
        return etch_error_set(err, "the schedule in %s has no names for its moments", path);
    for (size_t i = 0; i < f->script.orders.n; i++) {
        etch_lab_constraint_print(&f->script.orders.v[i], false, text, sizeof(text));
        printf("%s\n", etch_shown(text));
    }
    return ETCH_EXIT_DONE;
}

/* Orders that were enforced in the run are enforced in each repetition. */
static int set_script(const struct etch_lab_file *f, const char *twin, struct options *o,
                      struct etch_lab_enforced *orders, struct etch_lab_request *like, struct etch_error *err)
{
    bool is_needed = f->scripted || o->to;
    struct etch_lab_names *names = is_needed ? etch_lab_names_new(twin, f->exe, err) : NULL;
    int status = is_needed && !names ? -1 : 0;

    if (names && f->scripted)
        status = etch_lab_names_resolve(names, &f->script, orders, err);
    if (names && o->to && status == 0)
        status = find_place(o, names, orders, err);

    like->rules = orders->rules;
    like->n_rules = orders->n;
    like->lines = orders->lines;
    etch_lab_names_free(names);
    return status;
}

static int repeat(const struct etch_lab_file *f, const struct etch_lab_request *like, const char *twin,
                  struct options *o, struct etch_error *err)
{
    unsigned long good = 0;
    char text[64];

    for (unsigned long i = 0; i < o->times; i++) {
        struct etch_lab_result r;
        bool same;

        fflush(stdout);
        if (etch_lab_repeat(&r, &f->schedule, like, &same, err) < 0)
            return -1;
        if (o->gdb) {
            int status = conclude(&r, twin, o);

            etch_lab_result_release(&r);
            return status;
        }
        etch_lab_describe(&r, text, sizeof(text));
        good += same;
        if (i == 0)
            etch_lab_print_threads(&r, twin, stdout);
        if (!same)
            print_difference(&r, &f->schedule, twin, text);
        etch_lab_result_release(&r);
    }
    printf("%s, %lu of %lu times the same run\n", text, good, o->times);
    return good == o->times ? ETCH_EXIT_DONE : ETCH_EXIT_FAILED;
}

static int replay_here(const struct etch_lab_file *f, const char *path, const struct etch_lab_twin *twin,
                       struct options *o, struct etch_error *err)
{
    struct etch_lab_request like = request_of(f, twin->path, o);
    struct etch_lab_enforced orders = {0};
    int status = -1;

    if (memcmp(twin->program, f->program, sizeof(f->program)) != 0 || o->by_names)
        return replay_by_names(f, path, twin->path, o, err);
    if (set_script(f, twin->path, o, &orders, &like, err) == 0)
        status = repeat(f, &like, twin->path, o, err);
    etch_lab_enforced_release(&orders);
    return status;
}

static int replay(const char *path, struct options *o, struct etch_error *err)
{
    struct etch_lab_twin twin;
    struct etch_lab_file file;
    int status = -1;

    if (etch_lab_file_read(&file, path, err) < 0)
        return -1;
    if (o->orders)
        status = print_orders(&file, path, err);
    else if (o->gdb && prepare_gdb(o, &file.schedule, err) < 0)
        status = -1;
    else if (etch_lab_twin(&twin, file.exe, err) == 0)
        status = replay_here(&file, path, &twin, o, err);
    etch_lab_file_release(&file);
    return status;
}

static int take_option(const struct etch_command *self, int c, char **argv, struct options *o)
{
    char *end;

    switch (c) {
    case 'n':
        o->times = strtoul(optarg, &end, 10);
        if (end == optarg || *end || o->times == 0 || o->times > 1000000)
            return etch_command_usage(self, "--times takes a number from 1 on, not '%s'", optarg);
        return 0;
    case 'T':
        o->timeout = strtod(optarg, &end);
        if (end == optarg || *end || !(o->timeout > 0) || o->timeout > 1e6)
            return etch_command_usage(self, "--timeout takes seconds, not '%s'", optarg);
        return 0;
    case 'o':
        o->orders = true;
        return 0;
    case 'g':
        o->gdb = true;
        return 0;
    case 'p':
        o->debugger.point = strtoull(optarg, &end, 10);
        if (*optarg < '0' || *optarg > '9' || *end || o->debugger.point == 0)
            return etch_command_usage(self, "--point takes a number from 1 on, not '%s'", optarg);
        return 0;
    case 't':
        o->to = optarg;
        return 0;
    case 'b':
        o->by_names = true;
        return 0;
    default:
        return etch_command_bad_option(self, c, argv);
    }
}

/* etch explore enforces what the recording proves, and looks for the rest. */
static int explore_like(int argc, char **argv)
{
    static char name[] = "explore";

    argv[0] = name;
    optind = 0;
    return etch_command_explore.run(&etch_command_explore, argc, argv);
}

static int run(const struct etch_command *self, int argc, char **argv)
{
    static const struct option long_options[] = {{"help", no_argument, NULL, 'h'},
                                                 {"times", required_argument, NULL, 'n'},
                                                 {"timeout", required_argument, NULL, 'T'},
                                                 {"orders", no_argument, NULL, 'o'},
                                                 {"by-name", no_argument, NULL, 'b'},
                                                 {"gdb", no_argument, NULL, 'g'},
                                                 {"point", required_argument, NULL, 'p'},
                                                 {"to", required_argument, NULL, 't'},
                                                 {0}};
    struct options o = {.times = 1, .timeout = 60};
    struct etch_error err;
    int c, status;

    if (argc > 1 && (strcmp(argv[1], "--like") == 0 || strncmp(argv[1], "--like=", 7) == 0))
        return explore_like(argc, argv);
    while ((c = getopt_long(argc, argv, ":h", long_options, NULL)) != -1) {
        if (c == 'h')
            return etch_command_help(self);
        status = take_option(self, c, argv, &o);
        if (status)
            return status;
    }
    if (optind == argc || (optind + 1 != argc && !o.gdb))
        return etch_command_usage(self, "which schedule?");
    if (!o.gdb && (o.to || o.debugger.point))
        return etch_command_usage(self, "--point and --to need --gdb");
    if (o.to && o.debugger.point)
        return etch_command_usage(self, "--point and --to exclude each other");
    if (o.gdb && o.times > 1)
        return etch_command_usage(self, "--gdb makes one run: --times does not go with it");
    o.debugger.arguments = argv + optind + 1;
    status = replay(argv[optind], &o, &err);
    return etch_command_close_output(self, status < 0 ? etch_command_failed(self, &err) : status);
}

const struct etch_command etch_command_replay = {
    .name = "replay",
    .summary = ETCH_SUMMARY_REPLAY,
    .help =
        "usage: etch replay [OPTION...] FILE\n"
        "       etch replay --gdb [OPTION...] FILE [-- GDB-ARGUMENT...]\n"
        "       etch replay --like BUNDLE [OPTION of etch explore...] [PROG [ARGUMENT...]]\n\n"
        "Repeats the run that etch explore kept in FILE: the same threads run at the same points, and the program "
        "gets\n"
        "the same input. The program's output is printed. If the program was built anew, the switches of the run are\n"
        "found again by name: thread, line, and which visit of the line.\n\n"
        "With --like a recording of a run outside the lab is repeated: the orders of synchronisations that the "
        "recording\n"
        "proves are enforced, and schedules are tried until a run fails like the recorded one.\n\n"
        "  --times N    repeat the run N times, and count the runs that are the same\n"
        "  --timeout S  end a run after S seconds (default 60)\n"
        "  --orders     print the switches by name, and run nothing\n"
        "  --by-name    go by the names also in the same build\n"
        "  --gdb        run under gdb up to the failure, and stop there. Arguments behind -- go to gdb\n"
        "  --point N    with --gdb: stop at the N-th point instead, right before its operation\n"
        "  --to MOMENT  with --gdb: stop at an access or a call of a line instead: [THREAD] FILE:LINE[#VISIT], for "
        "example\n"
        "               queue.c:18 or 'main.1 queue.c:18#3' or 'T2 queue.c:18 (write)'\n\n"
        "Exit status: 0: every run was the same, 1: a run was different, or could not be repeated.\n\n"
        "examples:\n"
        "  etch replay queue-1.schedule.etch\n"
        "  etch replay --times 100 queue-1.schedule.etch\n"
        "  etch replay --gdb queue-1.schedule.etch\n"
        "  etch replay --gdb --to queue.c:18#2 queue-1.schedule.etch -- -batch -ex bt\n",
    .run = run,
    .keeps_signals = true,
};
