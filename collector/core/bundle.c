/* SPDX-License-Identifier: MIT */
/* A bundle of a core; see collector/core.h. */
#include "collector/core.h"

#include "collector/core/about.h"
#include "collector/core/process.h"
#include "collector/core/trace.h"
#include "collector/native/failure.h"
#include "collector/privacy.h"
#include "collector/session/records.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WORDS_MAX 256u
#define CODE_MAX ((uint64_t)1 << 20) /* of one mapping that no file holds */

enum { BP = 6, SP = 7, IP = 8, DI = 5 }; /* of perf's numbers */

static char no_text[] = "";

struct writing {
    struct core_process process;
    struct core_about about;
    struct etch_recorder recorder;
    struct etch_privacy *privacy;
    const struct etch_core_request *request;
    struct core_trace trace; /* of its last moments, if rings were kept for it */
};

static uint32_t pid_of(const struct writing *w)
{
    const struct etch_core_contents *c = etch_core_contents(w->process.core);

    return c->pid ? c->pid : c->threads.v[0].tid;
}

/* ---- Program, images, threads ---- */

/* The kernel's own copy of the arguments ends after 80 bytes. */
static size_t short_arguments(const struct etch_core_contents *c, char **words, size_t max)
{
    char copy[sizeof(c->arguments)], *rest = copy, *word;
    size_t n = 0;

    memcpy(copy, c->arguments, sizeof(copy));
    while (n < max && (word = strsep(&rest, " ")))
        if (word[0] && (words[n] = strdup(word)))
            n++;
    return n;
}

/* A protobuf string is UTF-8, and memory is not. */
static void clean(char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text >= 0x80 || (unsigned char)*text < 0x20)
            *text = '?';
}

static size_t take_arguments(struct writing *w, char **words)
{
    const struct etch_core_contents *c = etch_core_contents(w->process.core);
    uint64_t top;
    size_t n = etch_core_arguments(w->process.core, words, WORDS_MAX, &top);

    if (!n) {
        n = short_arguments(c, words, WORDS_MAX);
        etch_recorder_note(&w->recorder, "the core has at most 80 bytes of the command line");
    }
    for (size_t i = 0; i < n; i++)
        clean(words[i]);
    return n;
}

static void write_program(struct writing *w)
{
    struct core_module *m = core_process_program(&w->process);
    Etch__Program program = ETCH__PROGRAM__INIT;
    char *words[WORDS_MAX];
    struct etch_elf elf;
    struct etch_error ignored;

    program.argv = words;
    program.n_argv = take_arguments(w, words);
    program.exe = (char *)(uintptr_t)(m ? m->path : w->request->program);
    if (m && m->id_size) {
        program.build_id = (ProtobufCBinaryData){m->id_size, m->id};
    } else if (etch_elf_read(&elf, w->request->program, &ignored) == 0) {
        program.build_id = (ProtobufCBinaryData){elf.build_id_size, elf.build_id};
    }
    program.pid = pid_of(w);
    program.source = w->trace.reader ? ETCH__SOURCE__SOURCE_PT : ETCH__SOURCE__SOURCE_NONE;
    if (w->about.program) {
        program.cwd = w->about.program->cwd;
        program.rings = w->about.program->rings;
        program.start_unix_ns = w->about.program->start_unix_ns;
        program.outer_pid = w->about.program->outer_pid;
        program.pid_namespace = w->about.program->pid_namespace;
    }
    etch_recorder_write_program(&w->recorder, &program);
    for (size_t i = 0; i < program.n_argv; i++)
        free(words[i]);
}

/* The program is named by the file that the user gave if the file it was run from is gone, or is another one now. */
static const char *image_path(const struct etch_mapping *m, const struct core_module *module)
{
    return module && module->file ? module->file : m->path;
}

static void write_image(struct writing *w, const struct etch_mapping *m)
{
    const struct core_module *module = core_process_module(&w->process, m->path);
    Etch__Image image = ETCH__IMAGE__INIT;
    uint8_t *code = NULL;

    if ((!(m->prot & 4) && !m->inode) || m->start >= UINT64_MAX / 2) /* the last is the kernel's vsyscall page */
        return;
    image.pid = pid_of(w);
    image.start = m->start;
    image.size = m->end - m->start;
    image.file_offset = m->offset;
    image.path = (char *)(uintptr_t)image_path(m, module);
    image.prot = m->prot;
    if (module)
        image.build_id = (ProtobufCBinaryData){module->id_size, (uint8_t *)(uintptr_t)module->id};
    if (!m->inode && image.size <= CODE_MAX && (code = malloc(image.size)))
        image.code = (ProtobufCBinaryData){core_process_read(&w->process, m->start, code, image.size), code};
    etch_recorder_write(&w->recorder, ETCH__RECORD__BODY_IMAGE, &image);
    free(code);
}

static void write_images(struct writing *w)
{
    for (size_t i = 0; i < w->process.mappings.list.n; i++)
        write_image(w, &w->process.mappings.list.v[i]);
}

static const char *thread_name(const struct writing *w, uint32_t tid)
{
    const char *name = core_about_name(&w->about, tid);

    if (name)
        return name;
    return tid == pid_of(w) ? etch_core_contents(w->process.core)->name : no_text;
}

/* The first thread of the process first. */
static void write_threads(struct writing *w)
{
    const struct etch_core_contents *c = etch_core_contents(w->process.core);

    for (int turn = 0; turn < 2; turn++)
        for (size_t i = 0; i < c->threads.n; i++) {
            Etch__Thread thread = ETCH__THREAD__INIT;
            char name[32];

            if ((c->threads.v[i].tid == pid_of(w)) != (turn == 0))
                continue;
            snprintf(name, sizeof(name), "%s", thread_name(w, c->threads.v[i].tid));
            clean(name);
            thread.pid = pid_of(w);
            thread.tid = c->threads.v[i].tid;
            thread.name = name;
            etch_recorder_write(&w->recorder, ETCH__RECORD__BODY_THREAD, &thread);
            w->recorder.sink.summary->threads++;
        }
}

/* Images and threads of the process itself are the core's. */
static bool is_known(const struct writing *w, uint32_t pid, uint32_t tid)
{
    const struct etch_core_contents *c = etch_core_contents(w->process.core);

    for (size_t i = 0; tid && i < c->threads.n; i++)
        if (c->threads.v[i].tid == tid)
            return true;
    return !tid && pid == pid_of(w);
}

static bool is_wanted(void *context, const Etch__Record *record)
{
    if (record->body_case == ETCH__RECORD__BODY_IMAGE)
        return !is_known(context, record->image->pid, 0);
    return record->body_case != ETCH__RECORD__BODY_THREAD ||
           !is_known(context, record->thread->pid, record->thread->tid);
}

static void write_trace(struct writing *w)
{
    if (core_trace_copy(&w->trace, &w->recorder, is_wanted, w))
        etch_recorder_note(&w->recorder, "control flow is that of Intel PT, kept by etch record --for-cores");
}

/* ---- The failure ---- */

static struct etch_stack_memory memory_of(struct writing *w)
{
    return (struct etch_stack_memory){core_process_read, &w->process, &w->process.mappings, w->process.stack_end,
                                      false};
}

static void take_state(struct writing *w, Etch__ThreadState *state, const struct etch_core_thread *t)
{
    const struct etch_stack_memory memory = memory_of(w);

    etch__thread_state__init(state);
    state->tid = t->tid;
    state->name = strdup(thread_name(w, t->tid));
    if (state->name)
        clean(state->name);
    state->registers = malloc(sizeof(t->registers));
    if (state->registers) {
        memcpy(state->registers, t->registers, sizeof(t->registers));
        state->n_registers = ETCH_CORE_REGISTERS;
    }
    if (t->system_call < 4096) {
        state->waiting_in = (uint32_t)t->system_call + 1;
        state->waiting_for = t->registers[DI];
    }
    etch_privacy_count(w->privacy)->stack_words +=
        etch_stack_take(&memory, state, t->registers[IP], t->registers[SP], t->registers[BP]);
}

static void take_states(struct writing *w, struct etch_failure *f)
{
    const struct etch_core_contents *c = etch_core_contents(w->process.core);
    size_t n = c->threads.n < ETCH_FAILURE_THREADS_MAX ? c->threads.n : ETCH_FAILURE_THREADS_MAX;

    f->states = calloc(n, sizeof(*f->states));
    f->record.threads = calloc(n, sizeof(Etch__ThreadState *));
    for (size_t i = 0; f->states && f->record.threads && i < n; i++) {
        take_state(w, &f->states[i], &c->threads.v[i]);
        f->record.threads[f->record.n_threads++] = &f->states[i];
    }
    f->record.ip = c->threads.v[0].registers[IP];
}

static bool has_address(const struct etch_core_thread *t)
{
    return t->signal_known && t->signal_code > 0 &&
           (t->signal == SIGSEGV || t->signal == SIGBUS || t->signal == SIGFPE || t->signal == SIGILL);
}

/* A core of a living process, or of one that was asked to end with a core (SIGQUIT), is that of a hang. */
static void write_failure(struct writing *w)
{
    const struct etch_core_thread *t = &etch_core_contents(w->process.core)->threads.v[0];
    struct etch_failure failure = {0};
    Etch__Failure *record = &failure.record;

    etch__failure__init(record);
    record->message = NULL;
    record->kind =
        etch_signal_is_failure(t->signal) ? ETCH__FAILURE_KIND__FAILURE_SIGNAL : ETCH__FAILURE_KIND__FAILURE_HANG;
    record->pid = pid_of(w);
    record->tid = t->tid;
    record->signal = (uint32_t)t->signal;
    record->code = t->signal_known ? t->signal_code : 0;
    record->fault_address = has_address(t) ? t->signal_address : 0;
    take_states(w, &failure);
    if (t->signal == SIGABRT) {
        const struct etch_stack_memory memory = memory_of(w);

        record->message = etch_abort_message(&memory, "");
    }
    if (!record->message)
        record->message = strdup("");
    etch_recorder_write_failure(&w->recorder, record, has_address(t));
    etch_failure_release(&failure);
}

static void write_outcome(struct writing *w)
{
    const struct etch_core_thread *t = &etch_core_contents(w->process.core)->threads.v[0];
    Etch__Outcome outcome = ETCH__OUTCOME__INIT;

    if (t->signal > 0) {
        outcome.how_case = ETCH__OUTCOME__HOW_SIGNAL;
        outcome.signal = (uint32_t)t->signal;
    }
    outcome.end_unix_ns = w->about.outcome ? w->about.outcome->end_unix_ns : 0;
    etch_recorder_write(&w->recorder, ETCH__RECORD__BODY_OUTCOME, &outcome);
}

/* ---- Losses and notes ---- */

static void write_loss(struct writing *w, Etch__LossCause cause, uint64_t bytes, uint64_t events, const char *detail)
{
    Etch__Loss loss = ETCH__LOSS__INIT;

    loss.cause = cause;
    loss.bytes = bytes;
    loss.events = events;
    loss.detail = (char *)(uintptr_t)detail;
    w->recorder.sink.lost(w->recorder.sink.context, &loss);
}

static void write_losses(struct writing *w)
{
    const struct etch_core_contents *c = etch_core_contents(w->process.core);

    if (c->notes_cut)
        write_loss(w, ETCH__LOSS_CAUSE__LOSS_CUT, c->missing, 1, "the core was cut: threads may be missing");
    else if (c->missing)
        write_loss(w, ETCH__LOSS_CAUSE__LOSS_CUT, c->missing, 1, "the core was cut: memory is missing");
    if (c->threads.n > ETCH_FAILURE_THREADS_MAX)
        write_loss(w, ETCH__LOSS_CAUSE__LOSS_LIMIT, 0, c->threads.n - ETCH_FAILURE_THREADS_MAX,
                   "threads beyond 128 have no stack");
}

static void write_notes(struct writing *w)
{
    size_t by_file = 0, without = 0;

    for (size_t i = 0; i < w->process.modules.n; i++) {
        by_file += w->process.modules.v[i].id_source == CORE_ID_FILE;
        without += w->process.modules.v[i].code && !w->process.modules.v[i].file;
    }
    if (w->process.by_name)
        etch_recorder_note(&w->recorder,
                           "the core has no build-id of the program: only its name says that it is the one that ran");
    if (by_file)
        etch_recorder_note(&w->recorder,
                           "the core has no build-id of %zu mapped files: those of the files as they are now are used",
                           by_file);
    if (without)
        etch_recorder_note(&w->recorder, "%zu mapped files are not here in the build that ran: stacks may end in them",
                           without);
}

/* ---- All ---- */

static int write_all(struct writing *w, struct etch_error *err)
{
    write_program(w);
    write_images(w);
    write_threads(w);
    write_trace(w);
    write_losses(w);
    write_failure(w);
    write_outcome(w);
    write_notes(w);
    etch_recorder_finish(&w->recorder);
    return etch_recorder_check(&w->recorder, err);
}

int etch_core_bundle(const struct etch_core_request *request, struct etch_record_summary *summary,
                     struct etch_error *err)
{
    struct writing *w = calloc(1, sizeof(*w));
    int status = -1;

    memset(summary, 0, sizeof(*summary));
    if (!w)
        return etch_error_no_memory(err);
    w->request = request;
    etch_recorder_init(&w->recorder, 0, summary);
    if (etch_privacy_open(&w->privacy, request->policy, false, err) == 0 &&
        core_process_open(&w->process, request->core, request->program, err) == 0 &&
        etch_recorder_create(&w->recorder, request->output, w->privacy, err) == 0) {
        core_about_read(&w->about, request->core, pid_of(w));
        core_trace_open(&w->trace, request->core, w->about.program ? w->about.program->outer_pid : 0, pid_of(w));
        status = write_all(w, err);
        etch_recorder_close(&w->recorder, status == 0);
    }
    core_trace_release(&w->trace);
    core_about_release(&w->about);
    core_process_release(&w->process);
    etch_privacy_free(w->privacy);
    free(w);
    return status;
}
