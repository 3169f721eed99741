/* SPDX-License-Identifier: MIT */
/* See doors.h. The files and the memory of the process are not trusted: an address outside of the module's own mappings
 * is left out. */
#include "collector/soft/doors.h"

#include "base/input.h"
#include "binary/elf_bytes.h"
#include "collector/session/guarded.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define PAGE 4096u

/* A module of the process, and its file. */
struct module {
    pid_t pid;
    const struct etch_mappings *mappings;
    const char *path;
    uint64_t bias; /* address in the process, minus address in the file */
    struct etch_elf_bytes elf;
    const uint8_t *bytes;
    size_t size;
};

int etch_soft_open_mapped(pid_t pid, const struct etch_mapping *m)
{
    char path[4096];
    struct stat st;
    int fd;

    snprintf(path, sizeof(path), "/proc/%d/map_files/%llx-%llx", (int)pid, (unsigned long long)m->start,
             (unsigned long long)m->end);
    fd = etch_input_open(path);
    if (fd < 0) {
        snprintf(path, sizeof(path), "/proc/%d/root%.4000s", (int)pid, m->path);
        fd = etch_input_open(path);
    }
    if (fd >= 0 && (fstat(fd, &st) < 0 || st.st_ino != m->inode)) {
        close(fd);
        return -1;
    }
    return fd;
}

static bool find_section(const struct module *m, const char *name, struct etch_elf_section *section)
{
    for (uint32_t i = 0; etch_elf_bytes_section(&m->elf, i, section); i++)
        if (etch_elf_section_is(&m->elf, section, name))
            return true;
    return false;
}

/* The first segment is mapped at `start`. */
static bool find_bias(struct module *m, uint64_t start)
{
    Elf64_Phdr p;

    for (uint32_t i = 0; etch_elf_bytes_segment(&m->elf, i, &p); i++)
        if (p.p_type == PT_LOAD && p.p_offset < PAGE) {
            m->bias = start - (p.p_vaddr & ~(uint64_t)(PAGE - 1));
            return true;
        }
    return false;
}

static bool is_in(const struct module *m, uint64_t address, uint64_t size, uint32_t prot)
{
    const struct etch_mapping *at = etch_mappings_at(m->mappings, address);

    return at && at->end - address >= size && (at->prot & prot) == prot && strcmp(at->path, m->path) == 0;
}

/* ---- Plain copies ---- */

/* The bytes of the file that are at an address of the file; NULL: there are none. */
static const uint8_t *bytes_at(const struct module *m, uint64_t address, uint64_t size)
{
    Elf64_Phdr p;

    for (uint32_t i = 0; etch_elf_bytes_segment(&m->elf, i, &p); i++) {
        uint64_t inside = address - p.p_vaddr;

        if (p.p_type == PT_LOAD && address >= p.p_vaddr && inside < p.p_filesz && p.p_filesz - inside >= size &&
            p.p_offset < m->size && m->size - p.p_offset > inside && m->size - p.p_offset - inside >= size)
            return m->bytes + p.p_offset + inside;
    }
    return NULL;
}

/* The bytes before the copy must be those that the compiler put there. */
static bool has_detour(const uint8_t *before)
{
    for (size_t i = 0; i < ETCH_SOFT_DETOUR_SIZE - 5; i++)
        if (before[i] != ETCH_SOFT_DETOUR_PAD)
            return false;
    return before[ETCH_SOFT_DETOUR_SIZE - 5] == ETCH_SOFT_DETOUR_JUMP;
}

static bool add_detour(struct etch_soft_doors *doors, const struct module *m, uint64_t address)
{
    const uint8_t *bytes = bytes_at(m, address - ETCH_SOFT_DETOUR_SIZE, ETCH_SOFT_DETOUR_SIZE + 2);
    struct etch_soft_detour detour = {.address = address + m->bias};
    int32_t distance;

    if (!bytes || !has_detour(bytes) ||
        !is_in(m, detour.address - ETCH_SOFT_DETOUR_SIZE, ETCH_SOFT_DETOUR_SIZE + 2, PROT_EXEC))
        return true;
    memcpy(&distance, bytes + ETCH_SOFT_DETOUR_SIZE - 4, sizeof(distance));
    if (!is_in(m, detour.address + (uint64_t)(int64_t)distance, 1, PROT_EXEC))
        return true;
    memcpy(&detour.bytes, bytes + ETCH_SOFT_DETOUR_SIZE, sizeof(detour.bytes));
    return etch_array_push(&doors->detours, detour);
}

static bool add_detours(struct etch_soft_doors *doors, const struct module *m)
{
    struct etch_elf_section marks;
    struct etch_soft_mark mark;
    bool whole = true;

    if (!find_section(m, ETCH_SOFT_MARK_SECTION, &marks) || !marks.bytes)
        return true;
    for (size_t i = 0; whole && marks.size - i >= sizeof(mark); i += sizeof(mark)) {
        memcpy(&mark, marks.bytes + i, sizeof(mark));
        if (mark.kind == ETCH_SOFT_MARK_PLAIN)
            whole = add_detour(doors, m, mark.address);
    }
    return whole;
}

/* ---- Doors ---- */

static bool is_sound(const struct module *m, const struct etch_soft_door *door)
{
    const uint32_t data = PROT_READ | PROT_WRITE;
    const struct etch_mapping *request = etch_mappings_at(m->mappings, door->request);
    const struct etch_mapping *pool = etch_mappings_at(m->mappings, door->pool);

    /* The recorder is that of another module, perhaps. */
    return door->lit <= door->lit_end && etch_mappings_at(m->mappings, door->on) && request && pool &&
           (request->prot & data) == data && request->end - door->request >= sizeof(struct etch_soft_request) &&
           pool->end - door->pool >= sizeof(uint64_t) &&
           (door->lit == door->lit_end || is_in(m, door->lit, door->lit_end - door->lit, data));
}

static bool add_module(struct etch_soft_doors *doors, struct module *m, uint64_t start)
{
    struct etch_elf_section section;
    struct etch_soft_door door;

    if (!etch_elf_bytes_open(&m->elf, m->bytes, m->size) || !find_section(m, ETCH_SOFT_MAP_SECTION, &section))
        return true; /* no recorder */
    if (!find_bias(m, start) || !find_section(m, ETCH_SOFT_DOOR_SECTION, &section) ||
        section.header.sh_size != sizeof(door) ||
        etch_process_read(m->pid, section.header.sh_addr + m->bias, &door, sizeof(door)) != sizeof(door) ||
        door.magic != ETCH_SOFT_DOOR_MAGIC || door.version != ETCH_SOFT_VERSION || !is_sound(m, &door)) {
        doors->others++;
        return true;
    }
    return etch_array_push(&doors->list, door) && add_detours(doors, m);
}

static bool add_file(struct etch_soft_doors *doors, pid_t pid, const struct etch_mappings *mappings,
                     const struct etch_mapping *first)
{
    struct module m = {.pid = pid, .mappings = mappings, .path = first->path};
    int fd = etch_soft_open_mapped(pid, first);
    off_t size = fd >= 0 ? etch_input_size(fd) : -1;
    struct etch_guarded *mapping = size > 0 ? etch_guarded_map(fd, (size_t)size, false) : NULL;
    bool whole = true;

    if (fd < 0)
        doors->replaced++;
    else
        close(fd);
    if (!mapping)
        return true;
    m.bytes = etch_guarded_at(mapping);
    m.size = (size_t)size;
    whole = add_module(doors, &m, first->start);
    etch_guarded_unmap(mapping);
    return whole;
}

static bool is_first_of_file(const struct etch_mapping *m)
{
    return m->inode && m->offset == 0 && !m->shared && m->path[0] == '/';
}

int etch_soft_doors_find(struct etch_soft_doors *doors, pid_t pid, const struct etch_mappings *mappings,
                         struct etch_error *err)
{
    *doors = (struct etch_soft_doors){0};
    for (size_t i = 0; i < mappings->list.n; i++)
        if (is_first_of_file(&mappings->list.v[i]) && !add_file(doors, pid, mappings, &mappings->list.v[i]))
            return etch_error_no_memory(err);
    return 0;
}

void etch_soft_doors_release(struct etch_soft_doors *doors)
{
    etch_array_free(&doors->list);
    etch_array_free(&doors->detours);
}
