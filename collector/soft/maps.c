/* SPDX-License-Identifier: MIT */
/* The software recorder's runtime: notes the code mappings of the process in the pool when a module is loaded. The
 * notes are made after the dynamic linker, which has just made the same system calls. */
#include "collector/soft/runtime.h"

#include <elf.h>
#include <fcntl.h>

bool etch_soft_each_mapping(etch_soft_on_line *take, void *context)
{
    char buffer[1024], line[512];
    int fd = (int)call6(__NR_openat, AT_FDCWD, (long)"/proc/self/maps", O_RDONLY | O_CLOEXEC, 0, 0, 0);
    bool enough = false;
    size_t n = 0;
    long got;

    if (fd < 0)
        return false;
    while (!enough && (got = call3(__NR_read, fd, (long)buffer, sizeof(buffer))) > 0)
        for (long i = 0; i < got && !enough; i++) {
            if (n < sizeof(line))
                /* NOLINTNEXTLINE(clang-analyzer-core.uninitialized.Assign): the kernel wrote it */
                line[n++] = buffer[i];
            if (buffer[i] != '\n')
                continue;
            enough = take(context, line, n);
            n = 0;
        }
    call3(__NR_close, fd, 0, 0);
    return true;
}

/* ---- Build-ids ---- */

/* One line, as far as it is needed here. */
struct line {
    uint64_t start, end, offset;
    bool readable, code;
    const char *path;
    size_t path_size;
};

static const char *read_hex(const char *at, const char *end, uint64_t *value)
{
    for (*value = 0; at < end && ((*at >= '0' && *at <= '9') || (*at >= 'a' && *at <= 'f')); at++)
        *value = *value * 16 + (uint64_t)(*at <= '9' ? *at - '0' : *at - 'a' + 10);
    return at + 1;
}

/* "start-end rwxp offset device inode path" */
static bool parse(const char *text, size_t n, struct line *line)
{
    const char *end = text + n, *at = read_hex(text, end, &line->start);

    at = read_hex(at, end, &line->end);
    if (at + 5 > end)
        return false;
    line->readable = at[0] == 'r';
    line->code = at[2] == 'x';
    read_hex(at + 5, end, &line->offset);
    for (line->path = at; line->path < end && *line->path != '/'; line->path++)
        ;
    line->path_size = (size_t)(end - line->path);
    return line->path_size > 1;
}

/* Looks for the note of the build-id in [at, end), which is mapped. */
static void find_build_id(struct etch_soft_module *module, uintptr_t at, uintptr_t end)
{
    while (end - at > sizeof(Elf64_Nhdr)) {
        const Elf64_Nhdr *note = (const Elf64_Nhdr *)at;
        uint64_t name = ((uint64_t)note->n_namesz + 3) & ~3ull, data = ((uint64_t)note->n_descsz + 3) & ~3ull;

        at += sizeof(*note);
        if (name > end - at || data > end - at - name)
            return;
        if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 && is_same((const char *)at, "GNU", 4) &&
            note->n_descsz <= sizeof(module->build_id)) {
            put(module->build_id, (const void *)(at + name), note->n_descsz);
            module->size = note->n_descsz;
            return;
        }
        at += name + data;
    }
}

/* The dynamic linker has read the same headers. The notes of nearly all files lie in the mapping of the first bytes. */
static void read_module(struct etch_soft_module *module, uint64_t start, uint64_t end)
{
    const Elf64_Ehdr *elf = (const Elf64_Ehdr *)start;
    uint64_t size = end - start;

    if (!is_same((const char *)elf->e_ident, ELFMAG, SELFMAG) || elf->e_phoff > size ||
        elf->e_phnum * sizeof(Elf64_Phdr) > size - elf->e_phoff)
        return;
    for (unsigned i = 0; i < elf->e_phnum && !module->size; i++) {
        const Elf64_Phdr *p = (const Elf64_Phdr *)(start + elf->e_phoff) + i;

        if (p->p_type == PT_NOTE && p->p_offset < size && p->p_filesz <= size - p->p_offset)
            find_build_id(module, start + p->p_offset, start + p->p_offset + p->p_filesz);
    }
}

static void note_module(struct etch_soft_pool *pool, uint64_t start, uint64_t end)
{
    struct etch_soft_module module = {.start = start};
    uint32_t n = pool->n_modules < ETCH_SOFT_MODULES ? pool->n_modules : ETCH_SOFT_MODULES;

    read_module(&module, start, end);
    for (uint32_t i = 0; i < n; i++)
        if (pool->modules[i].start == start && module.size == pool->modules[i].size &&
            is_same((const char *)module.build_id, (const char *)pool->modules[i].build_id, module.size))
            return;
    if (!module.size)
        return;
    n = __atomic_fetch_add(&pool->n_modules, 1, __ATOMIC_RELAXED);
    if (n < ETCH_SOFT_MODULES)
        put(&pool->modules[n], &module, sizeof(module));
    else
        __atomic_fetch_add(&pool->modules_lost, 1, __ATOMIC_RELAXED);
}

/* The lines of /proc/self/maps. A file is a module if its code is mapped too; nothing else is read, because it may be
 * cut by somebody. */
struct noting {
    struct etch_soft_pool *pool;
    uint64_t start, end; /* of the last mapping of a file's first bytes */
    uint64_t path;       /* a hash of the file's path */
};

static uint64_t hash(const char *text, size_t size)
{
    uint64_t h = 0xcbf29ce484222325u;

    for (size_t i = 0; i < size; i++)
        h = (h ^ (uint8_t)text[i]) * 0x100000001b3u;
    return h;
}

static void look_for_module(struct noting *n, const char *text, size_t size)
{
    struct line line;
    uint64_t path;

    if (!parse(text, size, &line))
        return;
    path = hash(line.path, line.path_size);
    if (line.offset == 0 && line.readable) {
        n->start = line.start;
        n->end = line.end;
        n->path = path;
    }
    if (!line.code || !n->start || path != n->path)
        return;
    note_module(n->pool, n->start, n->end);
    n->start = 0;
}

/* ---- Lines ---- */

/* "start-end rwxp ...": of code, or of a file: an emulator may not say which of them are code. */
static bool is_worth_noting(const char *line, size_t n)
{
    bool file = false;
    size_t k = 0;

    while (k < n && line[k] != ' ')
        k++;
    for (size_t i = 0; i < n; i++)
        file |= line[i] == '/';
    return k + 4 < n && (line[k + 3] == 'x' || file);
}

static bool is_noted(const struct etch_soft_pool *pool, const char *line, size_t n)
{
    size_t size = pool->maps_size < sizeof(pool->maps) ? pool->maps_size : sizeof(pool->maps);

    for (size_t at = 0; at + n <= size;) {
        if (is_same(pool->maps + at, line, n))
            return true;
        while (at < size && pool->maps[at] != '\n')
            at++;
        at++;
    }
    return false;
}

/* The loader starts one module at a time. A child process has a loader of its own, so that the size is changed
 * atomically. */
static bool note_line(void *context, const char *line, size_t n)
{
    struct noting *noting = context;
    struct etch_soft_pool *pool = noting->pool;
    uint32_t at = pool->maps_size;

    look_for_module(noting, line, n);
    if (!is_worth_noting(line, n) || is_noted(pool, line, n))
        return false;
    do {
        if (line[n - 1] != '\n' || at > sizeof(pool->maps) || n > sizeof(pool->maps) - at) {
            __atomic_fetch_add(&pool->maps_lost, 1, __ATOMIC_RELAXED);
            return false;
        }
    } while (!__atomic_compare_exchange_n(&pool->maps_size, &at, at + (uint32_t)n, false, __ATOMIC_RELAXED,
                                          __ATOMIC_RELAXED));
    put(pool->maps + at, line, n);
    return false;
}

void etch_soft_note_maps(struct etch_soft_pool *pool)
{
    struct noting noting;

    noting.pool = pool;
    noting.start = 0;
    if (!etch_soft_each_mapping(note_line, &noting))
        __atomic_fetch_add(&pool->maps_lost, 1, __ATOMIC_RELAXED);
}
