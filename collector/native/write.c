/* SPDX-License-Identifier: MIT */
/* The records of a native recording; see native.h. */
#include "collector/native/native.h"

#include "collector/privacy.h"
#include "collector/session/records.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

static char no_text[] = "";

/* ---- Program, images, threads ---- */

/* A running process' own words, where we did not start it. */
static size_t read_arguments(pid_t pid, char *text, size_t size, char *words[64])
{
    char name[64];
    size_t n = 0, got;
    FILE *file;

    snprintf(name, sizeof(name), "/proc/%d/cmdline", (int)pid);
    file = fopen(name, "re");
    if (!file)
        return 0;
    got = fread(text, 1, size - 1, file);
    fclose(file);
    text[got] = '\0';
    for (size_t at = 0; at < got && n < 64; at += strlen(text + at) + 1)
        words[n++] = text + at;
    return n;
}

void etch_native_write_program(struct native *n)
{
    Etch__Program program = ETCH__PROGRAM__INIT;
    struct etch_program_file file;
    char cwd[4096], text[4096];
    char *words[64];

    etch_process_cwd(n->target.pid, cwd, sizeof(cwd));
    if (n->options->argv) {
        etch_program_set_argv(&program, n->options->argv);
    } else {
        program.argv = words;
        program.n_argv = read_arguments(n->target.pid, text, sizeof(text), words);
    }
    etch_program_set_file(&program, n->target.pid, &file);
    program.cwd = cwd;
    program.pid = (uint32_t)n->target.pid;
    program.plan = n->options->plan ? (char *)(uintptr_t)n->options->plan : no_text;
    program.plan_set = n->set;
    program.source = n->flow ? n->flow->id : ETCH__SOURCE__SOURCE_NONE;
    etch_recorder_write_program(&n->recorder, &program);
    n->program_written = true;
}

static bool image_known(const struct native *n, const struct etch_mapping *m)
{
    for (size_t i = 0; i < n->images.n; i++)
        if (n->images.v[i].start == m->start && n->images.v[i].end == m->end && n->images.v[i].offset == m->offset)
            return true;
    return false;
}

/* Returns true if the recorder of control flow writes this mapping by itself, with its time. Such a recorder writes all
 * code mappings after its start, except generated code: only the native collector reads the bytes of generated code. */
static bool is_told(const struct native *n, const struct etch_mapping *m)
{
    return n->flow && n->flow->tells_mappings && n->flow_started && (m->prot & 4) &&
           (m->inode || strcmp(m->path, "[vdso]") == 0);
}

static void no_memory(struct native *n, const char *what)
{
    char detail[80];

    snprintf(detail, sizeof(detail), "etch had no memory %s", what);
    etch_native_write_loss(n, ETCH__LOSS_CAUSE__LOSS_NO_MEMORY, 0, 0, 1, detail);
}

/* Mappings of files, and code wherever it is. */
static void write_mapping(struct native *n, const struct etch_mapping *m)
{
    struct native_image known = {m->start, m->end, m->offset};
    Etch__Image image = ETCH__IMAGE__INIT;
    uint8_t id[64];
    uint8_t *code = NULL;

    if ((!(m->prot & 4) && (!m->inode || strncmp(m->path, "/memfd:", 7) == 0 || strncmp(m->path, "/dev/", 5) == 0)) ||
        image_known(n, m) || is_told(n, m) || strncmp(m->path, "[vsyscall", 9) == 0)
        return;
    if (!etch_array_push(&n->images, known)) {
        no_memory(n, "for a mapping");
        return;
    }
    image.pid = (uint32_t)n->target.pid;
    image.start = m->start;
    image.size = m->end - m->start;
    image.file_offset = m->offset;
    image.path = m->path;
    image.prot = m->prot;
    image.build_id.data = id;
    if (m->inode) {
        image.build_id.len = etch_process_build_id(n->target.pid, m->path, id);
    } else if (image.size <= 1u << 20) {
        code = malloc(image.size);
        image.code.data = code;
        image.code.len = code ? etch_process_read(n->target.pid, m->start, code, image.size) : 0;
        if (!code)
            no_memory(n, "for code that no file holds");
    }
    etch_recorder_write(&n->recorder, ETCH__RECORD__BODY_IMAGE, &image);
    free(code);
}

void etch_native_write_images(struct native *n)
{
    struct etch_mappings mappings;
    struct etch_error ignored;

    n->unknown_code = false;
    errno = 0;
    if (etch_process_mappings(n->target.pid, &mappings, &ignored) < 0) {
        if (errno == ENOMEM) /* else the program is gone */
            no_memory(n, "for the list of mappings");
        return;
    }
    for (size_t i = 0; i < mappings.list.n; i++)
        write_mapping(n, &mappings.list.v[i]);
    etch_mappings_release(&n->mapped);
    n->mapped = mappings;
}

void etch_native_write_thread(struct native *n, const struct etch_target_thread *thread, bool ended)
{
    Etch__Thread record = ETCH__THREAD__INIT;
    char name[32];

    etch_thread_name(n->target.pid, thread->tid, name);
    record.pid = (uint32_t)n->target.pid;
    record.tid = (uint32_t)thread->tid;
    record.name = name;
    record.start_tsc = thread->start_tsc;
    record.end_tsc = ended ? __rdtsc() : 0;
    record.parent_tid = (uint32_t)thread->parent;
    record.parent_pid = thread->parent ? (uint32_t)n->target.pid : 0;
    etch_recorder_write(&n->recorder, ETCH__RECORD__BODY_THREAD, &record);
}

/* ---- Watches and losses ---- */

void etch_native_write_watch(struct native *n, const struct native_watch *watch, const char *skip_reason)
{
    Etch__Watch record = ETCH__WATCH__INIT;
    uint64_t value = 0;

    record.id = watch->id;
    record.name = (char *)(uintptr_t)watch->place.text;
    record.address = watch->address;
    record.size = watch->size;
    record.reads = watch->place.reads;
    record.writes = watch->place.writes;
    record.site = watch->site;
    record.set = watch->set;
    record.skipped = skip_reason != NULL;
    record.skip_reason = skip_reason ? (char *)(uintptr_t)skip_reason : no_text;
    if (!skip_reason) {
        record.armed_tsc = __rdtsc();
        if (etch_process_read(n->target.pid, watch->address, &value, watch->size) == watch->size) {
            record.initially_case = ETCH__WATCH__INITIALLY_INITIAL_VALUE;
            record.initial_value = value;
        }
        record.initial_tsc = __rdtsc();
        record.kernel_unseen = n->watches && !etch_watches_see_kernel(n->watches);
    }
    etch_recorder_write(&n->recorder, ETCH__RECORD__BODY_WATCH, &record);
}

void etch_native_write_loss(struct native *n, Etch__LossCause cause, uint32_t watch, uint32_t tid, uint64_t events,
                            const char *detail)
{
    Etch__Loss loss = ETCH__LOSS__INIT;

    loss.cause = cause;
    loss.watch = watch;
    loss.tid = tid;
    loss.events = events;
    loss.tsc = __rdtsc();
    loss.detail = (char *)(uintptr_t)detail;
    n->recorder.sink.lost(n->recorder.sink.context, &loss);
}

/* ---- The failure ---- */

void etch_native_write_failure(struct native *n, struct etch_failure *failure)
{
    Etch__Failure *f = &failure->record;

    for (size_t i = 0; i < failure->mappings.list.n; i++)
        write_mapping(n, &failure->mappings.list.v[i]);
    etch_privacy_count(n->options->privacy)->stack_words += failure->masked_words;
    etch_recorder_write_failure(&n->recorder, f, f->code > 0 && f->fault_address);
    n->failure_written = true;
}
