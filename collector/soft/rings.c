/* SPDX-License-Identifier: MIT */
/* See soft.h. */
#include "collector/soft.h"

#include "base/input.h"
#include "binary/elf_bytes.h"
#include "collector/folder.h"
#include "collector/session/guarded.h"
#include "collector/soft/attach.h"
#include "collector/source.h"
#include "collector/target.h"
#include "proto/soft_layout.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* ---- Files ---- */

struct mapped {
    struct etch_guarded *mapping; /* the program can cut its rings */
    const uint8_t *bytes;
    size_t size;
};

static bool map_file(const char *path, struct mapped *m)
{
    int fd = etch_input_open(path);
    off_t size = fd >= 0 ? etch_input_size(fd) : -1;

    m->mapping = NULL;
    if (fd < 0)
        return false;
    if (size > 0) {
        m->size = (size_t)size;
        m->mapping = etch_guarded_map(fd, m->size, false);
    }
    close(fd);
    if (m->mapping)
        m->bytes = etch_guarded_at(m->mapping);
    return m->mapping;
}

static void unmap(struct mapped *m)
{
    etch_guarded_unmap(m->mapping);
}

static bool has_section(const struct mapped *m, const char *wanted)
{
    struct etch_elf_bytes elf;
    struct etch_elf_section s;
    bool found = false;

    if (etch_elf_bytes_open(&elf, m->bytes, m->size))
        for (uint32_t i = 0; !found && etch_elf_bytes_section(&elf, i, &s); i++)
            found = etch_elf_section_is(&elf, &s, wanted);
    return found;
}

bool etch_soft_has_section(const char *path, const char *section)
{
    struct mapped m;
    bool found;

    if (!map_file(path, &m))
        return false;
    found = has_section(&m, section);
    unmap(&m);
    return found;
}

bool etch_soft_is_recorded(const char *path)
{
    return etch_soft_has_section(path, ETCH_SOFT_MAP_SECTION);
}

/* ---- With a run ---- */

struct soft {
    struct etch_folder folder;
    const char *output;
    char rings[ETCH_FOLDER_SIZE + 16], kb[48], threads[48];
    struct etch_sink sink;
    pid_t pid;
    struct etch_soft_attach attach; /* to a running process */
};

/* All rings are made at the start. Small rings are made in larger numbers. A run in the lab has fewer: etch makes many
 * such runs. */
static unsigned rings_for(uint64_t ring, bool lab)
{
    uint64_t n = ((lab ? 24u : 64u) << 20) / (ring ? ring : 64u << 10);

    return n < 8 ? 8 : n > 256 ? 256 : (unsigned)n;
}

static int check_program(const struct etch_record_options *options, struct etch_error *err)
{
    char path[4096];

    if (etch_record_find_program(options->file ? options->file : options->argv[0], path, sizeof(path), err) < 0)
        return -1;
    if (etch_soft_is_recorded(path))
        return 0;
    etch_error_set(err, "%s has no software recorder", path);
    return etch_error_advise(err, "build it with etch cc --record, or take --source vpt");
}

static int open_soft(void **state, const struct etch_record_options *options, const struct etch_sink *sink,
                     struct etch_error *err)
{
    struct soft *s = calloc(1, sizeof(*s));

    *state = s;
    if (!s)
        return etch_error_set_errno(err, ENOMEM, "cannot record");
    s->sink = *sink;
    s->folder = ETCH_FOLDER_NONE;
    s->output = options->output;
    s->attach = ETCH_SOFT_ATTACH_NONE;
    if (!options->pid && check_program(options, err) < 0)
        return -1;
    if (etch_folder_make(&s->folder, err) < 0)
        return -1;
    snprintf(s->rings, sizeof(s->rings), ETCH_SOFT_VARIABLE "=%s", s->folder.path);
    snprintf(s->threads, sizeof(s->threads), ETCH_SOFT_THREADS_VARIABLE "=%u",
             rings_for(options->snapshot, options->lab != NULL));
    if (options->snapshot)
        snprintf(s->kb, sizeof(s->kb), ETCH_SOFT_KB_VARIABLE "=%u", (unsigned)(options->snapshot >> 10));
    return 0;
}

static size_t soft_environment(const void *state, char **words, size_t max)
{
    struct soft *s = (struct soft *)(uintptr_t)state;
    size_t n = 0;

    if (n < max)
        words[n++] = s->rings;
    if (n < max)
        words[n++] = s->threads;
    if (n < max && s->kb[0])
        words[n++] = s->kb;
    if (n < max) /* etch sees the failure itself */
        words[n++] = (char *)(uintptr_t)ETCH_SOFT_SIGNALS_VARIABLE "=0";
    if (n < max && !getenv(ETCH_SOFT_BUDGET_VARIABLE)) /* who asks for a recording wants all of it */
        words[n++] = (char *)(uintptr_t)(ETCH_SOFT_BUDGET_VARIABLE "=off");
    return n;
}

static int start_soft(void *state, pid_t pid, struct etch_error *err)
{
    struct etch_folder_story story = {.source = "soft", .pid = (uint32_t)pid};
    struct soft *s = state;

    (void)err;
    s->pid = pid;
    snprintf(story.output, sizeof(story.output), "%s", s->output);
    etch_folder_tell(&s->folder, &story);
    return 0;
}

static int join_soft(void *state, struct etch_target *target, struct etch_error *err)
{
    struct soft *s = state;
    const struct etch_soft_wish wish = {s->folder.path, s->kb, s->threads};

    if (etch_soft_attach(&s->attach, target, &wish, err) < 0)
        return -1;
    return start_soft(state, target->pid, err);
}

static void leave_soft(void *state, struct etch_target *target)
{
    struct soft *s = state;

    etch_soft_attach_leave(&s->attach, target, s->folder.path);
}

/* The rings that a process without a file of them had before would be lost with the process. */
static void freeze_soft(void *state)
{
    struct soft *s = state;

    if (s->attach.pool && s->attach.rings < 0)
        etch_soft_attach_copy(&s->attach, s->folder.path);
}

static void stop_soft(void *state)
{
    struct soft *s = state;
    Etch__Loss loss = ETCH__LOSS__INIT;
    struct etch_soft_summary summary;
    struct etch_error err;

    if (s->attach.pool)
        etch_soft_attach_copy(&s->attach, s->folder.path);
    if (etch_soft_collect(s->folder.path, (uint32_t)s->pid, &s->sink, &summary, &err) < 0) {
        s->sink.note(s->sink.context, err.what);
        loss.cause = ETCH__LOSS_CAUSE__LOSS_RING_GONE;
        loss.detail = (char *)(uintptr_t)"the rings could not be read";
        s->sink.lost(s->sink.context, &loss);
        return;
    }
    if (summary.untimed)
        s->sink.note(s->sink.context, "the program forbade itself to read the time: its control flow has no times");
    if (summary.threads)
        return;
    s->sink.note(s->sink.context,
                 s->attach.pid ? "no control flow: no recorded function was called. A function that was under way runs "
                                 "without a recorder until it returns"
                               : "no control flow: the program wrote no rings");
    if (summary.told)
        return;
    loss.cause = ETCH__LOSS_CAUSE__LOSS_NO_RING;
    loss.events = 1;
    loss.detail = (char *)(uintptr_t)"the program made no rings";
    s->sink.lost(s->sink.context, &loss);
}

static void close_soft(void *state)
{
    struct soft *s = state;

    if (!s)
        return;
    etch_soft_attach_release(&s->attach);
    etch_folder_remove(&s->folder);
    free(s);
}

/* The program itself writes the rings, which keep the newest bytes: there is nothing to drain. */
const struct etch_source etch_source_soft = {
    .name = "soft",
    .id = ETCH__SOURCE__SOURCE_SOFT,
    .open = open_soft,
    .environment = soft_environment,
    .start = start_soft,
    .join = join_soft,
    .leave = leave_soft,
    .freeze = freeze_soft,
    .stop = stop_soft,
    .close = close_soft,
};
