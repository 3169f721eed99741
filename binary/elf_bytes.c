/* SPDX-License-Identifier: MIT */
/* See elf_bytes.h. */
#include "binary/elf_bytes.h"

#include <string.h>

static bool within(size_t size, uint64_t offset, uint64_t n)
{
    return offset <= size && n <= size - offset;
}

bool etch_elf_bytes_open(struct etch_elf_bytes *elf, const uint8_t *bytes, size_t size)
{
    Elf64_Ehdr *h = &elf->header;
    struct etch_elf_section names;

    elf->bytes = bytes;
    elf->size = size;
    if (size < sizeof(*h))
        return false;
    memcpy(h, bytes, sizeof(*h));
    if (memcmp(h->e_ident, ELFMAG, SELFMAG) != 0 || h->e_ident[EI_CLASS] != ELFCLASS64 ||
        h->e_ident[EI_DATA] != ELFDATA2LSB || h->e_shentsize != sizeof(Elf64_Shdr) ||
        !within(size, h->e_shoff, (uint64_t)h->e_shnum * sizeof(Elf64_Shdr)) ||
        !etch_elf_bytes_section(elf, h->e_shstrndx, &names) || !names.bytes)
        return false;
    elf->names = names.header;
    return true;
}

bool etch_elf_bytes_section(const struct etch_elf_bytes *elf, uint32_t i, struct etch_elf_section *section)
{
    Elf64_Shdr *s = &section->header;

    if (i >= elf->header.e_shnum)
        return false;
    memcpy(s, elf->bytes + elf->header.e_shoff + (size_t)i * sizeof(*s), sizeof(*s));
    *section = (struct etch_elf_section){.header = *s};
    if (s->sh_type != SHT_NOBITS && within(elf->size, s->sh_offset, s->sh_size)) {
        section->bytes = elf->bytes + s->sh_offset;
        section->size = s->sh_size;
    }
    return true;
}

bool etch_elf_section_is(const struct etch_elf_bytes *elf, const struct etch_elf_section *section, const char *name)
{
    size_t n = strlen(name) + 1;

    return within(elf->names.sh_size, section->header.sh_name, n) &&
           memcmp(elf->bytes + elf->names.sh_offset + section->header.sh_name, name, n) == 0;
}

bool etch_elf_bytes_segment(const struct etch_elf_bytes *elf, uint32_t i, Elf64_Phdr *segment)
{
    uint64_t at = (uint64_t)i * sizeof(*segment);

    if (elf->header.e_phentsize != sizeof(*segment) || i >= elf->header.e_phnum ||
        !within(elf->size, elf->header.e_phoff, at + sizeof(*segment)))
        return false;
    memcpy(segment, elf->bytes + elf->header.e_phoff + at, sizeof(*segment));
    return true;
}
