/* SPDX-License-Identifier: MIT */
/* Finds the file of a mapping on this machine. A recording may come from another machine, or from another year. */
#ifndef ETCH_BINARY_FIND_BINARY_H
#define ETCH_BINARY_FIND_BINARY_H

#include "proto/etch.pb-c.h"

#include <limits.h>
#include <stdbool.h>

enum etch_binary_verdict {
    ETCH_BINARY_MISSING,   /* no such file anywhere */
    ETCH_BINARY_OTHER,     /* files of that name, all with another build-id */
    ETCH_BINARY_UNCHECKED, /* found by name; the mapping or the file has no build-id to compare */
    ETCH_BINARY_SAME,      /* the build-id is the mapping's */
};

struct etch_binary_places {
    const char *sysroot; /* its paths come first; NULL: none */
    const char *beside;  /* folder of the recording: base names are tried there; NULL: none */
    const char *cache;   /* perf's build-id cache; NULL: $HOME/.debug */
};

/* Fills `path` with the best file for `image`, the first of: the path below the sysroot, the path itself, the base name
 * beside the recording, the build-id cache. A file with the image's build-id wins over files that cannot be checked. A
 * file with another build-id is never taken. `path` is "" unless UNCHECKED or SAME. */
enum etch_binary_verdict etch_find_binary(const Etch__Image *image, const struct etch_binary_places *places,
                                          char path[PATH_MAX]);

#endif
