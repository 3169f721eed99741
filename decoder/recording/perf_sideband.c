/* SPDX-License-Identifier: MIT */
/* The side-band of an exported perf.data: which file each mapping is of, and the records in order of time. */
#include "decoder/recording/perf_writer.h"

#include "base/output.h"
#include "binary/find_binary.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- Images ---- */

/* Has another mapping of the process been there before at these addresses? */
static bool takes_a_place(const struct etch_recording *r, size_t i)
{
    const Etch__Image *image = r->images.v[i];

    for (size_t k = 0; k < r->images.n; k++) {
        const Etch__Image *other = r->images.v[k];

        if (k != i && other->pid == image->pid && other->start < image->start + image->size &&
            image->start < other->start + other->size && other->mapped_tsc < image->mapped_tsc)
            return true;
    }
    return false;
}

static char *extract_code(struct etch_perf_writer *w, const Etch__Image *image)
{
    const char *folder = w->options->code_folder;
    char *path = NULL;

    if (mkdir(folder, 0700) < 0 && errno != EEXIST) {
        etch_error_set_errno(w->err, errno, "cannot make the folder %s", folder);
        return NULL;
    }
    if (asprintf(&path, "%s/%u-%" PRIx64, folder, image->pid, image->start) < 0) {
        etch_perf_writer_no_memory(w);
        return NULL;
    }
    if (etch_output_write(path, image->code.data, image->code.len, w->err) < 0) {
        free(path);
        return NULL;
    }
    return path;
}

int etch_perf_sideband_paths(struct etch_perf_writer *w)
{
    struct etch_binary_places places = {.sysroot = w->options->sysroot, .beside = w->beside};

    for (size_t i = 0; i < w->recording->images.n; i++) {
        const Etch__Image *image = w->recording->images.v[i];
        char found[PATH_MAX], *full = NULL, *path;

        w->kernel = w->kernel || image->start >> 63;
        if (image->code.len && w->options->code_folder) {
            path = extract_code(w, image);
            full = path ? realpath(path, NULL) : NULL;
        } else {
            bool there = etch_find_binary(image, &places, found) >= ETCH_BINARY_UNCHECKED;

            full = there ? realpath(found, NULL) : NULL;
            path = strdup(image->path);
        }
        if (full) {
            free(path);
            path = full;
        }
        if (!path)
            return w->err->what[0] ? -1 : etch_perf_writer_no_memory(w);
        if (!etch_array_push(&w->paths, path)) {
            free(path);
            return etch_perf_writer_no_memory(w);
        }
    }
    return 0;
}

/* ---- The side-band in order ---- */

static bool add_item(struct etch_perf_writer *w, uint64_t time, enum item_kind kind, size_t index)
{
    return etch_array_push(&w->items, ((struct etch_perf_item){w->timed ? time : 0, kind, index}));
}

static uint64_t process_start(const struct etch_recording *r, uint32_t pid)
{
    for (size_t i = 0; i < r->threads.n; i++)
        if (r->threads.v[i]->pid == pid && r->threads.v[i]->tid == pid && r->threads.v[i]->parent_pid &&
            r->threads.v[i]->parent_pid != pid)
            return r->threads.v[i]->start_tsc;
    return 0;
}

/* A new process is forked at its time, so that it gets what its parent had mapped; a new thread is there from the
 * beginning. */
static bool add_threads(struct etch_perf_writer *w)
{
    const struct etch_recording *r = w->recording;

    for (size_t i = 0; i < r->threads.n; i++) {
        const Etch__Thread *t = r->threads.v[i];
        uint64_t time = etch_perf_writer_time(w, process_start(r, t->pid));

        if (t->parent_pid && t->parent_tid && t->tid != t->parent_tid && !add_item(w, time, ITEM_FORK, i))
            return false;
        if (!add_item(w, time, ITEM_COMM, i))
            return false;
        if (t->end_tsc && !add_item(w, UINT64_MAX - 1, ITEM_EXIT, i))
            return false;
    }
    return true;
}

static bool add_images(struct etch_perf_writer *w)
{
    const struct etch_recording *r = w->recording;

    for (size_t i = 0; i < r->images.n; i++) {
        const Etch__Image *image = r->images.v[i];
        uint64_t tsc = process_start(r, image->pid);

        if (!(image->prot & 4))
            continue;
        if (image->mapped_tsc > tsc && takes_a_place(r, i))
            tsc = image->mapped_tsc;
        if (!add_item(w, etch_perf_writer_time(w, tsc), ITEM_IMAGE, i))
            return false;
    }
    return true;
}

static bool add_others(struct etch_perf_writer *w)
{
    const struct etch_recording *r = w->recording;

    for (size_t i = 0; w->per_cpu && i < r->switches.n; i++) {
        const Etch__Switch *s = &r->switches.v[i];

        if (!add_item(w, s->perf_ns && w->conv.mult != 1 ? s->perf_ns : etch_perf_writer_time(w, s->tsc), ITEM_SWITCH,
                      i))
            return false;
    }
    for (size_t i = 0; i < r->losses.n; i++) {
        Etch__LossCause cause = r->losses.v[i]->cause;

        if (cause >= ETCH__LOSS_CAUSE__LOSS_AUX_TRUNCATED && cause <= ETCH__LOSS_CAUSE__LOSS_AUX_COLLISION &&
            !add_item(w, etch_perf_writer_time(w, r->losses.v[i]->tsc), ITEM_AUX, i))
            return false;
    }
    return true;
}

static int compare_items(const void *a, const void *b)
{
    const struct etch_perf_item *x = a, *y = b;

    if (x->time != y->time)
        return x->time < y->time ? -1 : 1;
    if (x->kind != y->kind)
        return x->kind < y->kind ? -1 : 1;
    return (x->index > y->index) - (x->index < y->index);
}

/* Threads end when all else is over: perf forgets a thread that has ended, and its trace may still be undecoded. */
static void end_threads_last(struct etch_perf_writer *w)
{
    uint64_t last = 0;

    for (size_t i = 0; i < w->items.n; i++)
        if (w->items.v[i].kind != ITEM_EXIT && w->items.v[i].time > last)
            last = w->items.v[i].time;
    for (size_t i = 0; i < w->recording->threads.n; i++)
        if (etch_perf_writer_time(w, w->recording->threads.v[i]->end_tsc) > last)
            last = etch_perf_writer_time(w, w->recording->threads.v[i]->end_tsc);
    for (size_t i = 0; i < w->items.n; i++)
        if (w->items.v[i].kind == ITEM_EXIT && w->timed)
            w->items.v[i].time = last + 1;
}

int etch_perf_sideband_order(struct etch_perf_writer *w)
{
    if (!add_threads(w) || !add_images(w) || !add_others(w))
        return etch_perf_writer_no_memory(w);
    end_threads_last(w);
    if (w->items.n)
        qsort(w->items.v, w->items.n, sizeof(*w->items.v), compare_items);
    return 0;
}

static int put_task(struct etch_perf_writer *w, uint32_t type, const Etch__Thread *t, uint64_t time)
{
    if (!etch_perf_writer_begin(w, type, 0))
        return etch_perf_writer_no_memory(w);
    etch_perf_writer_add_u32(w, t->pid);
    etch_perf_writer_add_u32(w, type == PERF_RECORD_FORK ? t->parent_pid : t->pid);
    etch_perf_writer_add_u32(w, t->tid);
    etch_perf_writer_add_u32(w, type == PERF_RECORD_FORK ? t->parent_tid : t->tid);
    etch_perf_writer_add_u64(w, time);
    return etch_perf_writer_end_kernel(w, t->pid, t->tid, time, UINT32_MAX, DUMMY_ID);
}

static int put_comm(struct etch_perf_writer *w, const Etch__Thread *t, uint64_t time)
{
    char name[16];

    snprintf(name, sizeof(name), "%s", t->name);
    if (!etch_perf_writer_begin(w, PERF_RECORD_COMM, PERF_RECORD_MISC_USER))
        return etch_perf_writer_no_memory(w);
    etch_perf_writer_add_u32(w, t->pid);
    etch_perf_writer_add_u32(w, t->tid);
    etch_perf_writer_add_text(w, name, 8);
    return etch_perf_writer_end_kernel(w, t->pid, t->tid, time, UINT32_MAX, DUMMY_ID);
}

static int put_image(struct etch_perf_writer *w, size_t i, uint64_t time)
{
    const Etch__Image *image = w->recording->images.v[i];
    bool has_id = image->build_id.len > 0 && image->build_id.len <= PERF_BUILD_ID_BYTES;
    uint8_t id[24] = {0};
    char path[PATH_MAX];

    snprintf(path, sizeof(path), "%s", w->paths.v[i]);
    if (!etch_perf_writer_begin(
            w, PERF_RECORD_MMAP2,
            (uint16_t)((image->pid == UINT32_MAX ? PERF_RECORD_MISC_KERNEL : PERF_RECORD_MISC_USER) |
                       (has_id ? PERF_RECORD_MISC_MMAP_BUILD_ID : 0))))
        return etch_perf_writer_no_memory(w);
    if (has_id) {
        id[0] = (uint8_t)image->build_id.len;
        memcpy(id + 4, image->build_id.data, image->build_id.len);
    }
    etch_perf_writer_add_u32(w, image->pid);
    etch_perf_writer_add_u32(w, image->pid == UINT32_MAX ? 0 : image->pid);
    etch_perf_writer_add_u64(w, image->start);
    etch_perf_writer_add_u64(w, image->size);
    etch_perf_writer_add_u64(w, image->code.len && w->options->code_folder ? 0 : image->file_offset);
    etch_perf_writer_add_bytes(w, id, sizeof(id));
    etch_perf_writer_add_u32(w, image->prot);
    etch_perf_writer_add_u32(w, 2); /* MAP_PRIVATE */
    etch_perf_writer_add_text(w, path, 8);
    return etch_perf_writer_end_kernel(w, image->pid, image->pid, time, UINT32_MAX, DUMMY_ID);
}

/* perf takes the thread that comes from the record of the one that leaves. */
static int put_switch(struct etch_perf_writer *w, size_t i, uint64_t time)
{
    const Etch__Switch *s = &w->recording->switches.v[i], *next = NULL;

    if (!s->in && i + 1 < w->recording->switches.n && w->recording->switches.v[i + 1].cpu == s->cpu &&
        w->recording->switches.v[i + 1].in)
        next = &w->recording->switches.v[i + 1];
    if (!etch_perf_writer_begin(w, PERF_RECORD_SWITCH_CPU_WIDE, s->in ? 0 : PERF_RECORD_MISC_SWITCH_OUT))
        return etch_perf_writer_no_memory(w);
    etch_perf_writer_add_u32(w, next ? next->pid : 0);
    etch_perf_writer_add_u32(w, next ? next->tid : 0);
    return etch_perf_writer_end_kernel(w, s->pid, s->tid, time, s->cpu, DUMMY_ID);
}

static int put_aux(struct etch_perf_writer *w, const Etch__Loss *loss, uint64_t time)
{
    static const uint64_t flags[] = {PERF_AUX_FLAG_TRUNCATED, PERF_AUX_FLAG_PARTIAL, PERF_AUX_FLAG_COLLISION};

    if (!etch_perf_writer_begin(w, PERF_RECORD_AUX, 0))
        return etch_perf_writer_no_memory(w);
    etch_perf_writer_add_u64(w, loss->offset);
    etch_perf_writer_add_u64(w, 0);
    etch_perf_writer_add_u64(w, flags[loss->cause - ETCH__LOSS_CAUSE__LOSS_AUX_TRUNCATED]);
    return etch_perf_writer_end_kernel(w, loss->tid, loss->tid, time, w->per_cpu ? loss->cpu : UINT32_MAX, PT_ID);
}

int etch_perf_sideband_put(struct etch_perf_writer *w, const struct etch_perf_item *item)
{
    const struct etch_recording *r = w->recording;

    switch (item->kind) {
    case ITEM_FORK:
        return put_task(w, PERF_RECORD_FORK, r->threads.v[item->index], item->time);
    case ITEM_COMM:
        return put_comm(w, r->threads.v[item->index], item->time);
    case ITEM_IMAGE:
        return put_image(w, item->index, item->time);
    case ITEM_SWITCH:
        return put_switch(w, item->index, item->time);
    case ITEM_AUX:
        return put_aux(w, r->losses.v[item->index], item->time);
    case ITEM_EXIT:
        return put_task(w, PERF_RECORD_EXIT, r->threads.v[item->index], item->time);
    }
    return 0;
}
