/* SPDX-License-Identifier: MIT */
/* See failure.h. */
#include "collector/left/failure.h"

#include "base/input.h"
#include "binary/object.h"
#include "collector/native/stack.h"
#include "collector/soft/pool_files.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BP = 6, SP = 7, IP = 8 }; /* perf's numbers */

/* ---- Memory of a process that is gone: its stack as noted, its code from its files ---- */

struct memory {
    const struct etch_soft_pool *pool;
    const struct etch_soft_death *death;
    const struct etch_soft_stand_in *program;
    struct etch_mappings mappings;
    const struct etch_mapping *open; /* whose file `fd` is */
    int fd;                          /* -1: the file is gone, or another one is in its place */
};

static size_t read_stack(const struct etch_soft_death *d, uint64_t address, void *buffer, size_t size)
{
    size_t have = d->stack_size < sizeof(d->stack) ? d->stack_size : sizeof(d->stack);
    uint64_t from = address - d->stack_start;

    if (d->state != ETCH_SOFT_DEATH_WHOLE || address < d->stack_start || from >= have)
        return 0;
    size = size < have - from ? size : have - (size_t)from;
    memcpy(buffer, d->stack + from, size);
    return size;
}

/* The file of the mapping, if it is the one that was mapped; else -1. */
static int open_file(const struct memory *m, const struct etch_mapping *mapping)
{
    const struct etch_soft_module *module = etch_soft_module_of(m->pool, mapping);
    const char *path = etch_soft_path_of(m->program, module, mapping);
    struct etch_error ignored;
    struct etch_elf elf;

    if (!module || etch_elf_read(&elf, path, &ignored) < 0 || elf.build_id_size != module->size ||
        memcmp(elf.build_id, module->build_id, module->size) != 0)
        return -1;
    return etch_input_open(path);
}

static size_t read_code(struct memory *m, uint64_t address, void *buffer, size_t size)
{
    const struct etch_mapping *mapping = etch_mappings_at(&m->mappings, address);
    uint64_t at = mapping ? address - mapping->start + mapping->offset : 0;
    ssize_t got;

    if (!mapping || !mapping->inode || at > INT64_MAX)
        return 0;
    if (mapping != m->open) {
        if (m->fd >= 0)
            close(m->fd);
        m->fd = open_file(m, mapping);
        m->open = mapping;
    }
    size = size < mapping->end - address ? size : (size_t)(mapping->end - address);
    got = m->fd >= 0 ? pread(m->fd, buffer, size, (off_t)at) : -1;
    return got > 0 ? (size_t)got : 0;
}

static size_t read_memory(void *context, uint64_t address, void *buffer, size_t size)
{
    struct memory *m = context;
    size_t got = read_stack(m->death, address, buffer, size);

    return got ? got : read_code(m, address, buffer, size);
}

static int compare(const void *a, const void *b)
{
    const struct etch_mapping *x = a, *y = b;

    return x->start < y->start ? -1 : x->start > y->start;
}

/* The search needs mappings that do not overlap. They do if a library was unloaded; the first one is kept. */
static void drop_overlaps(struct etch_mappings *mappings)
{
    size_t n = 0;

    if (mappings->list.n)
        qsort(mappings->list.v, mappings->list.n, sizeof(mappings->list.v[0]), compare);
    for (size_t i = 0; i < mappings->list.n; i++) {
        if (n && mappings->list.v[i].start < mappings->list.v[n - 1].end)
            free(mappings->list.v[i].path);
        else
            mappings->list.v[n++] = mappings->list.v[i];
    }
    mappings->list.n = n;
}

static void open_memory(struct memory *m)
{
    struct etch_mapping mapping;
    char line[600];

    for (size_t at = 0; etch_soft_next_mapping(m->pool, &at, line, &mapping);) {
        mapping.path = strdup(mapping.path);
        if (!mapping.path || !etch_array_push(&m->mappings.list, mapping))
            free(mapping.path);
    }
    drop_overlaps(&m->mappings);
}

static void close_memory(struct memory *m)
{
    if (m->fd >= 0)
        close(m->fd);
    etch_mappings_release(&m->mappings);
}

/* ---- The record ---- */

static bool has_address(const struct etch_soft_death *d)
{
    return d->code > 0 && (d->signal == SIGSEGV || d->signal == SIGBUS || d->signal == SIGFPE || d->signal == SIGILL);
}

/* The first line. A protobuf string is UTF-8, and memory is not. */
static char *message_of(const struct etch_soft_death *d)
{
    size_t n = strnlen(d->message, sizeof(d->message));
    char *text = d->state == ETCH_SOFT_DEATH_WHOLE && n ? strndup(d->message, n) : NULL;

    if (!text)
        return NULL;
    text[strcspn(text, "\n")] = '\0';
    for (char *c = text; *c; c++)
        if ((unsigned char)*c >= 0x80 || (unsigned char)*c < 0x20)
            *c = '?';
    return text;
}

static uint64_t take_state(Etch__ThreadState *state, struct memory *m, bool keep)
{
    const struct etch_soft_death *death = m->death;
    uint64_t sp = death->registers[SP], masked;
    struct etch_stack_memory memory = {.read = read_memory, .context = m, .keep = keep};

    open_memory(m);
    memory.mappings = &m->mappings;
    if (death->state == ETCH_SOFT_DEATH_WHOLE && death->stack_start > sp)
        sp = death->stack_start; /* the stack overflowed */
    masked = etch_stack_take(&memory, state, death->registers[IP], sp, death->registers[BP]);
    close_memory(m);
    return masked;
}

void etch_left_failure_make(struct etch_left_failure *failure, const struct etch_soft_pool *pool,
                            const struct etch_soft_death *death, const struct etch_soft_stand_in *program, bool keep)
{
    struct memory m = {.pool = pool, .death = death, .program = program, .fd = -1};
    Etch__ThreadState *state = &failure->state;
    Etch__Failure *f = &failure->record;

    memset(failure, 0, sizeof(*failure));
    etch__failure__init(f);
    etch__thread_state__init(state);
    f->kind = ETCH__FAILURE_KIND__FAILURE_SIGNAL;
    f->signal = (uint32_t)death->signal;
    f->code = death->code;
    f->fault_address = has_address(death) ? death->address : 0;
    f->pid = death->pid;
    f->tid = death->tid;
    f->ip = death->registers[IP];
    f->tsc = death->tsc;
    failure->message = message_of(death);
    if (failure->message)
        f->message = failure->message;
    failure->states[0] = state;
    f->threads = failure->states;
    f->n_threads = 1;
    state->tid = death->tid;
    state->registers = malloc(sizeof(death->registers));
    if (state->registers) {
        memcpy(state->registers, death->registers, sizeof(death->registers));
        state->n_registers = ETCH_SOFT_REGISTERS;
    }
    failure->masked_words = take_state(state, &m, keep);
}

void etch_left_failure_release(struct etch_left_failure *failure)
{
    free(failure->message);
    free(failure->state.registers);
    free(failure->state.frames);
    free(failure->state.stack.data);
}
