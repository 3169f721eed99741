/* SPDX-License-Identifier: MIT */
/* etch sketch: shows how a failure happened, from bundles that are already recorded. */
#include "cli/command.h"
#include "cli/sketch_output.h"
#include "cli/summaries.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

struct sketch_options {
    const char *program;
    char **bundles;
    int n_bundles;
    struct etch_sketch_output output;
};

static int make(struct etch_run_set *s, const struct sketch_options *o, struct etch_error *err)
{
    Etch__Sketch *sketch;
    int status;

    for (int i = 0; i < o->n_bundles; i++)
        if (etch_run_set_add(s, o->bundles[i], ETCH_VERDICT_AS_RECORDED, false, err) < 0)
            return -1;
    if (etch_run_set_prepare(s, err) < 0)
        return -1;
    sketch = etch_run_set_compose(s, 0, 0, o->output.all, err);
    if (!sketch)
        return -1;
    status = etch_sketch_output_write(s, sketch, &o->output, err);
    etch__sketch__free_unpacked(sketch, NULL);
    return status;
}

static int run(const struct etch_command *self, int argc, char **argv)
{
    static const struct option long_options[] = {{"help", no_argument, NULL, 'h'},
                                                 {"html", required_argument, NULL, 'H'},
                                                 {"json", required_argument, NULL, 'j'},
                                                 {"sarif", required_argument, NULL, 's'},
                                                 {"all", no_argument, NULL, 'a'},
                                                 {"bug", required_argument, NULL, 'b'},
                                                 {0}};
    struct sketch_options o = {0};
    struct etch_run_set s = {0};
    struct etch_error err;
    int c, status;

    while ((c = getopt_long(argc, argv, ":h", long_options, NULL)) != -1) {
        switch (c) {
        case 'h':
            return etch_command_help(self);
        case 'b':
            s.bug = optarg;
            break;
        default:
            if (!etch_sketch_output_take_option(&o.output, c, optarg))
                return etch_command_bad_option(self, c, argv);
            break;
        }
    }
    if (argc - optind < 2)
        return etch_command_usage(self, argc == optind ? "which program, and which bundles?" : "which bundles?");
    o.program = argv[optind];
    o.bundles = argv + optind + 1;
    o.n_bundles = argc - optind - 1;
    s.program = o.program;
    status = make(&s, &o, &err);
    etch_run_set_release(&s);
    return status < 0 ? etch_command_failed(self, &err) : etch_command_close_output(self, ETCH_EXIT_DONE);
}

const struct etch_command etch_command_sketch = {
    .name = "sketch",
    .summary = ETCH_SUMMARY_SKETCH,
    .help = "usage: etch sketch PROG BUNDLE... [OPTION...]\n\n"
            "Compares failing and passing runs of PROG, and prints how the failure happened. PROG must be built with "
            "etch cc.\n"
            "The sketch shows the few statements of each thread that matter, in order, with values, and what failing\n"
            "runs do and passing runs do not. A run that was ended from outside (SIGTERM, SIGINT, SIGKILL) counts as a "
            "hang. A\n"
            "run that ended with a status other than 0 counts as a failure. If runs fail in several ways, etch "
            "sketches the most\n"
            "common failure and names the others. With only one failing run, there is a sketch but no cause.\n\n"
            "  --bug TEXT    sketch the failure whose name contains TEXT: a function, FILE:LINE, a signal\n"
            "  --html FILE   also write one HTML file, with the evidence of each line\n"
            "  --json FILE   also write JSON (docs/sketch.schema.json)\n"
            "  --sarif FILE  also write SARIF 2.1.0, for code hosts\n"
            "                FILE may be -: standard output, in place of the picture\n"
            "  --all         show every executed statement of the slice, and every predictor\n\n"
            "examples:\n"
            "  etch sketch ./server fail1.etch fail2.etch pass*.etch\n"
            "  etch sketch ./server *.etch --html sketch.html\n",
    .run = run,
    .reads = true,
    .outputs = (const char *const[]){"html", "json", "sarif", NULL},
};
