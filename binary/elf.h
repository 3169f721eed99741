/* SPDX-License-Identifier: MIT */
/* What a recorder must know of an ELF file: what it is, its build-id, where a global variable lies. */
#ifndef ETCH_BINARY_ELF_H
#define ETCH_BINARY_ELF_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ETCH_BUILD_ID_MAX 64u

struct etch_elf {
    bool program;        /* x86-64, and something that can be run */
    bool dynamic;        /* loaded anywhere (ET_DYN) */
    uint64_t file_vaddr; /* address of file offset 0 before it is moved */
    uint64_t end_vaddr;  /* where its last segment ends */
    uint8_t build_id[ETCH_BUILD_ID_MAX];
    size_t build_id_size; /* 0: none */
};

/* Returns 0, or -1 with `err` set where the file cannot be read or is no ELF file. */
int etch_elf_read(struct etch_elf *elf, const char *path, struct etch_error *err);

/* The variable `name` of the file's symbol tables: its address in the file and its size (0: not known). Returns 0, or
 * -1 with `err` set: there is none, several of that name differ, or it is no plain variable. */
int etch_elf_variable(const char *path, const char *name, uint64_t *address, uint64_t *size, struct etch_error *err);

#endif
