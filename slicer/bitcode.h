/* SPDX-License-Identifier: MIT */
/* The bitcode that etch cc embedded in a binary: section .llvmbc, the modules of all objects one behind the other, as the
 * linker left them. Private to slicer/. */
#ifndef ETCH_SLICER_BITCODE_H
#define ETCH_SLICER_BITCODE_H

#include "base/array.h"
#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

/* One module within the section. */
struct etch_bitcode_module {
    size_t offset, size;
    char producer[32]; /* "LLVM19.1.7"; empty where the module does not say */
};

typedef ETCH_ARRAY(struct etch_bitcode_module) etch_bitcode_modules;

/* Finds the section in the bytes of an ELF file. Returns 0, or -1 with `err` set: no ELF file, cut, or no bitcode. */
int etch_bitcode_find(const uint8_t *elf, size_t size, const uint8_t **section, size_t *section_size,
                      struct etch_error *err);

/* Takes the section apart. Returns 0, or -1 with `err` set where the bytes are not a sequence of whole modules. */
int etch_bitcode_split(const uint8_t *section, size_t size, etch_bitcode_modules *modules, struct etch_error *err);

#endif
