/* SPDX-License-Identifier: MIT */
/* etch diagnose: options, progress, interrupts and output. The loop itself is in diagnose/. */
#include "diagnose/diagnose.h"
#include "base/printable.h"
#include "cli/command.h"
#include "cli/sketch_output.h"
#include "cli/summaries.h"
#include "collector/pt.h"
#include "collector/record.h"
#include "collector/vpt_find.h"
#include "diagnose/lab_twin.h"
#include "diagnose/runner.h"

#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct options {
    struct etch_diagnose_options d;
    struct etch_sketch_output output;
};

static volatile sig_atomic_t interrupted;
static const struct etch_diagnosis *volatile at_work; /* has child processes that an interrupt must end */

/* The first interrupt prints the best sketch so far. The second ends etch at once, and kills the recorded programs. */
static void on_interrupt(int number)
{
    if (interrupted) {
        if (at_work)
            etch_diagnosis_kill(at_work);
        signal(number, SIG_DFL);
        raise(number);
    }
    interrupted = 1;
}

static void take_interrupts(void)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction act = {.sa_handler = on_interrupt};

    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        sigaction(numbers[i], &act, NULL);
}

static bool is_interrupted(void *context)
{
    (void)context;
    return interrupted;
}

static void show_progress(void *context, const struct etch_diagnose_state *s)
{
    (void)context;
    fprintf(stderr, "\r\033[K%u runs, %u failed", s->runs, s->failures);
    if (s->schedules)
        fprintf(stderr, ", %llu schedules in the lab", (unsigned long long)s->schedules);
    if (s->round)
        fprintf(stderr, ", round %u (%u statements)", s->round, s->sigma);
    if (s->best)
        fprintf(stderr, ": F %.2f %.60s", s->best_f, etch_shown(s->best));
    fflush(stderr);
}

static void say_advice(void *context, const char *text)
{
    (void)context;
    fprintf(stderr, "%setch diagnose: %s\n", isatty(2) ? "\r\033[K" : "", text);
}

static void say_option(const char *option, const char *what)
{
    printf("  %-32s %s\n", option, what);
}

/* No run failed. */
static void say_what_next(struct etch_diagnosis *d, const struct options *o)
{
    char text[2048];

    for (unsigned i = 0; etch_diagnosis_inputs(d, i, text, sizeof(text)); i++)
        printf("%s\n", etch_shown(text));
    printf("what may make it fail:\n");
    if (etch_record_has_lab(o->d.argv[0]) && !o->d.program)
        say_option("etch explore", "other orders of its threads");
    if (!o->d.inputs)
        say_option("--inputs 'FILES' -- PROG {}", "other inputs");
    say_option("--runs N, --time S", "more runs");
    if (!o->d.fails_if)
        say_option("--fails-if CMD", "if a wrong output is the failure");
}

static void explain(const struct etch_diagnosis *d)
{
    const char *line;

    printf("\nexperiments\n");
    if (!etch_diagnosis_explain(d, 0))
        printf("  none: the comparison of runs decided. --all shows every suspect\n");
    for (size_t i = 0; (line = etch_diagnosis_explain(d, i)); i++)
        printf("  %s\n", etch_shown(line));
}

/* Returns the exit status, or -1 with `err` set. */
static int conclude(struct etch_diagnosis *d, const struct options *o, struct etch_error *err)
{
    struct etch_diagnose_state state = etch_diagnosis_state(d);
    Etch__Sketch *sketch;
    int status;

    if (!state.failures && !state.unplaced && !state.lab_failed) {
        printf("%sno failure in %u runs of %s\n", interrupted ? "interrupted; " : "", state.runs,
               etch_shown(o->d.argv[0]));
        if (state.schedules)
            printf("and none in %llu schedules of the lab\n", (unsigned long long)state.schedules);
        say_what_next(d, o);
        return ETCH_EXIT_FAILED;
    }
    sketch = etch_diagnosis_sketch(d, o->output.all, err);
    if (!sketch)
        return -1;
    status = etch_sketch_output_write(etch_diagnosis_runs(d), sketch, &o->output, err);
    etch__sketch__free_unpacked(sketch, NULL);
    if (status == 0 && o->d.explain)
        explain(d);
    return status < 0 ? -1 : ETCH_EXIT_DONE;
}

static void summarise(const struct etch_diagnosis *d)
{
    struct etch_diagnose_state s = etch_diagnosis_state(d);
    char needed[80] = "", lab[160] = "";

    if (s.needed)
        snprintf(needed, sizeof(needed), ", the cause was clear after %u failure%s", s.needed,
                 s.needed == 1 ? "" : "s");
    if (s.schedules)
        snprintf(lab, sizeof(lab), ", %llu schedules and %llu experiments in the lab%s%s",
                 (unsigned long long)s.schedules, (unsigned long long)s.experiments, s.sureness ? ": " : "",
                 s.sureness ? s.sureness : "");
    fprintf(stderr, "etch diagnose: %u runs, %u failed%s, %.1f s%s; kept in %s\n", s.runs, s.failures, lab, s.seconds,
            needed, etch_shown(s.folder));
}

static int diagnose(const struct etch_command *self, const struct options *o)
{
    const struct etch_diagnose_observer observer = {
        .progress = isatty(2) ? show_progress : NULL, .advise = say_advice, .is_interrupted = is_interrupted};
    struct etch_diagnosis *d;
    struct etch_error err;
    int status;

    take_interrupts();
    status = etch_diagnosis_open(&d, &o->d, &observer, &err);
    at_work = d;
    if (status == 0)
        status = etch_diagnosis_run(d, &err);
    at_work = NULL;
    if (isatty(2))
        fputs("\r\033[K", stderr);
    if (status < 0 && d && etch_diagnosis_state(d).failures) { /* show what is known so far */
        etch_command_failed(self, &err);
        status = conclude(d, o, &err) < 0 ? -1 : ETCH_EXIT_FAILED;
    } else if (status == 0) {
        status = conclude(d, o, &err);
        if (status >= 0)
            summarise(d);
    }
    etch_diagnosis_free(d);
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

static bool is_source(const char *name)
{
    static const char *const sources[] = {"soft", "lab", "vpt", "none", "pt", "auto"};

    for (size_t i = 0; i < sizeof(sources) / sizeof(sources[0]); i++)
        if (strcmp(name, sources[i]) == 0)
            return true;
    return false;
}

/* True if the program has a lab build. If it could have one and has not, says why. */
static bool has_lab(const char *program)
{
    struct etch_lab_twin twin;
    char path[PATH_MAX];
    struct etch_error err;

    if (!etch_record_has_lab(program) || etch_record_find_program(program, path, sizeof(path), &err) < 0)
        return false;
    if (etch_lab_twin(&twin, path, &err) == 0)
        return true;
    fprintf(stderr, "etch diagnose: no lab build: %s\n", err.what);
    return false;
}

/* Returns the source that auto takes, or NULL if no source on this machine can record a program that a script starts.
 * pt comes last: it has not run on silicon. */
static const char *choose_source(const char *started, const char *subject)
{
    bool by_script = subject != NULL;
    struct etch_error ignored;

    if (!by_script && etch_record_has_recorder(started))
        return "soft";
    if (etch_vpt_usable())
        return "vpt";
    if (by_script && etch_record_has_recorder(subject))
        return "soft";
    if (!by_script && has_lab(started))
        return "lab";
    if (!by_script)
        return "none";
    return etch_pt_usable(&ignored) ? "pt" : NULL;
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
                                                 {"input", required_argument, NULL, 'i'},
                                                 {"inputs", required_argument, NULL, 'I'},
                                                 {"program", required_argument, NULL, 'p'},
                                                 {"bug", required_argument, NULL, 'b'},
                                                 {"sigma", required_argument, NULL, 'g'},
                                                 {"no-lab", no_argument, NULL, 'L'},
                                                 {"explain", no_argument, NULL, 'e'},
                                                 {"gdb", required_argument, NULL, 'G'},
                                                 {"from", required_argument, NULL, 'm'},
                                                 {0}};
    struct options o = {.d = {.runs = 300, .jobs = 1, .timeout = 10, .store = ".etch", .source = "auto"}};
    double value;
    int c;

    while ((c = getopt_long(argc, argv, "+:h", long_options, NULL)) != -1) {
        switch (c) {
        case 'h':
            return etch_command_help(self);
        case 'r':
            if (!number(optarg, 1, 1e6, &value))
                return bad_number(self, "--runs", optarg);
            o.d.runs = (unsigned)value;
            o.d.patient = true;
            break;
        case 'g':
            if (!number(optarg, 1, 1e6, &value))
                return bad_number(self, "--sigma", optarg);
            o.d.sigma = (uint32_t)value;
            break;
        case 't':
            if (!number(optarg, 0.1, 1e7, &o.d.time))
                return bad_number(self, "--time", optarg);
            o.d.patient = true;
            break;
        case 'J':
            if (!number(optarg, 1, ETCH_RUNNER_JOBS_MAX, &value))
                return bad_number(self, "--jobs", optarg);
            o.d.jobs = (unsigned)value;
            break;
        case 'T':
            if (!number(optarg, 0.1, 1e6, &o.d.timeout))
                return bad_number(self, "--timeout", optarg);
            break;
        case 'f':
            o.d.fails_if = optarg;
            break;
        case 'i':
            o.d.input = optarg;
            break;
        case 'I':
            o.d.inputs = optarg;
            break;
        case 'p':
            o.d.program = optarg;
            break;
        case 'b':
            o.d.bug = optarg;
            break;
        case 'S':
            o.d.store = optarg;
            break;
        case 'F':
            o.d.fresh = true;
            break;
        case 'e':
            o.d.explain = true;
            break;
        case 'm':
            o.d.from = optarg;
            break;
        case 'L':
            o.d.no_lab = true;
            break;
        case 'o':
            if (!is_source(optarg))
                return etch_command_usage(self, "--source takes soft, lab, vpt, none, pt or auto");
            o.d.source = optarg;
            break;
        default:
            if (!etch_sketch_output_take_option(&o.output, c, optarg))
                return etch_command_bad_option(self, c, argv);
            break;
        }
    }
    if (optind == argc)
        return etch_command_usage(self, "which program?");
    if (strcmp(o.d.source, "auto") == 0) {
        o.d.source = choose_source(argv[optind], o.d.program);
        if (!o.d.source) {
            struct etch_error err;

            etch_error_set(&err, "--program needs vpt or pt, or a program built with etch cc --record");
            etch_error_advise(&err, "etch cc --record; or diagnose %s itself", o.d.program);
            return etch_command_failed(self, &err);
        }
        if (strcmp(o.d.source, "none") == 0)
            fprintf(stderr, "etch diagnose: " ETCH_NO_CONTROL_FLOW "\n");
    }
    if (o.d.program && (strcmp(o.d.source, "none") == 0 || strcmp(o.d.source, "lab") == 0))
        return etch_command_usage(
            self, "--source %s records only the program that etch starts, so --program cannot be used", o.d.source);
    if (o.d.jobs > ETCH_RUNNER_JOBS_MAX)
        o.d.jobs = ETCH_RUNNER_JOBS_MAX;
    o.d.argv = argv + optind;
    return diagnose(self, &o);
}

const struct etch_command etch_command_diagnose = {
    .name = "diagnose",
    .summary = ETCH_SUMMARY_DIAGNOSE,
    .help =
        "usage: etch diagnose [OPTION...] [--] PROG [ARG...]\n\n"
        "Runs PROG with the given arguments again and again under the recorder, and does not show its output. PROG "
        "must be\n"
        "built with etch cc. After the first failure, the next runs watch the data that the statements nearest to the "
        "failure\n"
        "use. etch stops when the difference between failing and passing runs is clear, or when more runs would show "
        "nothing\n"
        "new. Then etch prints the sketch. A run fails by a signal, by taking too long, or by an exit status other "
        "than 0.\n"
        "Ctrl-C prints the best sketch so far. A second Ctrl-C ends etch. Runs are kept, and a second call goes on "
        "where the\n"
        "first stopped. Only some of the runs that are alike are kept; the others are counted. Each run finds its "
        "number in\n"
        "$ETCH_RUN. Exit status 1: no run failed, or etch could not go on.\n\n"
        "  --runs N       make at most N more runs (300)\n"
        "  --time S       stop after S seconds\n"
        "  --jobs N       make N runs at a time (1); not for runs that disturb each other by a file or a port\n"
        "  --timeout S    a run that takes longer than S seconds hangs (10); etch does not wait for a hang that is "
        "certain\n"
        "  --input FILE   standard input of each run (none)\n"
        "  --inputs FILES a pattern of files, in quotes: each run gets one of them, in place of {} in the arguments, "
        "or on\n"
        "                 standard input if there is no {}. etch says which fail, which pass, and the smallest "
        "difference\n"
        "  --program BIN  the program to diagnose, if PROG is a script, or make, that runs BIN\n"
        "  --fails-if CMD a run that ends by itself fails if this shell command succeeds. The command gets the output "
        "on\n"
        "                 standard input and as the file $ETCH_OUTPUT, and the exit status as $ETCH_STATUS\n"
        "  --bug TEXT     if runs fail in several ways: diagnose the failure whose name contains TEXT\n"
        "  --source S     soft: the recorder that etch cc --record compiled in, at nearly full speed, with the CPU's "
        "four\n"
        "                 watchpoints, which runs use in turn; lab: under etch's control, one thread at a time, each "
        "run\n"
        "                 with another schedule, with every step and all accesses to shared memory; vpt: every step "
        "of\n"
        "                 any program, under QEMU; none: the watchpoints alone, without control flow; pt: Intel PT,\n"
        "                 without watches for now, so values and orders stay unknown; auto: soft if PROG has the\n"
        "                 recorder, else vpt if it is available, else lab if PROG was built with etch cc, else none\n"
        "                 (auto)\n"
        "  --sigma N      begin with the N statements nearest to the failure (16); each round doubles N\n"
        "  --store DIR    the folder for kept runs (.etch)\n"
        "  --from BUNDLE  begin with the recording of a run that failed elsewhere, such as one of etch agent: no run\n"
        "                 has to fail here before the lab looks for the same failure\n"
        "  --explain      print each experiment, its outcome, and what decided\n"
        "  --no-lab       make no experiments in the lab, and compare runs only\n"
        "  --fresh        forget the runs kept before\n"
        "  --html FILE, --json FILE, --sarif FILE, --gdb FILE, --all\n"
        "                 the same as for etch sketch\n\n"
        "examples:\n"
        "  etch diagnose -- ./server --test\n"
        "  etch diagnose --html sketch.html --time 120 -- ./a.out input.txt\n"
        "  etch diagnose --inputs 'cases/*.ini' -- ./parse {}\n"
        "  etch diagnose --fails-if 'grep -q corrupt' -- ./logger\n"
        "  etch diagnose --program ./server -- ./tests/stress.sh\n",
    .run = run,
};
