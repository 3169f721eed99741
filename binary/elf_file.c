/* SPDX-License-Identifier: MIT */
/* See elf_file.h. */
#include "binary/elf_file.h"

#include "base/input.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

int etch_elf_file_open(struct etch_elf_file *file, const char *path, struct etch_error *err)
{
    file->elf = NULL;
    file->fd = etch_input_open(path);
    if (file->fd < 0)
        return etch_error_set_errno(err, errno, "cannot open %s", path);
    elf_version(EV_CURRENT);
    file->elf = elf_begin(file->fd, ELF_C_READ_MMAP, NULL);
    if (file->elf && elf_kind(file->elf) == ELF_K_ELF)
        return 0;
    elf_end(file->elf);
    file->elf = NULL;
    return etch_error_set(err, "%s is not an ELF file", path);
}

void etch_elf_file_close(struct etch_elf_file *file)
{
    elf_end(file->elf);
    if (file->fd >= 0)
        close(file->fd);
    *file = (struct etch_elf_file){.fd = -1};
}

bool etch_elf_next_segment(Elf *elf, uint32_t type, size_t *at, GElf_Phdr *found)
{
    size_t n = 0;

    if (elf_getphdrnum(elf, &n) < 0)
        return false;
    while (*at < n)
        if (gelf_getphdr(elf, (int)(*at)++, found) && found->p_type == type)
            return true;
    return false;
}

Elf_Scn *etch_elf_section(Elf *elf, const char *name, GElf_Shdr *header)
{
    size_t names;

    if (elf_getshdrstrndx(elf, &names) != 0)
        return NULL;
    for (Elf_Scn *section = elf_nextscn(elf, NULL); section; section = elf_nextscn(elf, section)) {
        const char *own = gelf_getshdr(section, header) ? elf_strptr(elf, names, header->sh_name) : NULL;

        if (own && strcmp(own, name) == 0)
            return section;
    }
    return NULL;
}

static size_t note_build_id(Elf_Data *data, uint8_t id[ETCH_BUILD_ID_MAX])
{
    size_t at = 0, name, description;
    GElf_Nhdr note;

    while (data && (at = gelf_getnote(data, at, &note, &name, &description)) > 0)
        if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
            memcmp((const char *)data->d_buf + name, "GNU", 4) == 0 && note.n_descsz &&
            note.n_descsz <= ETCH_BUILD_ID_MAX) {
            memcpy(id, (const char *)data->d_buf + description, note.n_descsz);
            return note.n_descsz;
        }
    return 0;
}

size_t etch_elf_build_id(Elf *elf, uint8_t id[ETCH_BUILD_ID_MAX])
{
    GElf_Phdr segment;
    GElf_Shdr header;
    size_t at = 0, n = 0;

    while (!n && etch_elf_next_segment(elf, PT_NOTE, &at, &segment))
        n = note_build_id(elf_getdata_rawchunk(elf, (int64_t)segment.p_offset, segment.p_filesz,
                                               segment.p_align == 8 ? ELF_T_NHDR8 : ELF_T_NHDR),
                          id);
    for (Elf_Scn *section = elf_nextscn(elf, NULL); !n && section; section = elf_nextscn(elf, section))
        if (gelf_getshdr(section, &header) && header.sh_type == SHT_NOTE)
            n = note_build_id(elf_getdata(section, NULL), id);
    return n;
}

/* Returns true where `visit` did. */
static bool visit_table(Elf *elf, Elf_Scn *section, uint32_t names, etch_elf_symbol_visitor *visit, void *context)
{
    Elf_Data *data = elf_getdata(section, NULL);
    GElf_Sym symbol;

    for (int i = 0; data && gelf_getsym(data, i, &symbol); i++) {
        const char *name = elf_strptr(elf, names, symbol.st_name);

        if (name && visit(context, &symbol, name))
            return true;
    }
    return false;
}

void etch_elf_each_symbol(Elf *elf, uint32_t table, etch_elf_symbol_visitor *visit, void *context)
{
    GElf_Shdr header;

    for (Elf_Scn *section = elf_nextscn(elf, NULL); section; section = elf_nextscn(elf, section)) {
        if (!gelf_getshdr(section, &header))
            continue;
        if (table ? header.sh_type != table : header.sh_type != SHT_SYMTAB && header.sh_type != SHT_DYNSYM)
            continue;
        if (visit_table(elf, section, header.sh_link, visit, context))
            return;
    }
}
