/* SPDX-License-Identifier: MIT */
/* The symbols of an ELF file, by name; see object.h. */
#include "base/function_name.h"
#include "binary/elf_file.h"

#include <stdio.h>
#include <string.h>

struct import {
    const char *name;
    bool found;
};

static bool visit_import(void *context, const GElf_Sym *symbol, const char *name)
{
    struct import *import = context;

    import->found = symbol->st_shndx == SHN_UNDEF && strcmp(name, import->name) == 0;
    return import->found;
}

bool etch_object_imports(const struct etch_object *object, const char *name)
{
    struct import import = {name, false};

    etch_elf_each_symbol(object->file.elf, SHT_DYNSYM, visit_import, &import);
    return import.found;
}

struct exports {
    etch_object_export_visitor *visit;
    void *context;
};

static bool visit_export(void *context, const GElf_Sym *symbol, const char *name)
{
    const struct exports *e = context;

    if (symbol->st_shndx != SHN_UNDEF && GELF_ST_BIND(symbol->st_info) != STB_LOCAL)
        e->visit(e->context, name);
    return false;
}

void etch_object_each_export(const struct etch_object *object, etch_object_export_visitor *visit, void *context)
{
    struct exports e = {visit, context};

    etch_elf_each_symbol(object->file.elf, SHT_DYNSYM, visit_export, &e);
}

struct lookup {
    const char *name;
    struct etch_symbol *symbol;
    size_t found;
    bool global;
    bool by_source; /* a variable, by the name that a C++ source writes */
};

static bool visit_lookup(void *context, const GElf_Sym *s, const char *name)
{
    struct lookup *l = context;
    unsigned type = GELF_ST_TYPE(s->st_info);
    bool global = GELF_ST_BIND(s->st_info) != STB_LOCAL;

    if (s->st_shndx == SHN_UNDEF ||
        (l->by_source ? (type != STT_OBJECT && type != STT_TLS) || !etch_symbol_is(name, l->name)
                      : strcmp(name, l->name) != 0) ||
        (type != STT_OBJECT && type != STT_FUNC && type != STT_TLS && type != STT_NOTYPE && type != STT_GNU_IFUNC))
        return false;
    if (l->found && s->st_value == l->symbol->address)
        return false;
    if (!l->found || (global && !l->global)) {
        *l->symbol = (struct etch_symbol){s->st_value, s->st_size, type == STT_FUNC, type == STT_TLS};
        l->global = global;
    }
    l->found++;
    return false;
}

size_t etch_object_symbol(const struct etch_object *object, const char *name, struct etch_symbol *symbol)
{
    struct lookup lookup = {.name = name, .symbol = symbol};

    etch_elf_each_symbol(object->file.elf, SHT_SYMTAB, visit_lookup, &lookup);
    if (!lookup.found)
        etch_elf_each_symbol(object->file.elf, SHT_DYNSYM, visit_lookup, &lookup);
    if (!lookup.found) {
        lookup.by_source = true;
        etch_elf_each_symbol(object->file.elf, SHT_SYMTAB, visit_lookup, &lookup);
        return lookup.found;
    }
    return lookup.global ? 1 : lookup.found;
}

struct place {
    uint64_t address;
    char *name;
    size_t size;
    bool found;
};

static bool visit_place(void *context, const GElf_Sym *symbol, const char *name)
{
    struct place *p = context;

    if (symbol->st_shndx == SHN_UNDEF || symbol->st_value != p->address || GELF_ST_TYPE(symbol->st_info) != STT_OBJECT)
        return false;
    p->found = (size_t)snprintf(p->name, p->size, "%s", name) < p->size;
    return true;
}

bool etch_object_variable_at(const struct etch_object *object, uint64_t address, char *name, size_t size)
{
    struct place place = {.address = address, .name = name, .size = size};

    etch_elf_each_symbol(object->file.elf, SHT_SYMTAB, visit_place, &place);
    return place.found;
}

struct search {
    const char *name;
    GElf_Sym found;
    unsigned n; /* of different addresses */
    bool thread_local_one;
    bool by_source; /* the name is as a C++ source writes it */
};

static bool visit_variable(void *context, const GElf_Sym *symbol, const char *name)
{
    struct search *s = context;
    unsigned type = GELF_ST_TYPE(symbol->st_info);

    if (symbol->st_shndx == SHN_UNDEF || (s->by_source ? !etch_symbol_is(name, s->name) : strcmp(name, s->name) != 0))
        return false;
    s->thread_local_one |= type == STT_TLS;
    if (type != STT_OBJECT && type != STT_NOTYPE && type != STT_COMMON)
        return false;
    if (!s->n || symbol->st_value != s->found.st_value)
        s->n++;
    s->found = *symbol;
    return false;
}

int etch_elf_variable(const char *path, const char *name, uint64_t *address, uint64_t *size, struct etch_error *err)
{
    struct search s = {.name = name};
    struct etch_elf_file f;
    int opened = etch_elf_file_open(&f, path, err);

    for (int pass = 0; opened == 0 && pass < 2 && !s.n && !s.thread_local_one; pass++, s.by_source = true)
        etch_elf_each_symbol(f.elf, SHT_NULL, visit_variable, &s);
    etch_elf_file_close(&f);
    if (opened < 0)
        return -1;
    if (s.thread_local_one)
        return etch_error_set(err, "cannot watch %s: it is thread-local, each thread has its own", name);
    if (!s.n) {
        etch_error_set(err, "cannot watch %s: %s has no variable of that name", name, path);
        return etch_error_advise(err, "nm %s, or ADDRESS:LENGTH; a stripped program has no names", path);
    }
    if (s.n > 1) {
        etch_error_set(err, "cannot watch %s: %s has %u variables of that name", name, path, s.n);
        return etch_error_advise(err, "ADDRESS:LENGTH of the one you mean");
    }
    *address = s.found.st_value;
    *size = s.found.st_size;
    return 0;
}
