/* SPDX-License-Identifier: MIT */
/* See cc_link.h. */
#include "cli/cc_link.h"

#include "slicer/link_note.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int open_temporary(char path[PATH_MAX])
{
    const char *folder = getenv("TMPDIR");

    snprintf(path, PATH_MAX, "%s/etch-link-XXXXXX.o", folder && folder[0] ? folder : P_tmpdir);
    return mkstemps(path, 2);
}

static int write_all(int fd, const unsigned char *bytes, size_t size)
{
    while (size) {
        ssize_t n = write(fd, bytes, size);

        if (n <= 0)
            return -1;
        bytes += n;
        size -= (size_t)n;
    }
    return 0;
}

void etch_cc_link_note(struct etch_cc_link_note *note, const char *clang, char *const *words, size_t n)
{
    const char **all = calloc(n + 1, sizeof(*all));
    unsigned char *object = NULL;
    char folder[PATH_MAX];
    size_t size;
    int fd = -1;

    note->path[0] = '\0';
    if (all && getcwd(folder, sizeof(folder))) {
        all[0] = clang;
        for (size_t i = 0; i < n; i++)
            all[i + 1] = words[i];
        object = etch_link_note_object(folder, all, n + 1, &size);
    }
    if (object)
        fd = open_temporary(note->path);
    if (fd < 0)
        note->path[0] = '\0';
    else if (write_all(fd, object, size) < 0)
        etch_cc_link_note_remove(note);
    if (fd >= 0)
        close(fd);
    free(object);
    free(all);
}

void etch_cc_link_note_remove(struct etch_cc_link_note *note)
{
    if (note->path[0])
        unlink(note->path);
    note->path[0] = '\0';
}
