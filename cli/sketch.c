/* SPDX-License-Identifier: MIT */
/* etch sketch: shows how a failure happened, from bundles that are already recorded. */
#include "cli/command.h"
#include "cli/sketch_core.h"
#include "cli/sketch_output.h"
#include "cli/sketch_rings.h"
#include "cli/summaries.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

struct sketch_options {
    const char *program;
    char **bundles;
    int n_bundles;
    const char *core; /* NULL: none, or that of coredumpctl */
    bool has_core;
    const char *rings;
    struct etch_sketch_output output;
};

static int say_not_joined(const struct etch_sketch_core *core, const char *rings, struct etch_error *err)
{
    etch_error_set(err,
                   "the core is of process %u, and no process of the program with that number and start left rings "
                   "in %s",
                   core->recording->program ? core->recording->program->pid : 0, rings);
    return etch_error_advise(err, "the core or the rings alone, or the folder that this process had in ETCH_RING");
}

/* A core is joined to the rings of its process. Rings that only etch core knows of may be missing. */
static int add_core(struct etch_run_set *s, const struct sketch_options *o, struct etch_sketch_core *core,
                    struct etch_error *err)
{
    struct etch_error ignored;
    const char *rings;
    bool joined = false;

    if (etch_sketch_core_make(core, s, o->program, o->core, err) < 0)
        return -1;
    rings = o->rings ? o->rings : etch_sketch_core_rings(core);
    if (rings &&
        etch_sketch_rings_add(s, o->program, rings, true, core->recording, core->core, &joined, &ignored) < 0 &&
        o->rings) {
        *err = ignored;
        return -1;
    }
    if (o->rings && !joined)
        return say_not_joined(core, rings, err);
    if (joined)
        return 0;
    if (!core->recording->streams.n)
        etch_run_set_note(s, "made of a core: no control flow was recorded");
    if (etch_run_set_add(s, core->path, ETCH_VERDICT_AS_RECORDED, false, err) < 0)
        return -1;
    return core->recording->streams.n ? etch_run_set_join_core(s, core->path, core->core, err) : 0;
}

static int add_core_and_rings(struct etch_run_set *s, const struct sketch_options *o, struct etch_sketch_core *core,
                              struct etch_error *err)
{
    bool joined;
    int status;

    if (!o->has_core)
        return o->rings ? etch_sketch_rings_add(s, o->program, o->rings, o->n_bundles > 0, NULL, NULL, &joined, err)
                        : 0;
    status = add_core(s, o, core, err);
    etch_sketch_core_release(core);
    return status;
}

static int make(struct etch_run_set *s, const struct sketch_options *o, struct etch_error *err)
{
    struct etch_sketch_core core = {0};
    Etch__Sketch *sketch;
    int status;

    if (add_core_and_rings(s, o, &core, err) < 0)
        return -1;
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
                                                 {"core", required_argument, NULL, 'c'},
                                                 {"coredump", required_argument, NULL, 'd'},
                                                 {"rings", required_argument, NULL, 'r'},
                                                 {"gdb", required_argument, NULL, 'G'},
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
        case 'c':
        case 'd':
            o.core = c == 'c' ? optarg : NULL; /* coredumpctl gave it before the sandbox */
            o.has_core = true;
            break;
        case 'r':
            o.rings = optarg;
            break;
        default:
            if (!etch_sketch_output_take_option(&o.output, c, optarg))
                return etch_command_bad_option(self, c, argv);
            break;
        }
    }
    if (argc - optind < (o.has_core || o.rings ? 1 : 2))
        return etch_command_usage(self, argc == optind ? "which program, and which bundles?" : "which bundles?");
    o.program = argv[optind];
    o.bundles = argv + optind + 1;
    o.n_bundles = argc - optind - 1;
    s.program = o.program;
    status = make(&s, &o, &err);
    etch_run_set_release(&s);
    etch_sketch_core_clean();
    etch_sketch_rings_clean();
    return status < 0 ? etch_command_failed(self, &err) : etch_command_close_output(self, ETCH_EXIT_DONE);
}

const struct etch_command etch_command_sketch = {
    .name = "sketch",
    .summary = ETCH_SUMMARY_SKETCH,
    .help =
        "usage: etch sketch PROG BUNDLE... [OPTION...]\n"
        "       etch sketch PROG --core FILE | --coredump PID|latest [BUNDLE...] [OPTION...]\n"
        "       etch sketch PROG --rings FOLDER [OPTION...]\n\n"
        "Compares failing and passing runs of PROG, and prints how the failure happened. PROG must be built with "
        "etch cc.\n"
        "The sketch shows the few statements of each thread that matter, in order, with values, and what failing\n"
        "runs do and passing runs do not. A run that was ended from outside (SIGTERM, SIGINT, SIGKILL) counts as a "
        "hang. A\n"
        "run that ended with a status other than 0 counts as a failure. If runs fail in several ways, etch "
        "sketches the most\n"
        "common failure and names the others. With only one failing run, there is a sketch but no cause.\n\n"
        "  --core FILE   make a run out of a core, without a recording: the failing statement and the stack of each\n"
        "                thread. There is no control flow, unless etch core kept a trace of Intel PT beside the\n"
        "                core (etch record --for-cores). The core may be cut\n"
        "  --coredump W  the same with a core that systemd-coredump keeps. W is a process number, or latest for the\n"
        "                newest core of PROG\n"
        "  --rings FOLDER\n"
        "                the runs are the processes that left rings in FOLDER. PROG was built with etch cc --record "
        "and started\n"
        "                with ETCH_RING=FOLDER in its environment, without etch. Processes of other programs are "
        "left out\n"
        "  --bug TEXT    sketch the failure whose name contains TEXT: a function, FILE:LINE, a signal\n"
        "  --html FILE   also write one HTML file, with the evidence of each line\n"
        "  --json FILE   also write JSON (docs/sketch.schema.json)\n"
        "  --sarif FILE  also write SARIF 2.1.0, for code hosts\n"
        "  --gdb FILE    also write a script for gdb: breakpoints at the steps, which print the values\n"
        "                FILE may be -: standard output, in place of the picture\n"
        "  --all         show every executed statement of the slice, and every predictor\n\n"
        "examples:\n"
        "  etch sketch ./server fail1.etch fail2.etch pass*.etch\n"
        "  etch sketch ./server *.etch --html sketch.html\n"
        "  etch sketch ./server --core core.4711\n"
        "  etch sketch ./server --rings /var/crash/etch\n",
    .run = run,
    .before = etch_sketch_core_before,
    .reads = true,
    .outputs = (const char *const[]){"html", "json", "sarif", "gdb", NULL},
};
