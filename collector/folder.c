/* SPDX-License-Identifier: MIT */
/* See folder.h. */
#include "collector/folder.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

void etch_folder_remove(const char *folder)
{
    DIR *dir = opendir(folder);
    struct dirent *entry;

    while (dir && (entry = readdir(dir))) {
        char path[512];

        if (entry->d_name[0] == '.')
            continue;
        snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
        unlink(path);
    }
    if (dir)
        closedir(dir);
    rmdir(folder);
}

/* Folders whose etch was killed: nobody else can need them. */
static void sweep(const char *place)
{
    DIR *dir = opendir(place);
    struct dirent *entry;

    while (dir && (entry = readdir(dir))) {
        char path[512];
        int pid;

        if (sscanf(entry->d_name, "etch-%d-", &pid) != 1 || pid <= 0 || kill(pid, 0) == 0 || errno != ESRCH)
            continue;
        snprintf(path, sizeof(path), "%s/%s", place, entry->d_name);
        etch_folder_remove(path);
    }
    if (dir)
        closedir(dir);
}

int etch_folder_make(char folder[ETCH_FOLDER_SIZE], struct etch_error *err)
{
    static const char place[] = "/dev/shm";

    sweep(place);
    snprintf(folder, ETCH_FOLDER_SIZE, "%s/etch-%d-XXXXXX", place, (int)getpid());
    if (!mkdtemp(folder)) {
        int cause = errno;

        folder[0] = '\0';
        etch_error_set_errno(err, cause, "cannot make a folder in %s", place);
        return etch_error_advise(err, "mount a tmpfs on %s that you may write to", place);
    }
    return 0;
}
