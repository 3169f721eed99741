/* SPDX-License-Identifier: MIT */
/* The program model: all modules of a binary as one program, from the bitcode that etch cc embedded. The bitcode is
 * from before optimisation, so its statements and names are those of the source. The line table gives the machine code
 * of each statement. */
#ifndef ETCH_SLICER_PROGRAM_H
#define ETCH_SLICER_PROGRAM_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct etch_model;

struct etch_model_size {
    size_t modules, functions, instructions, stores, calls;
};

/* Reads the binary at `path` and those of its shared libraries that have bitcode: the libraries that the dynamic loader
 * would load, and `more`, which a run was seen to load. A defect of a library is only a note. Returns 0, or -1 with
 * `err` set: no such file, no ELF file, no bitcode, bitcode of another LLVM, bitcode that is not of this binary's
 * code. */
int etch_model_open(struct etch_model **model, const char *path, const char *const *more, size_t n_more,
                    struct etch_error *err);

void etch_model_free(struct etch_model *model);

void etch_model_measure(const struct etch_model *model, struct etch_model_size *size);

/* The MD5 of a source file when it was compiled, 32 hexadecimal digits; NULL: the compiler did not say. */
const char *etch_model_checksum(const struct etch_model *model, const char *file);

/* The libraries with bitcode that slices do not go through, and the reason: note `i`, NULL after the last note. */
const char *etch_model_note(const struct etch_model *model, size_t i);

/* True if the model contains the file, or a file with the same build-id. Also true for a file without bitcode. */
bool etch_model_covers(const struct etch_model *model, const char *path, const uint8_t *build_id, size_t size);

/* The binary's build-id; `*size` is 0 if the binary has none. */
const uint8_t *etch_model_build_id(const struct etch_model *model, size_t *size);

#endif
