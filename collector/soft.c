/* SPDX-License-Identifier: MIT */
/* See soft.h. */
#include "collector/soft.h"

#include "base/array.h"
#include "collector/elf.h"
#include "collector/flow.h"
#include "collector/folder.h"
#include "collector/host.h"
#include "collector/process.h"
#include "collector/target.h"
#include "proto/soft_layout.h"

#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- Files ---- */

struct mapped {
    const uint8_t *bytes;
    size_t size;
};

static bool map_file(int folder, const char *name, struct mapped *m)
{
    int fd = openat(folder, name, O_RDONLY | O_CLOEXEC);
    struct stat st;

    m->bytes = MAP_FAILED;
    if (fd < 0)
        return false;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0) {
        m->size = (size_t)st.st_size;
        m->bytes = mmap(NULL, m->size, PROT_READ, MAP_PRIVATE, fd, 0);
    }
    close(fd);
    return m->bytes != MAP_FAILED;
}

static void unmap(struct mapped *m)
{
    munmap((void *)(uintptr_t)m->bytes, m->size);
}

static bool has_section(const struct mapped *m, const char *wanted)
{
    Elf64_Ehdr h;
    Elf64_Shdr names, s;

    if (m->size < sizeof(h))
        return false;
    memcpy(&h, m->bytes, sizeof(h));
    if (memcmp(h.e_ident, ELFMAG, SELFMAG) != 0 || h.e_ident[EI_CLASS] != ELFCLASS64 || h.e_shentsize != sizeof(s) ||
        h.e_shoff > m->size || (m->size - h.e_shoff) / sizeof(s) < h.e_shnum || h.e_shstrndx >= h.e_shnum)
        return false;
    memcpy(&names, m->bytes + h.e_shoff + h.e_shstrndx * sizeof(s), sizeof(names));
    if (names.sh_offset > m->size || names.sh_size > m->size - names.sh_offset)
        return false;
    for (unsigned i = 0; i < h.e_shnum; i++) {
        memcpy(&s, m->bytes + h.e_shoff + i * sizeof(s), sizeof(s));
        if (s.sh_name < names.sh_size && names.sh_size - s.sh_name > strlen(wanted) &&
            strcmp((const char *)m->bytes + names.sh_offset + s.sh_name, wanted) == 0)
            return true;
    }
    return false;
}

bool etch_soft_is_recorded(const char *path)
{
    struct mapped m;
    bool found;

    if (!map_file(AT_FDCWD, path, &m))
        return false;
    found = has_section(&m, ETCH_SOFT_MAP_SECTION);
    unmap(&m);
    return found;
}

/* ---- The folder ---- */

static bool is_pool(const char *name)
{
    size_t n = strlen(name), k = strlen(ETCH_SOFT_SUFFIX);

    return n > k && strcmp(name + n - k, ETCH_SOFT_SUFFIX) == 0;
}

/* ---- One pool ---- */

struct collect {
    const struct etch_soft_sink *sink;
    struct etch_soft_summary *summary;
    uint32_t known, stream;
    bool stopped;
};

static void write_record(struct collect *c, Etch__Record__BodyCase kind, void *message)
{
    if (!c->stopped && c->sink->write(c->sink->context, kind, message) < 0)
        c->stopped = true;
}

/* Under an emulator no mapping of a file is said to be code; then each may be. */
static void write_image(struct collect *c, uint32_t pid, const struct etch_mapping *m, bool any_code)
{
    Etch__Image image = ETCH__IMAGE__INIT;
    struct etch_error ignored;
    struct etch_elf elf;

    if (!m->inode || (any_code && !(m->prot & PROT_EXEC)))
        return;
    image.pid = pid;
    image.start = m->start;
    image.size = m->end - m->start;
    image.file_offset = m->offset;
    image.path = m->path;
    image.prot = any_code ? m->prot : 0;
    if (etch_elf_read(&elf, m->path, &ignored) == 0) {
        image.build_id.data = elf.build_id;
        image.build_id.len = elf.build_id_size;
    }
    write_record(c, ETCH__RECORD__BODY_IMAGE, &image);
}

/* The next line of the pool's mappings; false at the end. */
static bool next_mapping(const struct etch_soft_pool *pool, size_t *at, char line[600], struct etch_mapping *m)
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

/* The same line may be there several times: each module that came wrote them all. */
static void write_images(struct collect *c, const struct etch_soft_pool *pool)
{
    ETCH_ARRAY(uint64_t) seen = {0};
    struct etch_mapping m;
    char line[600];
    bool any_code = false;

    for (size_t at = 0; next_mapping(pool, &at, line, &m);)
        any_code |= m.inode && m.prot & PROT_EXEC;
    for (size_t at = 0; !c->stopped && next_mapping(pool, &at, line, &m);) {
        bool again = false;

        for (size_t i = 0; i < seen.n; i++)
            again |= seen.v[i] == m.start;
        if (!again && etch_array_push(&seen, m.start))
            write_image(c, pool->pid, &m, any_code);
    }
    etch_array_free(&seen);
}

struct place {
    uint64_t seq;
    const uint8_t *bytes;
};

typedef ETCH_ARRAY(struct place) places;

static int compare_places(const void *a, const void *b)
{
    uint64_t x = ((const struct place *)a)->seq, y = ((const struct place *)b)->seq;

    return x < y ? -1 : x > y;
}

static bool find_chunks(const uint8_t *ring, uint32_t chunks, places *found)
{
    found->n = 0;
    for (uint32_t i = 0; i < chunks; i++) {
        const uint8_t *at = ring + ETCH_SOFT_SLACK + (size_t)i * ETCH_SOFT_CHUNK;
        struct etch_soft_chunk head;
        struct place place = {.bytes = at};

        memcpy(&head, at, sizeof(head));
        place.seq = head.seq;
        if (head.magic == ETCH_SOFT_CHUNK_MAGIC && head.seq < UINT64_MAX / ETCH_SOFT_CHUNK - 1 &&
            !etch_array_push(found, place))
            return false;
    }
    if (found->n)
        qsort(found->v, found->n, sizeof(found->v[0]), compare_places);
    return true;
}

static void write_ring(struct collect *c, const struct etch_soft_pool *pool, const uint8_t *ring, places *found)
{
    struct etch_soft_ring head;
    Etch__Stream stream = ETCH__STREAM__INIT;
    Etch__Thread thread = ETCH__THREAD__INIT;

    memcpy(&head, ring, sizeof(head));
    if (head.state != ETCH_SOFT_CLAIMED || !find_chunks(ring, pool->chunks, found) || !found->n)
        return;
    stream.id = ++c->stream;
    stream.source = ETCH__SOURCE__SOURCE_SOFT;
    stream.of_case = ETCH__STREAM__OF_TID;
    stream.tid = head.tid;
    stream.pid = pool->pid;
    stream.snapshot = true;
    write_record(c, ETCH__RECORD__BODY_STREAM, &stream);
    thread.pid = pool->pid;
    thread.tid = head.tid;
    thread.start_tsc = head.start_tsc;
    if (pool->pid != c->known)
        write_record(c, ETCH__RECORD__BODY_THREAD, &thread);
    for (size_t i = 0; i < found->n && !c->stopped; i++) {
        if (i > 0 && found->v[i].seq == found->v[i - 1].seq)
            continue; /* not as the runtime writes */
        c->stopped |= c->sink->flow(c->sink->context, stream.id, found->v[i].seq * ETCH_SOFT_CHUNK, found->v[i].bytes,
                                    ETCH_SOFT_CHUNK) < 0;
        c->summary->bytes += ETCH_SOFT_CHUNK;
    }
    c->summary->threads++;
}

static void take_pool(struct collect *c, const struct mapped *m)
{
    const struct etch_soft_pool *pool = (const struct etch_soft_pool *)(const void *)m->bytes;
    size_t ring;
    places found = {0};

    if (m->size < sizeof(*pool) || pool->magic != ETCH_SOFT_MAGIC)
        return;
    if (pool->version != ETCH_SOFT_VERSION) {
        c->summary->others++;
        return;
    }
    ring = (size_t)(1 + (uint64_t)pool->chunks) * ETCH_SOFT_CHUNK;
    c->summary->processes++;
    c->summary->ringless += pool->ringless;
    if (pool->pid != c->known)
        write_images(c, pool);
    for (uint32_t i = 0; i < pool->used && i < pool->slots && !c->stopped; i++) {
        if ((m->size - sizeof(*pool)) / ring <= i)
            break;
        write_ring(c, pool, m->bytes + sizeof(*pool) + i * ring, &found);
    }
    etch_array_free(&found);
}

int etch_soft_collect(const char *folder, uint32_t known, const struct etch_soft_sink *sink,
                      struct etch_soft_summary *summary, struct etch_error *err)
{
    struct collect c = {.sink = sink, .summary = summary, .known = known};
    struct dirent **list = NULL;
    int n, fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    memset(summary, 0, sizeof(*summary));
    if (fd < 0)
        return etch_error_set_errno(err, errno, "cannot open %s", folder);
    n = scandir(folder, &list, NULL, alphasort);
    for (int i = 0; i < n; i++) {
        struct mapped m;

        if (is_pool(list[i]->d_name) && !c.stopped && map_file(fd, list[i]->d_name, &m)) {
            take_pool(&c, &m);
            unmap(&m);
        }
        free(list[i]);
    }
    free(list);
    close(fd);
    return c.stopped ? etch_error_set(err, "cannot write what the rings of %s hold", folder) : 0;
}

/* ---- With a run ---- */

struct soft {
    char folder[ETCH_FOLDER_SIZE];
    char rings[ETCH_FOLDER_SIZE + 16], kb[48];
    struct etch_flow_sink sink;
    pid_t pid;
};

static int open_soft(void **state, const struct etch_record_options *options, const struct etch_flow_sink *sink,
                     struct etch_error *err)
{
    struct soft *s = calloc(1, sizeof(*s));
    char path[4096];

    *state = s;
    if (!s)
        return etch_error_set_errno(err, ENOMEM, "cannot record");
    s->sink = *sink;
    if (etch_target_find(options->argv[0], path, sizeof(path), err) < 0)
        return -1;
    if (!etch_soft_is_recorded(path)) {
        etch_error_set(err, "%s has no software recorder", path);
        return etch_error_advise(err, "build it with etch cc --record, or take --source vpt");
    }
    if (etch_folder_make(s->folder, err) < 0)
        return -1;
    snprintf(s->rings, sizeof(s->rings), ETCH_SOFT_VARIABLE "=%s", s->folder);
    if (options->snapshot)
        snprintf(s->kb, sizeof(s->kb), ETCH_SOFT_KB_VARIABLE "=%u", (unsigned)(options->snapshot >> 10));
    return 0;
}

static size_t soft_environment(const void *state, char **words, size_t max)
{
    struct soft *s = (struct soft *)(uintptr_t)state;
    size_t n = 0;

    if (n < max)
        words[n++] = s->rings;
    if (n < max && s->kb[0])
        words[n++] = s->kb;
    return n;
}

static int start_soft(void *state, pid_t pid, struct etch_error *err)
{
    (void)err;
    ((struct soft *)state)->pid = pid;
    return 0;
}

static size_t poll_soft(const void *state, struct pollfd *fds, size_t max)
{
    (void)state;
    (void)fds;
    (void)max;
    return 0;
}

/* The program writes the rings itself, and they keep what was last in them. */
static void leave_soft(void *state)
{
    (void)state;
}

static int pass_record(void *context, Etch__Record__BodyCase kind, void *message)
{
    const struct etch_flow_sink *sink = context;

    sink->write(sink->context, kind, message);
    return 0;
}

static int pass_flow(void *context, uint32_t stream, uint64_t offset, const void *data, size_t size)
{
    const struct etch_flow_sink *sink = context;

    sink->bytes(sink->context, stream, offset, data, size, false);
    return 0;
}

static void stop_soft(void *state)
{
    struct soft *s = state;
    const struct etch_soft_sink sink = {&s->sink, pass_record, pass_flow};
    Etch__Loss loss = ETCH__LOSS__INIT;
    struct etch_soft_summary summary;
    struct etch_error err;

    if (etch_soft_collect(s->folder, (uint32_t)s->pid, &sink, &summary, &err) < 0)
        s->sink.note(s->sink.context, err.what);
    else if (!summary.threads)
        s->sink.note(s->sink.context, "no control flow: the program wrote no rings");
    if (!summary.ringless)
        return;
    loss.cause = ETCH__LOSS_CAUSE__LOSS_NO_SPACE;
    loss.events = summary.ringless;
    loss.detail = (char *)(uintptr_t)"threads found no ring free";
    s->sink.lost(s->sink.context, &loss);
}

static void close_soft(void *state)
{
    struct soft *s = state;

    if (s && s->folder[0])
        etch_folder_remove(s->folder);
    free(s);
}

const struct etch_flow_recorder etch_flow_soft = {
    .name = "soft",
    .source = ETCH__SOURCE__SOURCE_SOFT,
    .open = open_soft,
    .environment = soft_environment,
    .start = start_soft,
    .poll = poll_soft,
    .drain = leave_soft,
    .freeze = leave_soft,
    .stop = stop_soft,
    .close = close_soft,
};

/* ---- A bundle without a run ---- */

struct writing {
    struct etch_bundle_writer *bundle;
    struct etch_error *err;
};

static int write_to_bundle(void *context, Etch__Record__BodyCase kind, void *message)
{
    struct writing *w = context;
    Etch__Record record = ETCH__RECORD__INIT;

    record.body_case = kind;
    record.host = message; /* all members of the union are pointers */
    return etch_bundle_write(w->bundle, &record, w->err);
}

static int write_flow(void *context, uint32_t stream, uint64_t offset, const void *data, size_t size)
{
    struct writing *w = context;

    return etch_bundle_write_flow(w->bundle, stream, offset, data, size, w->err);
}

static int write_program(struct writing *w)
{
    Etch__Program program = ETCH__PROGRAM__INIT;

    program.etch_version = (char *)(uintptr_t)ETCH_VERSION;
    program.source = ETCH__SOURCE__SOURCE_SOFT;
    return write_to_bundle(w, ETCH__RECORD__BODY_PROGRAM, &program);
}

int etch_soft_bundle(const char *folder, const char *output, struct etch_soft_summary *summary, struct etch_error *err)
{
    struct writing w = {.err = err};
    const struct etch_soft_sink sink = {&w, write_to_bundle, write_flow};
    struct etch_error cause;
    int status = -1;

    if (etch_bundle_create(&w.bundle, output, err) < 0)
        return -1;
    if (etch_host_write(w.bundle, err) == 0 && write_program(&w) == 0 &&
        etch_soft_collect(folder, 0, &sink, summary, &cause) < 0)
        *err = cause;
    else if (!summary->threads && summary->others)
        etch_error_set(err, "the rings in %s are of a program built with another version of etch; that one reads them",
                       folder);
    else if (!summary->threads)
        etch_error_set(err, "%s holds no rings of a program built with etch cc --record", folder);
    else
        status = etch_bundle_finish(w.bundle, err);
    etch_bundle_writer_free(w.bundle);
    if (status < 0)
        unlink(output);
    return status;
}
