/* SPDX-License-Identifier: MIT */
/* Errors as values. An error says what was attempted and on what, why the attempt failed, and what the user can do. The
 * caller owns the struct (usually on its stack), so reporting an error never allocates. The command prints the error
 * once, at the top. */
#ifndef ETCH_BASE_ERROR_H
#define ETCH_BASE_ERROR_H

#include <stdio.h>

/* Both texts are printable (base/printable.h) whatever names were put into them. */
struct etch_error {
    char what[512];   /* "cannot open run.etch: No such file or directory" */
    char advice[512]; /* "check the path", or empty */
};

/* Sets what happened and clears the advice. Always returns -1, so that a function can `return etch_error_set(...)`. */
int etch_error_set(struct etch_error *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* The same, followed by the text of `errnum` as the cause. */
int etch_error_set_errno(struct etch_error *err, int errnum, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* "out of memory". Allocates nothing. */
void etch_error_set_no_memory(struct etch_error *err);

/* The same. Returns -1, in sight of static analysers. */
static inline int etch_error_no_memory(struct etch_error *err)
{
    etch_error_set_no_memory(err);
    return -1;
}

/* Puts the caller's attempt in front of the callee's text: "WHAT: " + text. Returns -1. */
int etch_error_prefix(struct etch_error *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Says what the user can do. Returns -1. */
int etch_error_advise(struct etch_error *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* "etch COMMAND: WHAT (try: ADVICE)", on one line. */
void etch_error_print(const struct etch_error *err, const char *command, FILE *out);

#endif
