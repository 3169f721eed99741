/* SPDX-License-Identifier: MIT */
/* etch report: where the time of recorded runs went. */
#include "base/input.h"
#include "base/output.h"
#include "base/printable.h"
#include "cli/command.h"
#include "cli/comparing.h"
#include "cli/reading.h"
#include "report/critical.h"
#include "report/export.h"
#include "report/index.h"
#include "report/profile.h"
#include "report/slowest.h"
#include "report/table.h"

#include <errno.h>
#include <getopt.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum view { VIEW_TABLE, VIEW_HISTOGRAM, VIEW_SLOWEST, VIEW_DIFF, VIEW_EXPORT, VIEW_FLAME, VIEW_CRITICAL };

enum format { FORMAT_FOLDED, FORMAT_SPEEDSCOPE, FORMAT_PPROF, FORMAT_PERFETTO, FORMATS };

static const char *const format_names[FORMATS] = {"folded", "speedscope", "pprof", "perfetto"};

struct report {
    enum view view;
    enum format format;
    struct etch_profile_options options;
    struct etch_table_filter filter;
    const char *above;
    const char *subject; /* the function of a view of one function */
    const char *output;
    const char *index; /* a file that keeps the profile; NULL: none */
    bool json, by_caller, diff;
    char **files;
    int n_files;
    struct etch_profile *profile, *before; /* before: of --flame with --diff */
    struct etch_symbols *symbols;
};

static struct etch_symbols *new_symbols(const struct report *r, const char *path)
{
    char folder[PATH_MAX];
    struct etch_symbols_options options = {.sysroot = r->options.sysroot};

    snprintf(folder, sizeof(folder), "%s", path);
    options.beside = dirname(folder);
    return etch_symbols_new(&options);
}

static int add_file(struct report *r, struct etch_profile *profile, const char *path, struct etch_error *err)
{
    struct etch_recording *recording;
    int status;

    if (etch_recording_open(&recording, path, err) < 0)
        return -1;
    if (!r->symbols && !(r->symbols = new_symbols(r, path)))
        status = etch_error_no_memory(err);
    else
        status = etch_profile_add(profile, recording, r->symbols, &r->options, err);
    if (r->symbols)
        etch_symbols_forget_images(r->symbols);
    etch_recording_free(recording);
    return status;
}

/* "1ms", "250us", "3s", "1000" (instructions or ticks) in the profile's unit. */
static int parse_above(struct report *r, struct etch_error *err)
{
    static const struct {
        const char *name;
        double ns;
    } units[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};
    char *end;
    double value;

    if (!r->above)
        return 0;
    value = strtod(r->above, &end);
    if (end == r->above || value < 0)
        return etch_error_set(err, "'%s' is no duration (try: 1ms, 250us)", r->above);
    if (!*end) {
        r->filter.above = (uint64_t)value;
        return 0;
    }
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
        if (strcmp(end, units[i].name) == 0) {
            if (r->profile->unit == ETCH_UNIT_INSTRUCTIONS) {
                etch_error_set(err, "durations of this recording are in instructions, not in time");
                return etch_error_advise(err, "--above 10000");
            }
            r->filter.above =
                (uint64_t)(value * units[i].ns / (r->profile->ns_per_tick > 0 ? r->profile->ns_per_tick : 1));
            return 0;
        }
    etch_error_set(err, "'%s' is no duration", r->above);
    return etch_error_advise(err, "1ms, 250us, 3s");
}

static int find_subject(const struct report *r, uint32_t *function, struct etch_error *err)
{
    bool many;

    *function = etch_profile_find(r->profile, r->subject, &many);
    if (*function != ETCH_FUNCTION_NONE)
        return 0;
    etch_error_set(err, many ? "several functions are called '%s'" : "no recorded function is called '%s'", r->subject);
    return etch_error_advise(err, "etch report FILE --function %s, which lists their whole names", r->subject);
}

static int add_slowest(struct report *r, struct etch_slowest *slowest, uint32_t function, const char *path,
                       struct etch_error *err)
{
    struct etch_recording *recording;
    int status;

    if (etch_recording_open(&recording, path, err) < 0)
        return -1;
    status = etch_slowest_add(slowest, r->profile, function, recording, r->symbols, &r->options, err);
    etch_symbols_forget_images(r->symbols);
    etch_recording_free(recording);
    return status;
}

static int print_slowest(struct report *r, uint32_t function, FILE *out, struct etch_error *err)
{
    struct etch_slowest *slowest = etch_slowest_new();
    int status = slowest ? 0 : etch_error_no_memory(err);

    for (int i = 0; i < r->n_files && status == 0; i++)
        status = add_slowest(r, slowest, function, r->files[i], err);
    if (status == 0 && etch_slowest_explain(slowest) < 0)
        status = etch_error_no_memory(err);
    if (status == 0)
        (r->json ? etch_slowest_json : etch_slowest_print)(slowest, out);
    etch_slowest_free(slowest);
    return status;
}

static int print_diff(struct report *r, FILE *out, struct etch_error *err)
{
    struct etch_run_files a = {0}, b = {0};
    struct etch_comparison *c = NULL;

    if (etch_run_files_find(&a, r->files[0], err) == 0 && etch_run_files_find(&b, r->files[1], err) == 0)
        c = etch_compare_files(&a, &b, false, &r->options, err);
    if (c && r->json)
        etch_comparison_json(c, out);
    else if (c)
        etch_comparison_print(c, r->files[0], r->files[1], out);
    etch_run_files_release(&a);
    etch_run_files_release(&b);
    etch_comparison_free(c);
    return c ? 0 : -1;
}

static int export_perfetto(struct report *r, FILE *out, struct etch_error *err)
{
    struct etch_recording *recording;
    int status;

    if (etch_recording_open(&recording, r->files[0], err) < 0)
        return -1;
    status = etch_export_perfetto(recording, r->symbols, &r->options, out, err);
    etch_symbols_forget_images(r->symbols);
    etch_recording_free(recording);
    return status;
}

static int print_export(struct report *r, FILE *out, struct etch_error *err)
{
    int status = 0;

    switch (r->format) {
    case FORMAT_FOLDED:
        etch_export_folded(r->profile, out);
        break;
    case FORMAT_SPEEDSCOPE:
        etch_export_speedscope(r->profile, out);
        break;
    case FORMAT_PPROF:
        status = etch_export_pprof(r->profile, out);
        break;
    case FORMAT_PERFETTO:
        return export_perfetto(r, out, err);
    case FORMATS:
        break;
    }
    return status < 0 ? etch_error_no_memory(err) : 0;
}

static int print_critical(struct report *r, FILE *out, struct etch_error *err)
{
    struct etch_recording *recording;
    struct etch_critical critical;
    int status;

    if (etch_recording_open(&recording, r->files[0], err) < 0)
        return -1;
    r->symbols = new_symbols(r, r->files[0]);
    status = r->symbols ? 0 : etch_error_no_memory(err);
    if (status == 0 && (status = etch_critical_find(&critical, recording, r->symbols, err)) == 0) {
        (r->json ? etch_critical_json : etch_critical_print)(&critical, out);
        etch_critical_release(&critical);
    }
    etch_recording_free(recording);
    return status;
}

static int print_view(struct report *r, FILE *out, struct etch_error *err)
{
    uint32_t function = 0;
    int status;

    if (r->view == VIEW_DIFF)
        return print_diff(r, out, err);
    if (r->view == VIEW_CRITICAL)
        return print_critical(r, out, err);
    if (r->subject && find_subject(r, &function, err) < 0)
        return -1;
    switch (r->view) {
    case VIEW_HISTOGRAM:
        status = r->json ? etch_histogram_json(r->profile, function, r->by_caller, out)
                         : etch_histogram_print(r->profile, function, r->by_caller, out);
        break;
    case VIEW_EXPORT:
        return print_export(r, out, err);
    case VIEW_FLAME:
        status = etch_flame_html(r->profile, r->before, out);
        break;
    case VIEW_SLOWEST:
        return print_slowest(r, function, out, err);
    default:
        status = r->json ? etch_table_json(r->profile, &r->filter, out) : etch_table_print(r->profile, &r->filter, out);
    }
    return status < 0 ? etch_error_no_memory(err) : 0;
}

static int print_to(struct report *r, struct etch_error *err)
{
    struct etch_output *output;

    if (!r->output)
        return print_view(r, stdout, err);
    if (etch_output_report(&output, r->output, err) < 0)
        return -1;
    if (!etch_output_stream(output) || print_view(r, etch_output_stream(output), err) < 0) {
        etch_output_discard(output);
        return -1;
    }
    return etch_output_finish(output, err);
}

/* ---- The index ---- */

#define INDEX_MAX ((size_t)1 << 30)

static struct etch_profile_origin origin_of(const struct report *r)
{
    return (struct etch_profile_origin){r->files, (size_t)r->n_files, r->options};
}

/* Takes the profile from the index, if the index is of these recordings. */
static bool load_index(struct report *r)
{
    const struct etch_profile_origin origin = origin_of(r);
    struct etch_profile *profile = NULL;
    size_t size;
    int fd = etch_input_open(r->index);
    char *bytes = fd < 0 ? NULL : etch_input_read(fd, INDEX_MAX, &size);

    if (bytes)
        profile = etch_profile_unpack(bytes, size, &origin);
    free(bytes);
    if (fd >= 0)
        close(fd);
    if (!profile)
        return false;
    etch_profile_free(r->profile);
    r->profile = profile;
    r->symbols = r->view == VIEW_SLOWEST ? new_symbols(r, r->files[0]) : NULL;
    return r->symbols || r->view != VIEW_SLOWEST;
}

static int save_index(const struct report *r, struct etch_error *err)
{
    const struct etch_profile_origin origin = origin_of(r);
    struct etch_text text = {0};
    int status;

    etch_profile_pack(r->profile, &origin, &text);
    status = text.failed ? etch_error_no_memory(err) : etch_output_write(r->index, text.v, text.n, err);
    free(text.v);
    return status;
}

static int report(struct report *r, struct etch_error *err)
{
    if (r->view == VIEW_DIFF || r->view == VIEW_CRITICAL)
        return print_to(r, err);
    r->profile = etch_profile_new();
    if (!r->profile)
        return etch_error_no_memory(err);
    if (r->view == VIEW_FLAME && r->diff) {
        r->before = etch_profile_new();
        if (!r->before)
            return etch_error_no_memory(err);
        if (add_file(r, r->before, r->files[0], err) < 0)
            return -1;
        r->files++;
        r->n_files--;
    }
    if (!r->index || !load_index(r)) {
        for (int i = 0; i < r->n_files; i++)
            if (add_file(r, r->profile, r->files[i], err) < 0)
                return -1;
        if (r->index && save_index(r, err) < 0)
            return -1;
    }
    if (parse_above(r, err) < 0)
        return -1;
    return print_to(r, err);
}

enum {
    FUNCTION = 256,
    THREAD,
    ABOVE,
    TOP,
    HISTOGRAM,
    SLOWEST,
    DIFF,
    FLAME,
    EXPORT,
    CRITICAL,
    INDEX,
    BY,
    JSON,
    INSTRUCTIONS,
    JOBS,
    SYSROOT
};

static bool parse_number(const char *text, unsigned long max, unsigned long *value)
{
    char *end;

    errno = 0;
    *value = strtoul(text, &end, 10);
    return errno == 0 && end != text && !*end && *value <= max && text[0] != '-';
}

static int take_number(const struct etch_command *self, struct report *r, int c)
{
    unsigned long value;

    if (!parse_number(optarg, c == JOBS ? 1024 : UINT32_MAX, &value))
        return etch_command_usage(self, "'%s' is not a number in the allowed range", optarg);
    if (c == JOBS)
        r->options.jobs = (unsigned)value;
    else if (c == TOP)
        r->filter.rows = value;
    else
        r->options.tid = (uint32_t)value;
    return 0;
}

static int take_view(const struct etch_command *self, struct report *r, enum view view)
{
    if (r->view != VIEW_TABLE)
        return etch_command_usage(self, "one view at a time");
    r->view = view;
    r->subject = optarg;
    return 0;
}

static int take_option(const struct etch_command *self, struct report *r, int c, char **argv)
{
    int status;

    switch (c) {
    case FUNCTION:
        r->filter.function = optarg;
        return 0;
    case ABOVE:
        r->above = optarg;
        return 0;
    case THREAD:
    case TOP:
    case JOBS:
        return take_number(self, r, c);
    case HISTOGRAM:
        return take_view(self, r, VIEW_HISTOGRAM);
    case SLOWEST:
        return take_view(self, r, VIEW_SLOWEST);
    case DIFF:
        r->diff = true;
        return 0;
    case FLAME:
        r->output = optarg;
        status = take_view(self, r, VIEW_FLAME);
        r->subject = NULL;
        return status;
    case CRITICAL:
        return take_view(self, r, VIEW_CRITICAL);
    case EXPORT:
        for (r->format = 0; r->format < FORMATS && strcmp(optarg, format_names[r->format]) != 0;)
            r->format++;
        if (r->format == FORMATS)
            return etch_command_usage(self, "there is no format '%s'", optarg);
        status = take_view(self, r, VIEW_EXPORT);
        r->subject = NULL;
        return status;
    case BY:
        if (strcmp(optarg, "caller") != 0)
            return etch_command_usage(self, "--by takes 'caller', not '%s'", optarg);
        r->by_caller = true;
        return 0;
    case JSON:
        r->json = true;
        return 0;
    case INSTRUCTIONS:
        r->options.instructions = true;
        return 0;
    case INDEX:
        r->index = optarg;
        return 0;
    case SYSROOT:
        r->options.sysroot = optarg;
        return 0;
    case 'o':
        r->output = optarg;
        return 0;
    default:
        return etch_command_bad_option(self, c, argv);
    }
}

static int run(const struct etch_command *self, int argc, char **argv)
{
    static const struct option long_options[] = {{"help", no_argument, NULL, 'h'},
                                                 {"function", required_argument, NULL, FUNCTION},
                                                 {"thread", required_argument, NULL, THREAD},
                                                 {"above", required_argument, NULL, ABOVE},
                                                 {"top", required_argument, NULL, TOP},
                                                 {"histogram", required_argument, NULL, HISTOGRAM},
                                                 {"slowest", required_argument, NULL, SLOWEST},
                                                 {"diff", no_argument, NULL, DIFF},
                                                 {"flame", required_argument, NULL, FLAME},
                                                 {"export", required_argument, NULL, EXPORT},
                                                 {"critical", no_argument, NULL, CRITICAL},
                                                 {"index", required_argument, NULL, INDEX},
                                                 {"by", required_argument, NULL, BY},
                                                 {"json", no_argument, NULL, JSON},
                                                 {"instructions", no_argument, NULL, INSTRUCTIONS},
                                                 {"jobs", required_argument, NULL, JOBS},
                                                 {"sysroot", required_argument, NULL, SYSROOT},
                                                 {"output", required_argument, NULL, 'o'},
                                                 {0}};
    struct report r = {.view = VIEW_TABLE};
    struct etch_error err;
    int c, status;

    while ((c = getopt_long(argc, argv, ":ho:", long_options, NULL)) != -1) {
        if (c == 'h')
            return etch_command_help(self);
        status = take_option(self, &r, c, argv);
        if (status)
            return status;
    }
    if (argc == optind)
        return etch_command_usage(self, "which file?");
    if ((r.view == VIEW_CRITICAL || (r.view == VIEW_EXPORT && r.format == FORMAT_PERFETTO)) && argc - optind != 1)
        return etch_command_usage(self, "this view takes one recording");
    if (r.diff && r.view == VIEW_TABLE)
        r.view = VIEW_DIFF;
    if (r.diff && r.view != VIEW_DIFF && r.view != VIEW_FLAME)
        return etch_command_usage(self, "--diff goes with --flame, or alone");
    if (r.diff && argc - optind != 2)
        return etch_command_usage(self, "--diff takes two recordings, or two folders of recordings");
    r.files = argv + optind;
    r.n_files = argc - optind;
    status = report(&r, &err);
    etch_profile_free(r.profile);
    etch_profile_free(r.before);
    etch_symbols_free(r.symbols);
    return status < 0 ? etch_command_failed(self, &err) : etch_command_close_output(self, ETCH_EXIT_DONE);
}

const struct etch_command etch_command_report = {
    .name = "report",
    .summary = "where the time went, from recordings",
    .help =
        "usage: etch report FILE... [VIEW] [OPTION...]\n"
        "       etch report --diff A B\n\n"
        "Shows where the time of recorded runs went. FILE is a recording of etch record, a perf.data with Intel PT, or "
        "an\n"
        "LLDB trace bundle; several files are one population. A and B are recordings, or folders of recordings.\n\n"
        "A time is a span, because a recorder stamps now and then: '<= 3.1 us' is a call between two stamps that far\n"
        "apart, '1.2..3.4 ms' has both bounds. Waits are apart: the time in system calls and in calls that may wait.\n"
        "Calls across a loss or an end of the trace are counted, and left out of percentiles. Recordings of vpt and "
        "of\n"
        "the lab count instructions instead of time.\n\n"
        "Without a view etch prints the functions: calls, total, self, waiting, p50, p90, p99, max; the greatest "
        "total\n"
        "first.\n\n"
        "views:\n"
        "  --histogram F     how long the calls of the function F took\n"
        "  --by caller       with --histogram: for each caller apart\n"
        "  --slowest F       the slowest calls of F, and what each did that typical calls do not\n"
        "  --diff            what became slower from A to B. Functions and paths are matched by name\n"
        "  --critical        the chain of work and waits that decided the end; who held which lock, and how long\n"
        "  --flame OUT.html  a page with the flame graph and the longest calls in time; with --diff A B the growth\n"
        "  --export FORMAT   folded (flamegraph.pl), speedscope, pprof, perfetto. etch decode --as chrome has "
        "Chrome's\n\n"
        "options:\n"
        "  --function TEXT   only functions with TEXT in their name\n"
        "  --above TIME      only functions with a call that took, or may have taken, so long: 1ms, 250us\n"
        "  --top N           only the first N functions\n"
        "  --thread TID      only this thread\n"
        "  --instructions    count instructions instead of time\n"
        "  --json            JSON: of the table, --histogram, --slowest, --diff, --critical\n"
        "  --index F         keep the numbers in the file F, and take them from there the next time: a large trace is\n"
        "                    decoded once. A file that is of other recordings is made anew\n"
        "  --jobs N          worker threads (default: one per CPU); the result is the same\n"
        "  --sysroot DIR     look for binaries below DIR first\n"
        "  -o, --output F    write to the file F\n\n"
        "examples:\n"
        "  etch report run.etch\n"
        "  etch report run.etch --slowest handle_request\n"
        "  etch report run.etch --flame run.html\n"
        "  etch report --diff last-week today\n",
    .run = run,
    .reads = true,
    .outputs = (const char *const[]){"output", "flame", "index", NULL},
};
