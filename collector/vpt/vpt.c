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

int vpt_out_of_memory(struct etch_error *err)
{
    return etch_error_set_errno(err, ENOMEM, "cannot record");
}

/* Preloads the synchronisation library. Only a dynamically linked program can take the library. The library's path must
 * have no comma, because QEMU's option for the environment cannot quote a comma. A C++ program gets the library even if
 * no synchronisation is asked for: its exceptions are not in the control flow. */
static int open_sync(struct vpt *v, const struct etch_recorder *r, struct etch_error *err)
{
    struct etch_object *object = NULL;
    struct etch_error ignored;
    char library[4096];
    bool good = !r->interpreter[0] && etch_object_open(&object, r->program, &ignored) == 0 &&
                etch_object_is_dynamic(object) &&
                (r->options->sync || etch_object_imports(object, "__gxx_personality_v0")) &&
                etch_sync_library_find(library, sizeof(library)) && !strpbrk(library, ",: \t");

    etch_object_free(object);
    if (!good)
        return 0;
    if (etch_sync_reader_new(&v->sync, err) < 0)
        return -1;
    etch_sync_reader_emulated(v->sync);
    if (!r->options->sync)
        etch_sync_reader_only_throws(v->sync);
    etch_sync_words_make(&v->words, library, v->sync);
    return 0;
}

static int vpt_open(struct etch_recorder *r, struct etch_error *err)
{
    struct vpt *v = calloc(1, sizeof(*v));

    if (!v)
        return vpt_out_of_memory(err);
    r->state = v;
    v->folder = ETCH_FOLDER_NONE;
    for (size_t i = 0; i < VPT_ACCESSES_AT_ONCE; i++)
        v->access_list[i] = &v->accesses[i];
    if (vpt_find_parts(v, err) < 0 || etch_folder_make(&v->folder, err) < 0 || vpt_control_make(v, err) < 0 ||
        vpt_control_fill(v, r, err) < 0 || open_sync(v, r, err) < 0)
        return -1;
    return 0;
}

/* ---- Synchronisation ---- */

static void flush_syncs(struct etch_recorder *r)
{
    struct vpt *v = r->state;
    Etch__Syncs syncs = ETCH__SYNCS__INIT;
    Etch__Sync *list[VPT_SYNCS_AT_ONCE];

    for (size_t i = 0; i < v->n_syncs; i++)
        list[i] = &v->syncs[i];
    syncs.n_syncs = v->n_syncs;
    syncs.syncs = list;
    v->n_syncs = 0;
    if (!v->sync_failed)
        v->sync_failed = etch_recorder_write_syncs(r, &syncs, &v->sync_error) < 0;
}

static void on_sync(void *context, uint32_t tid, const struct etch_sync_event *from)
{
    struct etch_recorder *r = context;
    struct vpt *v = r->state;

    etch_sync_event_record(&v->syncs[v->n_syncs++], tid, from);
    if (v->n_syncs == VPT_SYNCS_AT_ONCE)
        flush_syncs(r);
}

static void on_sync_lost(void *context, uint32_t tid, uint64_t events)
{
    struct etch_recorder *r = context;
    struct vpt *v = r->state;
    Etch__Loss loss = ETCH__LOSS__INIT;

    loss.cause = tid ? ETCH__LOSS_CAUSE__LOSS_RING_WRAPPED : ETCH__LOSS_CAUSE__LOSS_NO_RING;
    loss.tid = tid;
    loss.events = events;
    loss.detail =
        (char *)(uintptr_t)(tid ? "synchronisation events came faster than they could be read" : ETCH_SYNC_UNPLACED);
    if (!v->sync_failed)
        v->sync_failed = etch_recorder_write_loss(r, &loss, &v->sync_error) < 0;
}

static int take_syncs(struct etch_recorder *r, bool last, struct etch_error *err)
{
    struct vpt *v = r->state;
    const struct etch_sync_sink sink = {r, on_sync, on_sync_lost};

    if (!v->sync)
        return 0;
    etch_sync_reader_drain(v->sync, &sink, last);
    flush_syncs(r);
    if (v->sync_failed)
        *err = v->sync_error;
    return v->sync_failed ? -1 : 0;
}

/* ---- Turns ---- */

static int find_slots(struct etch_recorder *r, struct etch_error *err)
{
    struct vpt *v = r->state;
    uint32_t threads = atomic_load(&v->control->threads);
    struct vpt_slot fresh = {0};

    while (v->slots.n < threads && v->slots.n < MAX_THREADS)
        if (!etch_array_push(&v->slots, fresh))
            return vpt_out_of_memory(err);
    for (size_t i = 0; i < v->slots.n; i++)
        if (v->slots.v[i].state == SLOT_AWAITED && vpt_slot_open(r, &v->slots.v[i], i, err) < 0)
            return -1;
    return 0;
}

static int take_all(struct etch_recorder *r, uint64_t at_least, struct etch_error *err)
{
    struct vpt *v = r->state;

    if (find_slots(r, err) < 0 || take_syncs(r, false, err) < 0)
        return -1;
    for (size_t i = 0; i < v->slots.n; i++) {
        struct vpt_slot *s = &v->slots.v[i];
        uint64_t head;

        if (s->state != SLOT_OPEN)
            continue;
        /* Ended first, then the rest: what is written before the end is seen. */
        if (atomic_load_explicit(&s->shared->ended, memory_order_acquire)) {
            if (vpt_slot_close(r, s, err) < 0)
                return -1;
            continue;
        }
        head = vpt_slot_head(s); /* before the events: code is known before it is needed */
        if (vpt_events_take(r, s, err) < 0 || vpt_slot_take_flow(r, s, head, at_least, err) < 0)
            return -1;
    }
    return 0;
}

static int vpt_drain(struct etch_recorder *r, unsigned milliseconds, struct etch_error *err)
{
    struct vpt *v = r->state;
    uint32_t wake = atomic_load(&v->control->wake);
    struct timespec turn = {.tv_nsec = (long)milliseconds * 1000000};

    if (take_all(r, WRITE_AT_LEAST, err) < 0) {
        atomic_store(&v->control->closed, 1);
        for (size_t i = 0; i < v->slots.n; i++)
            if (v->slots.v[i].state == SLOT_OPEN)
                vpt_slot_wake(&v->slots.v[i]);
        return -1;
    }
    syscall(SYS_futex, &v->control->wake, FUTEX_WAIT, wake, &turn, NULL, 0);
    return 0;
}

static int report_refused(struct etch_recorder *r, struct etch_error *err)
{
    const struct vpt *v = r->state;
    Etch__Loss loss = ETCH__LOSS__INIT;
    uint32_t refused = atomic_load(&v->control->refused), limited = atomic_load(&v->control->limited);
    char detail[100];

    loss.detail = detail;
    if (limited) {
        snprintf(detail, sizeof(detail), "%u threads not recorded: the rings reached their bound (--max-rings)",
                 limited);
        loss.events = limited;
        loss.cause = ETCH__LOSS_CAUSE__LOSS_LIMIT;
        if (etch_recorder_write_loss(r, &loss, err) < 0)
            return -1;
    }
    if (refused <= limited)
        return 0;
    snprintf(detail, sizeof(detail), "%u threads not recorded: /dev/shm is full", refused - limited);
    loss.events = refused - limited;
    loss.cause = ETCH__LOSS_CAUSE__LOSS_NO_SPACE;
    return etch_recorder_write_loss(r, &loss, err);
}

static int report_starved(struct etch_recorder *r, struct etch_error *err)
{
    const struct vpt *v = r->state;
    Etch__Loss loss = ETCH__LOSS__INIT;
    uint32_t starved = atomic_load(&v->control->starved);
    char detail[120];

    if (!starved)
        return 0;
    snprintf(detail, sizeof(detail), "%u threads were recorded no further: etch was stopped or got no CPU", starved);
    loss.events = starved;
    loss.cause = ETCH__LOSS_CAUSE__LOSS_STARVED;
    loss.detail = detail;
    return etch_recorder_write_loss(r, &loss, err);
}

static int report_unarmed(struct etch_recorder *r, struct etch_error *err)
{
    struct vpt *v = r->state;

    for (size_t i = 0; i < r->options->n_watches; i++) {
        Etch__Watch watch = ETCH__WATCH__INIT;

        if (v->armed[i] || v->watches[i].site)
            continue;
        watch.id = (uint32_t)i + 1;
        watch.name = v->watches[i].text;
        watch.skipped = true;
        watch.skip_reason = (char *)(uintptr_t)"the program never began";
        if (etch_recorder_write_watch(r, &watch, err) < 0)
            return -1;
    }
    return 0;
}

static int vpt_finish(struct etch_recorder *r, struct etch_error *err)
{
    struct vpt *v = r->state;

    if (take_all(r, 1, err) < 0)
        return -1;
    atomic_store(&v->control->closed, 1);
    for (size_t i = 0; i < v->slots.n; i++)
        if (v->slots.v[i].state == SLOT_OPEN && vpt_slot_close(r, &v->slots.v[i], err) < 0)
            return -1;
    if (v->sync && r->failure.seen)
        r->exception = etch_sync_exception(etch_sync_reader_memory(v->sync), r->failure.tid);
    return take_syncs(r, true, err) < 0 || report_refused(r, err) < 0 || report_starved(r, err) < 0 ||
                   report_unarmed(r, err) < 0
               ? -1
               : 0;
}

static void vpt_close(struct etch_recorder *r)
{
    struct vpt *v = r->state;

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
    free(v);
    r->state = NULL;
}

int etch_vpt_recover(struct etch_recorder *r, struct etch_folder *folder, struct etch_record_options *options,
                     const struct etch_vpt_known *known, struct etch_error *err)
{
    struct vpt *v = calloc(1, sizeof(*v));
    int status = -1;

    if (!v)
        return vpt_out_of_memory(err);
    v->folder = *folder;
    v->known = known;
    r->state = v;
    for (size_t i = 0; i < VPT_ACCESSES_AT_ONCE; i++)
        v->access_list[i] = &v->accesses[i];
    if (vpt_control_read(v, options) < 0)
        etch_error_set(err, "%s holds no rings of this version of etch", folder->path);
    else
        status = vpt_finish(r, err);
    v->folder = ETCH_FOLDER_NONE; /* the caller's */
    vpt_close(r);
    return status;
}

const struct etch_source etch_source_vpt = {
    .name = "vpt",
    .id = ETCH__SOURCE__SOURCE_VPT,
    .open = vpt_open,
    .launch = vpt_launch,
    .drain = vpt_drain,
    .finish = vpt_finish,
    .never_ran = vpt_never_ran,
    .close = vpt_close,
};
