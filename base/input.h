/* SPDX-License-Identifier: MIT */
/* Opening files whose names came out of a file: binaries, debug files and sources that a recording, a ring or a line
 * table names. Such a name may be anything. A pipe would block, a device would never end or do something, and the text
 * of a private file would end up in a report. All such names are opened here, and nowhere else. */
#ifndef ETCH_BASE_INPUT_H
#define ETCH_BASE_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Opens a regular file for reading. Returns the descriptor, or -1 with errno set: EISDIR or ENOTSUP for anything but a
 * regular file. Never blocks, never becomes the terminal's owner, never touches a device. */
int etch_input_open(const char *path);

/* The same with the name of a file in the open folder `folder`. A link is not followed. */
int etch_input_open_at(int folder, const char *name);

/* The size of an open file, -1 where it is not known. */
off_t etch_input_size(int fd);

/* All of the file, with a NUL behind it; free() it. NULL where it cannot be read or is beyond `max`. */
char *etch_input_read(int fd, size_t max, size_t *size);

/* ---- Sources ---- */

/* Sets the folders whose files may be shown, separated by colons, in place of the default folders. NULL: the defaults
 * again. */
void etch_input_set_roots(const char *folders);

/* Does the open file lie below a folder whose files may be shown? Without etch_input_set_roots() and ETCH_SOURCE_ROOT
 * these are the current folder and the folder of `program` (NULL: none), and the work tree of git that each is in.
 * Links are followed first: the file counts, not its name. */
bool etch_input_is_below_roots(int fd, const char *path, const char *program);

#endif
