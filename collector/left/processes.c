/* SPDX-License-Identifier: MIT */
/* The processes of a folder of rings; see ring_process.h. */
#include "collector/left/kernel_log.h"
#include "collector/left/words.h"
#include "collector/ring_process.h"
#include "collector/soft/pool_files.h"

#include "base/input.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

struct reading {
    struct etch_ring_processes *processes;
    etch_kernel_kills kills;
    bool log_read;
    bool no_memory;
};

/* ---- One file ---- */

/* What the rings of one process say. */
struct seen {
    struct etch_ring_process process;
    bool alive;       /* a ring's owner exists, as far as the kernel told */
    uint64_t end_tsc; /* of exit() */
    bool ended;
};

typedef ETCH_ARRAY(struct seen) seen_list;

static void begin(struct etch_ring_process *p, const struct etch_soft_pool *pool, const char *file, uint32_t pid)
{
    const struct etch_soft_module *module = NULL;
    struct etch_left_words words;
    struct etch_mapping m;
    char line[600];

    memset(p, 0, sizeof(*p));
    strncpy(p->file, file, sizeof(p->file) - 1);
    p->pid = pid;
    p->pid_namespace = pool->pid_namespace;
    p->child = pid != pool->pid;
    p->start_unix_ns = pool->start_unix_ns;
    p->start_tsc = pool->start_tsc;
    etch_left_words_open(&words, pool);
    strncpy(p->exe, words.exe, sizeof(p->exe) - 1);
    for (size_t at = 0; p->exe[0] && !module && etch_soft_next_mapping(pool, &at, line, &m);)
        if (strcmp(m.path, p->exe) == 0)
            module = etch_soft_module_of(pool, &m);
    if (!module)
        return;
    p->build_id_size = module->size;
    memcpy(p->build_id, module->build_id, module->size);
}

static struct seen *seen_of(seen_list *list, const struct etch_soft_pool *pool, const char *file, uint32_t pid)
{
    struct seen new = {0};

    for (size_t i = 0; i < list->n; i++)
        if (list->v[i].process.pid == pid)
            return &list->v[i];
    begin(&new.process, pool, file, pid);
    return etch_array_push(list, new) ? &list->v[list->n - 1] : NULL;
}

static void take_exit(struct seen *s, uint32_t ended, uint64_t tsc)
{
    if (!(ended & ETCH_SOFT_ENDED))
        return;
    s->ended = true;
    s->end_tsc = tsc;
    s->process.end = ETCH_RING_EXITED;
    s->process.status = ended & 0xff;
}

static void take_ring(struct seen *s, const struct etch_soft_ring *ring)
{
    uint32_t word;

    memcpy(&word, ring->lock, sizeof(word));
    s->alive |= word && !(word & ETCH_SOFT_GONE);
    s->process.threads++;
    if (s->process.child && (s->process.threads == 1 || ring->start_tsc < s->process.start_tsc))
        s->process.start_tsc = ring->start_tsc;
    take_exit(s, ring->ended, ring->end_tsc);
}

/* The later word counts: a child of vfork may have died in its parent's name, and a destructor may fail after exit().
 */
static void take_death(struct seen *s, const struct etch_soft_pool *pool)
{
    const struct etch_soft_death *d = etch_left_death_of(pool, s->process.pid);

    if (!d || (s->ended && d->tsc < s->end_tsc))
        return;
    s->process.end = ETCH_RING_SIGNALLED;
    s->process.status = (uint32_t)d->signal;
}

static bool read_pool(seen_list *list, const struct etch_soft_pool *pool, const char *file, int fd)
{
    struct seen *first = seen_of(list, pool, file, pool->pid);
    struct etch_soft_ring ring;

    if (!first)
        return false;
    for (uint32_t i = 0; i < pool->used && i < pool->slots && etch_soft_pool_ring(fd, pool, i, &ring); i++) {
        struct seen *s = etch_soft_ring_is_taken(&ring) ? seen_of(list, pool, file, ring.pid) : NULL;

        if (etch_soft_ring_is_taken(&ring) && !s)
            return false;
        if (s)
            take_ring(s, &ring);
    }
    take_exit(&list->v[0], pool->ended, pool->end_tsc);
    for (size_t i = 0; i < list->n; i++) {
        struct seen *s = &list->v[i];

        take_death(s, pool);
        if (s->process.end == ETCH_RING_RUNS && !s->alive && pool->robust)
            s->process.end = ETCH_RING_SILENT;
    }
    return true;
}

#define INITIAL_PID_NAMESPACE 0xeffffffcu /* its inode: the kernel's log has the process numbers of this one */

/* A process that ended without a word may have been killed by the kernel. One that seems to run too: the kernel may
 * have taken its memory before it marked the rings. */
static void ask_kernel(struct reading *r, struct etch_ring_process *p)
{
    const char *name = strrchr(p->exe, '/');
    const struct etch_kernel_kill *kill;

    if ((p->end != ETCH_RING_SILENT && p->end != ETCH_RING_RUNS) || p->pid_namespace != INITIAL_PID_NAMESPACE || !name)
        return;
    if (!r->log_read)
        etch_kernel_log_read(&r->kills);
    r->log_read = true;
    kill = etch_kernel_log_find(&r->kills, p->pid, name + 1, p->start_unix_ns);
    if (!kill)
        return;
    p->end = ETCH_RING_NO_MEMORY;
    p->status = SIGKILL;
    p->no_group_memory = kill->group;
}

/* ---- The folder ---- */

static void take_file(void *context, const char *name, int fd)
{
    struct reading *r = context;
    struct etch_soft_pool *pool;
    seen_list list = {0};
    bool other = false, good = true;

    if (fd < 0 || etch_input_size(fd) == 0) {
        r->processes->unreadable += fd < 0;
        r->processes->empty += fd >= 0;
        return;
    }
    pool = malloc(sizeof(*pool));
    if (!pool)
        good = false;
    else if (etch_soft_pool_read(fd, pool, &other))
        *(other ? &r->processes->others : &r->processes->unreadable) += 1;
    else
        good = read_pool(&list, pool, name, fd);
    for (size_t i = 0; i < list.n && good; i++) {
        ask_kernel(r, &list.v[i].process);
        good = etch_array_push(&r->processes->list, list.v[i].process);
    }
    r->no_memory |= !good;
    etch_array_free(&list);
    free(pool);
}

static int compare(const void *a, const void *b)
{
    const struct etch_ring_process *x = a, *y = b;

    if (x->start_unix_ns != y->start_unix_ns)
        return x->start_unix_ns < y->start_unix_ns ? -1 : 1;
    return x->start_tsc < y->start_tsc ? -1 : x->start_tsc > y->start_tsc;
}

int etch_ring_processes_read(const char *folder, struct etch_ring_processes *processes, struct etch_error *err)
{
    struct reading r = {.processes = processes};
    int status;

    memset(processes, 0, sizeof(*processes));
    status = etch_soft_each_file(folder, take_file, &r, err);

    etch_array_free(&r.kills);
    if (status < 0)
        return -1;
    if (r.no_memory) {
        etch_ring_processes_release(processes);
        return etch_error_no_memory(err);
    }
    if (processes->list.n)
        qsort(processes->list.v, processes->list.n, sizeof(processes->list.v[0]), compare);
    return 0;
}

void etch_ring_processes_release(struct etch_ring_processes *processes)
{
    etch_array_free(&processes->list);
}

bool etch_ring_process_failed(const struct etch_ring_process *process)
{
    return process->end == ETCH_RING_SIGNALLED || process->end == ETCH_RING_NO_MEMORY ||
           (process->end == ETCH_RING_EXITED && process->status != 0);
}
