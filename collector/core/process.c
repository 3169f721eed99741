/* SPDX-License-Identifier: MIT */
/* See process.h. */
#include "collector/core/process.h"

#include "base/input.h"
#include "base/path.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

/* ---- Modules ---- */

static bool same_id(const struct core_module *m, const uint8_t *id, size_t size)
{
    return m->id_size == size && memcmp(m->id, id, size) == 0;
}

static size_t file_id(const char *path, uint8_t id[ETCH_BUILD_ID_MAX])
{
    struct etch_object *object;
    struct etch_error ignored;
    size_t size;

    if (etch_object_open(&object, path, &ignored) < 0)
        return 0;
    size = etch_object_build_id(object, id);
    etch_object_free(object);
    return size;
}

/* Takes the file if it is of the same build. Without a build-id in memory, the file as it is now has to do. */
static bool take_file(struct core_module *m, const char *path)
{
    uint8_t id[ETCH_BUILD_ID_MAX];
    size_t size = file_id(path, id);

    if (m->id_size ? !same_id(m, id, size) : access(path, R_OK) != 0)
        return false;
    m->fd = etch_input_open(path);
    if (m->fd < 0)
        return false;
    m->file = strdup(path);
    if (!m->id_size && size) {
        memcpy(m->id, id, size);
        m->id_size = size;
        m->id_source = CORE_ID_FILE;
    }
    return true;
}

const struct core_module *core_process_module(const struct core_process *p, const char *path)
{
    for (size_t i = 0; i < p->modules.n; i++)
        if (strcmp(p->modules.v[i].path, path) == 0)
            return &p->modules.v[i];
    return NULL;
}

static bool is_file(const char *path)
{
    return path[0] == '/' && strncmp(path, "/dev/", 5) != 0 && strncmp(path, "/memfd:", 7) != 0 &&
           strncmp(path, "/SYSV", 5) != 0;
}

/* A debugger leaves out mappings without their own contents, and nothing is known about their rights. */
static bool may_be_code(const struct etch_core_file *f)
{
    return !f->prot || (f->prot & 4);
}

static bool add_modules(struct core_process *p)
{
    const struct etch_core_contents *c = etch_core_contents(p->core);

    for (size_t i = 0; i < c->files.n; i++) {
        const struct etch_core_file *f = &c->files.v[i];
        struct core_module module = {.path = f->path, .fd = -1, .code = may_be_code(f)}, *known;

        if (!is_file(f->path))
            continue;
        known = (struct core_module *)(uintptr_t)core_process_module(p, f->path);
        if (known) {
            known->code |= module.code;
            continue;
        }
        module.id_size = etch_core_build_id(p->core, f, module.id);
        module.id_source = module.id_size ? CORE_ID_MEMORY : CORE_ID_NONE;
        if (!etch_array_push(&p->modules, module))
            return false;
    }
    return true;
}

static size_t find_program(const struct core_process *p)
{
    const struct etch_core_file *f = NULL;
    uint64_t entry;

    if (etch_core_auxv(p->core, AT_ENTRY, &entry))
        f = etch_core_file_at(p->core, entry);
    for (size_t i = 0; f && i < p->modules.n; i++)
        if (strcmp(p->modules.v[i].path, f->path) == 0)
            return i;
    return SIZE_MAX;
}

/* ---- The program ---- */

struct core_module *core_process_program(const struct core_process *p)
{
    return p->modules.v && p->program < p->modules.n ? &p->modules.v[p->program] : NULL;
}

static int say_other(const char *core, const char *ran, const char *program, struct etch_error *err)
{
    etch_error_set(err, "%s is a core of %s, which is not %s, or another build of it", core, ran[0] ? ran : "a program",
                   program);
    return etch_error_advise(err, "the binary that crashed; file %s shows its name", core);
}

/* Without any build-id in the core only the name is left to compare. */
static int check_name(struct core_process *p, const char *core, const char *program, struct etch_error *err)
{
    const struct core_module *module = core_process_program(p);
    const char *ran = module ? module->path : etch_core_contents(p->core)->name;
    const char *wanted = etch_path_name(program);

    p->by_name = true;
    if (module ? strcmp(etch_path_name(ran), wanted) == 0 : strncmp(ran, wanted, 15) == 0)
        return 0;
    return say_other(core, ran, program, err);
}

static int check_program(struct core_process *p, const char *core, const char *program, struct etch_error *err)
{
    struct core_module *m = core_process_program(p);
    struct etch_elf elf;

    if (etch_elf_read(&elf, program, err) < 0)
        return -1;
    if (m && !m->id_size)
        take_file(m, m->path);
    if (!m || !m->id_size)
        return check_name(p, core, program, err);
    if (!same_id(m, elf.build_id, elf.build_id_size))
        return say_other(core, m->path, program, err);
    return 0;
}

/* ---- Mappings ---- */

/* The rights of a mapping that a debugger left out, as the file asks for them. */
static uint32_t prot_of(const struct core_process *p, const struct etch_core_file *f)
{
    const struct core_module *m = core_process_module(p, f->path);
    struct etch_object *object;
    struct etch_segment segment;
    struct etch_error ignored;
    uint32_t prot = 1;

    if (f->prot || !m || !m->file || etch_object_open(&object, m->file, &ignored) < 0)
        return f->prot ? f->prot : 1;
    for (size_t at = 0; etch_object_next_segment(object, &at, &segment);)
        if ((segment.file_offset & ~(uint64_t)4095) <= f->offset && f->offset < segment.file_offset + segment.file_size)
            prot = segment.prot;
    etch_object_free(object);
    return prot;
}

static bool add_mapping(struct core_process *p, uint64_t start, uint64_t end, uint32_t prot,
                        const struct etch_core_file *f)
{
    struct etch_mapping mapping = {.start = start, .end = end, .prot = prot};

    if (f) {
        mapping.offset = f->offset + (start - f->start);
        mapping.inode = is_file(f->path);
    }
    mapping.path = strdup(f ? f->path : "");
    if (mapping.path && etch_array_push(&p->mappings.list, mapping))
        return true;
    free(mapping.path);
    return false;
}

static int by_start(const void *x, const void *y)
{
    const struct etch_mapping *a = x, *b = y;

    return a->start < b->start ? -1 : a->start > b->start;
}

static bool add_mappings(struct core_process *p)
{
    const struct etch_core_contents *c = etch_core_contents(p->core);

    for (size_t i = 0; i < c->segments.n; i++) {
        const struct etch_core_segment *s = &c->segments.v[i];

        if (!add_mapping(p, s->start, s->start + s->size, s->prot, etch_core_file_at(p->core, s->start)))
            return false;
    }
    for (size_t i = 0; i < c->files.n; i++) {
        const struct etch_core_file *f = &c->files.v[i];

        if (!etch_core_segment_at(p->core, f->start) && !add_mapping(p, f->start, f->end, prot_of(p, f), f))
            return false;
    }
    if (p->mappings.list.n)
        qsort(p->mappings.list.v, p->mappings.list.n, sizeof(*p->mappings.list.v), by_start);
    return true;
}

/* The vdso has no file. */
static bool name_vdso(struct core_process *p)
{
    uint64_t start;

    if (!etch_core_auxv(p->core, AT_SYSINFO_EHDR, &start))
        return true;
    for (size_t i = 0; i < p->mappings.list.n; i++)
        if (p->mappings.list.v[i].start == start && !p->mappings.list.v[i].path[0]) {
            free(p->mappings.list.v[i].path);
            p->mappings.list.v[i].path = strdup("[vdso]");
            return p->mappings.list.v[i].path;
        }
    return true;
}

/* ---- All ---- */

int core_process_open(struct core_process *p, const char *core, const char *program, struct etch_error *err)
{
    char *words[1];
    size_t n;

    *p = (struct core_process){.program = SIZE_MAX};
    if (etch_core_open(&p->core, core, err) < 0)
        return -1;
    if (!add_modules(p))
        return etch_error_no_memory(err);
    p->program = find_program(p);
    if (check_program(p, core, program, err) < 0)
        return -1;
    for (size_t i = 0; i < p->modules.n; i++) {
        struct core_module *m = &p->modules.v[i];

        if (m->code && m->fd < 0 && !take_file(m, m->path) && i == p->program)
            take_file(m, program);
    }
    n = etch_core_arguments(p->core, words, 1, &p->stack_end);
    for (size_t i = 0; i < n; i++)
        free(words[i]);
    return add_mappings(p) && name_vdso(p) ? 0 : etch_error_no_memory(err);
}

void core_process_release(struct core_process *p)
{
    for (size_t i = 0; i < p->modules.n; i++) {
        free(p->modules.v[i].file);
        if (p->modules.v[i].fd >= 0)
            close(p->modules.v[i].fd);
    }
    etch_array_free(&p->modules);
    etch_mappings_release(&p->mappings);
    etch_core_free(p->core);
}

size_t core_process_read(void *process, uint64_t address, void *buffer, size_t size)
{
    const struct core_process *p = process;
    size_t done = etch_core_read(p->core, address, buffer, size);
    const struct etch_mapping *mapping;
    const struct core_module *module;

    while (done < size) {
        uint64_t at = address + done;
        size_t piece = size - done;
        ssize_t n;

        mapping = etch_mappings_at(&p->mappings, at);
        module = mapping && mapping->inode && !(mapping->prot & 2) ? core_process_module(p, mapping->path) : NULL;
        if (!module || module->fd < 0)
            break;
        if (piece > mapping->end - at)
            piece = (size_t)(mapping->end - at);
        n = pread(module->fd, (char *)buffer + done, piece, (off_t)(mapping->offset + (at - mapping->start)));
        if (n <= 0)
            break;
        done += (size_t)n;
    }
    return done;
}
