/* SPDX-License-Identifier: MIT */
/* The kernel's core_pattern; see collector/core_keep.h. */
#include "base/output.h"
#include "collector/core/store.h"
#include "collector/machine.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PATTERN_MAX 127u /* the kernel cuts it there */
#define FORMER "former-pattern"
#define INITIAL_PIDS "pid:[4026531836]" /* the same number on every kernel */

/* ---- The file ---- */

static int read_pattern(char text[256], const char *file, struct etch_error *err)
{
    if (etch_machine_read_line("", file, text, 256))
        return 0;
    return etch_error_set(err, "cannot read %s", file);
}

static bool is_system(const char *file)
{
    return strcmp(file, ETCH_CORE_PATTERN) == 0;
}

/* core_pattern is one for the whole machine, and its handler runs outside of every container. */
static int check_rights(const char *file, struct etch_error *err)
{
    char link[64];
    ssize_t n = readlink("/proc/self/ns/pid", link, sizeof(link) - 1);

    link[n > 0 ? n : 0] = '\0';
    if (!is_system(file))
        return 0;
    if (strcmp(link, INITIAL_PIDS) != 0) {
        etch_error_set(err, "this is a container, and core_pattern belongs to the host: nothing is changed");
        return etch_error_advise(err, "etch core --install on the host; it keeps the cores of containers, too");
    }
    if (geteuid() != 0) {
        etch_error_set(err, "only root can change %s: nothing is changed", file);
        return etch_error_advise(err, "sudo etch core --install");
    }
    return 0;
}

static int write_pattern(const char *file, const char *text, struct etch_error *err)
{
    int fd = open(file, O_WRONLY | O_CLOEXEC | O_TRUNC);
    size_t size = strlen(text);
    ssize_t n = fd < 0 ? -1 : write(fd, text, size);

    if (n != (ssize_t)size)
        etch_error_set_errno(err, errno, "cannot write %s", file);
    if (fd >= 0)
        close(fd);
    return n == (ssize_t)size ? 0 : -1;
}

/* ---- Install ---- */

static bool is_ours(const char *pattern)
{
    size_t word = strcspn(pattern, " ");

    return pattern[0] == '|' && word >= 5 && strncmp(pattern + word - 5, "/etch", 5) == 0 &&
           strncmp(pattern + word, " core", 5) == 0;
}

static int make_pattern(struct etch_core_pattern *p, const char *options, struct etch_error *err)
{
    char self[4096];
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
    bool handler = p->former[0] == '|';
    int size;

    self[n > 0 ? n : 0] = '\0';
    if (!n || strpbrk(self, " \t")) {
        etch_error_set(err, "the kernel cannot run a handler with a blank in its path: %s", self);
        return etch_error_advise(err, "install etch in /usr/bin");
    }
    size = snprintf(p->now, sizeof(p->now), "|%s core%s%s %%P %%p %%s %%t %%E%s%s", self, options[0] ? " " : "",
                    options, handler ? " --then " : "", handler ? p->former + 1 : "");
    if (size > 0 && size <= (int)PATTERN_MAX)
        return 0;
    etch_error_set(err, "the pattern would have %d bytes, and the kernel takes %u: %s", size, PATTERN_MAX, p->now);
    return etch_error_advise(err, "install etch at a short path, such as /usr/bin/etch, and give fewer options");
}

int etch_core_install(struct etch_core_pattern *p, const char *file, const char *folder, const char *options,
                      bool check, struct etch_error *err)
{
    char path[4096];

    if (check_rights(file, err) < 0 || read_pattern(p->former, file, err) < 0)
        return -1;
    if (is_ours(p->former)) {
        etch_error_set(err, "etch core handles cores already: %s", p->former);
        return etch_error_advise(err, "etch core --uninstall first");
    }
    if (make_pattern(p, options, err) < 0)
        return -1;
    if (check)
        return 0;
    core_store_path(path, folder, FORMER, "");
    if (core_store_make(folder, err) < 0 || etch_output_write(path, p->former, strlen(p->former), err) < 0)
        return -1;
    return write_pattern(file, p->now, err);
}

/* ---- Uninstall ---- */

/* Without the file, the handler before is in the pattern. */
static bool find_former(char former[256], const char *folder, const char *now)
{
    const char *then = strstr(now, " --then ");
    char path[4096];

    core_store_path(path, folder, FORMER, "");
    if (etch_machine_read_line("", path, former, 256) && former[0])
        return true;
    snprintf(former, 256, "|%s", then ? then + 8 : "");
    return then != NULL;
}

int etch_core_uninstall(struct etch_core_pattern *p, const char *file, const char *folder, bool check,
                        struct etch_error *err)
{
    char now[256], path[4096];

    if (check_rights(file, err) < 0 || read_pattern(now, file, err) < 0)
        return -1;
    if (!is_ours(now)) {
        etch_error_set(err, "etch core does not handle cores now, and the pattern is left as it is: %s", now);
        return etch_error_advise(err, "etch core --install, which keeps the former one");
    }
    if (!find_former(p->now, folder, now)) {
        etch_error_set(err, "%s/%s is gone: the former pattern is not known", folder, FORMER);
        return etch_error_advise(err, "echo core > %s", file);
    }
    snprintf(p->former, sizeof(p->former), "%s", now);
    if (check)
        return 0;
    if (write_pattern(file, p->now, err) < 0)
        return -1;
    core_store_path(path, folder, FORMER, "");
    unlink(path);
    return 0;
}
