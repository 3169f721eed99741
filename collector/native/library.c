/* SPDX-License-Identifier: MIT */
/* Watches in the program's libraries. No library is mapped yet when a program starts. The libraries are looked for at
 * the program's own first instruction, after the dynamic loader has finished. */
#include "collector/native/library.h"

#include "collector/session/process.h"

#include <elf.h>
#include <stdio.h>
#include <string.h>

int etch_native_libraries_take(struct native *n, const Etch__Plan *plan, struct etch_error *err)
{
    for (size_t i = 0; i < plan->n_modules; i++) {
        const Etch__Module *module = plan->modules[i];
        struct native_library library = {.added = module->added};

        if (snprintf(library.path, sizeof(library.path), "%s", module->path) >= (int)sizeof(library.path) ||
            module->build_id.len > sizeof(library.id))
            return etch_error_set(err, "the plan names a library in a way that cannot be: %.200s", module->path);
        library.id_size = module->build_id.len;
        if (library.id_size)
            memcpy(library.id, module->build_id.data, library.id_size);
        if (!etch_array_push(&n->libraries, library))
            return etch_error_no_memory(err);
    }
    return 0;
}

const struct native_library *etch_native_library_of(const struct native *n, uint64_t address)
{
    const struct native_library *found = NULL;

    for (size_t i = 0; i < n->libraries.n; i++)
        if (address >= n->libraries.v[i].added && (!found || n->libraries.v[i].added > found->added))
            found = &n->libraries.v[i];
    return found;
}

/* The path of the mapping that the library is in, and what to add to its addresses. */
static bool find_mapping(const struct etch_mappings *mappings, const struct native_library *library,
                         struct etch_object **object, uint64_t *bias)
{
    struct etch_error ignored;

    for (size_t i = 0; i < mappings->list.n; i++) {
        const struct etch_mapping *m = &mappings->list.v[i];
        uint8_t id[64];
        size_t size;

        if (m->offset != 0 || m->path[0] != '/' || (!library->id_size && strcmp(m->path, library->path) != 0) ||
            etch_object_open(object, m->path, &ignored) < 0)
            continue;
        size = etch_object_build_id(*object, id);
        *bias = etch_object_bias(*object, m->start, m->offset);
        if (!library->id_size || (size == library->id_size && memcmp(id, library->id, size) == 0))
            return true;
        etch_object_free(*object);
        *object = NULL;
    }
    return false;
}

int etch_native_library_locate(const struct native *n, const struct native_library *library,
                               struct etch_object **object, uint64_t *bias, struct etch_error *err)
{
    struct etch_mappings mappings;
    bool found;

    *object = NULL;
    if (etch_process_mappings(n->target.pid, &mappings, err) < 0)
        return -1;
    found = find_mapping(&mappings, library, object, bias);
    etch_mappings_release(&mappings);
    return found
               ? 0
               : etch_error_set(err, "the library %.300s, as the plan knows it, is not loaded when the program begins",
                                library->path);
}

uint64_t etch_native_entry(pid_t pid)
{
    Elf64_auxv_t entry;
    uint64_t address = 0;
    char name[64];
    FILE *file;

    snprintf(name, sizeof(name), "/proc/%d/auxv", (int)pid);
    file = fopen(name, "re");
    while (file && !address && fread(&entry, sizeof(entry), 1, file) == 1)
        if (entry.a_type == AT_ENTRY)
            address = entry.a_un.a_val;
    if (file)
        fclose(file);
    return address;
}
