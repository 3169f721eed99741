/* SPDX-License-Identifier: MIT */
/* Executables and libraries by libelf; see object.h. */
#include "binary/elf_file.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

int etch_object_open(struct etch_object **object, const char *path, struct etch_error *err)
{
    struct etch_object *o = calloc(1, sizeof(*o));
    GElf_Ehdr header;

    *object = NULL;
    if (!o)
        return etch_error_no_memory(err);
    if (etch_elf_file_open(&o->file, path, err) < 0 && o->file.fd < 0) {
        etch_object_free(o);
        return -1;
    }
    if (!o->file.elf || !gelf_getehdr(o->file.elf, &header) || header.e_machine != EM_X86_64) {
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
    etch_elf_file_close(&object->file);
    free(object);
}

static void read_segments(struct etch_elf *to, Elf *elf)
{
    GElf_Phdr segment;
    size_t at = 0;

    for (bool first = true; etch_elf_next_segment(elf, PT_LOAD, &at, &segment); first = false) {
        if (first)
            to->file_vaddr = segment.p_vaddr - segment.p_offset;
        if (segment.p_vaddr + segment.p_memsz > to->end_vaddr)
            to->end_vaddr = segment.p_vaddr + segment.p_memsz;
    }
}

int etch_elf_read(struct etch_elf *to, const char *path, struct etch_error *err)
{
    struct etch_elf_file f;
    GElf_Ehdr header;
    size_t n = 0;
    int result = etch_elf_file_open(&f, path, err);

    memset(to, 0, sizeof(*to));
    if (result == 0 && (!gelf_getehdr(f.elf, &header) || elf_getphdrnum(f.elf, &n) < 0))
        result = etch_error_set(err, "%s is a damaged ELF file", path);
    if (result == 0) {
        to->dynamic = header.e_type == ET_DYN;
        to->program = header.e_machine == EM_X86_64 && header.e_ident[EI_CLASS] == ELFCLASS64 &&
                      (header.e_type == ET_EXEC || header.e_type == ET_DYN);
        read_segments(to, f.elf);
        to->build_id_size = etch_elf_build_id(f.elf, to->build_id);
    }
    etch_elf_file_close(&f);
    return result;
}

bool etch_object_is_dynamic(const struct etch_object *object)
{
    GElf_Phdr header;
    size_t at = 0;

    return etch_elf_next_segment(object->file.elf, PT_INTERP, &at, &header);
}

uint64_t etch_object_bias(const struct etch_object *object, uint64_t start, uint64_t file_offset)
{
    GElf_Phdr header;
    size_t at = 0;

    if (object->type != ET_DYN)
        return 0;
    while (etch_elf_next_segment(object->file.elf, PT_LOAD, &at, &header))
        if (file_offset >= (header.p_offset & ~(uint64_t)4095) && file_offset < header.p_offset + header.p_filesz)
            return start - (header.p_vaddr - header.p_offset + file_offset);
    return start - file_offset;
}

bool etch_object_offset(const struct etch_object *object, uint64_t address, uint64_t *offset)
{
    GElf_Phdr header;
    size_t at = 0;

    while (etch_elf_next_segment(object->file.elf, PT_LOAD, &at, &header))
        if (header.p_flags & PF_X && address >= header.p_vaddr && address - header.p_vaddr < header.p_filesz) {
            *offset = header.p_offset + (address - header.p_vaddr);
            return true;
        }
    return false;
}

size_t etch_object_build_id(const struct etch_object *object, uint8_t id[ETCH_BUILD_ID_MAX])
{
    return etch_elf_build_id(object->file.elf, id);
}

bool etch_object_has_section(const struct etch_object *object, const char *name)
{
    GElf_Shdr header;

    return etch_elf_section(object->file.elf, name, &header) != NULL;
}

bool etch_object_next_segment(const struct etch_object *object, size_t *at, struct etch_segment *segment)
{
    GElf_Phdr header;

    if (!etch_elf_next_segment(object->file.elf, PT_LOAD, at, &header))
        return false;
    *segment =
        (struct etch_segment){header.p_offset, header.p_filesz, header.p_vaddr,
                              (header.p_flags & PF_R ? PROT_READ : 0u) | (header.p_flags & PF_W ? PROT_WRITE : 0u) |
                                  (header.p_flags & PF_X ? PROT_EXEC : 0u),
                              header.p_memsz};
    return true;
}

static bool is_wanted(const GElf_Dyn *dyn, enum etch_object_dynamic *entry)
{
    *entry = dyn->d_tag == DT_RPATH     ? ETCH_OBJECT_RPATH
             : dyn->d_tag == DT_RUNPATH ? ETCH_OBJECT_RUNPATH
                                        : ETCH_OBJECT_NEEDED;
    return dyn->d_tag == DT_NEEDED || *entry != ETCH_OBJECT_NEEDED;
}

bool etch_object_each_dynamic(const struct etch_object *object, etch_object_dynamic_visitor *visit, void *context)
{
    Elf *elf = object->file.elf;

    for (Elf_Scn *section = elf_nextscn(elf, NULL); section; section = elf_nextscn(elf, section)) {
        enum etch_object_dynamic entry;
        GElf_Shdr header;
        GElf_Dyn dyn;
        Elf_Data *data =
            gelf_getshdr(section, &header) && header.sh_type == SHT_DYNAMIC ? elf_getdata(section, NULL) : NULL;

        for (int i = 0; data && gelf_getdyn(data, i, &dyn) && dyn.d_tag != DT_NULL; i++) {
            const char *text = is_wanted(&dyn, &entry) ? elf_strptr(elf, header.sh_link, dyn.d_un.d_val) : NULL;

            if (text && !visit(context, entry, text))
                return false;
        }
    }
    return true;
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

    for (Elf_Scn *section = elf_nextscn(object->file.elf, NULL); section;
         section = elf_nextscn(object->file.elf, section)) {
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
