/* SPDX-License-Identifier: MIT */
/* Log lines; see log.h. */
#include "base/log.h"

#include "base/printable.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

static const char *const names[] = {"error", "warn", "info", "debug"};

static atomic_int threshold = ETCH_LOG_WARN;

void etch_log_set_level(enum etch_log_level level)
{
    atomic_store_explicit(&threshold, (int)level, memory_order_relaxed);
}

int etch_log_set_level_by_name(const char *name)
{
    for (int i = 0; i < (int)(sizeof(names) / sizeof(names[0])); i++) {
        if (strcmp(name, names[i]) == 0) {
            etch_log_set_level((enum etch_log_level)i);
            return 0;
        }
    }
    return -1;
}

void etch_log(enum etch_log_level level, const char *fmt, ...)
{
    char line[1024];
    va_list args;

    if ((int)level > atomic_load_explicit(&threshold, memory_order_relaxed))
        return;
    va_start(args, fmt);
    vsnprintf(line, sizeof(line), fmt, args);
    va_end(args);
    fprintf(stderr, "etch: %s: %s\n", names[level], etch_printable(line));
}
