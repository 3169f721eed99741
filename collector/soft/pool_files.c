/* SPDX-License-Identifier: MIT */
/* See pool_files.h. The files are read, not mapped: their writer may be alive, and may truncate or change them at any
 * moment. */
#include "collector/soft/pool_files.h"

#include "base/array.h"
#include "base/input.h"
#include "base/log.h"
#include "binary/object.h"
#include "collector/session/process.h"
#include "proto/soft_layout.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* Beyond what the runtime makes. */
#define MAX_SLOTS (1u << 16)
#define MAX_CHUNKS (1u << 20)

/* The file is read, not mapped. If the file is truncated meanwhile, or the tmpfs is full, a read returns less and no
 * signal comes. */
static bool read_at(int fd, void *to, size_t size, uint64_t at)
{
    return at <= INT64_MAX && pread(fd, to, size, (off_t)at) == (ssize_t)size;
}

struct source {
    int fd;
    const struct etch_soft_pool *pool;
    uint64_t ring; /* start of the ring that is being taken */
};

static void write_record(struct etch_soft_pools *c, Etch__Record__BodyCase kind, void *message)
{
    if (kind == ETCH__RECORD__BODY_LOSS)
        c->sink->lost(c->sink->context, message);
    else
        c->sink->write(c->sink->context, kind, message);
}

bool etch_soft_next_mapping(const struct etch_soft_pool *pool, size_t *at, char line[600], struct etch_mapping *m)
{
    size_t size = pool->maps_size < sizeof(pool->maps) ? pool->maps_size : sizeof(pool->maps);

    while (*at < size) {
        const char *begin = pool->maps + *at, *end = memchr(begin, '\n', size - *at);
        size_t n = end ? (size_t)(end - begin) : size - *at;

        *at += n + 1;
        if (n >= 600)
            continue;
        memcpy(line, begin, n);
        line[n] = '\0';
        if (etch_mapping_parse(line, m))
            return true;
    }
    return false;
}

/* The mapping of a file's first bytes, in the same piece of the address space, has the module's start. */
const struct etch_soft_module *etch_soft_module_of(const struct etch_soft_pool *pool, const struct etch_mapping *m)
{
    uint32_t n = pool->n_modules < ETCH_SOFT_MODULES ? pool->n_modules : ETCH_SOFT_MODULES;
    struct etch_mapping other;
    uint64_t start = 0;
    char line[600];

    for (size_t at = 0; etch_soft_next_mapping(pool, &at, line, &other);)
        if (other.offset == 0 && other.start <= m->start && other.start > start && strcmp(other.path, m->path) == 0)
            start = other.start;
    for (uint32_t i = n; start && i-- > 0;)
        if (pool->modules[i].start == start && pool->modules[i].size <= sizeof(pool->modules[i].build_id))
            return &pool->modules[i];
    return NULL;
}

char *etch_soft_path_of(const struct etch_soft_stand_in *program, const struct etch_soft_module *module,
                        const struct etch_mapping *m)
{
    bool same = program->path && module && module->size && module->size == program->size &&
                memcmp(module->build_id, program->build_id, module->size) == 0;

    return same ? (char *)(uintptr_t)program->path : m->path;
}

/* Under an emulator no mapping of a file is said to be code; then each may be. */
static void write_image(struct etch_soft_pools *c, const struct etch_soft_pool *pool, uint32_t pid,
                        const struct etch_mapping *m, bool any_code)
{
    const struct etch_soft_module *module = etch_soft_module_of(pool, m);
    Etch__Image image = ETCH__IMAGE__INIT;
    struct etch_error ignored;
    struct etch_elf elf;

    if (!m->inode || (any_code && !(m->prot & PROT_EXEC)))
        return;
    image.pid = pid;
    image.start = m->start;
    image.size = m->end - m->start;
    image.file_offset = m->offset;
    image.path = etch_soft_path_of(&c->program, module, m);
    image.prot = any_code ? m->prot : 0;
    if (module) {
        image.build_id.data = (uint8_t *)(uintptr_t)module->build_id;
        image.build_id.len = module->size;
    } else if (etch_elf_read(&elf, m->path, &ignored) == 0) {
        image.build_id.data = elf.build_id;
        image.build_id.len = elf.build_id_size;
    }
    write_record(c, ETCH__RECORD__BODY_IMAGE, &image);
}

/* The same line may occur several times: each loaded module wrote all lines. */
void etch_soft_write_images(struct etch_soft_pools *c, const struct etch_soft_pool *pool, uint32_t pid)
{
    ETCH_ARRAY(uint64_t) seen = {0};
    struct etch_mapping m;
    char line[600];
    bool any_code = false;

    for (size_t at = 0; etch_soft_next_mapping(pool, &at, line, &m);)
        any_code |= m.inode && m.prot & PROT_EXEC;
    for (size_t at = 0; etch_soft_next_mapping(pool, &at, line, &m);) {
        bool again = false;

        for (size_t i = 0; i < seen.n; i++)
            again |= seen.v[i] == m.start;
        if (!again && etch_array_push(&seen, m.start))
            write_image(c, pool, pid, &m, any_code);
    }
    etch_array_free(&seen);
}

struct place {
    uint64_t seq, at;
};

typedef ETCH_ARRAY(struct place) places;

static int compare_places(const void *a, const void *b)
{
    uint64_t x = ((const struct place *)a)->seq, y = ((const struct place *)b)->seq;

    return x < y ? -1 : x > y;
}

static bool find_chunks(const struct source *from, places *found)
{
    found->n = 0;
    for (uint32_t i = 0; i < from->pool->chunks; i++) {
        struct etch_soft_chunk head;
        struct place place = {.at = from->ring + ETCH_SOFT_SLACK + (uint64_t)i * ETCH_SOFT_CHUNK};

        if (!read_at(from->fd, &head, sizeof(head), place.at))
            break;
        place.seq = head.seq;
        if (head.magic == ETCH_SOFT_CHUNK_MAGIC && head.seq < UINT64_MAX / ETCH_SOFT_CHUNK - 1 &&
            !etch_array_push(found, place))
            return false;
    }
    if (found->n)
        qsort(found->v, found->n, sizeof(found->v[0]), compare_places);
    return true;
}

static void write_chunks(struct etch_soft_pools *c, const struct source *from, const places *found)
{
    uint8_t bytes[ETCH_SOFT_CHUNK];

    for (size_t i = 0; i < found->n; i++) {
        if (i > 0 && found->v[i].seq == found->v[i - 1].seq)
            continue; /* not as the runtime writes */
        if (!read_at(from->fd, bytes, sizeof(bytes), found->v[i].at))
            continue;
        c->sink->bytes(c->sink->context, c->stream, found->v[i].seq * ETCH_SOFT_CHUNK, bytes, sizeof(bytes), false);
        c->summary->bytes += sizeof(bytes);
    }
}

bool etch_soft_ring_is_taken(const struct etch_soft_ring *head)
{
    return head->state == ETCH_SOFT_CLAIMED || head->state == ETCH_SOFT_UNLOADED;
}

/* The first thread has the name of the start, unless it took another. */
static char *thread_name(const struct etch_soft_pool *pool, const struct etch_soft_ring *head,
                         char name[sizeof(head->name) + 1])
{
    bool first = head->tid == pool->pid && head->pid == pool->pid;

    _Static_assert(sizeof(head->name) == sizeof(pool->name), "both are the kernel's");
    memcpy(name, head->name[0] || !first ? head->name : pool->name, sizeof(head->name));
    name[sizeof(head->name)] = '\0';
    for (char *c = name; *c; c++)
        if ((unsigned char)*c >= 0x80 || (unsigned char)*c < 0x20)
            *c = '?'; /* a protobuf string is UTF-8 */
    return name;
}

static void write_ring(struct etch_soft_pools *c, const struct source *from, const struct etch_soft_ring *head,
                       places *found)
{
    Etch__Stream stream = ETCH__STREAM__INIT;
    Etch__Thread thread = ETCH__THREAD__INIT;
    char name[sizeof(head->name) + 1];

    if (!etch_soft_ring_is_taken(head) || !find_chunks(from, found) || !found->n)
        return;
    stream.id = ++c->stream;
    stream.source = ETCH__SOURCE__SOURCE_SOFT;
    stream.of_case = ETCH__STREAM__OF_TID;
    stream.tid = head->tid;
    stream.pid = head->pid;
    stream.snapshot = true;
    write_record(c, ETCH__RECORD__BODY_STREAM, &stream);
    thread.pid = head->pid;
    thread.tid = head->tid;
    thread.start_tsc = head->start_tsc;
    thread.name = thread_name(from->pool, head, name);
    if (head->pid != c->known)
        write_record(c, ETCH__RECORD__BODY_THREAD, &thread);
    write_chunks(c, from, found);
    c->summary->threads++;
}

static void write_loss(struct etch_soft_pools *c, Etch__LossCause cause, uint64_t events, const char *detail)
{
    Etch__Loss loss = ETCH__LOSS__INIT;

    if (!events)
        return;
    loss.cause = cause;
    loss.events = events;
    loss.detail = (char *)(uintptr_t)detail;
    c->summary->told++;
    c->summary->why = c->summary->why ? c->summary->why : detail;
    write_record(c, ETCH__RECORD__BODY_LOSS, &loss);
}

/* One loss for each group of functions, because a text has bounds. */
static void write_dark(struct etch_soft_pools *c, const struct etch_soft_pool *pool)
{
    char text[ETCH_SOFT_DARK_TEXT];
    uint32_t at = 0, n;

    if (pool->budget.n && !c->summary->why)
        c->summary->why = "functions were not recorded: over the budget";
    while ((n = etch_soft_dark_text(&c->program, pool, &at, text)) > 0)
        write_loss(c, ETCH__LOSS_CAUSE__LOSS_BUDGET, n, text);
}

static void write_losses(struct etch_soft_pools *c, const struct etch_soft_pool *pool)
{
    write_loss(c, ETCH__LOSS_CAUSE__LOSS_NO_RING, pool->ringless, "threads or child processes found no ring free");
    write_loss(c, ETCH__LOSS_CAUSE__LOSS_RING_REUSED, pool->reused, "rings of ended threads were taken by later ones");
    write_loss(c, ETCH__LOSS_CAUSE__LOSS_SHARED_RING, pool->shared,
               "child processes that fork() did not make began in their parent's ring");
    write_loss(c, ETCH__LOSS_CAUSE__LOSS_LIMIT, pool->removed,
               "rings of ended processes were removed, since the folder has a bound (ETCH_RING_MB)");
    write_dark(c, pool);
    write_loss(c, ETCH__LOSS_CAUSE__LOSS_LIMIT, pool->maps_lost, "mappings of the program were not noted");
}

/* Returns true if the range of the file has a byte that was ever written. Holes in the file are skipped, so that they
 * cost no time. */
static bool has_data(int fd, uint64_t offset, uint64_t size)
{
    off_t at = offset <= INT64_MAX ? lseek(fd, (off_t)offset, SEEK_DATA) : -1;

    return at < 0 ? errno != ENXIO : (uint64_t)at < offset + size;
}

/* Child processes have rings here too: the images are written for each. */
static void take_rings(struct etch_soft_pools *c, struct source *from)
{
    uint64_t size = (1 + (uint64_t)from->pool->chunks) * ETCH_SOFT_CHUNK;
    ETCH_ARRAY(uint32_t) met = {0};
    places found = {0};

    for (uint32_t i = 0; i < from->pool->used && i < from->pool->slots; i++) {
        struct etch_soft_ring head;
        bool again = false;

        from->ring = sizeof(*from->pool) + i * size;
        if (!read_at(from->fd, &head, sizeof(head), from->ring)) {
            write_loss(c, ETCH__LOSS_CAUSE__LOSS_RING_GONE, from->pool->used - i,
                       "a file of rings is shorter than it says");
            break;
        }
        if (!has_data(from->fd, from->ring, size) || (c->only && head.pid != c->only))
            continue;
        for (size_t k = 0; k < met.n; k++)
            again |= met.v[k] == head.pid;
        if (!again && etch_soft_ring_is_taken(&head) && etch_array_push(&met, head.pid)) {
            c->summary->processes++;
            if (head.pid != c->known)
                etch_soft_write_images(c, from->pool, head.pid);
        }
        write_ring(c, from, &head, &found);
    }
    etch_array_free(&found);
    etch_array_free(&met);
}

const char *etch_soft_pool_read(int fd, struct etch_soft_pool *pool, bool *other_version)
{
    *other_version = false;
    if (!read_at(fd, pool, sizeof(*pool), 0) || pool->magic != ETCH_SOFT_MAGIC) {
        /* A smaller file may be of another version. */
        if (!read_at(fd, pool, offsetof(struct etch_soft_pool, chunks), 0) || pool->magic != ETCH_SOFT_MAGIC ||
            pool->version == ETCH_SOFT_VERSION)
            return "a file of rings makes no sense";
    }
    *other_version = pool->version != ETCH_SOFT_VERSION;
    if (*other_version)
        return "rings of a program built with another version of etch";
    return pool->slots > MAX_SLOTS || pool->chunks > MAX_CHUNKS ? "a file of rings is larger than a program makes one"
                                                                : NULL;
}

bool etch_soft_pool_ring(int fd, const struct etch_soft_pool *pool, uint32_t slot, struct etch_soft_ring *ring)
{
    return read_at(fd, ring, sizeof(*ring), sizeof(*pool) + slot * ((1 + (uint64_t)pool->chunks) * ETCH_SOFT_CHUNK));
}

void etch_soft_pool_take(struct etch_soft_pools *c, int fd)
{
    struct etch_soft_pool *pool = malloc(sizeof(*pool));
    struct source from = {.fd = fd, .pool = pool};
    bool other = false;
    const char *why;

    if (!pool) {
        write_loss(c, ETCH__LOSS_CAUSE__LOSS_NO_MEMORY, 1, "rings could not be read");
        return;
    }
    why = etch_soft_pool_read(fd, pool, &other);
    c->summary->others += other;
    if (why) {
        write_loss(c, ETCH__LOSS_CAUSE__LOSS_DAMAGED, 1, why);
    } else {
        take_rings(c, &from);
        write_losses(c, pool);
        c->summary->untimed |= pool->untimed != 0;
    }
    free(pool);
}

/* ---- The folder ---- */

static bool is_pool(const char *name)
{
    size_t n = strlen(name), k = strlen(ETCH_SOFT_SUFFIX);

    return n > k && strcmp(name + n - k, ETCH_SOFT_SUFFIX) == 0;
}

/* Returns true for the caller's own files. Files of the folder's owner are accepted too if nobody else can write to the
 * folder. */
static bool is_trusted(const struct stat *folder, int fd)
{
    struct stat st;

    return fstat(fd, &st) == 0 &&
           (st.st_uid == geteuid() || (st.st_uid == folder->st_uid && !(folder->st_mode & (S_IWGRP | S_IWOTH))));
}

static void hand_out(int folder, struct dirent **list, int n, etch_soft_on_file *take, void *context)
{
    struct stat st;
    unsigned foreign = 0;

    if (fstat(folder, &st) < 0)
        return;
    for (int i = 0; i < n; i++) {
        int fd = is_pool(list[i]->d_name) ? etch_input_open_at(folder, list[i]->d_name) : -1;

        if (fd >= 0 && !is_trusted(&st, fd))
            foreign++;
        else if (is_pool(list[i]->d_name))
            take(context, list[i]->d_name, fd);
        if (fd >= 0)
            close(fd);
    }
    if (foreign)
        etch_log(ETCH_LOG_SOFT, ETCH_LOG_WARN, "%u ring file%s of other users %s left out", foreign,
                 foreign == 1 ? "" : "s", foreign == 1 ? "was" : "were");
}

int etch_soft_each_file(const char *folder, etch_soft_on_file *take, void *context, struct etch_error *err)
{
    struct dirent **list = NULL;
    int n, fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0)
        return etch_error_set_errno(err, errno, "cannot open %s", folder);
    n = scandirat(fd, ".", &list, NULL, alphasort);
    hand_out(fd, list, n, take, context);
    for (int i = 0; i < n; i++)
        free(list[i]);
    free(list);
    close(fd);
    return 0;
}

static void take_file(void *context, const char *name, int fd)
{
    struct etch_soft_pools *c = context;

    (void)name;
    if (fd < 0)
        write_loss(c, ETCH__LOSS_CAUSE__LOSS_RING_GONE, 1, "a file of rings cannot be read");
    else if (etch_input_size(fd) == 0) /* left by a process without room for its rings */
        write_loss(c, ETCH__LOSS_CAUSE__LOSS_NO_SPACE, 1, "a process found no room for its rings");
    else
        etch_soft_pool_take(c, fd);
}

int etch_soft_collect(const char *folder, uint32_t known, const struct etch_sink *sink,
                      struct etch_soft_summary *summary, struct etch_error *err)
{
    struct etch_soft_pools c = {.sink = sink, .summary = summary, .known = known};

    memset(summary, 0, sizeof(*summary));
    return etch_soft_each_file(folder, take_file, &c, err);
}
