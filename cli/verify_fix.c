/* SPDX-License-Identifier: MIT */
/* etch verify-fix: runs schedules that failed, and new ones, on a mended program. */
#include "cli/command.h"
#include "cli/lab_file.h"
#include "cli/summaries.h"
#include "diagnose/lab_twin.h"
#include "diagnose/sure.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OLD_SCHEDULES 60u /* of the program that failed: how often it fails */

struct options {
    ETCH_ARRAY(char *) failing; /* files of schedules */
    const char *input;
    uint64_t schedules;
};

static struct etch_lab_request request_for(const char *twin, char *const *argv, const char *input)
{
    return (struct etch_lab_request){
        .program = twin, .argv = argv, .input = input, .silent = true, .timeout = 10, .max_points = 5000000};
}

/* Follows the schedule as far as it fits: points and threads may be others in the mended program. Returns 1 if it still
 * fails, 0 if not, -1 with `err` set. */
static int follow(const char *path, const struct etch_lab_file *f, struct etch_lab_request request,
                  struct etch_error *err)
{
    struct etch_lab_result r;
    char text[64];
    bool fails, fits;

    request.spec = f->schedule.spec;
    request.repeat = f->schedule.segments.v;
    request.n_repeat = (uint32_t)f->schedule.segments.n;
    request.loosely = true;
    request.real_time = f->real_time;
    request.no_heap_check = f->no_heap_check;
    if (etch_lab_run(&r, &request, err) < 0)
        return -1;
    etch_lab_describe(&r, text, sizeof(text));
    fails = !(r.end == ETCH_LAB_EXITED && r.number == 0) && r.end != ETCH_LAB_ENDLESS && r.end != ETCH_LAB_UNLIKE;
    fits = r.shared->points >= f->schedule.points / 2;
    printf("%s: %s\n", path,
           fails  ? r.end == f->schedule.end && r.number == f->schedule.number ? "fails as before" : "fails otherwise"
           : fits ? "passes"
                  : "passes, and the schedule no longer applies: the program has far fewer points");
    if (fails)
        printf("  %s\n", text);
    etch_lab_result_release(&r);
    return fails;
}

/* How often the program of the schedule fails, so that it is known how many runs prove the repair. */
static int measure(const struct etch_lab_file *f, uint32_t *failed, uint32_t *of, struct etch_error *err)
{
    struct etch_lab_twin twin;
    struct etch_lab_explore explore = {.schedules = OLD_SCHEDULES, .all = true, .seconds = 20};
    struct etch_lab_found found;

    if (etch_lab_twin(&twin, f->exe, err) < 0)
        return -1;
    explore.request = request_for(twin.path, f->argv.v, f->input[0] ? f->input : NULL);
    if (memcmp(twin.program, f->program, sizeof(f->program)) != 0)
        return etch_error_set(err, "%s is another build than the one that failed", f->exe);
    if (etch_lab_explore(&found, &explore, err) < 0)
        return -1;
    *failed += (uint32_t)found.failing;
    *of += (uint32_t)(found.schedules - found.unended);
    etch_lab_found_release(&found);
    return 0;
}

static void print_sure(uint32_t failed, uint32_t of, uint64_t passed)
{
    uint64_t n95 = etch_sure_runs(failed, of, 0.95), n99 = etch_sure_runs(failed, of, 0.99);

    if (!n95) {
        printf("sure: the rate of failure is below %.2g with 95 %%, below %.2g with 99 %%\n",
               etch_sure_rate(passed, 0.95), etch_sure_rate(passed, 0.99));
        return;
    }
    printf("sure: before, %u of %u schedules failed; %" PRIu64 " must pass for 95 %%, %" PRIu64 " for 99 %%: %s\n",
           failed, of, n95, n99,
           passed >= n99   ? "both are reached"
           : passed >= n95 ? "95 % is reached"
                           : "not yet sure, use --schedules");
}

static int check_schedules(const struct options *o, struct etch_lab_request request, uint32_t *failed, uint32_t *of,
                           struct etch_error *err)
{
    int fails = 0, status = 0;

    for (size_t i = 0; i < o->failing.n && status >= 0; i++) {
        struct etch_lab_file file;
        struct etch_error ignored;

        if (etch_lab_file_read(&file, o->failing.v[i], err) < 0)
            return -1;
        status = follow(o->failing.v[i], &file, request, err);
        fails += status > 0;
        if (status >= 0 && measure(&file, failed, of, &ignored) < 0)
            printf("  how often it failed is not known: %s\n", ignored.what);
        etch_lab_file_release(&file);
    }
    return status < 0 ? -1 : fails;
}

static int verify(const struct options *o, char **argv, struct etch_error *err)
{
    struct etch_lab_explore explore = {.schedules = o->schedules, .all = true};
    struct etch_lab_twin twin;
    struct etch_lab_found found;
    uint32_t failed = 0, of = 0;
    uint64_t passed;
    int fails;

    if (etch_lab_twin(&twin, argv[0], err) < 0)
        return -1;
    explore.request = request_for(twin.path, argv, o->input);
    fails = check_schedules(o, explore.request, &failed, &of, err);
    if (fails < 0 || etch_lab_explore(&found, &explore, err) < 0)
        return -1;
    passed = found.schedules - found.failing - found.unended;
    printf("explored: %" PRIu64 " schedules, %" PRIu64 " pass, %" PRIu64 " fail, %" PRIu64 " did not end\n",
           found.schedules, passed, found.failing, found.unended);
    if (!found.failing && !fails)
        print_sure(failed, of, passed);
    fails += found.failing > 0;
    etch_lab_found_release(&found);
    return fails ? ETCH_EXIT_FAILED : ETCH_EXIT_DONE;
}

static int run(const struct etch_command *self, int argc, char **argv)
{
    static const struct option long_options[] = {{"help", no_argument, NULL, 'h'},
                                                 {"failing", required_argument, NULL, 'f'},
                                                 {"schedules", required_argument, NULL, 'n'},
                                                 {"input", required_argument, NULL, 'i'},
                                                 {0}};
    struct options o = {.schedules = 300};
    struct etch_error err;
    int c, status;
    char *end;

    while ((c = getopt_long(argc, argv, "+:h", long_options, NULL)) != -1) {
        if (c == 'h')
            return etch_command_help(self);
        if (c == 'f' && etch_array_push(&o.failing, optarg))
            continue;
        if (c == 'i') {
            o.input = optarg;
            continue;
        }
        if (c != 'n')
            return etch_command_bad_option(self, c, argv);
        o.schedules = strtoull(optarg, &end, 10);
        if (end == optarg || *end || !o.schedules || o.schedules > 100000000)
            return etch_command_usage(self, "--schedules takes a number from 1 on, not '%s'", optarg);
    }
    if (optind == argc)
        return etch_command_usage(self, "which program?");
    status = verify(&o, argv + optind, &err);
    etch_array_free(&o.failing);
    return etch_command_close_output(self, status < 0 ? etch_command_failed(self, &err) : status);
}

const struct etch_command etch_command_verify_fix = {
    .name = "verify-fix",
    .summary = ETCH_SUMMARY_VERIFY_FIX,
    .help =
        "usage: etch verify-fix [OPTION...] [--] PROG [ARGUMENT...]\n\n"
        "Runs the mended program PROG in the lab: under schedules that failed before, and under new ones. Says how\n"
        "many schedules must pass until the repair is 95 % and 99 % sure. PROG must be built by etch cc.\n\n"
        "  --failing FILE   a schedule that etch explore kept; may be given again. A schedule of another build is\n"
        "                   followed as far as it fits\n"
        "  --schedules N    new schedules (default 300)\n"
        "  --input FILE     standard input of each run (default: none)\n\n"
        "Exit status: 0: every run passed, 1: a run failed, or the program could not be run.\n\n"
        "examples:\n"
        "  etch verify-fix --failing queue-1.schedule.etch -- ./queue\n"
        "  etch verify-fix --schedules 2000 -- ./server --once\n",
    .run = run,
};
