/* SPDX-License-Identifier: MIT */
/* etch replay: repeats a run of the lab. */
#include "cli/command.h"
#include "cli/lab_file.h"
#include "cli/summaries.h"
#include "diagnose/lab_twin.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

static int repeat(const struct etch_lab_file *f, const char *twin, unsigned long times, struct etch_error *err)
{
    struct etch_lab_request like = {.program = twin,
                                    .argv = f->argv.v,
                                    .input = f->input[0] ? f->input : NULL,
                                    .timeout = 60,
                                    .real_time = f->real_time,
                                    .no_heap_check = f->no_heap_check,
                                    .memory = f->memory};
    unsigned long good = 0;
    char text[64];

    for (unsigned long i = 0; i < times; i++) {
        struct etch_lab_result r;
        bool same;

        fflush(stdout);
        if (etch_lab_repeat(&r, &f->schedule, &like, &same, err) < 0)
            return -1;
        etch_lab_describe(&r, text, sizeof(text));
        good += same;
        if (i == 0)
            etch_lab_print_threads(&r, twin, stdout);
        if (!same)
            print_difference(&r, &f->schedule, twin, text);
        etch_lab_result_release(&r);
    }
    printf("%s, %lu of %lu times the same run\n", text, good, times);
    return good == times ? ETCH_EXIT_DONE : ETCH_EXIT_FAILED;
}

static int replay(const char *path, unsigned long times, struct etch_error *err)
{
    struct etch_lab_twin twin;
    struct etch_lab_file file;
    int status = -1;

    if (etch_lab_file_read(&file, path, err) < 0)
        return -1;
    if (etch_lab_twin(&twin, file.exe, err) == 0) {
        if (memcmp(twin.program, file.program, sizeof(file.program)) != 0) {
            etch_error_set(err, "the schedule in %s is of another build of %s", path, file.exe);
            etch_error_advise(err, "build the program as it was, or search again: etch explore %s", file.argv.v[0]);
        } else {
            status = repeat(&file, twin.path, times, err);
        }
    }
    etch_lab_file_release(&file);
    return status;
}

static int run(const struct etch_command *self, int argc, char **argv)
{
    static const struct option long_options[] = {
        {"help", no_argument, NULL, 'h'}, {"times", required_argument, NULL, 'n'}, {0}};
    unsigned long times = 1;
    struct etch_error err;
    int c, status;
    char *end;

    while ((c = getopt_long(argc, argv, ":h", long_options, NULL)) != -1) {
        if (c == 'h')
            return etch_command_help(self);
        if (c != 'n')
            return etch_command_bad_option(self, c, argv);
        times = strtoul(optarg, &end, 10);
        if (end == optarg || *end || times == 0 || times > 1000000)
            return etch_command_usage(self, "--times takes a number from 1 on, not '%s'", optarg);
    }
    if (optind + 1 != argc)
        return etch_command_usage(self, "which schedule?");
    status = replay(argv[optind], times, &err);
    return etch_command_close_output(self, status < 0 ? etch_command_failed(self, &err) : status);
}

const struct etch_command etch_command_replay = {
    .name = "replay",
    .summary = ETCH_SUMMARY_REPLAY,
    .help =
        "usage: etch replay [OPTION...] FILE\n\n"
        "Repeats the run that etch explore kept in FILE: the same threads run at the same points. The program must be\n"
        "the same build. The program's output is printed.\n\n"
        "  --times N   repeat the run N times, and count the runs that are the same\n\n"
        "Exit status: 0: every run was the same, 1: a run was different, or could not be repeated.\n\n"
        "examples:\n"
        "  etch replay queue-1.schedule.etch\n"
        "  etch replay --times 100 queue-1.schedule.etch\n",
    .run = run,
    .keeps_signals = true,
};
