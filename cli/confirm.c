/* SPDX-License-Identifier: MIT */
/* etch confirm: enforces orders of statements, and their opposite. */
#include "diagnose/confirm.h"
#include "base/input.h"
#include "base/printable.h"
#include "cli/command.h"
#include "cli/lab_file.h"
#include "cli/summaries.h"
#include "diagnose/lab_twin.h"

#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TEXT_SIZE ((size_t)1 << 20) /* of a script */

struct options {
    const char *orders, *input;
    struct etch_confirm how;
    bool native;
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

static void print_orders(const struct etch_lab_script *script)
{
    char text[2048];

    for (size_t i = 0; i < script->orders.n; i++) {
        etch_lab_constraint_print(&script->orders.v[i], true, text, sizeof(text));
        printf("order      %s\n", etch_shown(text));
    }
}

static void print_count(const char *title, const struct etch_confirm_count *c)
{
    printf("%s%u of %u runs fail", title, c->failed, c->of);
    if (c->unkept)
        printf("; in %u the orders could not be kept", c->unkept);
    if (c->unended)
        printf("; %u did not end in time", c->unended);
    printf("\n");
}

static int report(const struct options *o, const struct etch_confirmed *c)
{
    bool holds = etch_confirmed_holds(c, o->how.runs);

    print_count("enforced   ", &c->enforced);
    print_count("forbidden  ", &c->forbidden);
    if (stopped)
        printf("stopped    before all runs were made\n");
    printf("%s\n", holds     ? o->native ? "confirmed natively: the program fails with these orders, and not without"
                                         : "confirmed in the lab: the program fails with these orders, and not without"
                   : stopped ? "not decided"
                             : "not confirmed");
    return holds ? ETCH_EXIT_DONE : ETCH_EXIT_FAILED;
}

/* ---- Orders of the cause of a failing schedule ---- */

static int confirm_cause(struct options *o, const struct etch_lab_cause *cause, struct etch_confirmed *c,
                         struct etch_error *err)
{
    struct etch_lab_script script, turned;
    int status;

    if (!cause->claim.n)
        return etch_error_set(err, "no order decides this failure");
    if (!o->native)
        return etch_confirm_claim(c, &o->how, cause, err);
    status = etch_confirm_name(&script, &turned, cause, &o->how.request, o->how.program, err);
    if (status == 0) {
        print_orders(&script);
        status = etch_confirm_natively(c, &o->how, &script, &turned, err);
    }
    etch_lab_script_release(&script);
    etch_lab_script_release(&turned);
    return status;
}

static int confirm_schedule(struct options *o, const char *path, struct etch_confirmed *c, struct etch_error *err)
{
    const struct etch_lab_budget budget = {.runs = 500, .is_over = is_stopped};
    struct etch_lab_explore explore = {.schedules = 1};
    struct etch_lab_experiment experiment;
    struct etch_lab_found found = {0};
    struct etch_lab_twin twin;
    struct etch_lab_file file;
    int status;

    if (etch_lab_file_read(&file, path, err) < 0)
        return -1;
    status = etch_lab_twin(&twin, file.exe, err);
    if (status == 0 && memcmp(twin.program, file.program, sizeof(file.program)) != 0) {
        etch_error_set(err, "%s is of another build of %s", path, file.exe);
        status = etch_error_advise(err, "search again: etch explore %s", file.argv.v[0]);
    }
    if (status == 0) {
        o->how.program = file.exe;
        o->how.request.program = twin.path;
        o->how.request.argv = file.argv.v;
        o->how.request.input = file.input[0] ? file.input : NULL;
        o->how.request.real_time = file.real_time;
        o->how.request.no_heap_check = file.no_heap_check;
        o->how.request.memory = file.memory;
        explore.request = o->how.request;
        found.schedule = file.schedule;
        found.learnt = file.schedule.sites;
        status = etch_lab_experiment(&experiment, &found, &explore, &budget, NULL, err);
        if (status == 0) {
            etch_lab_print_cause(&experiment.cause, twin.path, stdout);
            status = confirm_cause(o, &experiment.cause, c, err);
        }
        etch_lab_experiment_release(&experiment);
    }
    etch_lab_file_release(&file);
    return status;
}

/* ---- Orders of a script ---- */

static int read_orders(struct etch_lab_script *script, const char *path, struct etch_error *err)
{
    int fd = etch_input_open(path), status = -1;
    size_t size;
    char *text = fd < 0 ? NULL : etch_input_read(fd, TEXT_SIZE, &size);

    if (!text)
        etch_error_set_errno(err, errno, "cannot read %s", path);
    else if (etch_lab_script_parse(script, text, size, err) < 0)
        etch_error_prefix(err, "%s", path);
    else if (!script->orders.n)
        etch_error_set(err, "%s: there is no order in it", path);
    else
        status = 0;
    free(text);
    if (fd >= 0)
        close(fd);
    return status;
}

static int confirm_orders(struct options *o, char **argv, struct etch_confirmed *c, struct etch_error *err)
{
    struct etch_lab_script script = {0};
    struct etch_lab_twin twin;
    int status = read_orders(&script, o->orders, err);

    o->how.program = argv[0];
    o->how.request.argv = argv;
    o->how.request.input = o->input;
    if (status == 0 && !o->native) {
        status = etch_lab_twin(&twin, argv[0], err);
        o->how.request.program = twin.path;
    }
    if (status == 0) {
        print_orders(&script);
        status = o->native ? etch_confirm_natively(c, &o->how, &script, NULL, err)
                           : etch_confirm_script(c, &o->how, &script, err);
    }
    etch_lab_script_release(&script);
    return status;
}

/* ---- The command ---- */

static bool read_number(double least, double most, double *value)
{
    char *end;

    *value = strtod(optarg, &end);
    return end != optarg && !*end && *value >= least && *value <= most;
}

static int take_option(const struct etch_command *self, int c, char **argv, struct options *o)
{
    double number = 0;

    switch (c) {
    case 'x':
        o->orders = optarg;
        return 0;
    case 'i':
        o->input = optarg;
        return 0;
    case 'N':
        o->native = true;
        return 0;
    case 'n':
        if (!read_number(1, 1e6, &number))
            return etch_command_usage(self, "--runs takes a number from 1 to 1000000, not '%s'", optarg);
        o->how.runs = (uint32_t)number;
        return 0;
    case 'S':
        if (!read_number(0, 9e15, &number))
            return etch_command_usage(self, "--seed takes a number, not '%s'", optarg);
        o->how.seed = (uint64_t)number;
        return 0;
    case 'H':
        return read_number(0.001, 1e6, &o->how.patience)
                   ? 0
                   : etch_command_usage(self, "--hold takes seconds, not '%s'", optarg);
    case 'T':
        return read_number(0.001, 1e6, &o->how.request.timeout)
                   ? 0
                   : etch_command_usage(self, "--timeout takes seconds, not '%s'", optarg);
    default:
        return etch_command_bad_option(self, c, argv);
    }
}

static int run(const struct etch_command *self, int argc, char **argv)
{
    static const struct option long_options[] = {{"help", no_argument, NULL, 'h'},
                                                 {"orders", required_argument, NULL, 'x'},
                                                 {"native", no_argument, NULL, 'N'},
                                                 {"runs", required_argument, NULL, 'n'},
                                                 {"seed", required_argument, NULL, 'S'},
                                                 {"hold", required_argument, NULL, 'H'},
                                                 {"timeout", required_argument, NULL, 'T'},
                                                 {"input", required_argument, NULL, 'i'},
                                                 {0}};
    struct options o = {.how = {.runs = 100, .seed = 5000, .patience = 2, .is_over = is_stopped}};
    struct sigaction action = {.sa_handler = on_signal}, before;
    struct etch_confirmed confirmed = {0};
    struct etch_error err;
    int c, status;

    o.how.request.timeout = 10;
    o.how.request.max_points = 5000000;
    o.how.request.silent = true;
    while ((c = getopt_long(argc, argv, "+:hn:", long_options, NULL)) != -1) {
        if (c == 'h')
            return etch_command_help(self);
        status = take_option(self, c, argv, &o);
        if (status)
            return status;
    }
    if (optind == argc)
        return etch_command_usage(self,
                                  o.orders ? "which program?" : "which schedule? (or --orders FILE and a program)");
    if (!o.orders && argc - optind > 1)
        return etch_command_usage(self, "a schedule names its program; for a program --orders FILE is needed");
    sigaction(SIGINT, &action, &before);
    status = o.orders ? confirm_orders(&o, argv + optind, &confirmed, &err)
                      : confirm_schedule(&o, argv[optind], &confirmed, &err);
    sigaction(SIGINT, &before, NULL);
    return etch_command_close_output(self, status < 0 ? etch_command_failed(self, &err) : report(&o, &confirmed));
}

const struct etch_command etch_command_confirm = {
    .name = "confirm",
    .summary = ETCH_SUMMARY_CONFIRM,
    .help =
        "usage: etch confirm [OPTION...] FILE.schedule.etch\n"
        "       etch confirm [OPTION...] --orders FILE [--] PROG [ARGUMENT...]\n\n"
        "Puts a cause to the test. The orders of the cause are enforced in many runs, and each of them is turned "
        "round\n"
        "in as many. The orders are those that decide the failure of a schedule that etch explore kept, or those in\n"
        "a FILE, one a line, for example: main.1 queue.c:18 after main queue.c:39\n\n"
        "  --native      run the program itself, not in the lab: a thread is stopped at its statement until the other\n"
        "                thread has left its own. #N in an order is the N-th time that the thread comes to the line\n"
        "  --runs N      runs in each direction (default 100)\n"
        "  --hold S      natively, a thread is held for at most S seconds (default 2)\n"
        "  --timeout S   a run ends after S seconds (default 10)\n"
        "  --seed N      the seed of the first run in the lab (default 5000)\n"
        "  --input FILE  standard input of each run (default: none)\n\n"
        "Exit status: 0: at least 95 % of the runs fail with the orders enforced, and at most 1 % with one of them\n"
        "turned round, 1: not so, or etch could not try.\n\n"
        "examples:\n"
        "  etch confirm queue-1.schedule.etch\n"
        "  etch confirm --native --orders cause.txt -- ./queue 4\n",
    .run = run,
    .keeps_signals = true,
};
