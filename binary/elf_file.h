/* SPDX-License-Identifier: MIT */
/* Private to binary/: an open ELF file and its parts, by libelf. All other files of this room open ELF files through
 * this header. */
#ifndef ETCH_BINARY_ELF_FILE_H
#define ETCH_BINARY_ELF_FILE_H

#include "base/error.h"
#include "binary/object.h"

#include <gelf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct etch_elf_file {
    int fd;
    Elf *elf;
};

struct etch_object {
    struct etch_elf_file file;
    uint16_t type; /* ET_EXEC, ET_DYN, ... */
};

/* Returns 0, or -1 with `err` set; then `fd` is -1 if the file cannot be opened, and `elf` is NULL. To be closed in
 * either case. */
int etch_elf_file_open(struct etch_elf_file *file, const char *path, struct etch_error *err);
void etch_elf_file_close(struct etch_elf_file *file);

/* The next program header of a type; `*at` begins at 0. False: there are no more. */
bool etch_elf_next_segment(Elf *elf, uint32_t type, size_t *at, GElf_Phdr *found);

/* The first section of that name, with its header; NULL: there is none. */
Elf_Scn *etch_elf_section(Elf *elf, const char *name, GElf_Shdr *header);

/* The build-id: from the segments of notes, which the kernel reads too; else from the sections, which a separate debug
 * file has. Returns its length; 0: there is none. */
size_t etch_elf_build_id(Elf *elf, uint8_t id[ETCH_BUILD_ID_MAX]);

/* Calls `visit` with each named symbol until `visit` returns true. `table`: SHT_SYMTAB, SHT_DYNSYM, or SHT_NULL for
 * both. */
typedef bool etch_elf_symbol_visitor(void *context, const GElf_Sym *symbol, const char *name);
void etch_elf_each_symbol(Elf *elf, uint32_t table, etch_elf_symbol_visitor *visit, void *context);

#endif
