/* SPDX-License-Identifier: MIT */
/* Where QEMU and the plugin are; see vpt_find.h. */
#include "collector/vpt_find.h"

#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
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

/* What the program says on standard error, the beginning of it. */
static bool read_complaint(char *const argv[], char *text, size_t size)
{
    posix_spawn_file_actions_t actions;
    size_t n = 0;
    ssize_t got;
    int ends[2];
    bool begun;
    pid_t pid;

    if (pipe2(ends, O_CLOEXEC) < 0)
        return false;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, ends[1], 2);
    begun = posix_spawn(&pid, argv[0], &actions, NULL, argv, environ) == 0;
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    while (begun && n + 1 < size && (got = read(ends[0], text + n, size - n - 1)) > 0)
        n += (size_t)got;
    text[n] = '\0';
    close(ends[0]);
    if (begun)
        waitpid(pid, NULL, 0);
    return begun;
}

/* Of a plugin that does not exist QEMU says "Could not load plugin", if it knows plugins at all. */
bool etch_vpt_takes_plugins(const char *qemu)
{
    char path[4096], text[1024];
    char *const argv[] = {path, (char[]){"-plugin"}, (char[]){"/nonexistent/etch"}, (char[]){"/bin/true"}, NULL};

    snprintf(path, sizeof(path), "%s", qemu);
    return read_complaint(argv, text, sizeof(text)) && strstr(text, "load plugin");
}

bool etch_vpt_usable(void)
{
    char path[4096];

    return etch_vpt_find_plugin(path, sizeof(path)) && etch_vpt_find_qemu(path, sizeof(path)) &&
           etch_vpt_takes_plugins(path);
}
