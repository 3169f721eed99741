/* SPDX-License-Identifier: MIT */
/* An ELF file in memory, 64-bit and little-endian: its sections and segments. The bytes may be damaged or cut, so each
 * bound is checked; nothing is copied or allocated. For bytes that are written too, or that change while they are read.
 * object.h reads files on disk. */
#ifndef ETCH_BINARY_ELF_BYTES_H
#define ETCH_BINARY_ELF_BYTES_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct etch_elf_bytes {
    const uint8_t *bytes;
    size_t size;
    Elf64_Ehdr header;
    Elf64_Shdr names; /* the section with the names of the sections */
};

struct etch_elf_section {
    Elf64_Shdr header;
    const uint8_t *bytes; /* NULL: the section has no bytes in the file, or reaches out of the file */
    size_t size;
};

/* Returns false where this is no ELF file, or its table of sections or their names reach out of it. */
bool etch_elf_bytes_open(struct etch_elf_bytes *elf, const uint8_t *bytes, size_t size);

/* Section `i`; false behind the last. */
bool etch_elf_bytes_section(const struct etch_elf_bytes *elf, uint32_t i, struct etch_elf_section *section);

bool etch_elf_section_is(const struct etch_elf_bytes *elf, const struct etch_elf_section *section, const char *name);

/* Program header `i`; false behind the last. */
bool etch_elf_bytes_segment(const struct etch_elf_bytes *elf, uint32_t i, Elf64_Phdr *segment);

#endif
