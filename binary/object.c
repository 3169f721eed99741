/* SPDX-License-Identifier: MIT */
/* Executables and libraries by libelf; see object.h. */
#include "binary/object.h"

#include "base/function_name.h"
#include "base/input.h"

#include <errno.h>
#include <gelf.h>
#include <libelf.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct etch_object {
    int fd;
    Elf *elf;
    uint16_t type;
};

int etch_object_open(struct etch_object **object, const char *path, struct etch_error *err)
{
    struct etch_object *o = calloc(1, sizeof(*o));
    GElf_Ehdr header;

    *object = NULL;
    if (!o)
        return etch_error_set(err, "out of memory");
    elf_version(EV_CURRENT);
    o->fd = etch_input_open(path);
    if (o->fd < 0) {
        etch_error_set_errno(err, errno, "cannot open %s", path);
        etch_object_free(o);
        return -1;
    }
    o->elf = elf_begin(o->fd, ELF_C_READ_MMAP, NULL);
    if (!o->elf || !gelf_getehdr(o->elf, &header) || header.e_machine != EM_X86_64) {
        etch_object_free(o);
        return etch_error_set(err, "%s is not an ELF file for x86-64", path);
    }
    o->type = header.e_type;
    *object = o;
    return 0;
}

void etch_object_free(struct etch_object *object)
{
    if (!object)
        return;
    if (object->elf)
        elf_end(object->elf);
    if (object->fd >= 0)
        close(object->fd);
    free(object);
}

/* The i-th program header of a type; false where there is none. */
static bool program_header(const struct etch_object *o, uint32_t type, size_t skip, GElf_Phdr *found)
{
    size_t n = 0;

    if (elf_getphdrnum(o->elf, &n) < 0)
        return false;
    for (size_t i = 0; i < n; i++)
        if (gelf_getphdr(o->elf, (int)i, found) && found->p_type == type && skip-- == 0)
            return true;
    return false;
}

bool etch_object_is_dynamic(const struct etch_object *object)
{
    GElf_Phdr header;

    return program_header(object, PT_INTERP, 0, &header);
}

uint64_t etch_object_bias(const struct etch_object *object, uint64_t start, uint64_t file_offset)
{
    GElf_Phdr header;

    if (object->type != ET_DYN)
        return 0;
    for (size_t i = 0; program_header(object, PT_LOAD, i, &header); i++)
        if (file_offset >= (header.p_offset & ~(uint64_t)4095) && file_offset < header.p_offset + header.p_filesz)
            return start - (header.p_vaddr - header.p_offset + file_offset);
    return start - file_offset;
}

bool etch_object_offset(const struct etch_object *object, uint64_t address, uint64_t *offset)
{
    GElf_Phdr header;

    for (size_t i = 0; program_header(object, PT_LOAD, i, &header); i++)
        if (header.p_flags & PF_X && address >= header.p_vaddr && address - header.p_vaddr < header.p_filesz) {
            *offset = header.p_offset + (address - header.p_vaddr);
            return true;
        }
    return false;
}

static size_t note_build_id(Elf_Data *data, uint8_t id[64])
{
    size_t offset = 0, name, desc;
    GElf_Nhdr note;

    while ((offset = gelf_getnote(data, offset, &note, &name, &desc)) > 0)
        if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && memcmp((char *)data->d_buf + name, "GNU", 4) == 0 &&
            note.n_descsz <= 64) {
            memcpy(id, (char *)data->d_buf + desc, note.n_descsz);
            return note.n_descsz;
        }
    return 0;
}

size_t etch_object_build_id(const struct etch_object *object, uint8_t id[64])
{
    GElf_Phdr header;

    for (size_t i = 0; program_header(object, PT_NOTE, i, &header); i++) {
        Elf_Data *data = elf_getdata_rawchunk(object->elf, (int64_t)header.p_offset, header.p_filesz, ELF_T_NHDR);
        size_t n = data ? note_build_id(data, id) : 0;

        if (n)
            return n;
    }
    return 0;
}

/* Calls `visit` on each symbol of the tables of one kind until it returns true. */
typedef bool symbol_visitor(void *context, const GElf_Sym *symbol, const char *name);

static void each_symbol(const struct etch_object *o, uint32_t table, symbol_visitor *visit, void *context)
{
    Elf_Scn *section = NULL;

    while ((section = elf_nextscn(o->elf, section))) {
        GElf_Shdr header;
        Elf_Data *data;
        GElf_Sym symbol;

        if (!gelf_getshdr(section, &header) || header.sh_type != table || !(data = elf_getdata(section, NULL)))
            continue;
        for (int i = 0; gelf_getsym(data, i, &symbol); i++) {
            const char *name = elf_strptr(o->elf, header.sh_link, symbol.st_name);

            if (name && visit(context, &symbol, name))
                return;
        }
    }
}

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

    each_symbol(object, SHT_DYNSYM, visit_import, &import);
    return import.found;
}

/* The bytes of `mov $number, %edi` (syscall's first argument) or, with a syscall instruction close behind, of `mov
 * $number, %eax`. */
static bool asks_for(const uint8_t *code, size_t n, uint32_t number, bool through_library)
{
    for (size_t i = 0; i + 5 <= n; i++) {
        if (code[i + 1] != (number & 0xff) || code[i + 2] != (number >> 8 & 0xff) ||
            code[i + 3] != (number >> 16 & 0xff) || code[i + 4] != number >> 24)
            continue;
        if (code[i] == 0xbf && through_library)
            return true;
        if (code[i] != 0xb8)
            continue;
        for (size_t k = i + 5; k + 2 <= n && k < i + 64; k++)
            if (code[k] == 0x0f && code[k + 1] == 0x05)
                return true;
    }
    return false;
}

bool etch_object_makes_call(const struct etch_object *object, uint32_t number)
{
    bool through_library = etch_object_imports(object, "syscall");

    for (Elf_Scn *section = elf_nextscn(object->elf, NULL); section; section = elf_nextscn(object->elf, section)) {
        GElf_Shdr header;
        Elf_Data *data;

        if (!gelf_getshdr(section, &header) || header.sh_type != SHT_PROGBITS || !(header.sh_flags & SHF_EXECINSTR))
            continue;
        data = elf_rawdata(section, NULL);
        if (data && data->d_buf && asks_for(data->d_buf, data->d_size, number, through_library))
            return true;
    }
    return false;
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

    each_symbol(object, SHT_SYMTAB, visit_lookup, &lookup);
    if (!lookup.found)
        each_symbol(object, SHT_DYNSYM, visit_lookup, &lookup);
    if (!lookup.found) {
        lookup.by_source = true;
        each_symbol(object, SHT_SYMTAB, visit_lookup, &lookup);
        return lookup.found;
    }
    return lookup.global ? 1 : lookup.found;
}
