/* SPDX-License-Identifier: MIT */
/* Private to binary/: where the debug information of a file is. Either the file has it, or a separate debug file, which
 * is found by build-id or .gnu_debuglink, or was fetched by a client of debuginfod. libdw follows from there to .dwo
 * files and to the common file of dwz. */
#ifndef ETCH_BINARY_DEBUG_FILE_H
#define ETCH_BINARY_DEBUG_FILE_H

#include "base/error.h"
#include "binary/elf_file.h"

#include <elfutils/libdw.h>
#include <stdbool.h>

/* Does the section have bytes in this file? A section of a separate debug file may have a header alone. */
bool etch_elf_has_contents(Elf *elf, const char *section);

/* Opens the separate debug file of `elf`, which was read from `path`. `*found` stays as it is if `elf` has debug
 * information, or if there is no debug file of the same build. The debug files of `debug_dir` and of `sysroot` come
 * first; either may be NULL. */
void etch_debug_file_find(struct etch_elf_file *found, Elf *elf, const char *path, const char *sysroot,
                          const char *debug_dir);

struct etch_debug {
    struct etch_elf_file file, separate;
    Dwarf *dwarf;
};

/* Returns 0, or -1 with `err` set if the file cannot be read or has no debug information. To be closed in either
 * case. */
int etch_debug_open(struct etch_debug *debug, const char *path, struct etch_error *err);
void etch_debug_close(struct etch_debug *debug);

/* The file that has the debug information and the symbols. */
Elf *etch_debug_elf(const struct etch_debug *debug);

#endif
