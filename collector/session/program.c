/* SPDX-License-Identifier: MIT */
/* The program to record, as a file; see record.h. */
#include "collector/record.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_file(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

/* As execvp looks along PATH: an empty entry is the current folder. */
static bool search_path(const char *name, char *found, size_t size)
{
    const char *path = getenv("PATH");

    if (!path)
        path = "/usr/local/bin:/usr/bin:/bin";
    while (path) {
        size_t n = strcspn(path, ":");

        snprintf(found, size, "%.*s/%s", n ? (int)n : 1, n ? path : ".", name);
        if (is_file(found) && access(found, X_OK) == 0)
            return true;
        path = path[n] ? path + n + 1 : NULL;
    }
    return false;
}

int etch_record_find_program(const char *name, char *path, size_t size, struct etch_error *err)
{
    if (!strchr(name, '/')) {
        if (search_path(name, path, size))
            return 0;
        etch_error_set(err, "cannot run %s: there is no such program in PATH", name);
        return etch_error_advise(err, "./%s for one in this folder", name);
    }
    if (strlen(name) >= size)
        return etch_error_set_errno(err, ENAMETOOLONG, "cannot run %.100s...", name);
    snprintf(path, size, "%s", name);
    if (access(name, X_OK) < 0)
        return etch_error_set_errno(err, errno, "cannot run %s", name);
    if (!is_file(name))
        return etch_error_set(err, "cannot run %s: it is not a file", name);
    return 0;
}
