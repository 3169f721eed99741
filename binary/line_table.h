/* SPDX-License-Identifier: MIT */
/* The line table of a program and its libraries: which addresses belong to which place in the source, where symbols
 * are, the build-ids. Addresses of the program are those of its symbols. Addresses of a library have a base added that
 * identifies the library. */
#ifndef ETCH_BINARY_LINE_TABLE_H
#define ETCH_BINARY_LINE_TABLE_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct etch_line_row {
    uint64_t start, end;
    uint32_t file; /* see etch_line_table_file() */
    uint32_t line, column;
    bool statement; /* is_stmt: where a debugger would stop */
    bool plain;     /* in the copy that runs while the software recorder is off */
};

struct etch_line_table;

/* Library number N of the program's, from 1, has its addresses from N << ETCH_IMAGE_SHIFT on. */
#define ETCH_IMAGE_SHIFT 40

/* The program is added first, then its libraries; nothing can be asked before the table is finished. NULL when memory
 * is short. */
struct etch_line_table *etch_line_table_new(void);
int etch_line_table_add(struct etch_line_table *table, const char *path, struct etch_error *err);
int etch_line_table_finish(struct etch_line_table *table, struct etch_error *err);
void etch_line_table_free(struct etch_line_table *table);

/* The rows, by address. Rows without a line are left out. */
const struct etch_line_row *etch_line_table_rows(const struct etch_line_table *table, size_t *n);
const char *etch_line_table_file(const struct etch_line_table *table, uint32_t file);

/* The row that holds an address; NULL for none. */
const struct etch_line_row *etch_line_table_at(const struct etch_line_table *table, uint64_t address);

/* The same in the user's own code: for inlined code of a system header, the row is the innermost call in the user's own
 * code. Without such a call, the row itself. */
bool etch_line_table_own(struct etch_line_table *table, uint64_t address, struct etch_line_row *row);

/* The rows of one place, by address, those of plain copies last; column 0 stands for any. NULL and 0 for none. */
size_t etch_line_table_find(const struct etch_line_table *table, const char *file, uint32_t line, uint32_t column,
                            uint64_t *starts, uint64_t *ends, size_t limit);

/* Finds the address of a symbol. `source` selects a local symbol by its source file; NULL selects a global symbol.
 * `image` selects the binary; ETCH_NONE: the first binary with the symbol, as the dynamic loader binds. */
bool etch_line_table_symbol(const struct etch_line_table *table, const char *name, const char *source, uint32_t image,
                            uint64_t *address, uint64_t *size);

/* Do the bytes at an address all belong to one variable with a symbol? */
bool etch_line_table_is_variable(const struct etch_line_table *table, uint64_t address, uint64_t size);

/* The line on which the debug information says that the function with this linkage name begins, in the unit made from
 * `source`; 0: not known. */
uint32_t etch_line_table_declared(const struct etch_line_table *table, const char *source, const char *function);

/* Converts an offset in a binary's file to an address; false if nothing is loaded from this offset. */
bool etch_line_table_address(const struct etch_line_table *table, uint32_t image, uint64_t file_offset,
                             uint64_t *address);

/* The bytes of the code at an address, up to the end of what is loaded there. */
const uint8_t *etch_line_table_code(const struct etch_line_table *table, uint64_t address, size_t *size);

const uint8_t *etch_line_table_build_id(const struct etch_line_table *table, uint32_t image, size_t *size);

#endif
