/* SPDX-License-Identifier: MIT */
/* Every file that etch writes goes through here. A file is made exclusively, for its owner alone (0600), and never
 * through a link. A file that this run did not make is not touched before the new file is whole.
 *
 * A report is written beside its name and takes it when it is whole. A recording grows under its own name from the
 * start, so that whoever kills etch finds it; an older recording of that name waits beside it as NAME.old.
 *
 * "-", /dev/stdout, /dev/fd/N, pipes and devices are written to as they are. */
#ifndef ETCH_BASE_OUTPUT_H
#define ETCH_BASE_OUTPUT_H

#include "base/error.h"

#include <stddef.h>
#include <stdio.h>

struct etch_output;

/* Opens a report at `path`. Returns 0, or -1 with `err` set. */
int etch_output_report(struct etch_output **output, const char *path, struct etch_error *err);

/* Opens a recording at `path`. A file that is there already is replaced only if it is empty or begins with `magic`. */
int etch_output_recording(struct etch_output **output, const char *path, const void *magic, size_t magic_size,
                          struct etch_error *err);

/* On an open descriptor, which the output then owns. `name` is for messages. */
int etch_output_fd(struct etch_output **output, int fd, const char *name, struct etch_error *err);

int etch_output_descriptor(const struct etch_output *output);

/* The same as a stream, which etch_output_finish() flushes and checks. NULL where memory is short. */
FILE *etch_output_stream(struct etch_output *output);

/* The name that was asked for. */
const char *etch_output_path(const struct etch_output *output);

/* The path at which an older recording of that name is kept; NULL: there was none. */
const char *etch_output_aside(const struct etch_output *output);

/* The file is whole: brings it to the disk and gives it its name. Each of these three frees the output. Returns 0, or
 * -1 with `err` set; then a report is gone, and a recording is left as it is. */
int etch_output_finish(struct etch_output *output, struct etch_error *err);

/* Leaves the file as it is, as a killed etch would. NULL is fine. */
void etch_output_leave(struct etch_output *output);

/* Removes the file of this run, and puts an older recording back. NULL is fine. */
void etch_output_discard(struct etch_output *output);

/* A report in one go. Returns 0, or -1 with `err` set. */
int etch_output_write(const char *path, const void *bytes, size_t size, struct etch_error *err);

/* A file that stays in use, such as a lock: opened, or made. Returns a descriptor, or -1 with errno set. */
int etch_output_lasting(const char *path);

/* A file that must not be there yet. Returns a descriptor, or -1 with errno set. */
int etch_output_fresh(const char *path);

#endif
