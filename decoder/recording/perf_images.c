/* SPDX-License-Identifier: MIT */
/* The mappings of a perf.data as images with the times at which they came and went. */
#include "decoder/recording/perf_loader.h"
#include "decoder/recording/recording_fill.h"

#include <linux/perf_event.h>

static struct etch_perf_process *process_of(struct etch_perf_loader *l, uint32_t pid)
{
    if (l->last_process < l->processes.n && l->processes.v[l->last_process].pid == pid)
        return &l->processes.v[l->last_process];
    for (l->last_process = 0; l->last_process < l->processes.n; l->last_process++)
        if (l->processes.v[l->last_process].pid == pid)
            return &l->processes.v[l->last_process];
    return etch_array_push(&l->processes, (struct etch_perf_process){.pid = pid}) ? &l->processes.v[l->last_process]
                                                                                  : NULL;
}

static bool add_image(struct etch_perf_loader *l, const Etch__Image *like, uint64_t start, uint64_t size, uint64_t tsc)
{
    struct etch_perf_process *process = process_of(l, like->pid);
    Etch__Image *image;

    /* A file made to hurt could fork its mappings without end. */
    if (!process || l->recording->images.n >= ETCH_PERF_IMAGES_MAX)
        return false;
    image = etch_recording_add_image(l->recording);
    if (!image || !etch_array_push(&process->live, l->recording->images.n - 1))
        return false;
    image->pid = like->pid;
    image->start = start;
    image->size = size;
    image->file_offset = like->file_offset + (start - like->start);
    image->prot = like->prot;
    image->mapped_tsc = tsc;
    return etch_message_set_string(&image->path, like->path) &&
           etch_message_set_bytes(&image->build_id, like->build_id.data, like->build_id.len);
}

/* Takes the process's k-th live image away. Without a time it cannot be told from what replaced it: it goes altogether.
 */
static void unmap(struct etch_perf_loader *l, struct etch_perf_process *process, size_t k, uint64_t tsc)
{
    Etch__Image *image = l->recording->images.v[process->live.v[k]];

    if (tsc)
        image->unmapped_tsc = tsc;
    else
        image->size = 0;
    process->live.v[k] = process->live.v[--process->live.n];
}

/* [start, start + size) of a process is about to be something else: what stands out on either side stays. */
static bool make_room(struct etch_perf_loader *l, uint32_t pid, uint64_t start, uint64_t size, uint64_t tsc)
{
    struct etch_perf_process *process = process_of(l, pid);

    if (!process)
        return false;
    for (size_t k = process->live.n; k-- > 0;) {
        Etch__Image old = *l->recording->images.v[process->live.v[k]];

        if (old.start >= start + size || start >= old.start + old.size)
            continue;
        unmap(l, process, k, tsc);
        if (old.start < start && !add_image(l, &old, old.start, start - old.start, tsc))
            return false;
        if (start + size < old.start + old.size &&
            !add_image(l, &old, start + size, old.start + old.size - (start + size), tsc))
            return false;
    }
    return true;
}

static bool build_id_of(const struct etch_perf_loader *l, const char *path, ProtobufCBinaryData *id)
{
    for (size_t i = 0; i < l->file.build_ids.n; i++)
        if (strcmp(l->file.build_ids.v[i].path, path) == 0)
            return etch_message_set_bytes(id, l->file.build_ids.v[i].id, l->file.build_ids.v[i].size);
    return true;
}

bool etch_perf_images_map(struct etch_perf_loader *l, const struct etch_perf_event *e)
{
    uint64_t tsc = etch_perf_loader_tsc(l, e->time);
    Etch__Image image = ETCH__IMAGE__INIT;
    bool ok;

    if (e->mmap.size == 0)
        return true;
    image.pid = e->mmap.pid;
    image.start = e->mmap.start;
    image.file_offset = e->mmap.offset;
    image.prot = e->mmap.prot;
    image.path = e->name;
    ok = make_room(l, image.pid, image.start, e->mmap.size, tsc) &&
         (e->mmap.build_id_size ? etch_message_set_bytes(&image.build_id, e->build_id, e->mmap.build_id_size)
                                : build_id_of(l, e->name, &image.build_id)) &&
         add_image(l, &image, image.start, e->mmap.size, tsc);
    free(image.build_id.data);
    return ok;
}

/* A new program, or a new process of an old number: of the old one nothing stays mapped. */
bool etch_perf_images_unmap_all(struct etch_perf_loader *l, uint32_t pid, uint64_t tsc)
{
    struct etch_perf_process *process = process_of(l, pid);

    while (process && process->live.n > 0)
        unmap(l, process, process->live.n - 1, tsc);
    return process != NULL;
}

bool etch_perf_images_inherit(struct etch_perf_loader *l, uint32_t parent, uint32_t child, uint64_t tsc)
{
    size_t n = etch_perf_images_unmap_all(l, child, tsc) && process_of(l, parent) ? process_of(l, parent)->live.n : 0;

    for (size_t k = 0; k < n; k++) {
        Etch__Image image = *l->recording->images.v[process_of(l, parent)->live.v[k]];

        image.pid = child;
        if (!add_image(l, &image, image.start, image.size, tsc))
            return false;
    }
    return true;
}

/* Images that were taken away without a time. */
void etch_perf_images_drop_empty(struct etch_recording *recording)
{
    size_t n = 0;

    for (size_t i = 0; i < recording->images.n; i++) {
        if (recording->images.v[i]->size)
            recording->images.v[n++] = recording->images.v[i];
        else
            etch__image__free_unpacked(recording->images.v[i], NULL);
    }
    recording->images.n = n;
}
