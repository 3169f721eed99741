/* SPDX-License-Identifier: MIT */
/* See recover.h. */
#include "collector/recover.h"

#include "collector/folder.h"
#include "collector/privacy.h"
#include "collector/session/host.h"
#include "collector/session/process.h"
#include "collector/session/records.h"
#include "collector/soft.h"
#include "collector/vpt_recover.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- A recovery ---- */

struct recover {
    struct etch_folder folder;
    struct etch_folder_story story;
    struct etch_recorder recorder;
    struct etch_record_summary summary;
    struct etch_vpt_known known;
    struct etch_recovery *told;
    uint64_t damaged;
    struct etch_error *err;
};

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

static int copy_record(struct recover *c, const Etch__Record *record)
{
    etch_recorder_write(&c->recorder, record->body_case, record->program);
    return etch_recorder_check(&c->recorder, c->err);
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
        if (!etch_vpt_known_add(&c->known, item.record))
            status = etch_error_set_errno(c->err, ENOMEM, "cannot recover %s", c->folder.path);
        else
            status = copy_record(c, item.record);
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

    program.pid = c->story.pid;
    program.source = strcmp(c->story.source, "vpt") == 0 ? ETCH__SOURCE__SOURCE_VPT : ETCH__SOURCE__SOURCE_SOFT;
    if (etch_host_write(&c->recorder, c->err) < 0)
        return -1;
    etch_recorder_write_program(&c->recorder, &program);
    return 0;
}

static int take_soft(struct recover *c)
{
    struct etch_soft_summary soft;

    if (etch_soft_collect(c->folder.path, 0, &c->recorder.sink, &soft, c->err) < 0)
        return -1;
    c->told->threads = soft.threads;
    c->told->bytes = soft.bytes;
    return 0;
}

static int take_vpt(struct recover *c)
{
    if (etch_vpt_recover(&c->folder, &c->known, &c->recorder.sink, c->err) < 0)
        return -1;
    c->told->threads = c->summary.threads;
    c->told->bytes = c->summary.flow_bytes;
    return 0;
}

static int write_all(struct recover *c)
{
    bool vpt = strcmp(c->story.source, "vpt") == 0;

    if ((is_its_bundle(c) ? copy_bundle(c) : write_beginning(c)) < 0)
        return -1;
    etch_sink_lose(&c->recorder.sink, ETCH__LOSS_CAUSE__LOSS_DAMAGED, 0, c->damaged,
                   "records of the killed etch's bundle are damaged");
    if ((vpt ? take_vpt(c) : take_soft(c)) < 0)
        return -1;
    etch_sink_lose(&c->recorder.sink, ETCH__LOSS_CAUSE__LOSS_KILLED, 0, 1,
                   "etch was killed; this is what it had written and what its rings held");
    etch_recorder_finish(&c->recorder);
    return etch_recorder_check(&c->recorder, c->err);
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

    if (refuse_same(c, output) < 0 || etch_recorder_create(&c->recorder, output, privacy, c->err) < 0)
        return -1;
    status = write_all(c);
    etch_recorder_close(&c->recorder, status == 0);
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
    etch_recorder_init(&c->recorder, 0, &c->summary);
    if (etch_privacy_open(&privacy, NULL, false, err) == 0 && take_folder(c, folder) == 0) {
        snprintf(recovery->folder, sizeof(recovery->folder), "%s", c->folder.path);
        memcpy(recovery->source, c->story.source, sizeof(recovery->source));
        c->known.pid = (pid_t)c->story.pid;
        recovery->alive = is_alive(c->known.pid);
        status = recover(c, privacy, output);
    }
    etch_privacy_free(privacy);
    if (status == 0)
        etch_folder_remove(&c->folder);
    else
        etch_folder_leave(&c->folder);
    etch_vpt_known_free(&c->known);
    free(c);
    return status;
}
