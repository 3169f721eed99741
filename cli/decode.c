/* SPDX-License-Identifier: MIT */
/* etch decode: prints what each thread executed, in one of several forms. */
#include "cli/decode.h"
#include "base/printable.h"
#include "cli/command.h"
#include "cli/reading.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const struct etch_decode_form *const forms[] = {
    &etch_decode_insn, &etch_decode_branch, &etch_decode_line,
    &etch_decode_call, &etch_decode_chrome, &etch_decode_perf,
};

#define N_FORMS (sizeof(forms) / sizeof(forms[0]))

const char *const etch_decode_field_names[ETCH_FIELDS] = {"pid",  "tid",     "cpu", "time", "ip",
                                                          "addr", "srcline", "sym", "dso"};

static const struct etch_decode_form *find_form(const char *name)
{
    for (size_t i = 0; i < N_FORMS; i++)
        if (strcmp(forms[i]->name, name) == 0)
            return forms[i];
    return NULL;
}

/* Splits "ip,addr". Returns 0, or -1 with the unknown field in `bad`. */
static int parse_fields(struct etch_decode *d, const char *list, char bad[32])
{
    d->n_fields = 0;
    while (*list) {
        size_t n = strcspn(list, ","), i;

        for (i = 0; i < ETCH_FIELDS; i++)
            if (strlen(etch_decode_field_names[i]) == n && memcmp(etch_decode_field_names[i], list, n) == 0)
                break;
        if (i == ETCH_FIELDS || d->n_fields == ETCH_FIELDS) {
            snprintf(bad, 32, "%.*s", (int)(n < 31 ? n : 31), list);
            return -1;
        }
        d->fields[d->n_fields++] = (enum etch_decode_field)i;
        list += n + (list[n] == ',');
    }
    return 0;
}

static bool parse_number(const char *text, uint64_t max, uint64_t *value)
{
    char *end;

    errno = 0;
    *value = strtoull(text, &end, 0);
    return errno == 0 && end != text && *end == '\0' && *text != '-' && *value <= max;
}

static int write_out(void *context, const char *text, size_t size)
{
    (void)context;
    return etch_reading_write(text, size);
}

static int visit_all(const struct etch_decode *d, struct etch_steps_count *count, struct etch_error *err)
{
    const struct etch_decode_form *form = d->form;
    void *context = NULL;
    int status;

    if (form->begin && form->begin(d, &context, err) < 0)
        return -1;
    status = form->visit ? etch_steps(d->recording, &d->options, form->visit, context, count, err) : 0;
    if (form->end && form->end(d, context, status, err) < 0)
        return -1;
    return status;
}

static void print_summary(const struct etch_decode *d, const struct etch_steps_count *count)
{
    uint64_t recorded[ETCH_LOSS_CAUSES];
    char text[400];

    if (count->losses && d->n_fields)
        fprintf(
            stderr,
            "etch decode: %" PRIu64 " %s in the decoded part: %s (without --fields each loss is shown in its place)\n",
            count->losses, count->losses == 1 ? "loss" : "losses", etch_losses_text(count->lost, text, sizeof(text)));
    /* Some losses of the recording have no place in the decoded part. */
    if (etch_recording_lost(d->recording, recorded))
        fprintf(stderr, "etch decode: lost during the recording: %s\n", etch_losses_text(recorded, text, sizeof(text)));
}

/* The functions that the software recorder left out, by name. */
static void print_dark(const struct etch_recording *r)
{
    for (size_t i = 0; i < r->losses.n; i++)
        if (r->losses.v[i]->cause == ETCH__LOSS_CAUSE__LOSS_BUDGET)
            fprintf(stderr, "etch decode: %s\n", etch_shown(r->losses.v[i]->detail));
}

static void print_left_out(const struct etch_recording *r)
{
    if (r->budget.refused)
        fprintf(stderr, "etch decode: %" PRIu64 " records were left out by the memory limit (try: --max-memory SIZE)\n",
                r->budget.refused);
}

static int decode(const struct etch_command *self, struct etch_decode *d, const char *path)
{
    struct etch_steps_count count = {0};
    struct etch_error err;
    int status;

    if (etch_recording_open(&d->recording, path, &err) < 0)
        return etch_command_failed(self, &err);
    print_left_out(d->recording);
    print_dark(d->recording);
    if (d->form->render)
        status = etch_steps_render(d->recording, &d->options, d->form->render, d, write_out, NULL, &count, &err);
    else
        status = visit_all(d, &count, &err);
    if (status > 0 && etch_reading_cut())
        etch_error_set(&err, "%s", etch_reading_cut());
    else if (status > 0) /* an errno of writing */
        etch_error_set_errno(&err, status, "cannot write");
    if (status == 0)
        print_summary(d, &count);
    etch_recording_free(d->recording);
    if (status == EPIPE) /* the reader has seen enough */
        return ETCH_EXIT_FAILED;
    if (status > 0)
        status = -1;
    return status < 0 ? etch_command_failed(self, &err) : etch_command_close_output(self, ETCH_EXIT_DONE);
}

static int check(const struct etch_command *self, const struct etch_decode *d)
{
    for (size_t i = 0; i < d->n_fields; i++)
        if (!(d->form->fields >> d->fields[i] & 1))
            return etch_command_usage(self, "--as %s has no field '%s'", d->form->name,
                                      etch_decode_field_names[d->fields[i]]);
    if (!d->form->render && !d->form->visit && (d->options.tid || d->options.to || d->options.last))
        return etch_command_usage(
            self, "--as %s always writes the whole recording, without --thread, --from, --to and --last",
            d->form->name);
    if (d->options.to && d->options.from > d->options.to)
        return etch_command_usage(self, "--from is later than --to");
    return 0;
}

enum { AS = 256, FIELDS, THREAD, FROM, TO, LAST, JOBS, SYSROOT, OUTPUT };

static int take_option(const struct etch_command *self, struct etch_decode *d, int c, char **argv)
{
    uint64_t value = 0;
    char bad[32];

    switch (c) {
    case AS:
        d->form = find_form(optarg);
        return d->form ? 0 : etch_command_usage(self, "there is no form '%s'", optarg);
    case FIELDS:
        return parse_fields(d, optarg, bad) == 0 ? 0 : etch_command_usage(self, "there is no field '%s'", bad);
    case SYSROOT:
        d->options.sysroot = optarg;
        return 0;
    case 'o':
        d->output = optarg;
        return 0;
    case THREAD:
    case JOBS:
        if (!parse_number(optarg, c == JOBS ? 1024 : UINT32_MAX, &value))
            return etch_command_usage(self, "'%s' is not a number in the allowed range", optarg);
        if (c == JOBS)
            d->options.jobs = (unsigned)value;
        else
            d->options.tid = (uint32_t)value;
        return 0;
    case FROM:
    case TO:
    case LAST:
        if (!parse_number(optarg, UINT64_MAX, &value))
            return etch_command_usage(self, "'%s' is not a number", optarg);
        *(c == FROM ? &d->options.from : c == TO ? &d->options.to : &d->options.last) = value;
        return 0;
    default:
        return etch_command_bad_option(self, c, argv);
    }
}

static int run(const struct etch_command *self, int argc, char **argv)
{
    static const struct option long_options[] = {{"help", no_argument, NULL, 'h'},
                                                 {"as", required_argument, NULL, AS},
                                                 {"fields", required_argument, NULL, FIELDS},
                                                 {"thread", required_argument, NULL, THREAD},
                                                 {"from", required_argument, NULL, FROM},
                                                 {"to", required_argument, NULL, TO},
                                                 {"last", required_argument, NULL, LAST},
                                                 {"jobs", required_argument, NULL, JOBS},
                                                 {"sysroot", required_argument, NULL, SYSROOT},
                                                 {"output", required_argument, NULL, 'o'},
                                                 {0}};
    struct etch_decode d = {.form = &etch_decode_insn};
    int c, status;

    while ((c = getopt_long(argc, argv, ":ho:", long_options, NULL)) != -1) {
        if (c == 'h')
            return etch_command_help(self);
        status = take_option(self, &d, c, argv);
        if (status)
            return status;
    }
    if (argc - optind != 1)
        return etch_command_usage(self, argc == optind ? "which file?" : "one file at a time");
    if (d.options.from && !d.options.to)
        d.options.to = UINT64_MAX;
    status = check(self, &d);
    return status ? status : decode(self, &d, argv[optind]);
}

const struct etch_command etch_command_decode = {
    .name = "decode",
    .summary = "what each thread executed, from a recording",
    .help =
        "usage: etch decode FILE [--as FORM] [OPTION...]\n\n"
        "Shows what each thread executed, thread by thread. FILE is a recording of etch record, a perf.data with "
        "Intel PT,\n"
        "or an LLDB trace bundle (its folder or trace.json). A loss is shown in its place. etch guesses nothing.\n\n"
        "  --as insn        every instruction: thread, time, address (the default)\n"
        "  --as branch      every taken branch: from, to; 0 is where tracing began or ended\n"
        "  --as perf-data   a perf.data for perf script --itrace=..., of the whole recording; with -o FILE\n"
        "  --as line        the source lines that ran: queue.h:12 pop <- crash.c:41 consumer (inlined)\n"
        "  --as call        a tree of calls, with times (microseconds if the TSC's rate is known)\n"
        "  --as chrome      a Trace Event file, for Perfetto or chrome://tracing\n"
        "  --fields LIST    print only these fields, separated by spaces: pid, tid, cpu, time, ip, addr;\n"
        "                   --as line also has srcline, sym, dso\n"
        "  --thread TID     show this thread only\n"
        "  --from, --to TSC show only what may have happened between these times\n"
        "  --last N         show only the last N instructions of each thread\n"
        "  --sysroot DIR    look for binaries below DIR first\n"
        "  --jobs N         worker threads (default: one per CPU); the result is the same\n"
        "  -o, --output F   write to the file F; for the forms that write files\n\n"
        "A time is lo..hi in TSC ticks: not before lo, not after hi. A ? stands for a bound that is not known.\n\n"
        "examples:\n"
        "  etch decode run.etch --last 100\n"
        "  etch decode perf.data --as branch --fields ip,addr\n"
        "  etch decode run.etch --as chrome -o run.json\n"
        "  etch decode run.etch --as insn --fields ip --thread 4711\n",
    .run = run,
    .reads = true,
    .outputs = (const char *const[]){"output", NULL},
};
