/* SPDX-License-Identifier: MIT */
/* The unwind tables of the files that ran, and the way from a frame to its caller by them. Registers have DWARF's
 * numbers for x86-64. */
#ifndef ETCH_BINARY_UNWIND_TABLES_H
#define ETCH_BINARY_UNWIND_TABLES_H

#include "proto/etch.pb-c.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { ETCH_UNWIND_SP = 7, ETCH_UNWIND_PC = 16, ETCH_UNWIND_FRAME_REGISTERS = 17 };

struct etch_unwind_frame {
    uint64_t r[ETCH_UNWIND_FRAME_REGISTERS];
    uint32_t known; /* bit by bit */
};

/* The thread's memory: false where the word is not known. */
struct etch_unwind_memory {
    bool (*read)(const void *context, uint64_t address, uint64_t *word);
    const void *context;
};

struct etch_unwind_tables;

/* NULL when memory is short. */
struct etch_unwind_tables *etch_unwind_tables_new(void);
void etch_unwind_tables_free(struct etch_unwind_tables *tables);

/* Adds the file of an image; `bias` is added to the file's addresses. A file that cannot be opened, or that has another
 * build-id than the image, is left out: a stack ends there. */
void etch_unwind_tables_add(struct etch_unwind_tables *tables, const Etch__Image *image, uint64_t bias);

/* After the last file. False: the tables cannot be used. */
bool etch_unwind_tables_finish(struct etch_unwind_tables *tables);

/* Makes the frame its caller's, by the tables alone. False: the tables end here. */
bool etch_unwind_tables_step(struct etch_unwind_tables *tables, const struct etch_unwind_memory *memory,
                             struct etch_unwind_frame *frame, bool innermost);

/* The addresses of a thread's frames, innermost first, from the registers of its innermost frame. Goes on by the frame
 * pointer where the tables end. Returns their number. */
size_t etch_unwind_tables_walk(struct etch_unwind_tables *tables, const struct etch_unwind_memory *memory,
                               const struct etch_unwind_frame *innermost, uint64_t *frames, size_t limit);

#endif
