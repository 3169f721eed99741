/* SPDX-License-Identifier: MIT */
/* See recover.h. */
#include "collector/recover.h"

#include "collector/folder.h"
#include "collector/privacy.h"
#include "collector/session/host.h"
#include "collector/session/process.h"
#include "collector/soft.h"
#include "collector/vpt/recover.h"
#include "proto/bundle.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- What the bundle has ---- */

uint64_t etch_vpt_known_end(const struct etch_vpt_known *known, uint32_t stream, uint64_t tail)
{
    for (size_t i = 0; i < known->streams.n; i++)
        if (known->streams.v[i].id == stream && known->streams.v[i].end > tail)
            return known->streams.v[i].end;
    return tail;
}

bool etch_vpt_known_stream(const struct etch_vpt_known *known, uint32_t stream)
{
    for (size_t i = 0; i < known->streams.n; i++)
        if (known->streams.v[i].id == stream)
            return true;
    return false;
}

bool etch_vpt_known_access(const struct etch_vpt_known *known, uint32_t tid, uint64_t tsc)
{
    for (size_t i = 0; i < known->accesses.n; i++)
        if (known->accesses.v[i].tid == tid)
            return tsc <= known->accesses.v[i].tsc;
    return false;
}

static bool know_stream(struct etch_vpt_known *k, uint32_t id, uint64_t end)
{
    size_t i = 0;

    while (i < k->streams.n && k->streams.v[i].id != id)
        i++;
    if (i == k->streams.n) {
        if (!etch_array_reserve(&k->streams, i + 1))
            return false;
        k->streams.n++;
        k->streams.v[i].id = id;
        k->streams.v[i].end = 0;
    }
    if (end > k->streams.v[i].end)
        k->streams.v[i].end = end;
    return true;
}

static bool know_access(struct etch_vpt_known *k, uint32_t tid, uint64_t tsc)
{
    size_t i = 0;

    while (i < k->accesses.n && k->accesses.v[i].tid != tid)
        i++;
    if (i == k->accesses.n) {
        if (!etch_array_reserve(&k->accesses, i + 1))
            return false;
        k->accesses.n++;
        k->accesses.v[i].tid = tid;
        k->accesses.v[i].tsc = 0;
    }
    if (tsc > k->accesses.v[i].tsc)
        k->accesses.v[i].tsc = tsc;
    return true;
}

/* ---- A recovery ---- */

struct recover {
    struct etch_folder folder;
    struct etch_folder_story story;
    struct etch_recorder recorder;
    struct etch_record_options options;
    struct etch_record_summary summary;
    struct etch_vpt_known known;
    struct etch_recovery *told;
    uint64_t damaged;
    bool failed; /* the output cannot be written: err says why */
    struct etch_error *err;
};

static int write_record(void *context, Etch__Record__BodyCase kind, void *message)
{
    struct recover *c = context;
    Etch__Record record = ETCH__RECORD__INIT;

    record.body_case = kind;
    record.host = message; /* all members of the union are pointers */
    return etch_bundle_write(c->recorder.bundle, &record, c->err);
}

static int write_flow(void *context, uint32_t stream, uint64_t offset, const void *data, size_t size)
{
    struct recover *c = context;

    return etch_bundle_write_flow(c->recorder.bundle, stream, offset, data, size, c->err);
}

/* Returns true if the file that the story names is the bundle of this run, and ends early. Another run may have
 * replaced the file. */
static bool is_its_bundle(const struct recover *c)
{
    const Etch__Record__BodyCase wanted = ETCH__RECORD__BODY_PROGRAM;
    struct etch_bundle_reader *reader;
    struct etch_bundle_item item;
    struct etch_error ignored;
    bool same = false;
    struct stat st;

    if (stat(c->story.output, &st) < 0 || !S_ISREG(st.st_mode) ||
        etch_bundle_open(&reader, c->story.output, &ignored) < 0)
        return false;
    etch_bundle_want(reader, &wanted, 1);
    while (etch_bundle_next(reader, &item, &ignored) < ETCH_BUNDLE_END)
        if (item.record && item.record->body_case == ETCH__RECORD__BODY_PROGRAM)
            same |= item.record->program->pid == c->story.pid;
    etch_bundle_reader_free(reader);
    return same && item.event == ETCH_BUNDLE_CUT;
}

static bool note_record(struct recover *c, const Etch__Record *record)
{
    switch ((int)record->body_case) {
    case ETCH__RECORD__BODY_PROGRAM:
        snprintf(c->recorder.program, sizeof(c->recorder.program), "%.4095s", record->program->exe);
        return true;
    case ETCH__RECORD__BODY_STREAM:
        return know_stream(&c->known, record->stream->id, 0);
    case ETCH__RECORD__BODY_FLOW:
        return know_stream(&c->known, record->flow->stream, record->flow->offset + record->flow->data.len);
    case ETCH__RECORD__BODY_ACCESSES:
        for (size_t i = 0; i < record->accesses->n_accesses; i++)
            if (!know_access(&c->known, record->accesses->accesses[i]->tid, record->accesses->accesses[i]->tsc))
                return false;
        return true;
    default:
        return true;
    }
}

static int copy_bundle(struct recover *c)
{
    struct etch_bundle_reader *reader;
    struct etch_bundle_item item;
    int status = 0;

    if (etch_bundle_open(&reader, c->story.output, c->err) < 0)
        return -1;
    snprintf(c->told->bundle, sizeof(c->told->bundle), "%s", c->story.output);
    while (status == 0 && etch_bundle_next(reader, &item, c->err) < ETCH_BUNDLE_END) {
        c->damaged += item.event == ETCH_BUNDLE_DAMAGED;
        if (!item.record)
            continue;
        if (!note_record(c, item.record))
            status = etch_error_set_errno(c->err, ENOMEM, "cannot recover %s", c->folder.path);
        else
            status = etch_bundle_write(c->recorder.bundle, item.record, c->err);
        c->told->records++;
    }
    if (status == 0 && item.event == ETCH_BUNDLE_FAILED)
        status = -1;
    etch_bundle_reader_free(reader);
    return status;
}

/* Without an old bundle, the new bundle begins with these records. */
static int write_beginning(struct recover *c)
{
    Etch__Program program = ETCH__PROGRAM__INIT;

    program.etch_version = (char *)(uintptr_t)ETCH_VERSION;
    program.pid = c->story.pid;
    program.source = strcmp(c->story.source, "vpt") == 0 ? ETCH__SOURCE__SOURCE_VPT : ETCH__SOURCE__SOURCE_SOFT;
    return etch_host_write(c->recorder.bundle, c->err) < 0 ? -1 : write_record(c, ETCH__RECORD__BODY_PROGRAM, &program);
}

static int write_loss(struct recover *c, Etch__LossCause cause, uint64_t events, const char *detail)
{
    Etch__Loss loss = ETCH__LOSS__INIT;

    if (!events)
        return 0;
    loss.cause = cause;
    loss.events = events;
    loss.detail = (char *)(uintptr_t)detail;
    return write_record(c, ETCH__RECORD__BODY_LOSS, &loss);
}

static int take_soft(struct recover *c)
{
    const struct etch_soft_sink sink = {c, write_record, write_flow};
    struct etch_soft_summary soft;

    if (etch_soft_collect(c->folder.path, 0, &sink, &soft, c->err) < 0)
        return -1;
    c->told->threads = soft.threads;
    c->told->bytes = soft.bytes;
    return 0;
}

static int take_vpt(struct recover *c)
{
    if (etch_vpt_recover(&c->recorder, &c->folder, &c->options, &c->known, c->err) < 0)
        return -1;
    c->told->threads = c->summary.threads;
    c->told->bytes = c->summary.flow_bytes;
    return 0;
}

static int write_all(struct recover *c)
{
    bool vpt = strcmp(c->story.source, "vpt") == 0;

    if ((is_its_bundle(c) ? copy_bundle(c) : write_beginning(c)) < 0 ||
        write_loss(c, ETCH__LOSS_CAUSE__LOSS_DAMAGED, c->damaged, "records of the killed etch's bundle are damaged") <
            0 ||
        (vpt ? take_vpt(c) : take_soft(c)) < 0)
        return -1;
    return write_loss(c, ETCH__LOSS_CAUSE__LOSS_KILLED, 1,
                      "etch was killed; this is what it had written and what its rings held") < 0
               ? -1
               : etch_bundle_finish(c->recorder.bundle, c->err);
}

/* The bundle of the killed etch stays as it is. */
static int refuse_same(const struct recover *c, const char *output)
{
    struct stat a, b;

    if (stat(c->story.output, &a) < 0 || stat(output, &b) < 0 || a.st_dev != b.st_dev || a.st_ino != b.st_ino)
        return 0;
    etch_error_set(c->err, "%s is the recording that was killed, and is not written over", output);
    return etch_error_advise(c->err, "-o with another name");
}

static int take_folder(struct recover *c, const char *path)
{
    struct etch_lefts lefts;
    char newest[ETCH_FOLDER_SIZE] = "";

    if (!path) {
        etch_folder_lefts(&lefts);
        if (lefts.list.n)
            snprintf(newest, sizeof(newest), "%s", lefts.list.v[0].path);
        etch_array_free(&lefts.list);
    }
    if (!path && !newest[0])
        return etch_error_set(c->err, "there is nothing to recover: no etch of yours was killed while it recorded "
                                      "with soft or vpt, or it is recovered already");
    if (etch_folder_take(&c->folder, path ? path : newest, c->err) < 0)
        return -1;
    if (etch_folder_told(&c->folder, &c->story) == 0)
        return 0;
    return etch_error_set(c->err, "%s holds nothing that can be recovered", c->folder.path);
}

/* The rings were never seen by a policy. */
static int recover(struct recover *c, struct etch_privacy *privacy, const char *output)
{
    int status = -1;

    if (refuse_same(c, output) < 0 || etch_bundle_create(&c->recorder.bundle, output, c->err) < 0)
        return -1;
    etch_privacy_guard(privacy, c->recorder.bundle);
    status = write_all(c);
    if (status < 0)
        etch_bundle_discard(c->recorder.bundle);
    else
        etch_bundle_writer_free(c->recorder.bundle);
    return status;
}

static bool is_alive(pid_t pid)
{
    struct etch_process_status status;

    return etch_process_status(pid, pid, &status) == 0 && status.state != 'Z';
}

int etch_recover(const char *folder, const char *output, struct etch_recovery *recovery, struct etch_error *err)
{
    struct recover *c = calloc(1, sizeof(*c));
    struct etch_privacy *privacy = NULL;
    int status = -1;

    memset(recovery, 0, sizeof(*recovery));
    if (!c)
        return etch_error_set_errno(err, ENOMEM, "cannot recover");
    c->folder = ETCH_FOLDER_NONE;
    c->told = recovery;
    c->err = err;
    c->recorder.options = &c->options;
    c->recorder.summary = &c->summary;
    if (etch_privacy_open(&privacy, NULL, false, err) == 0 && take_folder(c, folder) == 0) {
        snprintf(recovery->folder, sizeof(recovery->folder), "%s", c->folder.path);
        memcpy(recovery->source, c->story.source, sizeof(recovery->source));
        c->recorder.pid = (pid_t)c->story.pid;
        recovery->alive = is_alive(c->recorder.pid);
        status = recover(c, privacy, output);
    }
    etch_privacy_free(privacy);
    if (status == 0)
        etch_folder_remove(&c->folder);
    else
        etch_folder_leave(&c->folder);
    etch_array_free(&c->known.streams);
    etch_array_free(&c->known.accesses);
    free(c);
    return status;
}
