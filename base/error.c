/* SPDX-License-Identifier: MIT */
/* Errors as values; see error.h. */
#include "base/error.h"

#include "base/printable.h"

#include <stdarg.h>
#include <string.h>

int etch_error_set(struct etch_error *err, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    vsnprintf(err->what, sizeof(err->what), fmt, args);
    va_end(args);
    etch_printable(err->what);
    err->advice[0] = '\0';
    return -1;
}

int etch_error_set_errno(struct etch_error *err, int errnum, const char *fmt, ...)
{
    va_list args;
    size_t used;

    va_start(args, fmt);
    vsnprintf(err->what, sizeof(err->what), fmt, args);
    va_end(args);
    used = strlen(err->what);
    snprintf(err->what + used, sizeof(err->what) - used, ": %s", strerror(errnum));
    etch_printable(err->what);
    err->advice[0] = '\0';
    return -1;
}

void etch_error_set_no_memory(struct etch_error *err)
{
    etch_error_set(err, "out of memory");
}

int etch_error_prefix(struct etch_error *err, const char *fmt, ...)
{
    char prefix[sizeof(err->what)];
    char whole[sizeof(err->what)];
    va_list args;
    size_t used;

    va_start(args, fmt);
    vsnprintf(prefix, sizeof(prefix), fmt, args);
    va_end(args);
    used = (size_t)snprintf(whole, sizeof(whole), "%s", prefix);
    if (used < sizeof(whole))
        snprintf(whole + used, sizeof(whole) - used, ": %s", err->what);
    memcpy(err->what, whole, sizeof(whole));
    etch_printable(err->what);
    return -1;
}

int etch_error_advise(struct etch_error *err, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    vsnprintf(err->advice, sizeof(err->advice), fmt, args);
    va_end(args);
    etch_printable(err->advice);
    return -1;
}

void etch_error_print(const struct etch_error *err, const char *command, FILE *out)
{
    fprintf(out, "%s: %s", command, err->what);
    if (err->advice[0])
        fprintf(out, " (try: %s)", err->advice);
    fputc('\n', out);
}
