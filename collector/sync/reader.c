/* SPDX-License-Identifier: MIT */
/* Reading synchronisation rings; see reader.h. The program may write anything into the memory: nothing in it is
 * trusted beyond its own ring. */
#include "collector/sync/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

struct etch_sync_reader {
    int fd;
    struct etch_sync_memory *memory;
    uint64_t read[ETCH_SYNC_THREADS];
    uint64_t unplaced;
};

/* A file that grows beyond the limit is a signal, and not an error. */
static bool may_be_so_large(size_t size)
{
    struct rlimit limit;

    return getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur >= size;
}

int etch_sync_reader_new(struct etch_sync_reader **reader, struct etch_error *err)
{
    struct etch_sync_reader *r = calloc(1, sizeof(*r));
    void *map = MAP_FAILED;

    *reader = NULL;
    if (!r)
        return etch_error_no_memory(err);
    if (!may_be_so_large(sizeof(*r->memory))) {
        free(r);
        etch_error_set(err, "shared memory for synchronisation events is larger than a file may be here");
        return etch_error_advise(err, "raise the limit with ulimit -f %zu, or record with --no-sync",
                                 sizeof(*r->memory) >> 10);
    }
    r->fd = memfd_create("etch-sync", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    /* Sealed: the program can write into it, but not make it shorter under our eyes. */
    if (r->fd >= 0 && ftruncate(r->fd, sizeof(*r->memory)) == 0 &&
        fcntl(r->fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0)
        map = mmap(NULL, sizeof(*r->memory), PROT_READ | PROT_WRITE, MAP_SHARED, r->fd, 0);
    if (map == MAP_FAILED) {
        etch_error_set_errno(err, errno, "cannot make shared memory for synchronisation events");
        etch_sync_reader_free(r);
        return -1;
    }
    r->memory = map;
    r->memory->magic = ETCH_SYNC_MAGIC;
    r->memory->version = ETCH_SYNC_VERSION;
    r->memory->threads = ETCH_SYNC_THREADS;
    r->memory->events = ETCH_SYNC_EVENTS;
    *reader = r;
    return 0;
}

void etch_sync_reader_free(struct etch_sync_reader *reader)
{
    if (!reader)
        return;
    if (reader->memory)
        munmap(reader->memory, sizeof(*reader->memory));
    if (reader->fd >= 0)
        close(reader->fd);
    free(reader);
}

void etch_sync_reader_emulated(struct etch_sync_reader *reader)
{
    reader->memory->emulated = 1;
}

void etch_sync_reader_only_throws(struct etch_sync_reader *reader)
{
    reader->memory->only_throws = 1;
}

void etch_sync_reader_path(const struct etch_sync_reader *reader, char *path, size_t size)
{
    snprintf(path, size, "/proc/%d/fd/%d", (int)getpid(), reader->fd);
}

/* One event, if it is whole and still the one of this index. 1: taken, 0: not finished yet, -1: written over. */
static int copy_event(const struct etch_sync_event *from, uint64_t index, struct etch_sync_event *to)
{
    /* Acquire: pairs with the writer's release; the fields are those of this sequence number ... */
    uint64_t sequence = __atomic_load_n(&from->sequence, __ATOMIC_ACQUIRE);

    if (sequence != index + 1)
        return sequence > index + 1 ? -1 : 0;
    *to = *from;
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    /* ... if it is still there after the copy. */
    return __atomic_load_n(&from->sequence, __ATOMIC_RELAXED) == index + 1 ? 1 : -1;
}

/* The first event that may still be there. */
static uint64_t first_left(uint64_t next, uint64_t grown)
{
    uint64_t end = grown && grown < next ? grown : next;

    if (end != next && next - end > ETCH_SYNC_LARGE)
        return next - ETCH_SYNC_LARGE;
    return end > ETCH_SYNC_EVENTS ? end - ETCH_SYNC_EVENTS : 0;
}

static uint64_t drain_ring(struct etch_sync_memory *m, struct etch_sync_ring *ring, uint64_t *read,
                           const struct etch_sync_sink *sink, int last)
{
    uint64_t next = __atomic_load_n(&ring->next, __ATOMIC_ACQUIRE), lost = 0, found, first;
    uint64_t grown = __atomic_load_n(&ring->grown, __ATOMIC_ACQUIRE);
    uint32_t large = ring->large;

    if (next < *read)
        *read = next; /* nonsense from the program */
    found = next - *read;
    first = first_left(next, grown);
    if (*read < first) {
        lost = first - *read;
        *read = first;
    }
    for (; *read < next; (*read)++) {
        struct etch_sync_event event;
        int got = copy_event(etch_sync_place(m, ring, grown, large, *read), *read, &event);

        if (got == 1)
            sink->event(sink->context, ring->tid, &event);
        else if (got < 0 || last)
            lost++;
        else
            break; /* begun, and interrupted: the next round will find it */
    }
    /* The writer uses this only to guess how far etch has read. */
    __atomic_store_n(&ring->read, *read, __ATOMIC_RELAXED);
    if (lost)
        sink->lost(sink->context, ring->tid, lost);
    return found;
}

uint64_t etch_sync_reader_drain(struct etch_sync_reader *reader, const struct etch_sync_sink *sink, int last)
{
    struct etch_sync_memory *m = reader->memory;
    uint64_t unplaced = __atomic_load_n(&m->unplaced, __ATOMIC_RELAXED);
    uint32_t claimed = etch_sync_claimed(m);
    uint64_t fullest = 0;

    for (unsigned i = 0; i < claimed; i++) {
        struct etch_sync_ring *ring = &m->rings[i];
        /* Acquire: pairs with the end of a thread; all its events are there. */
        uint32_t state = __atomic_load_n(&ring->state, __ATOMIC_ACQUIRE);
        uint64_t found;

        if (state == ETCH_SYNC_FREE)
            continue;
        found = drain_ring(m, ring, &reader->read[i], sink, last || state == ETCH_SYNC_ENDED);
        fullest = found > fullest ? found : fullest;
        if (state == ETCH_SYNC_ENDED) /* release: pairs with the next owner's acquire */
            __atomic_store_n(&ring->state, ETCH_SYNC_FREE, __ATOMIC_RELEASE);
    }
    if (unplaced > reader->unplaced)
        sink->lost(sink->context, 0, unplaced - reader->unplaced);
    reader->unplaced = unplaced;
    return fullest;
}

void etch_sync_event_record(Etch__Sync *sync, uint32_t tid, const struct etch_sync_event *event)
{
    etch__sync__init(sync);
    sync->tsc = event->tsc;
    sync->across = event->across;
    sync->cpu = event->cpu;
    sync->tid = tid;
    sync->op = (Etch__SyncOp)event->op;
    sync->object = event->object;
    sync->other = event->other;
    sync->result = event->result;
    sync->caller = event->caller;
}

int etch_sync_reader_joined(const struct etch_sync_reader *reader)
{
    return reader->memory->pid != 0;
}

struct etch_sync_memory *etch_sync_reader_memory(struct etch_sync_reader *reader)
{
    return reader->memory;
}
