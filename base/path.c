/* SPDX-License-Identifier: MIT */
/* See path.h. */
#include "base/path.h"

#include <string.h>

void etch_path_normalise(char *path)
{
    char *out = path, *in = path;

    while (*in) {
        if (in[0] == '/' && in[1] == '/') {
            in++;
        } else if (in[0] == '/' && in[1] == '.' && (in[2] == '/' || !in[2])) {
            in += 2;
        } else if (in[0] == '/' && in[1] == '.' && in[2] == '.' && (in[3] == '/' || !in[3]) && out > path) {
            in += 3;
            while (out > path && *--out != '/')
                ;
        } else {
            *out++ = *in++;
        }
    }
    *out = '\0';
}

const char *etch_path_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}
