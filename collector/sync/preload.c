/* SPDX-License-Identifier: MIT */
/* Putting the synchronisation library into a program; see preload.h. */
#include "collector/sync/preload.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool etch_sync_library_find(char *path, size_t size)
{
    static const char *const places[] = {"etch-sync.so", "../lib/etch/etch-sync.so"};
    char self[4096] = "";
    char *slash;

    if (readlink("/proc/self/exe", self, sizeof(self) - 1) < 0 || !(slash = strrchr(self, '/')))
        return false;
    *slash = '\0';
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        snprintf(path, size, "%s/%s", self, places[i]);
        if (access(path, R_OK) == 0)
            return true;
    }
    return false;
}

void etch_sync_words_make(struct etch_sync_words *words, const char *library, const struct etch_sync_reader *reader)
{
    const char *given = getenv("LD_PRELOAD");
    char path[48];

    etch_sync_reader_path(reader, path, sizeof(path));
    snprintf(words->preload, sizeof(words->preload), "LD_PRELOAD=%s%s%s", library, given ? ":" : "",
             given ? given : "");
    snprintf(words->sync, sizeof(words->sync), ETCH_SYNC_VARIABLE "=%s", path);
    words->before[0] = '\0';
    if (given)
        snprintf(words->before, sizeof(words->before), ETCH_SYNC_PRELOAD_VARIABLE "=%s", given);
}
