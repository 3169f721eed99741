/* SPDX-License-Identifier: MIT */
/* The last line of etch record; see record_summary.h. */
#include "cli/record_summary.h"
#include "base/printable.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void etch_print_size(char *text, size_t size, uint64_t bytes)
{
    if (bytes < 10240)
        snprintf(text, size, "%" PRIu64 " B", bytes);
    else if (bytes < (uint64_t)10 << 20)
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

/* Prints the share of the CPU time that the recording caused: etch's own time, and the time of the watches' hits by the
 * measured cost of a hit. */
static void print_share(const struct etch_record_summary *s)
{
    double hits = (double)(s->accesses * s->hit_ns);
    double own = (double)s->recorder_cpu_ns + hits;
    double program = (double)s->target_cpu_ns > hits ? (double)s->target_cpu_ns - hits : 0;

    if (s->target_cpu_ns)
        fprintf(stderr, "; recording took %.1f %% of the CPU", 100 * own / (own + program));
    fprintf(stderr, "%s etch %.3f s", s->target_cpu_ns ? ":" : "; CPU of", (double)s->recorder_cpu_ns / 1e9);
    if (hits > 0)
        fprintf(stderr, ", hits %.3f s", hits / 1e9);
    if (s->target_cpu_ns)
        fprintf(stderr, ", program %.3f s", program / 1e9);
}

static void print_native_failure(const struct etch_record_summary *s)
{
    static const char *const kinds[] = {
        "", "", "exit with a failing status", "hang: no thread ran", "time limit", "check failed"};

    if (s->failure_kind > 1 && s->failure_kind < 6)
        fprintf(stderr, "; %s", kinds[s->failure_kind]);
    else
        print_failure(s);
    if (s->failure_message[0])
        fprintf(stderr, " (%s)", etch_shown(s->failure_message));
}

/* The counts are those of the bundle's ledger, which etch info prints too. */
static void print_losses(const struct etch_record_summary *s)
{
    if (!s->losses) {
        fprintf(stderr, "nothing lost");
        return;
    }
    fprintf(stderr, "%" PRIu64 " loss%s: %s", s->losses, s->losses == 1 ? "" : "es", s->lost);
    if (s->loss[0])
        fprintf(stderr, "; %s", s->loss);
}

static void print_native_summary(const struct etch_record_options *options, const struct etch_record_summary *s)
{
    char file[32], flow[32];

    etch_print_size(file, sizeof(file), s->bundle_bytes);
    fprintf(stderr, "etch record: %s, %.3f s, %" PRIu64 " thread%s", s->source, (double)s->duration_ns / 1e9,
            s->threads, s->threads == 1 ? "" : "s");
    if (s->processes > 1)
        fprintf(stderr, " in %" PRIu64 " processes", s->processes);
    if (options->n_watches || options->plan)
        fprintf(stderr, ", %" PRIu64 " hits", s->accesses);
    if (s->skipped_watches)
        fprintf(stderr, " (%" PRIu64 " watches left to other runs)", s->skipped_watches);
    if (s->locked_bytes) {
        etch_print_size(flow, sizeof(flow), s->flow_bytes);
        fprintf(stderr, ", %s of control flow", flow);
    }
    fprintf(stderr, ", %" PRIu64 " synchronisation events in %s (%s); ", s->syncs, options->output, file);
    print_losses(s);
    if (s->failed)
        print_native_failure(s);
    else if (s->left_running)
        fprintf(stderr, "; the program goes on");
    print_share(s);
    if (s->locked_bytes) {
        etch_print_size(flow, sizeof(flow), s->locked_bytes);
        fprintf(stderr, "; %s of memory locked", flow);
    }
    fputc('\n', stderr);
    for (size_t i = 0; i < s->n_notes; i++)
        fprintf(stderr, "etch record: note: %s\n", etch_shown(s->notes[i]));
}

/* The line for vpt. */
static void print_summary(const struct etch_record_options *options, const struct etch_record_summary *s)
{
    char flow[32], file[32];

    etch_print_size(flow, sizeof(flow), s->flow_bytes);
    etch_print_size(file, sizeof(file), s->bundle_bytes);
    fprintf(stderr, "etch record: %s, %" PRIu64 " thread%s", s->source, s->threads, s->threads == 1 ? "" : "s");
    if (s->processes > 1)
        fprintf(stderr, " in %" PRIu64 " processes", s->processes);
    fprintf(stderr, ", %s of control flow", flow);
    if (options->n_watches)
        fprintf(stderr, ", %" PRIu64 " accesses", s->accesses);
    fprintf(stderr, " in %s (%s); ", options->output, file);
    print_losses(s);
    if (s->failed)
        print_failure(s);
    fputc('\n', stderr);
}

void etch_record_summary_print(const struct etch_record_options *options, const struct etch_record_summary *s)
{
    if (strcmp(s->source, "vpt") != 0)
        print_native_summary(options, s);
    else
        print_summary(options, s);
}
