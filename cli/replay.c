/* SPDX-License-Identifier: MIT */
/* etch replay: repeats a run of the lab. */
#include "base/printable.h"
#include "cli/command.h"
#include "cli/lab_file.h"
#include "cli/summaries.h"
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
};

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

static struct etch_lab_request request_of(const struct etch_lab_file *f, const char *twin, double timeout)
{
    return (struct etch_lab_request){.program = twin,
                                     .argv = f->argv.v,
                                     .input = f->input[0] ? f->input : NULL,
                                     .timeout = timeout,
                                     .real_time = f->real_time,
                                     .no_heap_check = f->no_heap_check,
                                     .memory = f->memory};
}

/* Enforces the orders of the schedule by their names: the program is another build. */
static int enforce(const struct etch_lab_file *f, const struct etch_lab_enforced *orders, const char *twin,
                   const struct options *o, struct etch_error *err)
{
    struct etch_lab_request like = request_of(f, twin, o->timeout);
    unsigned long good = 0;
    char text[64];

    for (unsigned long i = 0; i < o->times; i++) {
        struct etch_lab_result r;
        bool same;

        fflush(stdout);
        if (etch_lab_enforce(&r, orders, &f->schedule, &like, err) < 0)
            return -1;
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
static int replay_by_names(const struct etch_lab_file *f, const char *path, const char *twin, const struct options *o,
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
        status = enforce(f, &orders, twin, o, err);
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
static int set_script(const struct etch_lab_file *f, const char *twin, struct etch_lab_enforced *orders,
                      struct etch_lab_request *like, struct etch_error *err)
{
    struct etch_lab_names *names = f->scripted ? etch_lab_names_new(twin, f->exe, err) : NULL;
    int status = names ? etch_lab_names_resolve(names, &f->script, orders, err) : f->scripted ? -1 : 0;

    like->rules = orders->rules;
    like->n_rules = orders->n;
    like->lines = orders->lines;
    etch_lab_names_free(names);
    return status;
}

static int repeat(const struct etch_lab_file *f, const struct etch_lab_request *like, const char *twin,
                  const struct options *o, struct etch_error *err)
{
    unsigned long good = 0;
    char text[64];

    for (unsigned long i = 0; i < o->times; i++) {
        struct etch_lab_result r;
        bool same;

        fflush(stdout);
        if (etch_lab_repeat(&r, &f->schedule, like, &same, err) < 0)
            return -1;
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
                       const struct options *o, struct etch_error *err)
{
    struct etch_lab_request like = request_of(f, twin->path, o->timeout);
    struct etch_lab_enforced orders = {0};
    int status = -1;

    if (memcmp(twin->program, f->program, sizeof(f->program)) != 0 || o->by_names)
        return replay_by_names(f, path, twin->path, o, err);
    if (set_script(f, twin->path, &orders, &like, err) == 0)
        status = repeat(f, &like, twin->path, o, err);
    etch_lab_enforced_release(&orders);
    return status;
}

static int replay(const char *path, const struct options *o, struct etch_error *err)
{
    struct etch_lab_twin twin;
    struct etch_lab_file file;
    int status = -1;

    if (etch_lab_file_read(&file, path, err) < 0)
        return -1;
    if (o->orders)
        status = print_orders(&file, path, err);
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
    case 'b':
        o->by_names = true;
        return 0;
    default:
        return etch_command_bad_option(self, c, argv);
    }
}

static int run(const struct etch_command *self, int argc, char **argv)
{
    static const struct option long_options[] = {
        {"help", no_argument, NULL, 'h'},          {"times", required_argument, NULL, 'n'},
        {"timeout", required_argument, NULL, 'T'}, {"orders", no_argument, NULL, 'o'},
        {"by-name", no_argument, NULL, 'b'},       {0}};
    struct options o = {.times = 1, .timeout = 60};
    struct etch_error err;
    int c, status;

    while ((c = getopt_long(argc, argv, ":h", long_options, NULL)) != -1) {
        if (c == 'h')
            return etch_command_help(self);
        status = take_option(self, c, argv, &o);
        if (status)
            return status;
    }
    if (optind + 1 != argc)
        return etch_command_usage(self, "which schedule?");
    status = replay(argv[optind], &o, &err);
    return etch_command_close_output(self, status < 0 ? etch_command_failed(self, &err) : status);
}

const struct etch_command etch_command_replay = {
    .name = "replay",
    .summary = ETCH_SUMMARY_REPLAY,
    .help =
        "usage: etch replay [OPTION...] FILE\n\n"
        "Repeats the run that etch explore kept in FILE: the same threads run at the same points, and the program "
        "gets\n"
        "the same input. The program's output is printed. If the program was built anew, the switches of the run are\n"
        "found again by name: thread, line, and which visit of the line.\n\n"
        "  --times N    repeat the run N times, and count the runs that are the same\n"
        "  --timeout S  end a run after S seconds (default 60)\n"
        "  --orders     print the switches by name, and run nothing\n"
        "  --by-name    go by the names also in the same build\n\n"
        "Exit status: 0: every run was the same, 1: a run was different, or could not be repeated.\n\n"
        "examples:\n"
        "  etch replay queue-1.schedule.etch\n"
        "  etch replay --times 100 queue-1.schedule.etch\n",
    .run = run,
    .keeps_signals = true,
};
