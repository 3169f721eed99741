/* SPDX-License-Identifier: MIT */
/* etch calibrate: measures how far the clocks of the CPUs are apart, and says if they can order events. */
#include "calibrate/kept.h"
#include "cli/calibrate_plot.h"
#include "cli/command.h"
#include "cli/message_json.h"

#include <getopt.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TABLE_CPUS 8 /* up to this many CPUs, a table shows every pair */

struct calibrate_options {
    struct etch_calibration_options calibration;
    const char *plot;
    bool json;
    bool fresh; /* a kept measurement is not wanted */
};

/* ---- For people ---- */

static void print_health(const struct etch_calibration *c)
{
    const struct etch_clock_health *h = &c->health;

    printf("clock        TSC %s, %s; the kernel's own clock source is %s\n", h->constant ? "constant" : "NOT constant",
           h->nonstop ? "nonstop" : "NOT nonstop", h->clocksource[0] ? h->clocksource : "not known");
    if (c->refused)
        printf("             events are NOT ordered across CPUs by this clock: %s\n", c->why);
}

static void print_cell(const struct etch_skew_bounds *b)
{
    char text[48];

    if (etch_skew_bounds_known(b))
        snprintf(text, sizeof(text), "%+" PRId64 "..%+" PRId64, b->lo, b->hi);
    else
        snprintf(text, sizeof(text), "unknown");
    printf(" %16s", text);
}

static unsigned cpu_number(const struct etch_calibration *c, size_t i)
{
    return i == 0 ? c->reference : c->cpus[i - 1].cpu;
}

static void print_matrix(const struct etch_calibration *c)
{
    printf("\nskew         clock of the column minus clock of the row, in cycles; these bounds cannot be wrong\n%13s",
           "");
    for (size_t k = 0; k <= c->n_cpus; k++)
        printf(" %13s%-3u", "CPU ", cpu_number(c, k));
    printf("\n");
    for (size_t i = 0; i <= c->n_cpus; i++) {
        printf("  %7s%-4u", "CPU ", cpu_number(c, i));
        for (size_t k = 0; k <= c->n_cpus; k++) {
            struct etch_skew_bounds b = etch_calibration_between(c, cpu_number(c, i), cpu_number(c, k));

            if (i == k)
                printf(" %16s", "0");
            else
                print_cell(&b);
        }
        printf("\n");
    }
}

static void print_cpus(const struct etch_calibration *c)
{
    printf("\nagainst CPU %-4u %16s %7s  %-8s %9s  %-18s %6s\n", c->reference, "bounds", "width", "best by", "rounds",
           "statistics", "width");
    for (size_t i = 0; i < c->n_cpus; i++) {
        const struct etch_calibration_cpu *cpu = &c->cpus[i];

        printf("  CPU %-10u", cpu->cpu);
        print_cell(&cpu->bounds);
        if (etch_skew_bounds_known(&cpu->bounds))
            printf(" %7" PRId64 "  %-8s %9" PRIu64, cpu->bounds.hi - cpu->bounds.lo, etch_race_variant_name(cpu->best),
                   cpu->bounds.rounds);
        else
            printf(" %7s  %-8s %9" PRIu64, "", "", cpu->bounds.rounds);
        if (cpu->interval.values > 1) {
            char range[48];

            snprintf(range, sizeof(range), "%+.2f..%+.2f", cpu->interval.lo, cpu->interval.hi);
            printf("  %-18s %6.2f%s", range, cpu->interval.hi - cpu->interval.lo,
                   cpu->interval_outside ? "  (outside of the bounds: not used)" : "");
        }
        printf("\n");
    }
    if (c->n_cpus && c->cpus[0].interval.values > 1)
        printf("             statistics hold at %.5g %% if a cache line takes equally long in both directions\n",
               100 * c->cpus[0].interval.confidence);
    for (size_t i = 0; i < c->n_checks; i++)
        printf("  check      CPU %u and CPU %u directly: %" PRId64 "..%" PRId64 ", %s\n", c->checks[i].a,
               c->checks[i].b, c->checks[i].bounds.lo, c->checks[i].bounds.hi,
               c->checks[i].agrees ? "agrees" : "DISAGREES");
}

static void print_kernel_clock(const struct etch_calibration *c)
{
    printf("\nperf clock   %s; CLOCK_MONOTONIC_RAW: %.9f cycles/ns, within %" PRIu64
           " cycles over %.3f s (%zu pairs)\n",
           c->offered.offered ? "conversion offered by the kernel"
                              : "no conversion offered by the kernel, measured instead",
           c->fit.tsc_per_ns, c->fit.error, (double)c->fit.span_ns / 1e9, c->fit.pairs);
    if (c->scheduler.pairs)
        printf("             perf's own clock: %.6f cycles/ns, within %" PRIu64 " cycles (%zu watched accesses)\n",
               c->scheduler.tsc_per_ns, c->scheduler.error, c->scheduler.pairs);
    if (c->offered.offered && c->scheduler.pairs)
        printf("             the offered conversion differs from the measurement by %" PRId64 " ns at most\n",
               c->offered_differs_ns);
    if (c->trap.samples)
        printf("watchpoints  stamped %" PRIu64 "..%" PRIu64 " cycles after the access, %" PRIu64
               " in the middle (%zu seen, %zu "
               "contradict the clock)\n",
               c->trap.lo, c->trap.hi, c->trap.median, c->trap.samples, c->trap.outside);
    else
        printf("watchpoints  not measured: %s\n", c->trap_missing[0] ? c->trap_missing : "left out");
    if (c->drain_hi)
        printf("stores       seen by others %" PRIu64 "..%" PRIu64 " cycles after the instruction, contended\n",
               c->drain_lo, c->drain_hi);
}

static const char *age_text(uint64_t ns, char *text, size_t size)
{
    double s = (double)ns / 1e9;

    snprintf(text, size,
             s < 100    ? "%.0f s"
             : s < 6000 ? "%.0f min"
                        : "%.1f h",
             s < 100    ? s
             : s < 6000 ? s / 60
                        : s / 3600);
    return text;
}

static void print_people(const struct etch_calibration *c)
{
    char age[32];

    print_health(c);
    if (c->n_cpus == 0)
        printf("\nskew         none: this process may use one CPU only\n");
    else if (c->n_cpus < TABLE_CPUS)
        print_matrix(c);
    if (c->n_cpus)
        print_cpus(c);
    print_kernel_clock(c);
    if (c->age_ns)
        printf("\nkept         measured %s ago; %zu of %zu CPUs and the kernel's clock were checked now. "
               "--fresh measures again",
               age_text(c->age_ns, age, sizeof(age)), c->n_checked, c->n_cpus);
    printf("\ntook %.2f s", (double)c->duration_ns / 1e9);
    if (c->n_cpus)
        printf(", %.0f ms for each CPU beside the reference; with more CPUs each gets fewer rounds, to keep the time "
               "limit",
               (double)c->cpus[0].duration_ns / 1e6);
    printf("\n");
}

/* ---- For programs ---- */

static json_t *range(json_t *lo, json_t *hi)
{
    return json_pack("{s:o,s:o}", "lo", lo, "hi", hi);
}

static json_t *bounds_json(const struct etch_skew_bounds *b)
{
    return etch_skew_bounds_known(b) ? range(json_integer(b->lo), json_integer(b->hi)) : json_null();
}

static json_t *cpu_json(const struct etch_calibration_cpu *cpu)
{
    json_t *variants = json_object();
    json_t *statistics = json_null();

    for (int v = 0; v < ETCH_RACE_VARIANTS; v++)
        json_object_set_new(variants, etch_race_variant_name((enum etch_race_variant)v),
                            bounds_json(&cpu->variants[v]));
    if (cpu->interval.values > 1)
        statistics = json_pack("{s:o,s:f,s:f,s:I,s:I,s:I,s:b}", "range",
                               range(json_real(cpu->interval.lo), json_real(cpu->interval.hi)), "mean",
                               cpu->interval.mean, "confidence", cpu->interval.confidence, "rounds",
                               (json_int_t)cpu->flag_rounds, "values", (json_int_t)cpu->interval.values, "dropped",
                               (json_int_t)cpu->dropped, "within_bounds", !cpu->interval_outside);
    return json_pack("{s:i,s:o,s:s,s:I,s:o,s:o,s:I}", "cpu", (int)cpu->cpu, "bounds", bounds_json(&cpu->bounds), "best",
                     etch_race_variant_name(cpu->best), "rounds", (json_int_t)cpu->bounds.rounds, "variants", variants,
                     "statistics", statistics, "duration_ns", (json_int_t)cpu->duration_ns);
}

static json_t *fit_json(const struct etch_clock_fit *fit)
{
    if (fit->pairs == 0)
        return json_null();
    return json_pack("{s:f,s:I,s:I,s:I,s:I,s:I,s:I}", "cycles_per_ns", fit->tsc_per_ns, "ns_zero",
                     (json_int_t)fit->ns_zero, "tsc_zero", (json_int_t)fit->tsc_zero, "error_cycles",
                     (json_int_t)fit->error, "uneven_cycles", (json_int_t)fit->uneven, "span_ns",
                     (json_int_t)fit->span_ns, "pairs", (json_int_t)fit->pairs);
}

static json_t *calibration_json(const struct etch_calibration *c)
{
    json_t *cpus = json_array();
    json_t *checks = json_array();
    json_t *trap = json_null();

    for (size_t i = 0; i < c->n_cpus; i++)
        json_array_append_new(cpus, cpu_json(&c->cpus[i]));
    for (size_t i = 0; i < c->n_checks; i++)
        json_array_append_new(checks,
                              json_pack("{s:i,s:i,s:o,s:b}", "a", (int)c->checks[i].a, "b", (int)c->checks[i].b,
                                        "bounds", bounds_json(&c->checks[i].bounds), "agrees", c->checks[i].agrees));
    if (c->trap.samples)
        trap = json_pack("{s:o,s:I,s:I,s:I}", "range",
                         range(json_integer((json_int_t)c->trap.lo), json_integer((json_int_t)c->trap.hi)), "median",
                         (json_int_t)c->trap.median, "samples", (json_int_t)c->trap.samples, "outside",
                         (json_int_t)c->trap.outside);
    return json_pack(
        "{s:{s:b,s:b,s:b,s:s},s:b,s:s,s:i,s:o,s:o,s:{s:b,s:o,s:o},s:o,s:o,s:I,s:b,s:I}", "clock", "constant",
        c->health.constant, "nonstop", c->health.nonstop, "rdtscp", c->health.rdtscp, "clocksource",
        c->health.clocksource, "orders", !c->refused, "refused_because", c->why, "reference_cpu", (int)c->reference,
        "cpus", cpus, "checks", checks, "perf_clock", "offered", c->offered.offered, "monotonic_raw", fit_json(&c->fit),
        "scheduler", fit_json(&c->scheduler), "trap_latency", trap, "store_visibility",
        c->drain_hi ? range(json_integer((json_int_t)c->drain_lo), json_integer((json_int_t)c->drain_hi)) : json_null(),
        "duration_ns", (json_int_t)c->duration_ns, "kept", c->age_ns > 0, "age_ns", (json_int_t)c->age_ns);
}

static int print_json(const struct etch_calibration *c, struct etch_error *err)
{
    etch_json_begin();
    return etch_json_print(calibration_json(c), JSON_INDENT(2), err);
}

/* ---- The command ---- */

static int parse_number(const char *text, double lo, double hi, double *value)
{
    char *end;

    *value = strtod(text, &end);
    return *text == '\0' || *end != '\0' || !(*value > lo) || !(*value < hi) ? -1 : 0;
}

static int parse(const struct etch_command *self, int argc, char **argv, struct calibrate_options *options)
{
    static const struct option long_options[] = {{"help", no_argument, NULL, 'h'},
                                                 {"fresh", no_argument, NULL, 'f'},
                                                 {"json", no_argument, NULL, 'j'},
                                                 {"plot", required_argument, NULL, 'p'},
                                                 {"seconds", required_argument, NULL, 's'},
                                                 {"confidence", required_argument, NULL, 'c'},
                                                 {0}};
    double number;
    int c;

    while ((c = getopt_long(argc, argv, ":h", long_options, NULL)) != -1) {
        switch (c) {
        case 'h':
            etch_command_help(self);
            return ETCH_EXIT_DONE;
        case 'f':
            options->fresh = true;
            break;
        case 'j':
            options->json = true;
            break;
        case 'p':
            options->plot = optarg;
            options->fresh = true; /* the samples are not kept */
            break;
        case 's':
            if (parse_number(optarg, 0.01, 3600, &number) < 0)
                return etch_command_usage(self, "--seconds takes a number from 0.01 to 3600, not '%s'", optarg);
            options->calibration.budget_ns = (uint64_t)(number * 1e9);
            options->fresh = true;
            break;
        case 'c':
            if (parse_number(optarg, 0, 100, &number) < 0)
                return etch_command_usage(self, "--confidence takes a percentage between 0 and 100, not '%s'", optarg);
            options->calibration.confidence = number / 100;
            options->fresh = true;
            break;
        default:
            return etch_command_bad_option(self, c, argv);
        }
    }
    if (optind != argc)
        return etch_command_usage(self, "the command takes no argument, but got '%s'", argv[optind]);
    return -1;
}

static int run(const struct etch_command *self, int argc, char **argv)
{
    struct calibrate_options options = {.calibration = {.checks = 3}};
    struct etch_calibration calibration;
    struct etch_error err;
    int status = parse(self, argc, argv, &options);

    if (status >= 0)
        return status;
    if (isatty(STDERR_FILENO) && !options.json)
        fputs("measuring...\r", stderr);
    if ((options.fresh ? etch_calibrate_fresh : etch_calibrate_kept)(&calibration, &options.calibration, &err) < 0)
        return etch_command_failed(self, &err);
    status = calibration.refused ? ETCH_EXIT_FAILED : ETCH_EXIT_DONE;
    if (!options.json)
        print_people(&calibration);
    else if (print_json(&calibration, &err) < 0)
        status = etch_command_failed(self, &err);
    if (options.plot && etch_calibrate_plot(&calibration, options.plot, &err) < 0)
        status = etch_command_failed(self, &err);
    etch_calibration_free(&calibration);
    return etch_command_close_output(self, status);
}

const struct etch_command etch_command_calibrate = {
    .name = "calibrate",
    .summary = "how far the CPUs' clocks are apart, and whether events can be ordered by them",
    .help =
        "usage: etch calibrate [--fresh] [--json] [--plot FILE.svg] [--seconds S] [--confidence PERCENT]\n\n"
        "Measures the clock of every CPU that this process may use against the clock of the first CPU. The result is\n"
        "bounds that cannot be wrong, and a narrower range that holds at the stated confidence. Then etch measures "
        "the\n"
        "kernel's clock against the TSC, and the delays between an event and its time stamp. The result is "
        "kept for\n"
        "a day, or until the machine is started again or suspended, or its CPUs change. Recordings use it, and check "
        "it\n"
        "before and after. The exit status is 1 if events must not be ordered across CPUs by this\n"
        "machine's clock. The output says why.\n\n"
        "  --fresh              measure now, even if a measurement is kept. --plot, --seconds and --confidence do so "
        "too\n"
        "  --json               print one JSON object; ranges are {lo, hi} in cycles\n"
        "  --plot FILE.svg      draw the two spikes behind the statistics, and the ranges\n"
        "  --seconds S          time for all measurements together, for any number of CPUs (default 2)\n"
        "  --confidence PERCENT confidence of the statistics (default 99.999)\n\n"
        "examples:\n"
        "  etch calibrate\n"
        "  etch calibrate --json | jq '.cpus[] | {cpu, bounds}'\n"
        "  taskset -c 0,3 etch calibrate --plot clocks.svg\n",
    .run = run,
};
