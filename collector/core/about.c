/* SPDX-License-Identifier: MIT */
/* See about.h. */
#include "collector/core/about.h"

#include "proto/bundle.h"
#include "proto/message.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define THREADS_MAX 4096u

static void take(struct core_about *about, const Etch__Record *r)
{
    Etch__Thread *thread;

    if (r->body_case == ETCH__RECORD__BODY_PROGRAM && !about->program) {
        about->program = etch_message_copy(r->program);
    } else if (r->body_case == ETCH__RECORD__BODY_OUTCOME && !about->outcome) {
        about->outcome = etch_message_copy(r->outcome);
    } else if (r->body_case == ETCH__RECORD__BODY_THREAD && about->threads.n < THREADS_MAX) {
        thread = etch_message_copy(r->thread);
        if (thread && !etch_array_push(&about->threads, thread))
            etch__thread__free_unpacked(thread, NULL);
    }
}

void core_about_read(struct core_about *about, const char *core, uint32_t pid)
{
    struct etch_bundle_reader *reader;
    struct etch_bundle_item item;
    struct etch_error ignored;
    size_t length = strlen(core);
    char path[4200];

    memset(about, 0, sizeof(*about));
    if (length < 6 || length > 4096 || strcmp(core + length - 5, ".core") != 0)
        return;
    snprintf(path, sizeof(path), "%.*s.etch", (int)length - 5, core);
    if (access(path, R_OK) < 0 || etch_bundle_open(&reader, path, &ignored) < 0)
        return;
    while (etch_bundle_next(reader, &item, &ignored) < ETCH_BUNDLE_END)
        if (item.record)
            take(about, item.record);
    etch_bundle_reader_free(reader);
    if (about->program && about->program->pid != pid)
        core_about_release(about);
}

void core_about_release(struct core_about *about)
{
    if (about->program)
        etch__program__free_unpacked(about->program, NULL);
    if (about->outcome)
        etch__outcome__free_unpacked(about->outcome, NULL);
    for (size_t i = 0; i < about->threads.n; i++)
        etch__thread__free_unpacked(about->threads.v[i], NULL);
    etch_array_free(&about->threads);
    memset(about, 0, sizeof(*about));
}

const char *core_about_name(const struct core_about *about, uint32_t tid)
{
    for (size_t i = 0; i < about->threads.n; i++)
        if (about->threads.v[i]->tid == tid)
            return about->threads.v[i]->name;
    return NULL;
}
