/* SPDX-License-Identifier: MIT */
/* See input.h. */
#include "base/input.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int open_regular(int folder, const char *path, int nofollow)
{
    struct stat st;
    int fd;

    /* The first look opens nothing: opening a device can be an act. The second is for a file that was exchanged. */
    if (fstatat(folder, path, &st, nofollow ? AT_SYMLINK_NOFOLLOW : 0) < 0)
        return -1;
    if (!S_ISREG(st.st_mode)) {
        errno = S_ISDIR(st.st_mode) ? EISDIR : ENOTSUP;
        return -1;
    }
    fd = openat(folder, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | nofollow);
    if (fd >= 0 && (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))) {
        close(fd);
        errno = ENOTSUP;
        return -1;
    }
    return fd;
}

int etch_input_open(const char *path)
{
    return open_regular(AT_FDCWD, path, 0);
}

int etch_input_open_at(int folder, const char *name)
{
    return open_regular(folder, name, O_NOFOLLOW);
}

off_t etch_input_size(int fd)
{
    struct stat st;

    return fstat(fd, &st) == 0 ? st.st_size : -1;
}

char *etch_input_read(int fd, size_t max, size_t *size)
{
    off_t want = etch_input_size(fd);
    char *text = want >= 0 && (size_t)want <= max ? malloc((size_t)want + 1) : NULL;
    size_t n = 0;

    while (text && n < (size_t)want) {
        ssize_t got = pread(fd, text + n, (size_t)want - n, (off_t)n);

        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            break;
        n += (size_t)got;
    }
    if (text && n < (size_t)want) { /* cut while it was read */
        free(text);
        return NULL;
    }
    if (text) {
        text[n] = '\0';
        *size = n;
    }
    return text;
}

/* ---- Sources ---- */

static const char *roots;

void etch_input_set_roots(const char *folders)
{
    roots = folders;
}

static bool is_below(const char *real, const char *folder)
{
    char root[PATH_MAX];
    size_t n;

    if (!realpath(folder, root))
        return false;
    n = strlen(root);
    if (n == 1) /* only who asks for "/" gets it */
        return true;
    return strncmp(real, root, n) == 0 && real[n] == '/';
}

static bool is_below_any(const char *real, const char *list)
{
    char folder[PATH_MAX];

    while (*list) {
        size_t n = strcspn(list, ":");

        if (n && n < sizeof(folder)) {
            memcpy(folder, list, n);
            folder[n] = '\0';
            if (is_below(real, folder))
                return true;
        }
        list += n + (list[n] == ':');
    }
    return false;
}

/* Does `folder` hold a .git that belongs to the user of etch? The work tree of another user does not count. */
static bool is_work_tree(const char *folder)
{
    char path[PATH_MAX + 8];
    struct stat st;

    snprintf(path, sizeof(path), "%s/.git", folder);
    return lstat(path, &st) == 0 && st.st_uid == geteuid();
}

/* Moves `folder` up to the root of its work tree, if any. */
static void find_work_tree(char folder[PATH_MAX])
{
    char at[PATH_MAX];
    char *slash;

    snprintf(at, sizeof(at), "%s", folder);
    while (!is_work_tree(at)) {
        slash = strrchr(at, '/');
        if (!slash || slash == at)
            return;
        *slash = '\0';
    }
    memcpy(folder, at, strlen(at) + 1); /* it is shorter */
}

static bool is_below_project(const char *real, const char *start)
{
    char folder[PATH_MAX];

    if (!realpath(start, folder) || strcmp(folder, "/") == 0) /* below "/" lies everything */
        return false;
    find_work_tree(folder);
    /* A hidden file is no source: the current folder may be the home, with its keys. */
    return is_below(real, folder) && !strstr(real + strlen(folder), "/.");
}

static bool is_below_own(const char *real, const char *program)
{
    char folder[PATH_MAX];
    const char *slash = program ? strrchr(program, '/') : NULL;

    if (is_below_project(real, "."))
        return true;
    if (!slash || slash == program || (size_t)(slash - program) >= sizeof(folder))
        return false;
    memcpy(folder, program, (size_t)(slash - program));
    folder[slash - program] = '\0';
    return is_below_project(real, folder);
}

bool etch_input_is_below_roots(int fd, const char *path, const char *program)
{
    const char *list = roots ? roots : getenv("ETCH_SOURCE_ROOT");
    char link[64], real[PATH_MAX];
    ssize_t n;

    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    n = readlink(link, real, sizeof(real) - 1);
    if (n > 0)
        real[n] = '\0';
    else if (!realpath(path, real))
        return false;
    return list && *list ? is_below_any(real, list) : is_below_own(real, program);
}
