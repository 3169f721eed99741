/* SPDX-License-Identifier: MIT */
/* etch record: runs a program and records it. */
#include "collector/record.h"
#include "cli/command.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

static void print_size(char *text, size_t size, uint64_t bytes)
{
    if (bytes < 10u << 10)
        snprintf(text, size, "%" PRIu64 " B", bytes);
    else if (bytes < 10u << 20)
        snprintf(text, size, "%.1f KiB", (double)bytes / 1024);
    else
        snprintf(text, size, "%.1f MiB", (double)bytes / (1024 * 1024));
}

static void print_failure(const struct etch_record_summary *s)
{
    fprintf(stderr, "; %s", strsignal((int)s->failure_signal));
    if (s->failure_placed)
        fprintf(stderr, " in thread %" PRIu32 " at 0x%" PRIx64, s->failure_tid, s->failure_ip);
    if (s->failure_address_known)
        fprintf(stderr, ", address 0x%" PRIx64, s->failure_address);
}

/* The one line. */
static void print_summary(const struct etch_record_options *options, const struct etch_record_summary *s)
{
    char flow[32], file[32];

    print_size(flow, sizeof(flow), s->flow_bytes);
    print_size(file, sizeof(file), s->bundle_bytes);
    fprintf(stderr, "etch record: %s, %" PRIu64 " thread%s", s->source, s->threads, s->threads == 1 ? "" : "s");
    if (s->processes > 1)
        fprintf(stderr, " in %" PRIu64 " processes", s->processes);
    fprintf(stderr, ", %s of control flow", flow);
    if (options->n_watches)
        fprintf(stderr, ", %" PRIu64 " accesses", s->accesses);
    fprintf(stderr, " in %s (%s); ", options->output, file);
    if (s->losses)
        fprintf(stderr, "%" PRIu64 " loss%s (%s)", s->losses, s->losses == 1 ? "" : "es", s->loss);
    else
        fprintf(stderr, "nothing lost");
    if (s->failed)
        print_failure(s);
    fputc('\n', stderr);
}

static int parse_size(const char *text, uint64_t *size)
{
    char *end;
    unsigned long long value;

    errno = 0;
    value = strtoull(text, &end, 10);
    if (end == text || errno || text[0] == '-')
        return -1;
    if (*end == 'k' || *end == 'K')
        value <<= 10, end++;
    else if (*end == 'm' || *end == 'M')
        value <<= 20, end++;
    *size = value;
    return *end || value < 4096 || value > 1u << 30 ? -1 : 0;
}

/* As the shell says it. */
static int status_of(int status)
{
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static int record(const struct etch_command *self, const struct etch_record_options *options)
{
    struct etch_record_summary summary;
    struct etch_error err;

    if (etch_record(options, &summary, &err) < 0) {
        etch_command_failed(self, &err);
        return ETCH_EXIT_RECORD;
    }
    print_summary(options, &summary);
    return status_of(summary.status);
}

static int usage(const struct etch_command *self, const char *what, const char *word)
{
    etch_command_usage(self, "%s%s", what, word);
    return ETCH_EXIT_RECORD;
}

static int run(const struct etch_command *self, int argc, char **argv)
{
    static const struct option long_options[] = {{"help", no_argument, NULL, 'h'},
                                                 {"output", required_argument, NULL, 'o'},
                                                 {"source", required_argument, NULL, 's'},
                                                 {"watch", required_argument, NULL, 'w'},
                                                 {"truth", required_argument, NULL, 't'},
                                                 {"snapshot", required_argument, NULL, 'n'},
                                                 {0}};
    struct etch_record_options options = {.output = "run.etch", .source = "auto"};
    int c;

    while ((c = getopt_long(argc, argv, "+:ho:", long_options, NULL)) != -1) {
        switch (c) {
        case 'h':
            return etch_command_help(self);
        case 'o':
            options.output = optarg;
            break;
        case 's':
            options.source = optarg;
            break;
        case 'w':
            if (options.n_watches == ETCH_RECORD_MAX_WATCHES)
                return usage(self, "too many watches, at most 64", "");
            options.watches[options.n_watches++] = optarg;
            break;
        case 't':
            options.truth = optarg;
            break;
        case 'n':
            if (parse_size(optarg, &options.snapshot) < 0)
                return usage(self, "--snapshot takes a size from 4K to 1024M, and got ", optarg);
            break;
        default:
            etch_command_bad_option(self, c, argv);
            return ETCH_EXIT_RECORD;
        }
    }
    if (optind == argc)
        return usage(self, "which program?", "");
    options.argv = argv + optind;
    return record(self, &options);
}

const struct etch_command etch_command_record = {
    .name = "record",
    .summary = "runs a program and records what every thread does",
    .help =
        "usage: etch record [-o FILE] [--source S] [--watch WHAT]... [--snapshot SIZE] [--] PROG [ARG...]\n\n"
        "Runs PROG with its own input, output and arguments, and records the control flow of its threads, and of\n"
        "the processes that it starts, in FILE. The exit status is PROG's own, 128+N after signal N, and 125 where\n"
        "etch itself failed. What was recorded is said in one line at the end, on standard error.\n\n"
        "  -o, --output FILE  where to (run.etch)\n"
        "  --source S         vpt: under QEMU, on any machine, real Intel PT packets; auto: what this machine has\n"
        "  --watch WHAT       also record each read and write of a variable, with its value: NAME of a global, or\n"
        "                     ADDRESS:LENGTH; :r or :w behind it for reads or writes only. May be repeated\n"
        "  --snapshot SIZE    keep only the newest SIZE bytes (64K, 1M) of each thread, as a flight recorder does\n"
        "  --truth DIR        for tests: also write each instruction that ran to DIR/PID.TID.truth\n\n"
        "examples:\n"
        "  etch record -- ./server --port 8080\n"
        "  etch record -o crash.etch --watch counter ./a.out && etch info crash.etch\n"
        "  etch record --snapshot 1M ./long-runner\n",
    .run = run,
};
