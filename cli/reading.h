/* SPDX-License-Identifier: MIT */
/* Limits on memory and output, the folders of sources, and the sandbox: for the commands that only read files, which
 * may come from others. */
#ifndef ETCH_CLI_READING_H
#define ETCH_CLI_READING_H

#include "cli/command.h"

#include <stddef.h>

/* Takes --max-memory, --max-output and --source-root out of the arguments, bounds standard output, and enters the
 * sandbox. Returns 0, or an exit status after a message about the error. */
int etch_reading_begin(const struct etch_command *self, int *argc, char **argv);

/* The part of --help about these options. */
extern const char etch_reading_help[];

/* Writes to standard output, without a buffer. Returns 0 or an errno: EFBIG beyond --max-output. */
int etch_reading_write(const char *text, size_t size);

/* Returns "the output was cut ..." if the output was cut, else NULL. */
const char *etch_reading_cut(void);

#endif
