/* SPDX-License-Identifier: MIT */
/* Where QEMU and the plugin are; see vpt_find.h. */
#include "collector/vpt_find.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool etch_vpt_find_qemu(char *path, size_t size)
{
    const char *folders = getenv("PATH");

    if (!folders)
        folders = "/usr/local/bin:/usr/bin:/bin";
    while (*folders) {
        size_t n = strcspn(folders, ":");

        snprintf(path, size, "%.*s/qemu-x86_64", (int)n, folders);
        if (n && access(path, X_OK) == 0)
            return true;
        folders += n + (folders[n] == ':');
    }
    return false;
}

bool etch_vpt_find_plugin(char *path, size_t size)
{
    static const char *const places[] = {"etch-vpt.so", "../lib/etch/etch-vpt.so"};
    const char *given = getenv("ETCH_VPT_PLUGIN");
    char self[4096] = "";
    char *slash;

    if (given && *given) {
        snprintf(path, size, "%s", given);
        return access(path, R_OK) == 0;
    }
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
