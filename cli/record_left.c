/* SPDX-License-Identifier: MIT */
/* Recordings that were left behind; see record_left.h. */
#include "cli/record_left.h"
#include "cli/record_summary.h"
#include "collector/folder.h"
#include "collector/recover.h"
#include "collector/ring_process.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- Rings of programs that ran without etch ---- */

static int say_none(const struct etch_ring_processes *all, const char *folder, struct etch_error *err)
{
    if (all->others)
        return etch_error_set(
            err, "the rings in %s are of a program built with another version of etch; that one reads them", folder);
    if (all->empty)
        return etch_error_set(err, "%s holds no rings: a process found no room for its rings", folder);
    if (all->unreadable)
        return etch_error_set(err, "%s holds no rings: a file of rings makes no sense", folder);
    etch_error_set(err, "%s holds no rings of a program built with etch cc --record", folder);
    return etch_error_advise(err, "ETCH_RING=%s in the environment of the program", folder);
}

/* The process of that number, else the newest that failed, else the newest. */
static const struct etch_ring_process *choose(const struct etch_ring_processes *all, int pid)
{
    const struct etch_ring_process *chosen = NULL;

    for (size_t i = 0; i < all->list.n; i++) {
        const struct etch_ring_process *p = &all->list.v[i];
        bool better = !chosen || etch_ring_process_failed(p) || !etch_ring_process_failed(chosen);

        if (pid ? p->pid == (uint32_t)pid : better && p->threads)
            chosen = p;
    }
    return chosen;
}

static void print_end(const struct etch_ring_process *p)
{
    switch (p->end) {
    case ETCH_RING_RUNS:
        fprintf(stderr, "which runs, or may");
        break;
    case ETCH_RING_EXITED:
        fprintf(stderr, "which exited with status %u", p->status);
        break;
    case ETCH_RING_SIGNALLED:
        fprintf(stderr, "which died by signal %u (%s)", p->status, strsignal((int)p->status));
        break;
    case ETCH_RING_NO_MEMORY:
        fprintf(stderr, "which the kernel killed because %s out of memory",
                p->no_group_memory ? "its cgroup was" : "the machine was");
        break;
    case ETCH_RING_SILENT:
        fprintf(stderr, "which ended without a word (SIGKILL, _exit or exec)");
        break;
    }
}

static void print_bundle(const struct etch_ring_processes *all, const struct etch_ring_process *p,
                         const struct etch_soft_summary *s, const struct etch_record_options *options)
{
    char size[32];

    etch_print_size(size, sizeof(size), s->bytes);
    fprintf(stderr, "etch record: soft, process %u, ", p->pid);
    print_end(p);
    fprintf(stderr, "; %u thread%s in %u process%s, %s of rings in %s; ", s->threads, s->threads == 1 ? "" : "s",
            s->processes, s->processes == 1 ? "" : "es", size, options->output);
    if (s->losses)
        fprintf(stderr, "%" PRIu64 " loss%s: %s%s%s\n", s->losses, s->losses == 1 ? "" : "es", s->lost,
                s->why ? "; " : "", s->why ? s->why : "");
    else
        fprintf(stderr, "nothing lost\n");
    if (all->list.n > s->processes)
        fprintf(stderr,
                "etch record: %zu more process%s left rings there; --pid takes another, etch sketch PROG "
                "--rings takes all\n",
                all->list.n - s->processes, all->list.n - s->processes == 1 ? "" : "es");
}

static int bundle_rings(const char *folder, const struct etch_record_options *options,
                        const struct etch_ring_processes *all, struct etch_error *err)
{
    const struct etch_ring_process *p = choose(all, options->pid);
    struct etch_ring_bundle bundle = {
        .folder = folder, .output = options->output, .policy = options->policy, .family = !options->pid};
    struct etch_soft_summary s;

    if (!p && options->pid && all->list.n) {
        etch_error_set(err, "process %d left no rings in %s", options->pid, folder);
        return etch_error_advise(err, "without --pid, which takes the newest that failed");
    }
    if (!p)
        return say_none(all, folder, err);
    if (etch_ring_process_bundle(p, &bundle, &s, err) < 0)
        return -1;
    print_bundle(all, p, &s, options);
    return 0;
}

/* Makes a bundle of the rings of a program that ran without etch. */
int etch_record_rings(const struct etch_command *self, const char *folder, const struct etch_record_options *options)
{
    struct etch_ring_processes all;
    struct etch_error err;
    int status = etch_ring_processes_read(folder, &all, &err);

    if (status == 0) {
        status = bundle_rings(folder, options, &all, &err);
        etch_ring_processes_release(&all);
    }
    if (status == 0)
        return 0;
    etch_command_failed(self, &err);
    return ETCH_EXIT_RECORD;
}

/* Makes a bundle of a recording whose etch was killed. */
int etch_record_recover(const struct etch_command *self, const char *folder, const char *output)
{
    struct etch_recovery r;
    struct etch_error err;
    char size[32];

    if (etch_recover(folder, output, &r, &err) < 0) {
        etch_command_failed(self, &err);
        return ETCH_EXIT_RECORD;
    }
    etch_print_size(size, sizeof(size), r.bytes);
    fprintf(stderr, "etch record: recovered %s: %" PRIu64 " record%s of %s", output, r.records,
            r.records == 1 ? "" : "s", r.bundle[0] ? r.bundle : "no bundle");
    fprintf(stderr, ", %s of control flow of %" PRIu64 " thread%s from the rings; 1 loss (etch was killed)%s\n", size,
            r.threads, r.threads == 1 ? "" : "s", r.alive ? "; the program goes on" : "");
    return 0;
}

/* Returns true if the bundle of the rings still exists. If somebody removed the bundle, as etch diagnose does, nobody
 * needs the rings. */
static bool is_missed(const struct etch_left *left)
{
    struct etch_folder_story story;
    struct etch_folder folder;
    struct etch_error ignored;
    bool missed;

    if (etch_folder_take(&folder, left->path, &ignored) < 0)
        return false;
    missed = etch_folder_told(&folder, &story) == 0 && (story.output[0] != '/' || access(story.output, F_OK) == 0);
    etch_folder_leave(&folder);
    return missed;
}

/* Prints at the start only: later the program uses standard error too. */
void etch_record_mention_killed(void)
{
    struct etch_lefts lefts;
    size_t n = 0;

    etch_folder_lefts(&lefts);
    for (size_t i = 0; i < lefts.list.n; i++)
        n += is_missed(&lefts.list.v[i]);
    etch_array_free(&lefts.list);
    if (lefts.removed)
        fprintf(stderr,
                "etch record: removed the rings of %u killed etch process%s: they were too many, too large or too old "
                "to keep\n",
                lefts.removed, lefts.removed == 1 ? "" : "es");
    if (n)
        fprintf(stderr,
                "etch record: %zu recording%s ended because etch was killed; etch record --recover recovers %s\n", n,
                n == 1 ? "" : "s", n == 1 ? "it" : "them");
}
