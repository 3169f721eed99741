/* SPDX-License-Identifier: MIT */
/* Processes, threads and mappings by time; see process_map.h. */
#include "collector/pt/process_map.h"

#include "base/array.h"
#include "collector/session/process.h"

#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

struct waiting {
    struct etch_side side; /* its text is ours */
    uint64_t tsc;
    size_t order;
};

/* A mapping, as in the bundle. */
struct image {
    uint64_t start, size, offset, tsc;
    uint32_t prot;
    size_t build_id_size;
    uint8_t build_id[64];
    char *path;
};

struct thread {
    uint32_t pid, tid, parent_pid, parent_tid;
    uint64_t start_tsc;
    char name[32];
};

struct process {
    uint32_t pid;
    ETCH_ARRAY(struct image) images;
};

struct etch_process_map {
    struct etch_sink sink;
    uint32_t own; /* whose threads another part writes; 0: none */
    ETCH_ARRAY(struct waiting) waiting;
    size_t taken;
    ETCH_ARRAY(struct process) processes;
    ETCH_ARRAY(struct thread) threads;
    uint64_t n_processes, n_threads;
    ProtobufCBinaryData vdso;
};

/* The same in every process of one kernel, and nowhere in a file: etch's own will do. */
static ProtobufCBinaryData own_vdso(void)
{
    uint64_t start = getauxval(AT_SYSINFO_EHDR);
    ProtobufCBinaryData vdso = {0, NULL};
    const struct etch_mapping *m;
    struct etch_mappings mappings;
    struct etch_error ignored;

    if (!start || etch_process_mappings(getpid(), &mappings, &ignored) < 0)
        return vdso;
    m = etch_mappings_at(&mappings, start);
    if (m)
        vdso = (ProtobufCBinaryData){m->end - start, (uint8_t *)(uintptr_t)start};
    etch_mappings_release(&mappings);
    return vdso;
}

struct etch_process_map *etch_process_map_new(const struct etch_sink *sink)
{
    struct etch_process_map *map = calloc(1, sizeof(*map));

    if (map) {
        map->sink = *sink;
        map->vdso = own_vdso();
    }
    return map;
}

static void release_images(struct process *p)
{
    for (size_t i = 0; i < p->images.n; i++)
        free(p->images.v[i].path);
    etch_array_free(&p->images);
}

void etch_process_map_free(struct etch_process_map *map)
{
    if (!map)
        return;
    for (size_t i = 0; i < map->waiting.n; i++)
        free((char *)(uintptr_t)map->waiting.v[i].side.text);
    for (size_t i = 0; i < map->processes.n; i++)
        release_images(&map->processes.v[i]);
    etch_array_free(&map->waiting);
    etch_array_free(&map->processes);
    etch_array_free(&map->threads);
    free(map);
}

/* Memory was too short for `what`. The first thread of a process has the id of the process. */
static void report_short(struct etch_process_map *map, uint32_t tid, uint64_t tsc, const char *what)
{
    Etch__Loss loss = ETCH__LOSS__INIT;

    loss.cause = ETCH__LOSS_CAUSE__LOSS_NO_MEMORY;
    loss.tid = tid;
    loss.tsc = tsc;
    loss.events = 1;
    loss.detail = (char *)(uintptr_t)what;
    map->sink.lost(map->sink.context, &loss);
}

static struct process *process_of(struct etch_process_map *map, uint32_t pid)
{
    for (size_t i = 0; i < map->processes.n; i++)
        if (map->processes.v[i].pid == pid)
            return &map->processes.v[i];
    if (!etch_array_push(&map->processes, (struct process){.pid = pid})) {
        report_short(map, pid, 0, "out of memory: mappings of a process");
        return NULL;
    }
    map->n_processes += pid != map->own;
    return &map->processes.v[map->processes.n - 1];
}

/* ---- Mappings ---- */

static void write_image(struct etch_process_map *map, uint32_t pid, const struct image *from, uint64_t unmapped_tsc)
{
    Etch__Image image = ETCH__IMAGE__INIT;

    image.pid = pid;
    image.start = from->start;
    image.size = from->size;
    image.file_offset = from->offset;
    image.path = from->path;
    image.build_id.data = (uint8_t *)(uintptr_t)from->build_id;
    image.build_id.len = from->build_id_size;
    image.prot = from->prot;
    image.mapped_tsc = from->tsc;
    image.unmapped_tsc = unmapped_tsc;
    if (strcmp(from->path, "[vdso]") == 0 && map->vdso.len == from->size)
        image.code = map->vdso;
    map->sink.write(map->sink.context, ETCH__RECORD__BODY_IMAGE, &image);
}

/* Adds a copy, path included. */
static void add_image(struct etch_process_map *map, struct process *p, struct image image)
{
    image.path = strdup(image.path);
    if (!image.path || !etch_array_push(&p->images, image)) {
        free(image.path);
        report_short(map, p->pid, image.tsc, "out of memory: a mapping");
        return;
    }
    write_image(map, p->pid, &image, 0);
}

static void add_part(struct etch_process_map *map, struct process *p, const struct image *of, uint64_t start,
                     uint64_t end, uint64_t tsc)
{
    struct image part = *of;

    if (start >= end)
        return;
    part.start = start;
    part.size = end - start;
    part.offset = of->offset + (start - of->start);
    part.tsc = tsc;
    add_image(map, p, part);
}

/* [start, end) is about to be something else: what stands out on either side stays. */
static void make_room(struct etch_process_map *map, struct process *p, uint64_t start, uint64_t end, uint64_t tsc)
{
    for (size_t i = p->images.n; i-- > 0;) {
        struct image old = p->images.v[i];

        if (old.start >= end || old.start + old.size <= start)
            continue;
        p->images.v[i] = p->images.v[--p->images.n];
        write_image(map, p->pid, &old, tsc);
        add_part(map, p, &old, old.start, start, tsc);
        add_part(map, p, &old, end, old.start + old.size, tsc);
        free(old.path);
    }
}

/* Memory without a file holds code that somebody made; its bytes are looked for when they are there. */
static bool has_file(const char *path)
{
    return (path[0] == '/' && path[1] != '/') || strcmp(path, "[vdso]") == 0;
}

static void find_build_id(struct image *image, uint32_t pid)
{
    if (!image->build_id_size && image->path[0] == '/')
        image->build_id_size = etch_process_build_id((pid_t)pid, image->path, image->build_id);
}

static void apply_mapped(struct etch_process_map *map, const struct etch_side *side, uint64_t tsc)
{
    struct process *p = process_of(map, side->pid);
    struct image image = {.start = side->start,
                          .size = side->size,
                          .offset = side->offset,
                          .tsc = tsc,
                          .prot = side->prot,
                          .build_id_size = side->build_id_size};

    if (!p)
        return;
    make_room(map, p, side->start, side->start + side->size, tsc);
    if (!has_file(side->text))
        return;
    memcpy(image.build_id, side->build_id, side->build_id_size);
    image.path = (char *)(uintptr_t)side->text;
    find_build_id(&image, side->pid);
    add_image(map, p, image);
}

static void unmap_all(struct etch_process_map *map, struct process *p, uint64_t tsc)
{
    for (size_t i = 0; i < p->images.n; i++)
        write_image(map, p->pid, &p->images.v[i], tsc);
    release_images(p);
}

static void inherit(struct etch_process_map *map, uint32_t parent, uint32_t child, uint64_t tsc)
{
    struct process *to = process_of(map, child), *from;

    if (to)
        unmap_all(map, to, tsc);    /* of an earlier process with this number */
    from = process_of(map, parent); /* may have moved them both */
    to = process_of(map, child);
    if (!from || !to)
        return;
    for (size_t i = 0; i < from->images.n; i++)
        add_part(map, to, &from->images.v[i], from->images.v[i].start, from->images.v[i].start + from->images.v[i].size,
                 tsc);
}

/* ---- Threads ---- */

static struct thread *thread_of(struct etch_process_map *map, uint32_t tid)
{
    for (size_t i = 0; i < map->threads.n; i++)
        if (map->threads.v[i].tid == tid)
            return &map->threads.v[i];
    return NULL;
}

static void write_thread(struct etch_process_map *map, const struct thread *t, uint64_t end_tsc)
{
    Etch__Thread record = ETCH__THREAD__INIT;

    if (t->pid == map->own)
        return;
    record.pid = t->pid;
    record.tid = t->tid;
    record.name = (char *)(uintptr_t)t->name;
    record.start_tsc = t->start_tsc;
    record.end_tsc = end_tsc;
    record.parent_pid = t->parent_pid;
    record.parent_tid = t->parent_tid;
    map->sink.write(map->sink.context, ETCH__RECORD__BODY_THREAD, &record);
}

static void add_thread(struct etch_process_map *map, const struct thread *thread)
{
    if (etch_array_push(&map->threads, *thread))
        map->n_threads += thread->pid != map->own;
    else
        report_short(map, thread->tid, thread->start_tsc, "out of memory: a thread");
}

static void apply_forked(struct etch_process_map *map, const struct etch_side *side, uint64_t tsc)
{
    const struct thread *parent = thread_of(map, side->ptid);
    struct thread thread = {
        .pid = side->pid, .tid = side->tid, .parent_pid = side->ppid, .parent_tid = side->ptid, .start_tsc = tsc};

    if (parent)
        memcpy(thread.name, parent->name, sizeof(thread.name));
    add_thread(map, &thread);
    if (side->pid != side->ppid)
        inherit(map, side->ppid, side->pid, tsc);
}

static void apply_named(struct etch_process_map *map, const struct etch_side *side, uint64_t tsc)
{
    struct thread *t = thread_of(map, side->tid);

    if (t)
        snprintf(t->name, sizeof(t->name), "%s", side->text);
    if (side->exec && process_of(map, side->pid))
        unmap_all(map, process_of(map, side->pid), tsc);
}

static void drop_process(struct etch_process_map *map, uint32_t pid)
{
    for (size_t i = 0; i < map->threads.n; i++)
        if (map->threads.v[i].pid == pid)
            return; /* others of its threads live */
    for (size_t i = 0; i < map->processes.n; i++)
        if (map->processes.v[i].pid == pid) {
            release_images(&map->processes.v[i]);
            map->processes.v[i] = map->processes.v[--map->processes.n];
            return;
        }
}

static void apply_exited(struct etch_process_map *map, const struct etch_side *side, uint64_t tsc)
{
    struct thread *t = thread_of(map, side->tid);

    if (!t)
        return;
    write_thread(map, t, tsc);
    *t = map->threads.v[--map->threads.n];
    drop_process(map, side->pid);
}

/* ---- By time ---- */

void etch_process_map_take(struct etch_process_map *map, const struct etch_side *side, uint64_t tsc)
{
    struct waiting w = {*side, tsc, map->taken++};

    w.side.text = side->text ? strdup(side->text) : NULL;
    if ((side->text && !w.side.text) || !etch_array_push(&map->waiting, w)) {
        free((char *)(uintptr_t)w.side.text);
        report_short(map, side->tid, tsc, "out of memory: a record of a process or a mapping");
    }
}

static int by_time(const void *a, const void *b)
{
    const struct waiting *x = a, *y = b;

    if (x->side.time != y->side.time)
        return x->side.time < y->side.time ? -1 : 1;
    return x->order < y->order ? -1 : x->order > y->order;
}

static void apply(struct etch_process_map *map, const struct waiting *w)
{
    switch (w->side.kind) {
    case ETCH_SIDE_MAPPED:
        apply_mapped(map, &w->side, w->tsc);
        break;
    case ETCH_SIDE_NAMED:
        apply_named(map, &w->side, w->tsc);
        break;
    case ETCH_SIDE_FORKED:
        apply_forked(map, &w->side, w->tsc);
        break;
    case ETCH_SIDE_EXITED:
        apply_exited(map, &w->side, w->tsc);
        break;
    default:
        break;
    }
}

void etch_process_map_apply(struct etch_process_map *map, uint64_t time)
{
    size_t done = 0;

    if (!map->waiting.n)
        return;
    qsort(map->waiting.v, map->waiting.n, sizeof(map->waiting.v[0]), by_time);
    for (; done < map->waiting.n && map->waiting.v[done].side.time <= time; done++) {
        apply(map, &map->waiting.v[done]);
        free((char *)(uintptr_t)map->waiting.v[done].side.text);
    }
    map->waiting.n -= done;
    memmove(map->waiting.v, map->waiting.v + done, map->waiting.n * sizeof(map->waiting.v[0]));
}

/* ---- The ends ---- */

void etch_process_map_leave(struct etch_process_map *map, pid_t pid)
{
    map->own = (uint32_t)pid;
}

static void seed_threads(struct etch_process_map *map, pid_t pid)
{
    struct etch_tids tids;

    if (etch_process_threads(pid, &tids) < 0)
        return;
    for (size_t i = 0; i < tids.list.n; i++) {
        struct thread thread = {.pid = (uint32_t)pid, .tid = (uint32_t)tids.list.v[i]};

        etch_thread_name(pid, tids.list.v[i], thread.name);
        if (!thread_of(map, thread.tid))
            add_thread(map, &thread);
    }
    etch_array_free(&tids.list);
}

void etch_process_map_seed(struct etch_process_map *map, pid_t pid)
{
    struct process *p = process_of(map, (uint32_t)pid);
    struct etch_mappings mappings;
    struct etch_error ignored;

    seed_threads(map, pid);
    if (!p || etch_process_mappings(pid, &mappings, &ignored) < 0)
        return;
    for (size_t i = 0; i < mappings.list.n; i++) {
        const struct etch_mapping *m = &mappings.list.v[i];
        struct image image = {.start = m->start, .size = m->end - m->start, .offset = m->offset, .prot = m->prot};

        if (!(m->prot & 4) || !has_file(m->path))
            continue;
        image.path = m->path;
        find_build_id(&image, (uint32_t)pid);
        add_image(map, p, image);
    }
    etch_mappings_release(&mappings);
}

void etch_process_map_conclude(struct etch_process_map *map)
{
    for (size_t i = 0; i < map->threads.n; i++)
        write_thread(map, &map->threads.v[i], 0);
}

void etch_process_map_write(struct etch_process_map *map)
{
    for (size_t i = 0; i < map->processes.n; i++)
        for (size_t k = 0; k < map->processes.v[i].images.n; k++)
            write_image(map, map->processes.v[i].pid, &map->processes.v[i].images.v[k], 0);
}

void etch_process_map_redirect(struct etch_process_map *map, const struct etch_sink *sink)
{
    map->sink = *sink;
}

bool etch_process_map_has(const struct etch_process_map *map, pid_t pid)
{
    for (size_t i = 0; i < map->threads.n; i++)
        if (map->threads.v[i].pid == (uint32_t)pid)
            return true;
    return false;
}

uint64_t etch_process_map_processes(const struct etch_process_map *map)
{
    return map->n_processes;
}

uint64_t etch_process_map_threads(const struct etch_process_map *map)
{
    return map->n_threads;
}

bool etch_process_map_alive(const struct etch_process_map *map)
{
    return map->threads.n > 0;
}
