/* SPDX-License-Identifier: MIT */
/* The source `vpt`, etch's half: makes the shared memory, starts QEMU with the plugin, empties the rings while the
 * program runs, and takes the rest when the program is gone. The plugin is the other half. */
#include "collector/vpt/vpt.h"
#include "binary/object.h"
#include "collector/sync/exception.h"

#include <errno.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define WRITE_AT_LEAST (128u << 10) /* smaller pieces wait, to avoid tiny records */
#define MAX_THREADS 1000000u

/* Preloads the synchronisation library. Only a dynamically linked program can take the library. The library's path must
 * have no comma, because QEMU's option for the environment cannot quote a comma. A C++ program gets the library even if
 * no synchronisation is asked for: its exceptions are not in the control flow. */
static int open_sync(struct vpt *v, struct etch_error *err)
{
    struct etch_object *object = NULL;
    struct etch_error ignored;
    char library[4096];
    bool good = !v->interpreter[0] && etch_object_open(&object, v->program, &ignored) == 0 &&
                etch_object_is_dynamic(object) &&
                (v->options->sync || etch_object_imports(object, "__gxx_personality_v0")) &&
                etch_sync_library_find(library, sizeof(library)) && !strpbrk(library, ",: \t");

    etch_object_free(object);
    if (!good)
        return 0;
    if (etch_sync_reader_new(&v->sync, err) < 0)
        return -1;
    etch_sync_reader_emulated(v->sync);
    if (!v->options->sync)
        etch_sync_reader_only_throws(v->sync);
    etch_sync_words_make(&v->words, library, v->sync);
    return 0;
}

static struct vpt *make(const struct etch_record_options *options, const struct etch_sink *sink)
{
    struct vpt *v = calloc(1, sizeof(*v));

    if (!v)
        return NULL;
    v->options = options;
    v->sink = *sink;
    v->folder = ETCH_FOLDER_NONE;
    v->syncs.sink = &v->sink;
    return v;
}

static int etch_vpt_open(void **state, const struct etch_record_options *options, const struct etch_sink *sink,
                         struct etch_error *err)
{
    struct vpt *v = make(options, sink);

    *state = v;
    if (!v)
        return etch_error_no_memory(err);
    return etch_vpt_find_program(v, err) < 0 || etch_vpt_find_parts(v, err) < 0 ||
                   etch_folder_make(&v->folder, err) < 0 || etch_vpt_control_make(v, err) < 0 ||
                   etch_vpt_control_fill(v, err) < 0 || open_sync(v, err) < 0
               ? -1
               : 0;
}

static int etch_vpt_start(void *state, pid_t pid, struct etch_error *err)
{
    struct vpt *v = state;

    (void)err;
    v->pid = pid;
    return 0;
}

/* ---- Turns ---- */

static void etch_vpt_let_go(void *state)
{
    struct vpt *v = state;

    atomic_store(&v->control->closed, 1);
    for (size_t i = 0; i < v->slots.n; i++)
        if (v->slots.v[i].state == SLOT_OPEN)
            etch_vpt_slot_wake(&v->slots.v[i]);
}

/* A thread that etch has no memory for would wait for etch. */
static void find_slots(struct vpt *v)
{
    uint32_t threads = atomic_load(&v->control->threads);
    struct etch_vpt_slot fresh = {0};

    while (v->slots.n < threads && v->slots.n < MAX_THREADS)
        if (!etch_array_push(&v->slots, fresh)) {
            v->no_memory++;
            etch_vpt_let_go(v);
            break;
        }
    for (size_t i = 0; i < v->slots.n; i++)
        if (v->slots.v[i].state == SLOT_AWAITED)
            etch_vpt_slot_open(v, &v->slots.v[i], i);
}

static void take_all(struct vpt *v, uint64_t at_least)
{
    find_slots(v);
    if (v->sync)
        etch_sync_batch_take(&v->syncs, v->sync, false);
    for (size_t i = 0; i < v->slots.n; i++) {
        struct etch_vpt_slot *s = &v->slots.v[i];
        uint64_t head;

        if (s->state != SLOT_OPEN)
            continue;
        /* Ended first, then the rest: what is written before the end is seen. */
        if (atomic_load_explicit(&s->shared->ended, memory_order_acquire)) {
            etch_vpt_slot_close(v, s);
            continue;
        }
        head = etch_vpt_slot_head(s); /* before the events: code is known before it is needed */
        etch_vpt_events_take(v, s);
        etch_vpt_slot_take_flow(v, s, head, at_least);
    }
}

static void etch_vpt_drain(void *state)
{
    struct vpt *v = state;

    v->wake = atomic_load(&v->control->wake); /* before the rings: what comes meanwhile ends the wait */
    take_all(v, WRITE_AT_LEAST);
}

static void etch_vpt_wait(void *state, unsigned milliseconds)
{
    struct vpt *v = state;
    struct timespec turn = {.tv_nsec = (long)milliseconds * 1000000};

    syscall(SYS_futex, &v->control->wake, FUTEX_WAIT, v->wake, &turn, NULL, 0);
}

/* ---- The end ---- */

static void report_refused(const struct vpt *v)
{
    uint32_t limited = atomic_load(&v->control->limited), refused = atomic_load(&v->control->refused);
    char detail[100];

    snprintf(detail, sizeof(detail), "%u threads not recorded: the rings reached their bound (--max-rings)", limited);
    etch_sink_lose(&v->sink, ETCH__LOSS_CAUSE__LOSS_LIMIT, 0, limited, detail);
    if (refused <= limited)
        return;
    snprintf(detail, sizeof(detail), "%u threads not recorded: /dev/shm is full", refused - limited);
    etch_sink_lose(&v->sink, ETCH__LOSS_CAUSE__LOSS_NO_SPACE, 0, refused - limited, detail);
}

static void report_starved(const struct vpt *v)
{
    uint32_t starved = atomic_load(&v->control->starved);
    char detail[120];

    snprintf(detail, sizeof(detail), "%u threads were recorded no further: etch was stopped or got no CPU", starved);
    etch_sink_lose(&v->sink, ETCH__LOSS_CAUSE__LOSS_STARVED, 0, starved, detail);
}

static void report_unarmed(struct vpt *v)
{
    for (size_t i = 0; i < v->options->n_watches; i++) {
        Etch__Watch watch = ETCH__WATCH__INIT;

        if (v->armed[i] || v->watches[i].site)
            continue;
        watch.id = (uint32_t)i + 1;
        watch.name = v->watches[i].text;
        watch.skipped = true;
        watch.skip_reason = (char *)(uintptr_t)"the program never began";
        v->sink.write(v->sink.context, ETCH__RECORD__BODY_WATCH, &watch);
    }
}

static void etch_vpt_stop(void *state)
{
    struct vpt *v = state;

    take_all(v, 1);
    atomic_store(&v->control->closed, 1);
    for (size_t i = 0; i < v->slots.n; i++)
        if (v->slots.v[i].state == SLOT_OPEN)
            etch_vpt_slot_close(v, &v->slots.v[i]);
    if (v->sync && v->fault.seen)
        v->exception = etch_sync_exception(etch_sync_reader_memory(v->sync), v->fault.tid);
    if (v->sync)
        etch_sync_batch_take(&v->syncs, v->sync, true);
    report_refused(v);
    report_starved(v);
    etch_sink_lose(&v->sink, ETCH__LOSS_CAUSE__LOSS_NO_MEMORY, 0, v->no_memory,
                   "etch had no memory for threads or processes");
    report_unarmed(v);
}

static void etch_vpt_close(void *state)
{
    struct vpt *v = state;

    if (!v)
        return;
    for (size_t i = 0; i < v->slots.n; i++)
        etch_guarded_unmap(v->slots.v[i].mapping);
    etch_guarded_unmap(v->control_mapping);
    etch_folder_remove(&v->folder);
    etch_array_free(&v->slots);
    etch_array_free(&v->children);
    etch_array_free(&v->processes);
    etch_array_free(&v->subjects);
    etch_sync_reader_free(v->sync);
    if (v->exception)
        etch__exception__free_unpacked(v->exception, NULL);
    free(v);
}

int etch_vpt_recover(const struct etch_folder *folder, const struct etch_vpt_known *known, const struct etch_sink *sink,
                     struct etch_error *err)
{
    struct etch_record_options *options = calloc(1, sizeof(*options));
    struct vpt *v = options ? make(options, sink) : NULL;
    int status = 0;

    if (!v) {
        free(options);
        return etch_error_no_memory(err);
    }
    v->folder = *folder;
    v->known = known;
    v->pid = known->pid;
    memcpy(v->program, known->program, sizeof(v->program));
    if (etch_vpt_control_read(v, options) < 0)
        status = etch_error_set(err, "%s holds no rings of this version of etch", folder->path);
    else
        etch_vpt_stop(v);
    v->folder = ETCH_FOLDER_NONE; /* the caller's */
    etch_vpt_close(v);
    free(options);
    return status;
}

static const struct etch_source_runner runner = {
    .launch = etch_vpt_launch,
    .wait = etch_vpt_wait,
    .let_go = etch_vpt_let_go,
    .never_ran = etch_vpt_never_ran,
    .program = etch_vpt_program,
    .failure = etch_vpt_failure,
};

const struct etch_source etch_source_vpt = {
    .name = "vpt",
    .id = ETCH__SOURCE__SOURCE_VPT,
    .tells_mappings = true,
    .runner = &runner,
    .open = etch_vpt_open,
    .start = etch_vpt_start,
    .drain = etch_vpt_drain,
    .stop = etch_vpt_stop,
    .close = etch_vpt_close,
};
