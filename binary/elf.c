/* SPDX-License-Identifier: MIT */
/* ELF files, by libelf; see elf.h. */
#include "binary/elf.h"

#include "base/function_name.h"
#include "base/input.h"

#include <errno.h>
#include <gelf.h>
#include <inttypes.h>
#include <libelf.h>
#include <string.h>
#include <unistd.h>

struct file {
    int fd;
    Elf *elf;
};

static int open_file(struct file *f, const char *path, struct etch_error *err)
{
    f->elf = NULL;
    f->fd = etch_input_open(path);
    if (f->fd < 0)
        return etch_error_set_errno(err, errno, "cannot open %s", path);
    elf_version(EV_CURRENT);
    f->elf = elf_begin(f->fd, ELF_C_READ_MMAP, NULL);
    if (!f->elf || elf_kind(f->elf) != ELF_K_ELF) {
        elf_end(f->elf);
        close(f->fd);
        return etch_error_set(err, "%s is not an ELF file", path);
    }
    return 0;
}

static void close_file(struct file *f)
{
    elf_end(f->elf);
    close(f->fd);
}

static void read_notes(struct etch_elf *to, Elf *elf, const GElf_Phdr *header)
{
    Elf_Data *data = elf_getdata_rawchunk(elf, (int64_t)header->p_offset, header->p_filesz,
                                          header->p_align == 8 ? ELF_T_NHDR8 : ELF_T_NHDR);
    size_t at = 0, name, description;
    GElf_Nhdr note;

    while (data && (at = gelf_getnote(data, at, &note, &name, &description)) > 0) {
        if (note.n_type != NT_GNU_BUILD_ID || note.n_namesz != 4 || note.n_descsz > sizeof(to->build_id) ||
            memcmp((const char *)data->d_buf + name, "GNU", 4) != 0)
            continue;
        memcpy(to->build_id, (const char *)data->d_buf + description, note.n_descsz);
        to->build_id_size = note.n_descsz;
    }
}

int etch_elf_read(struct etch_elf *to, const char *path, struct etch_error *err)
{
    struct file f;
    GElf_Ehdr header;
    GElf_Phdr segment;
    size_t n = 0;
    bool loaded = false;

    memset(to, 0, sizeof(*to));
    if (open_file(&f, path, err) < 0)
        return -1;
    if (!gelf_getehdr(f.elf, &header) || elf_getphdrnum(f.elf, &n) < 0) {
        close_file(&f);
        return etch_error_set(err, "%s is a damaged ELF file", path);
    }
    to->dynamic = header.e_type == ET_DYN;
    to->program = header.e_machine == EM_X86_64 && header.e_ident[EI_CLASS] == ELFCLASS64 &&
                  (header.e_type == ET_EXEC || header.e_type == ET_DYN);
    for (size_t i = 0; i < n && gelf_getphdr(f.elf, (int)i, &segment); i++) {
        if (segment.p_type == PT_LOAD && !loaded) {
            to->file_vaddr = segment.p_vaddr - segment.p_offset;
            loaded = true;
        }
        if (segment.p_type == PT_LOAD) {
            if (segment.p_vaddr + segment.p_memsz > to->end_vaddr)
                to->end_vaddr = segment.p_vaddr + segment.p_memsz;
        } else if (segment.p_type == PT_NOTE && !to->build_id_size) {
            read_notes(to, f.elf, &segment);
        }
    }
    close_file(&f);
    return 0;
}

struct search {
    const char *name;
    GElf_Sym found;
    unsigned n; /* of different addresses */
    bool thread_local_one;
    bool by_source; /* the name is as a C++ source writes it */
};

static void consider(struct search *s, const GElf_Sym *symbol)
{
    unsigned type = GELF_ST_TYPE(symbol->st_info);

    if (symbol->st_shndx == SHN_UNDEF)
        return;
    s->thread_local_one |= type == STT_TLS;
    if (type != STT_OBJECT && type != STT_NOTYPE && type != STT_COMMON)
        return;
    if (!s->n || symbol->st_value != s->found.st_value)
        s->n++;
    s->found = *symbol;
}

static void search_table(struct search *s, Elf *elf, Elf_Scn *section, const GElf_Shdr *header)
{
    Elf_Data *data = elf_getdata(section, NULL);
    size_t n = header->sh_entsize ? header->sh_size / header->sh_entsize : 0;

    for (size_t i = 0; data && i < n; i++) {
        GElf_Sym symbol;
        const char *name = gelf_getsym(data, (int)i, &symbol) ? elf_strptr(elf, header->sh_link, symbol.st_name) : NULL;

        if (name && (s->by_source ? etch_symbol_is(name, s->name) : strcmp(name, s->name) == 0))
            consider(s, &symbol);
    }
}

int etch_elf_variable(const char *path, const char *name, uint64_t *address, uint64_t *size, struct etch_error *err)
{
    struct search s = {.name = name};
    struct file f;
    Elf_Scn *section = NULL;
    GElf_Shdr header;

    if (open_file(&f, path, err) < 0)
        return -1;
    for (int pass = 0; pass < 2 && !s.n && !s.thread_local_one; pass++, s.by_source = true)
        while ((section = elf_nextscn(f.elf, section)))
            if (gelf_getshdr(section, &header) && (header.sh_type == SHT_SYMTAB || header.sh_type == SHT_DYNSYM))
                search_table(&s, f.elf, section, &header);
    close_file(&f);
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
