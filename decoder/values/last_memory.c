/* SPDX-License-Identifier: MIT */
/* The memory of a process at its end; see last_memory.h. */
#include "decoder/last_memory.h"

#include "base/array.h"
#include "base/input.h"
#include "binary/core.h"
#include "binary/object.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define FILES_MAX 256u
#define FILE_BYTES_MAX ((off_t)1 << 32)
#define FIRST_REACH (8u << 20)    /* below the stack pointer of the first thread: still its stack */
#define THREAD_REACH (128u << 10) /* the same of another thread */

enum { SP = 7 };

/* A file that was mapped. */
struct mapped_file {
    const uint8_t *bytes;
    size_t size;
};

/* A loaded segment of such a file. */
struct region {
    uint64_t start, end, file_offset, file_size;
    uint32_t file; /* index */
    bool write, program;
};

struct etch_last_memory {
    const struct etch_recording *recording;
    const Etch__ThreadState *state;
    struct etch_core *core;
    const struct etch_core_thread *core_thread;
    ETCH_ARRAY(struct mapped_file) files;
    ETCH_ARRAY(struct region) regions;
    uint64_t stack_low, stack_high;
    bool threaded;
    const struct region *last; /* the region that was asked for last */
};

/* ---- Files ---- */

static bool is_same_build(const ProtobufCBinaryData *id, const struct etch_object *object)
{
    uint8_t own[ETCH_BUILD_ID_MAX];
    size_t size = etch_object_build_id(object, own);

    return size && size == id->len && memcmp(own, id->data, size) == 0;
}

static bool map_file(struct mapped_file *file, const char *path)
{
    int fd = etch_input_open(path);
    off_t size = fd >= 0 ? etch_input_size(fd) : -1;
    void *bytes = MAP_FAILED;

    if (size > 0 && size < FILE_BYTES_MAX)
        bytes = mmap(NULL, (size_t)size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (fd >= 0)
        close(fd);
    if (bytes == MAP_FAILED)
        return false;
    *file = (struct mapped_file){bytes, (size_t)size};
    return true;
}

static bool is_program(const struct etch_recording *r, const Etch__Image *image)
{
    const ProtobufCBinaryData *id = r->program ? &r->program->build_id : NULL;

    return id && id->len && id->len == image->build_id.len && memcmp(id->data, image->build_id.data, id->len) == 0;
}

static void add_region(struct etch_last_memory *m, const struct etch_segment *s, uint64_t bias, bool program)
{
    struct region region = {.start = s->address + bias,
                            .end = s->address + bias + s->memory_size,
                            .file_offset = s->file_offset,
                            .file_size = s->file_size,
                            .file = (uint32_t)(m->files.n - 1),
                            .write = s->prot & 2,
                            .program = program};

    if (region.end > region.start)
        (void)etch_array_push(&m->regions, region); /* a region less is memory less */
}

static void add_file(struct etch_last_memory *m, const Etch__Image *image)
{
    struct etch_object *object = NULL;
    struct mapped_file file;
    struct etch_segment segment;
    struct etch_error ignored;
    uint64_t bias;

    if (etch_object_open(&object, image->path, &ignored) < 0)
        return;
    if (is_same_build(&image->build_id, object) && map_file(&file, image->path)) {
        if (etch_array_push(&m->files, file)) {
            bias = etch_object_bias(object, image->start, image->file_offset);
            for (size_t at = 0; etch_object_next_segment(object, &at, &segment);)
                add_region(m, &segment, bias, is_program(m->recording, image));
        } else
            munmap((void *)(uintptr_t)file.bytes, file.size);
    }
    etch_object_free(object);
}

/* A file that came or went during the run may have left its addresses to another. */
static void add_files(struct etch_last_memory *m, uint32_t pid)
{
    const struct etch_recording *r = m->recording;

    for (size_t i = 0; i < r->images.n && m->files.n < FILES_MAX; i++) {
        const Etch__Image *image = r->images.v[i];
        bool again = false;

        for (size_t k = 0; k < i; k++)
            again |= (r->images.v[k]->prot & 4) && strcmp(r->images.v[k]->path, image->path) == 0;
        if (!again && (image->prot & 4) && image->path[0] == '/' && !image->unmapped_tsc && (!pid || image->pid == pid))
            add_file(m, image);
    }
}

static const struct region *region_at(struct etch_last_memory *m, uint64_t address)
{
    if (m->last && m->last->start <= address && address < m->last->end)
        return m->last;
    for (size_t i = 0; i < m->regions.n; i++)
        if (m->regions.v[i].start <= address && address < m->regions.v[i].end)
            return m->last = &m->regions.v[i];
    return NULL;
}

/* ---- The core ---- */

static const struct etch_core_thread *core_thread_of(const struct etch_core *core, const Etch__ThreadState *state)
{
    const struct etch_core_contents *c = etch_core_contents(core);

    for (size_t i = 0; i < c->threads.n; i++)
        if (c->threads.v[i].tid == state->tid)
            return &c->threads.v[i];
    return NULL;
}

/* The failure record is of the same moment: the instruction and the stack are the same. */
static int open_core(struct etch_last_memory *m, const char *path, struct etch_error *err)
{
    if (etch_core_open(&m->core, path, err) < 0)
        return -1;
    m->core_thread = core_thread_of(m->core, m->state);
    if (!m->core_thread || m->core_thread->registers[SP] != m->state->registers[SP])
        return etch_error_set(err, "%s: the core is of another moment than the recording", path);
    m->threaded |= etch_core_contents(m->core)->threads.n > 1;
    return 0;
}

static enum etch_memory_kind kind_in_core(struct etch_last_memory *m, uint64_t address)
{
    const struct etch_core_segment *segment = etch_core_segment_at(m->core, address);
    const struct region *region = region_at(m, address);

    if (!segment)
        return ETCH_MEMORY_SHARED;
    if (!(segment->prot & 2))
        return region || etch_core_file_at(m->core, address) ? ETCH_MEMORY_CONSTANT : ETCH_MEMORY_SHARED;
    if (segment->start <= m->state->registers[SP] && m->state->registers[SP] - segment->start < segment->size)
        return ETCH_MEMORY_STACK;
    if (m->threaded)
        return ETCH_MEMORY_SHARED;
    if (region && region->write)
        return region->program ? ETCH_MEMORY_STATIC : ETCH_MEMORY_PLAIN;
    /* Another file that can be written to may be mapped by other processes too. */
    return etch_core_file_at(m->core, address) ? ETCH_MEMORY_SHARED : ETCH_MEMORY_PLAIN;
}

/* ---- The stack of the failure record ---- */

static void find_stack(struct etch_last_memory *m, uint32_t pid)
{
    const Etch__Failure *f = m->recording->failure;
    uint64_t sp = m->state->registers[SP], reach = m->state->tid == pid ? FIRST_REACH : THREAD_REACH;

    m->stack_low = sp > reach ? sp - reach : 0;
    m->stack_high = m->state->stack_start + m->state->stack.len;
    if (m->stack_high < sp)
        m->stack_high = sp;
    for (size_t i = 0; f && i < f->n_threads; i++) { /* below may be the stack of another */
        const Etch__ThreadState *other = f->threads[i];

        if (other != m->state && other->stack_start < sp && other->stack_start + other->stack.len > m->stack_low)
            m->stack_low = other->stack_start + other->stack.len;
    }
}

/* Words that the policy hid are 0: a 0 is not known. */
static size_t read_stack(const struct etch_last_memory *m, uint64_t address, uint8_t *to, size_t size)
{
    const Etch__ThreadState *s = m->state;
    size_t n = 0;

    if (address < s->stack_start || address - s->stack_start >= s->stack.len)
        return 0;
    for (; n < size && address + n - s->stack_start < s->stack.len; n++) {
        uint64_t at = address + n, word = at & ~(uint64_t)7, value = 0;

        if (s->stack_masked) {
            if (word < s->stack_start || word - s->stack_start + 8 > s->stack.len)
                return n;
            memcpy(&value, s->stack.data + (word - s->stack_start), 8);
            if (!value)
                return n;
        }
        to[n] = s->stack.data[at - s->stack_start];
    }
    return n;
}

static enum etch_memory_kind kind_without_core(struct etch_last_memory *m, uint64_t address)
{
    const struct region *region = region_at(m, address);

    if (region && !region->write)
        return ETCH_MEMORY_CONSTANT;
    if (address >= m->stack_low && address < m->stack_high)
        return ETCH_MEMORY_STACK;
    if (m->threaded || !region)
        return ETCH_MEMORY_SHARED; /* nothing says that it is not another process's too */
    return region->program ? ETCH_MEMORY_STATIC : ETCH_MEMORY_PLAIN;
}

/* ---- The door ---- */

static bool has_threads(const struct etch_recording *r, uint32_t pid)
{
    size_t n = 0;

    for (size_t i = 0; i < r->threads.n; i++)
        n += !pid || r->threads.v[i]->pid == pid;
    return n > 1 || (r->failure && r->failure->n_threads > 1);
}

int etch_last_memory_open(struct etch_last_memory **memory, const struct etch_recording *recording,
                          const Etch__ThreadState *state, const char *core, struct etch_error *err)
{
    struct etch_last_memory *m = calloc(1, sizeof(*m));
    uint32_t pid = recording->failure ? recording->failure->pid : 0;

    *memory = NULL;
    if (!m)
        return etch_error_no_memory(err);
    if (state->n_registers < ETCH_BACKWARD_REGISTERS) {
        free(m);
        return etch_error_set(err, "the registers of the failing thread are not known");
    }
    m->recording = recording;
    m->state = state;
    m->threaded = has_threads(recording, pid);
    if (core && open_core(m, core, err) < 0) {
        etch_last_memory_free(m);
        return -1;
    }
    find_stack(m, pid);
    add_files(m, pid);
    *memory = m;
    return 0;
}

void etch_last_memory_free(struct etch_last_memory *memory)
{
    if (!memory)
        return;
    for (size_t i = 0; i < memory->files.n; i++)
        munmap((void *)(uintptr_t)memory->files.v[i].bytes, memory->files.v[i].size);
    etch_array_free(&memory->files);
    etch_array_free(&memory->regions);
    etch_core_free(memory->core);
    free(memory);
}

static size_t read_file(struct etch_last_memory *m, uint64_t address, void *to, size_t size)
{
    const struct region *r = region_at(m, address);
    const struct mapped_file *f = r ? &m->files.v[r->file] : NULL;
    uint64_t skip = r ? address - r->start : 0, offset;

    if (!r || r->write || skip >= r->file_size)
        return 0;
    size = size < r->file_size - skip ? size : (size_t)(r->file_size - skip);
    offset = r->file_offset + skip;
    if (offset < skip || offset >= f->size)
        return 0;
    size = size < f->size - offset ? size : (size_t)(f->size - offset);
    memcpy(to, f->bytes + offset, size);
    return size;
}

size_t etch_last_memory_read(void *memory, uint64_t address, void *to, size_t size)
{
    struct etch_last_memory *m = memory;
    size_t n = m->core ? etch_core_read(m->core, address, to, size) : read_stack(m, address, to, size);

    return n ? n : read_file(m, address, to, size);
}

enum etch_memory_kind etch_last_memory_kind(void *memory, uint64_t address)
{
    struct etch_last_memory *m = memory;

    return m->core ? kind_in_core(m, address) : kind_without_core(m, address);
}

void etch_last_memory_registers(const struct etch_last_memory *memory, uint64_t registers[ETCH_BACKWARD_REGISTERS],
                                uint32_t *masked)
{
    const uint64_t *from = memory->core ? memory->core_thread->registers : memory->state->registers;

    *masked = memory->core ? 0 : memory->state->masked;
    memcpy(registers, from, ETCH_BACKWARD_REGISTERS * sizeof(*registers));
}

bool etch_last_memory_is_threaded(const struct etch_last_memory *memory)
{
    return memory->threaded;
}
