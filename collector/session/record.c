/* SPDX-License-Identifier: MIT */
/* Which source records a program; see record.h. */
#include "collector/record.h"
#include "base/log.h"
#include "collector/native.h"
#include "collector/privacy.h"
#include "collector/pt.h"
#include "collector/session/child.h"
#include "collector/soft.h"
#include "collector/vpt_find.h"
#include "proto/soft_layout.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINK_SECTION ".etchlink" /* as slicer/link_note.h has it */

bool etch_record_has_recorder(const char *program)
{
    struct etch_error ignored;
    char path[4096];

    return etch_record_find_program(program, path, sizeof(path), &ignored) == 0 && etch_soft_is_recorded(path);
}

bool etch_record_has_lab(const char *program)
{
    struct etch_error ignored;
    char path[4096];

    return etch_record_find_program(program, path, sizeof(path), &ignored) == 0 &&
           etch_soft_has_section(path, LINK_SECTION);
}

const char *etch_record_source_without_lab(void)
{
    return etch_vpt_usable() ? "vpt" : "none";
}

const char *etch_record_auto_source(const char *program)
{
    struct etch_error ignored;

    if (etch_pt_usable(&ignored))
        return "pt";
    if (etch_record_has_recorder(program))
        return "soft";
    return etch_record_has_lab(program) ? "lab" : etch_record_source_without_lab();
}

static int no_source(const char *name, struct etch_error *err)
{
    etch_error_set(err, "there is no source '%s'", name);
    return etch_error_advise(err, "--source pt, soft, lab, vpt, none, or auto");
}

/* A lab build has the software recorder. */
static int record_lab(const struct etch_record_options *options, struct etch_record_summary *summary,
                      struct etch_error *err)
{
    struct etch_record_options lab = *options;

    lab.lab_flow = &etch_source_soft;
    return etch_native_record(&lab, &etch_source_lab, summary, err);
}

static int record_guarded(const struct etch_record_options *options, struct etch_record_summary *summary,
                          struct etch_error *err)
{
    const char *name = options->source;
    bool running = options->pid || options->n_pids || options->cgroup;
    bool group = options->n_pids || options->cgroup || options->for_cores;

    if ((options->plan || options->n_watches) && !running && etch_record_has_recorder(options->argv[0]) &&
        setenv(ETCH_SOFT_ON_VARIABLE, "1", 1) < 0) /* the plan's instructions are those of recorded code */
        return etch_error_set_errno(err, errno, "cannot say to the program that it is watched");
    if (strcmp(name, "auto") == 0)
        name = group      ? "pt"
               : !running ? etch_record_auto_source(options->argv[0])
                          : (etch_pt_usable(err) ? "pt" : "none");
    etch_log(ETCH_LOG_SESSION, ETCH_LOG_DEBUG, "source %s, %s%s%s", name,
             name == options->source ? "as asked for" : "the first of pt, soft, vpt and none that can be had",
             running ? ", of a running process" : "", options->plan ? ", with a plan of watches" : "");
    if (group && strcmp(name, "pt") != 0)
        return etch_error_set(err, "several processes, or a control group, are recorded by --source pt only");
    if (group)
        return etch_pt_record_group(options, summary, err);
    if (strcmp(name, "pt") == 0)
        return etch_native_record(options, &etch_source_pt, summary, err);
    if (strcmp(name, "soft") == 0)
        return etch_native_record(options, &etch_source_soft, summary, err);
    if (strcmp(name, "lab") == 0 && !options->lab) /* auto, and no lab build was made */
        name = etch_record_source_without_lab();
    if (strcmp(name, "lab") == 0)
        return record_lab(options, summary, err);
    if (strcmp(name, "none") == 0)
        return etch_native_record(options, NULL, summary, err);
    if (strcmp(name, etch_source_vpt.name) != 0)
        return no_source(name, err);
    if (running)
        return etch_error_set(err,
                              "a process that runs cannot be recorded by --source vpt: it starts programs in QEMU");
    return etch_child_record(options, &etch_source_vpt, summary, err);
}

int etch_record(const struct etch_record_options *options, struct etch_record_summary *summary, struct etch_error *err)
{
    struct etch_record_options guarded = *options;
    int status;

    memset(summary, 0, sizeof(*summary));
    if (etch_privacy_open(&guarded.privacy, options->policy, options->keep_stack, err) < 0)
        return -1;
    status = record_guarded(&guarded, summary, err);
    etch_privacy_free(guarded.privacy);
    return status;
}
