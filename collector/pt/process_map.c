/* SPDX-License-Identifier: MIT */
/* Processes, threads and mappings by time; see spaces.h. */
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

/* One mapping, as the bundle has it. */
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
    struct etch_flow_sink sink;
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

struct etch_process_map *etch_process_map_new(const struct etch_flow_sink *sink)
{
    struct etch_process_map *s = calloc(1, sizeof(*s));

    if (s) {
        s->sink = *sink;
        s->vdso = own_vdso();
    }
    return s;
}

static void release_images(struct process *p)
{
    for (size_t i = 0; i < p->images.n; i++)
        free(p->images.v[i].path);
    etch_array_free(&p->images);
}

void etch_process_map_free(struct etch_process_map *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->waiting.n; i++)
        free((char *)(uintptr_t)s->waiting.v[i].side.text);
    for (size_t i = 0; i < s->processes.n; i++)
        release_images(&s->processes.v[i]);
    etch_array_free(&s->waiting);
    etch_array_free(&s->processes);
    etch_array_free(&s->threads);
    free(s);
}

static struct process *process_of(struct etch_process_map *s, uint32_t pid)
{
    for (size_t i = 0; i < s->processes.n; i++)
        if (s->processes.v[i].pid == pid)
            return &s->processes.v[i];
    if (!etch_array_push(&s->processes, (struct process){.pid = pid}))
        return NULL;
    s->n_processes += pid != s->own;
    return &s->processes.v[s->processes.n - 1];
}

/* ---- Mappings ---- */

static void write_image(struct etch_process_map *s, uint32_t pid, const struct image *from, uint64_t unmapped_tsc)
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
    if (strcmp(from->path, "[vdso]") == 0 && s->vdso.len == from->size)
        image.code = s->vdso;
    s->sink.write(s->sink.context, ETCH__RECORD__BODY_IMAGE, &image);
}

/* Adds a copy, path included. */
static void add_image(struct etch_process_map *s, struct process *p, struct image image)
{
    image.path = strdup(image.path);
    if (!image.path || !etch_array_push(&p->images, image)) {
        free(image.path);
        return;
    }
    write_image(s, p->pid, &image, 0);
}

static void add_part(struct etch_process_map *s, struct process *p, const struct image *of, uint64_t start,
                     uint64_t end, uint64_t tsc)
{
    struct image part = *of;

    if (start >= end)
        return;
    part.start = start;
    part.size = end - start;
    part.offset = of->offset + (start - of->start);
    part.tsc = tsc;
    add_image(s, p, part);
}

/* [start, end) is about to be something else: what stands out on either side stays. */
static void make_room(struct etch_process_map *s, struct process *p, uint64_t start, uint64_t end, uint64_t tsc)
{
    for (size_t i = p->images.n; i-- > 0;) {
        struct image old = p->images.v[i];

        if (old.start >= end || old.start + old.size <= start)
            continue;
        p->images.v[i] = p->images.v[--p->images.n];
        write_image(s, p->pid, &old, tsc);
        add_part(s, p, &old, old.start, start, tsc);
        add_part(s, p, &old, end, old.start + old.size, tsc);
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

static void apply_mapped(struct etch_process_map *s, const struct etch_side *side, uint64_t tsc)
{
    struct process *p = process_of(s, side->pid);
    struct image image = {.start = side->start,
                          .size = side->size,
                          .offset = side->offset,
                          .tsc = tsc,
                          .prot = side->prot,
                          .build_id_size = side->build_id_size};

    if (!p)
        return;
    make_room(s, p, side->start, side->start + side->size, tsc);
    if (!has_file(side->text))
        return;
    memcpy(image.build_id, side->build_id, side->build_id_size);
    image.path = (char *)(uintptr_t)side->text;
    find_build_id(&image, side->pid);
    add_image(s, p, image);
}

static void unmap_all(struct etch_process_map *s, struct process *p, uint64_t tsc)
{
    for (size_t i = 0; i < p->images.n; i++)
        write_image(s, p->pid, &p->images.v[i], tsc);
    release_images(p);
}

static void inherit(struct etch_process_map *s, uint32_t parent, uint32_t child, uint64_t tsc)
{
    struct process *to = process_of(s, child), *from;

    if (to)
        unmap_all(s, to, tsc);    /* of an earlier process with this number */
    from = process_of(s, parent); /* may have moved them both */
    to = process_of(s, child);
    if (!from || !to)
        return;
    for (size_t i = 0; i < from->images.n; i++)
        add_part(s, to, &from->images.v[i], from->images.v[i].start, from->images.v[i].start + from->images.v[i].size,
                 tsc);
}

/* ---- Threads ---- */

static struct thread *thread_of(struct etch_process_map *s, uint32_t tid)
{
    for (size_t i = 0; i < s->threads.n; i++)
        if (s->threads.v[i].tid == tid)
            return &s->threads.v[i];
    return NULL;
}

static void write_thread(struct etch_process_map *s, const struct thread *t, uint64_t end_tsc)
{
    Etch__Thread record = ETCH__THREAD__INIT;

    if (t->pid == s->own)
        return;
    record.pid = t->pid;
    record.tid = t->tid;
    record.name = (char *)(uintptr_t)t->name;
    record.start_tsc = t->start_tsc;
    record.end_tsc = end_tsc;
    record.parent_pid = t->parent_pid;
    record.parent_tid = t->parent_tid;
    s->sink.write(s->sink.context, ETCH__RECORD__BODY_THREAD, &record);
}

static void add_thread(struct etch_process_map *s, const struct thread *thread)
{
    if (etch_array_push(&s->threads, *thread))
        s->n_threads += thread->pid != s->own;
}

static void apply_forked(struct etch_process_map *s, const struct etch_side *side, uint64_t tsc)
{
    const struct thread *parent = thread_of(s, side->ptid);
    struct thread thread = {
        .pid = side->pid, .tid = side->tid, .parent_pid = side->ppid, .parent_tid = side->ptid, .start_tsc = tsc};

    if (parent)
        memcpy(thread.name, parent->name, sizeof(thread.name));
    add_thread(s, &thread);
    if (side->pid != side->ppid)
        inherit(s, side->ppid, side->pid, tsc);
}

static void apply_named(struct etch_process_map *s, const struct etch_side *side, uint64_t tsc)
{
    struct thread *t = thread_of(s, side->tid);

    if (t)
        snprintf(t->name, sizeof(t->name), "%s", side->text);
    if (side->exec && process_of(s, side->pid))
        unmap_all(s, process_of(s, side->pid), tsc);
}

static void drop_process(struct etch_process_map *s, uint32_t pid)
{
    for (size_t i = 0; i < s->threads.n; i++)
        if (s->threads.v[i].pid == pid)
            return; /* others of its threads live */
    for (size_t i = 0; i < s->processes.n; i++)
        if (s->processes.v[i].pid == pid) {
            release_images(&s->processes.v[i]);
            s->processes.v[i] = s->processes.v[--s->processes.n];
            return;
        }
}

static void apply_exited(struct etch_process_map *s, const struct etch_side *side, uint64_t tsc)
{
    struct thread *t = thread_of(s, side->tid);

    if (!t)
        return;
    write_thread(s, t, tsc);
    *t = s->threads.v[--s->threads.n];
    drop_process(s, side->pid);
}

/* ---- By time ---- */

void etch_process_map_take(struct etch_process_map *s, const struct etch_side *side, uint64_t tsc)
{
    struct waiting w = {*side, tsc, s->taken++};

    w.side.text = side->text ? strdup(side->text) : NULL;
    if ((side->text && !w.side.text) || !etch_array_push(&s->waiting, w))
        free((char *)(uintptr_t)w.side.text);
}

static int by_time(const void *a, const void *b)
{
    const struct waiting *x = a, *y = b;

    if (x->side.time != y->side.time)
        return x->side.time < y->side.time ? -1 : 1;
    return x->order < y->order ? -1 : x->order > y->order;
}

static void apply(struct etch_process_map *s, const struct waiting *w)
{
    switch (w->side.kind) {
    case ETCH_SIDE_MAPPED:
        apply_mapped(s, &w->side, w->tsc);
        break;
    case ETCH_SIDE_NAMED:
        apply_named(s, &w->side, w->tsc);
        break;
    case ETCH_SIDE_FORKED:
        apply_forked(s, &w->side, w->tsc);
        break;
    case ETCH_SIDE_EXITED:
        apply_exited(s, &w->side, w->tsc);
        break;
    default:
        break;
    }
}

void etch_process_map_apply(struct etch_process_map *s, uint64_t time)
{
    size_t done = 0;

    if (!s->waiting.n)
        return;
    qsort(s->waiting.v, s->waiting.n, sizeof(s->waiting.v[0]), by_time);
    for (; done < s->waiting.n && s->waiting.v[done].side.time <= time; done++) {
        apply(s, &s->waiting.v[done]);
        free((char *)(uintptr_t)s->waiting.v[done].side.text);
    }
    s->waiting.n -= done;
    memmove(s->waiting.v, s->waiting.v + done, s->waiting.n * sizeof(s->waiting.v[0]));
}

/* ---- The ends ---- */

void etch_process_map_leave(struct etch_process_map *s, pid_t pid)
{
    s->own = (uint32_t)pid;
}

static void seed_threads(struct etch_process_map *s, pid_t pid)
{
    struct etch_tids tids;

    if (etch_process_threads(pid, &tids) < 0)
        return;
    for (size_t i = 0; i < tids.list.n; i++) {
        struct thread thread = {.pid = (uint32_t)pid, .tid = (uint32_t)tids.list.v[i]};

        etch_thread_name(pid, tids.list.v[i], thread.name);
        if (!thread_of(s, thread.tid))
            add_thread(s, &thread);
    }
    etch_array_free(&tids.list);
}

void etch_process_map_seed(struct etch_process_map *s, pid_t pid)
{
    struct process *p = process_of(s, (uint32_t)pid);
    struct etch_mappings mappings;
    struct etch_error ignored;

    seed_threads(s, pid);
    if (!p || etch_process_mappings(pid, &mappings, &ignored) < 0)
        return;
    for (size_t i = 0; i < mappings.list.n; i++) {
        const struct etch_mapping *m = &mappings.list.v[i];
        struct image image = {.start = m->start, .size = m->end - m->start, .offset = m->offset, .prot = m->prot};

        if (!(m->prot & 4) || !has_file(m->path))
            continue;
        image.path = m->path;
        find_build_id(&image, (uint32_t)pid);
        add_image(s, p, image);
    }
    etch_mappings_release(&mappings);
}

void etch_process_map_conclude(struct etch_process_map *s)
{
    for (size_t i = 0; i < s->threads.n; i++)
        write_thread(s, &s->threads.v[i], 0);
}

uint64_t etch_process_map_processes(const struct etch_process_map *s)
{
    return s->n_processes;
}

uint64_t etch_process_map_threads(const struct etch_process_map *s)
{
    return s->n_threads;
}

bool etch_process_map_alive(const struct etch_process_map *s)
{
    return s->threads.n > 0;
}
