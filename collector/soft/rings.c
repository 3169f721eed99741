/* SPDX-License-Identifier: MIT */
/* See soft.h. */
#include "collector/soft.h"

#include "base/input.h"
#include "binary/elf_bytes.h"
#include "collector/flow.h"
#include "collector/folder.h"
#include "collector/privacy.h"
#include "collector/session/guarded.h"
#include "collector/session/host.h"
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

bool etch_soft_is_recorded(const char *path)
{
    struct mapped m;
    bool found;

    if (!map_file(path, &m))
        return false;
    found = has_section(&m, ETCH_SOFT_MAP_SECTION);
    unmap(&m);
    return found;
}

/* ---- With a run ---- */

struct soft {
    struct etch_folder folder;
    const char *output;
    char rings[ETCH_FOLDER_SIZE + 16], kb[48], threads[48];
    struct etch_flow_sink sink;
    pid_t pid;
};

/* All rings are made at the start. Small rings are made in larger numbers. */
static unsigned rings_for(uint64_t ring)
{
    uint64_t n = (64u << 20) / (ring ? ring : 64u << 10);

    return n < 8 ? 8 : n > 256 ? 256 : (unsigned)n;
}

static int open_soft(void **state, const struct etch_record_options *options, const struct etch_flow_sink *sink,
                     struct etch_error *err)
{
    struct soft *s = calloc(1, sizeof(*s));
    char path[4096];

    *state = s;
    if (!s)
        return etch_error_set_errno(err, ENOMEM, "cannot record");
    s->sink = *sink;
    s->folder = ETCH_FOLDER_NONE;
    s->output = options->output;
    if (etch_record_find_program(options->argv[0], path, sizeof(path), err) < 0)
        return -1;
    if (!etch_soft_is_recorded(path)) {
        etch_error_set(err, "%s has no software recorder", path);
        return etch_error_advise(err, "build it with etch cc --record, or take --source vpt");
    }
    if (etch_folder_make(&s->folder, err) < 0)
        return -1;
    snprintf(s->rings, sizeof(s->rings), ETCH_SOFT_VARIABLE "=%s", s->folder.path);
    snprintf(s->threads, sizeof(s->threads), ETCH_SOFT_THREADS_VARIABLE "=%u", rings_for(options->snapshot));
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

static size_t poll_soft(const void *state, struct pollfd *fds, size_t max)
{
    (void)state;
    (void)fds;
    (void)max;
    return 0;
}

/* The program itself writes the rings, and the rings keep the newest bytes. */
static void leave_soft(void *state)
{
    (void)state;
}

static int pass_record(void *context, Etch__Record__BodyCase kind, void *message)
{
    const struct etch_flow_sink *sink = context;

    if (kind == ETCH__RECORD__BODY_LOSS)
        sink->lost(sink->context, message);
    else
        sink->write(sink->context, kind, message);
    return 0;
}

static int pass_flow(void *context, uint32_t stream, uint64_t offset, const void *data, size_t size)
{
    const struct etch_flow_sink *sink = context;

    sink->bytes(sink->context, stream, offset, data, size, false);
    return 0;
}

static void stop_soft(void *state)
{
    struct soft *s = state;
    const struct etch_soft_sink sink = {&s->sink, pass_record, pass_flow};
    Etch__Loss loss = ETCH__LOSS__INIT;
    struct etch_soft_summary summary;
    struct etch_error err;

    if (etch_soft_collect(s->folder.path, (uint32_t)s->pid, &sink, &summary, &err) < 0) {
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
    s->sink.note(s->sink.context, "no control flow: the program wrote no rings");
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

    if (s)
        etch_folder_remove(&s->folder);
    free(s);
}

const struct etch_flow_recorder etch_flow_soft = {
    .name = "soft",
    .source = ETCH__SOURCE__SOURCE_SOFT,
    .open = open_soft,
    .environment = soft_environment,
    .start = start_soft,
    .poll = poll_soft,
    .drain = leave_soft,
    .freeze = leave_soft,
    .stop = stop_soft,
    .close = close_soft,
};

/* ---- A bundle without a run ---- */

struct writing {
    struct etch_bundle_writer *bundle;
    struct etch_error *err;
};

static int write_to_bundle(void *context, Etch__Record__BodyCase kind, void *message)
{
    struct writing *w = context;
    Etch__Record record = ETCH__RECORD__INIT;

    record.body_case = kind;
    record.host = message; /* all members of the union are pointers */
    return etch_bundle_write(w->bundle, &record, w->err);
}

static int write_flow(void *context, uint32_t stream, uint64_t offset, const void *data, size_t size)
{
    struct writing *w = context;

    return etch_bundle_write_flow(w->bundle, stream, offset, data, size, w->err);
}

static int write_program(struct writing *w)
{
    Etch__Program program = ETCH__PROGRAM__INIT;

    program.etch_version = (char *)(uintptr_t)ETCH_VERSION;
    program.source = ETCH__SOURCE__SOURCE_SOFT;
    return write_to_bundle(w, ETCH__RECORD__BODY_PROGRAM, &program);
}

static int bundle_guarded(struct etch_privacy *privacy, const char *folder, const char *output,
                          struct etch_soft_summary *summary, struct etch_error *err)
{
    struct writing w = {.err = err};
    const struct etch_soft_sink sink = {&w, write_to_bundle, write_flow};
    uint64_t counts[ETCH_LOSS_CAUSES];
    struct etch_error cause;
    int status = -1;

    memset(summary, 0, sizeof(*summary));
    if (etch_bundle_create(&w.bundle, output, err) < 0)
        return -1;
    etch_privacy_guard(privacy, w.bundle);
    if (etch_host_write(w.bundle, err) < 0 || write_program(&w) < 0)
        ;
    else if (etch_soft_collect(folder, 0, &sink, summary, &cause) < 0)
        *err = etch_bundle_failure(w.bundle) ? *etch_bundle_failure(w.bundle) : cause;
    else if (!summary->threads && summary->others)
        etch_error_set(err, "the rings in %s are of a program built with another version of etch; that one reads them",
                       folder);
    else if (!summary->threads && summary->told)
        etch_error_set(err, "%s holds no rings: %s", folder, summary->why);
    else if (!summary->threads)
        etch_error_set(err, "%s holds no rings of a program built with etch cc --record", folder);
    else
        status = etch_bundle_finish(w.bundle, err);
    if (status < 0) {
        etch_bundle_discard(w.bundle);
        return -1;
    }
    summary->losses = etch_ledger_sum(etch_bundle_ledger(w.bundle), counts);
    etch_losses_text(counts, summary->lost, sizeof(summary->lost));
    etch_bundle_writer_free(w.bundle);
    return 0;
}

int etch_soft_bundle(const char *folder, const char *output, const char *policy, struct etch_soft_summary *summary,
                     struct etch_error *err)
{
    struct etch_privacy *privacy;
    int status;

    if (etch_privacy_open(&privacy, policy, false, err) < 0)
        return -1;
    status = bundle_guarded(privacy, folder, output, summary, err);
    etch_privacy_free(privacy);
    return status;
}
