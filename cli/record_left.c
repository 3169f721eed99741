/* SPDX-License-Identifier: MIT */
/* Recordings that were left behind; see record_left.h. */
#include "cli/record_left.h"
#include "cli/record_summary.h"
#include "collector/folder.h"
#include "collector/recover.h"
#include "collector/soft.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

/* Makes a bundle of the rings of a program that ran without etch. */
int etch_record_rings(const struct etch_command *self, const char *folder, const struct etch_record_options *options)
{
    struct etch_soft_summary s;
    struct etch_error err;
    char size[32];

    if (etch_soft_bundle(folder, options->output, options->policy, &s, &err) < 0) {
        etch_command_failed(self, &err);
        return ETCH_EXIT_RECORD;
    }
    etch_print_size(size, sizeof(size), s.bytes);
    fprintf(stderr, "etch record: soft, %u thread%s in %u process%s, %s of rings in %s; ", s.threads,
            s.threads == 1 ? "" : "s", s.processes, s.processes == 1 ? "" : "es", size, options->output);
    if (s.losses)
        fprintf(stderr, "%" PRIu64 " loss%s: %s%s%s\n", s.losses, s.losses == 1 ? "" : "es", s.lost, s.why ? "; " : "",
                s.why ? s.why : "");
    else
        fprintf(stderr, "nothing lost\n");
    return 0;
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
