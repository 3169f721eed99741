/* SPDX-License-Identifier: MIT */
/* Finds QEMU and the plugin; see vpt_find.h. */
#include "collector/vpt_find.h"

#include <fcntl.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* The first of `places`, as paths from this program's folder, that may be used as `mode` says. */
static bool find_near(const char *const *places, size_t n, int mode, char *path, size_t size)
{
    char self[4096] = "";
    char *slash;

    if (readlink("/proc/self/exe", self, sizeof(self) - 1) < 0 || !(slash = strrchr(self, '/')))
        return false;
    *slash = '\0';
    for (size_t i = 0; i < n; i++) {
        snprintf(path, size, "%s/%s", self, places[i]);
        if (access(path, mode) == 0)
            return true;
    }
    return false;
}

static bool find_along_path(const char *name, char *path, size_t size)
{
    const char *folders = getenv("PATH");

    if (!folders)
        folders = "/usr/local/bin:/usr/bin:/bin";
    while (*folders) {
        size_t n = strcspn(folders, ":");

        snprintf(path, size, "%.*s/%s", (int)n, folders, name);
        if (n && access(path, X_OK) == 0)
            return true;
        folders += n + (folders[n] == ':');
    }
    return false;
}

bool etch_vpt_find_qemu(char *path, size_t size)
{
    static const char *const places[] = {"qemu/qemu-x86_64", "../lib/etch/qemu-x86_64"};
    const char *given = getenv("ETCH_VPT_QEMU");

    if (given && *given) {
        snprintf(path, size, "%s", given);
        return access(path, X_OK) == 0;
    }
    return find_near(places, sizeof(places) / sizeof(places[0]), X_OK, path, size) ||
           find_along_path("qemu-x86_64", path, size);
}

bool etch_vpt_find_plugin(char *path, size_t size)
{
    static const char *const places[] = {"etch-vpt.so", "../lib/etch/etch-vpt.so"};
    const char *given = getenv("ETCH_VPT_PLUGIN");

    if (given && *given) {
        snprintf(path, size, "%s", given);
        return access(path, R_OK) == 0;
    }
    return find_near(places, sizeof(places) / sizeof(places[0]), R_OK, path, size);
}

size_t etch_vpt_plugin_option(const char *plugin, char *option, size_t size)
{
    char *to = option + sprintf(option, "file=");

    for (const char *p = plugin; *p && to + 3 < option + size; p++) { /* QEMU's options double a comma */
        *to++ = *p;
        if (*p == ',')
            *to++ = ',';
    }
    *to = '\0';
    return (size_t)(to - option);
}

/* Runs the program and reads the first bytes of its output. */
static bool ask(const char *const argv[], char *text, size_t size)
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
    posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
    posix_spawn_file_actions_adddup2(&actions, ends[1], 2);
    begun = posix_spawn(&pid, argv[0], &actions, NULL, (char *const *)(uintptr_t)argv, environ) == 0;
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

bool etch_vpt_qemu_version(const char *qemu, char *line, size_t size)
{
    const char *const argv[] = {qemu, "--version", NULL};

    if (!ask(argv, line, size))
        return false;
    line[strcspn(line, "\n")] = '\0';
    return line[0] != '\0';
}

/* A QEMU with support for plugins says "Could not load plugin" if the plugin does not exist. */
bool etch_vpt_takes_plugins(const char *qemu)
{
    const char *const argv[] = {qemu, "-plugin", "/nonexistent/etch", "/bin/true", NULL};
    char text[1024];

    return ask(argv, text, sizeof(text)) && strstr(text, "load plugin");
}

/* Etch's plugin prints this text once it is loaded and complete, if no folder to record into was given. */
bool etch_vpt_takes_plugin(const char *qemu, const char *plugin)
{
    char option[8300], text[1024];
    const char *const argv[] = {qemu, "-plugin", option, "/bin/true", NULL};

    etch_vpt_plugin_option(plugin, option, sizeof(option));
    return ask(argv, text, sizeof(text)) && strstr(text, "not started by etch record");
}

bool etch_vpt_usable(void)
{
    char qemu[4096], plugin[4096];

    return etch_vpt_find_plugin(plugin, sizeof(plugin)) && etch_vpt_find_qemu(qemu, sizeof(qemu)) &&
           etch_vpt_takes_plugin(qemu, plugin);
}
