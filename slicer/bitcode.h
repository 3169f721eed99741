/* SPDX-License-Identifier: MIT */
/* The bitcode that etch cc embedded in a binary: section .llvmbc or .etchbc. It has the modules of all objects one
 * after the other, as the linker put them. */
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

/* The sections with bitcode. etch cc renames the first section in the objects that it makes. The reason: with LLVM's
 * plugin installed, ar and ld take an object with a section of that name for an object of link-time optimisation. */
#define ETCH_BITCODE_CLANG ".llvmbc"
#define ETCH_BITCODE_OWN ".etchbc"

/* Calls `visit` with each such section of an ELF file. Returns 0; -1 with `err` set if the file is no ELF file or is
 * cut; or the result of `visit` if it is not 0. */
typedef int etch_bitcode_visitor(void *context, const uint8_t *section, size_t size, struct etch_error *err);
int etch_bitcode_sections(const uint8_t *elf, size_t size, etch_bitcode_visitor *visit, void *context,
                          struct etch_error *err);

/* The same for the sections of another name. */
int etch_bitcode_named(const uint8_t *elf, size_t size, const char *name, etch_bitcode_visitor *visit, void *context,
                       struct etch_error *err);

/* Renames the section of an object file as above, in place. Returns how many bytes changed; 0 also for a file that is
 * no object. */
size_t etch_bitcode_rename(uint8_t *elf, size_t size);

/* Takes the section apart. Returns 0, or -1 with `err` set where the bytes are not a sequence of whole modules. */
int etch_bitcode_split(const uint8_t *section, size_t size, etch_bitcode_modules *modules, struct etch_error *err);

#endif
