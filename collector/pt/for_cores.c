/* SPDX-License-Identifier: MIT */
/* See for_cores.h. */
#include "collector/pt/for_cores.h"

#include "collector/privacy.h"
#include "collector/session/host.h"
#include "collector/session/records.h"
#include "proto/message.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <x86intrin.h>

enum { LOSSES_KEPT = 64 };

/* ---- Between two crashes ---- */

static void drop_record(void *context, Etch__Record__BodyCase kind, void *message)
{
    (void)context, (void)kind, (void)message;
}

static void drop_bytes(void *context, uint32_t stream, uint64_t offset, const void *data, size_t size, bool hurry)
{
    (void)context, (void)stream, (void)offset, (void)data, (void)size, (void)hurry;
}

static void keep_loss(void *context, const Etch__Loss *loss)
{
    struct etch_pt_for_cores *c = context;
    Etch__Loss *copy = etch_message_copy(loss);
    size_t at = c->n_losses++ % LOSSES_KEPT;

    if (at < c->losses.n) {
        if (c->losses.v[at])
            etch__loss__free_unpacked(c->losses.v[at], NULL);
        c->losses.v[at] = copy;
    } else if (!etch_array_push(&c->losses, copy) && copy) {
        etch__loss__free_unpacked(copy, NULL);
    }
}

static void keep_note(void *context, const char *text)
{
    struct etch_pt_for_cores *c = context;

    if (c->summary->n_notes < sizeof(c->summary->notes) / sizeof(c->summary->notes[0]))
        snprintf(c->summary->notes[c->summary->n_notes++], sizeof(c->summary->notes[0]), "%s", text);
}

int etch_pt_for_cores_open(struct etch_pt_for_cores *c, const struct etch_record_options *options,
                           struct etch_record_summary *summary, struct etch_error *err)
{
    *c = (struct etch_pt_for_cores){.options = options, .summary = summary, .standby.listener = -1};
    c->sink = (struct etch_sink){c, drop_record, drop_bytes, keep_loss, keep_note, summary};
    return strlen(options->for_cores) < 4096 ? 0 : etch_error_set(err, "the name of the folder of cores is too long");
}

int etch_pt_for_cores_listen(struct etch_pt_for_cores *c, struct etch_error *err)
{
    return etch_standby_open(&c->standby, c->options->for_cores, err);
}

void etch_pt_for_cores_close(struct etch_pt_for_cores *c)
{
    etch_standby_close(&c->standby);
    for (size_t i = 0; i < c->losses.n; i++)
        if (c->losses.v[i])
            etch__loss__free_unpacked(c->losses.v[i], NULL);
    etch_array_free(&c->losses);
    if (c->clock)
        etch__clock__free_unpacked(c->clock, NULL);
}

/* ---- At a crash ---- */

static void write_losses(const struct etch_pt_for_cores *c, struct etch_recorder *r)
{
    for (size_t i = 0; i < c->losses.n; i++)
        if (c->losses.v[i])
            r->sink.lost(r->sink.context, c->losses.v[i]);
    if (c->n_losses > c->losses.n)
        etch_sink_lose(&r->sink, ETCH__LOSS_CAUSE__LOSS_LIMIT, 0, c->n_losses - c->losses.n,
                       "losses before the last 64 are not listed");
}

static void write_all(struct etch_pt_for_cores *c, struct etch_pt *pt, struct etch_recorder *r, Etch__Program *program)
{
    const struct etch_ending ending = {.unix_ns = etch_unix_ns(), .tsc = __rdtsc()};
    struct etch_error ignored;

    etch_recorder_begin(r);
    etch_host_write(r, &ignored);
    if (c->clock)
        etch_recorder_write(r, ETCH__RECORD__BODY_CLOCK, c->clock);
    etch_recorder_write_program(r, program);
    etch_pt_snapshot(pt, &r->sink);
    write_losses(c, r);
    etch_recorder_write_beyond(r);
    etch_recorder_write_outcome(r, &ending);
    etch_recorder_finish(r);
}

/* Whatever goes wrong with this bundle, the rings go on. */
static void write_trace(struct etch_pt_for_cores *c, struct etch_pt *pt, const struct etch_standby_request *request,
                        Etch__Program *program)
{
    struct etch_record_summary summary = {0};
    struct etch_privacy *privacy = NULL;
    struct etch_recorder recorder;
    struct etch_error err;
    char text[300];

    etch_recorder_init(&recorder, c->options->max_size, &summary);
    if (etch_privacy_open(&privacy, c->options->policy, false, &err) == 0 &&
        etch_recorder_create(&recorder, request->output, privacy, &err) == 0) {
        write_all(c, pt, &recorder, program);
        if (etch_recorder_check(&recorder, &err) == 0)
            c->summary->traces++;
        etch_recorder_close(&recorder, !recorder.broken);
    } else {
        snprintf(text, sizeof(text), "the trace of process %d was not written: %.200s", (int)request->pid, err.what);
        keep_note(c, text);
        etch_pt_snapshot(pt, &c->sink);
    }
    etch_privacy_free(privacy);
}

/* A process of the control group may be new. */
static bool is_mine(struct etch_pt *pt, pid_t pid)
{
    for (int i = 0; i < 2 && !etch_pt_has(pt, pid); i++)
        etch_pt_drain(pt);
    return etch_pt_has(pt, pid);
}

/* All that the process itself shows is taken before the answer: then the process goes. */
static void serve(struct etch_pt_for_cores *c, struct etch_pt *pt, const struct etch_standby_request *request)
{
    Etch__Program program = ETCH__PROGRAM__INIT;
    struct etch_program_file file;

    if (!is_mine(pt, request->pid)) {
        etch_standby_answer(request, false);
        return;
    }
    etch_pt_hold(pt);
    etch_program_set_file(&program, request->pid, &file);
    program.pid = (uint32_t)request->pid;
    program.source = ETCH__SOURCE__SOURCE_PT;
    etch_standby_answer(request, true);
    write_trace(c, pt, request, &program);
}

void etch_pt_for_cores_serve(struct etch_pt_for_cores *c, struct etch_pt *pt)
{
    struct etch_standby_request request;

    while (etch_standby_take(&c->standby, &request))
        serve(c, pt, &request);
}
