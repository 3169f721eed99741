/* SPDX-License-Identifier: MIT */
/* The end of etch after a broken invariant; see assert.h. */
#include "base/assert.h"

#include "base/printable.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The path from the top of the source tree. The compiler may have been given absolute paths. */
static const char *from_top(const char *file)
{
    static const char own[] = __FILE__, tail[] = "base/assert.c";
    size_t top = sizeof(own) > sizeof(tail) ? sizeof(own) - sizeof(tail) : 0;

    return strncmp(file, own, top) == 0 ? file + top : file;
}

void etch_assert_failed(const char *file, int line, const char *function, const char *condition, const char *fmt, ...)
{
    char values[512];
    va_list args;

    va_start(args, fmt);
    vsnprintf(values, sizeof(values), fmt, args);
    va_end(args);
    fprintf(stderr,
            "etch: internal error at %s:%d in %s(): '%s' does not hold%s%s\n"
            "etch: this is a fault in etch; please report it with the lines above and the command that you ran\n",
            from_top(file), line, function, condition, values[0] ? ": " : "", etch_printable(values));
    fflush(stderr);
    abort();
}
