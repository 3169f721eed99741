/* SPDX-License-Identifier: MIT */
/* Paths as text. */
#ifndef ETCH_BASE_PATH_H
#define ETCH_BASE_PATH_H

/* "a/./b/../c" -> "a/c", in place. No file is looked at. */
void etch_path_normalise(char *path);

/* The last component of a path, within `path`: "b" of "/a/b". A path without a slash is its own. */
const char *etch_path_name(const char *path);

#endif
