/* SPDX-License-Identifier: MIT */
/* Damaged ELF files and line tables, through the reader of line tables. */
#include "binary/line_table.h"
#include "tests/fuzz/file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void ask(struct etch_line_table *table)
{
    size_t n, code;
    const struct etch_line_row *rows = etch_line_table_rows(table, &n);
    uint64_t starts[8], ends[8], address, length;
    struct etch_line_row row;

    for (size_t i = 0; i < n; i += 1 + n / 64) {
        const char *file = etch_line_table_file(table, rows[i].file);

        etch_line_table_at(table, rows[i].start);
        etch_line_table_own(table, rows[i].start, &row);
        etch_line_table_find(table, file, rows[i].line, 0, starts, ends, 8);
        etch_line_table_code(table, rows[i].start, &code);
        etch_line_table_declared(table, file, "entry");
    }
    etch_line_table_symbol(table, "entry", NULL, 0, &address, &length);
    etch_line_table_is_variable(table, 0x4000, 8);
    etch_line_table_address(table, 0, 0x1000, &address);
    etch_line_table_build_id(table, 0, &n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct etch_line_table *table = etch_line_table_new();
    struct etch_error err;
    char path[64];
    int fd = fuzz_file(data, size, path);

    if (table && etch_line_table_add(table, path, &err) == 0 && etch_line_table_finish(table, &err) == 0)
        ask(table);
    etch_line_table_free(table);
    close(fd);
    return 0;
}
