/* SPDX-License-Identifier: MIT */
/* The code ranges of a place in the source. */
#include "base/log.h"
#include "slicer/model/model.h"

size_t etch_code_ranges(const struct etch_model *m, const char *file, uint32_t line, uint32_t column, uint64_t *starts,
                        uint64_t *ends, size_t limit)
{
    size_t n = etch_line_table_find(m->lines, file, line, column, starts, ends, limit);

    if (n == limit)
        etch_log(ETCH_LOG_MODEL, ETCH_LOG_INFO, "%s:%u:%u has %zu code ranges or more: only the first %zu are used",
                 file, line, column, n, limit);
    return n;
}
