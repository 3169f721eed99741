/* SPDX-License-Identifier: MIT */
/* Finding and reading the policy's file; see policy.h. */
#include "collector/policy.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int refuse(struct etch_error *err, const char *path, const char *why)
{
    etch_error_set(err, "the policy %s cannot be trusted: %s; nothing is recorded", path, why);
    return etch_error_advise(err, "chown root and chmod 644 for /etc/etch/policy; chmod o-w for another");
}

static int check_owner(const struct stat *st, const char *path, bool of_root, struct etch_error *err)
{
    if (!S_ISREG(st->st_mode))
        return refuse(err, path, "it is no regular file");
    if (of_root && (st->st_uid != 0 || (st->st_mode & 022)))
        return refuse(err, path, "others than root may change it");
    if (st->st_mode & 002)
        return refuse(err, path, "everybody may change it");
    return 0;
}

static ssize_t read_all(int fd, char *text, size_t size)
{
    size_t n = 0;

    while (n < size) {
        ssize_t got = read(fd, text + n, size - n);

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -1;
        if (got == 0)
            break;
        n += (size_t)got;
    }
    return (ssize_t)n;
}

static int cannot_read(struct etch_error *err, const char *path)
{
    etch_error_set_errno(err, errno, "cannot read the policy %s; nothing is recorded", path);
    return etch_error_advise(err, "make the policy readable, or name another with --policy");
}

int etch_policy_read(struct etch_policy **policy, const char *path, bool of_root, struct etch_error *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), status = -1;
    char *text;
    struct stat st;
    ssize_t n;

    if (fd < 0)
        return errno == ENOENT || errno == ENOTDIR ? 1 : cannot_read(err, path);
    text = malloc(ETCH_POLICY_SIZE_MAX + 1);
    if (!text || fstat(fd, &st) < 0)
        etch_error_set_errno(err, text ? errno : ENOMEM, "cannot read the policy %s; nothing is recorded", path);
    else if (check_owner(&st, path, of_root, err) == 0) {
        n = read_all(fd, text, ETCH_POLICY_SIZE_MAX + 1);
        status = n < 0 ? cannot_read(err, path) : etch_policy_parse(policy, text, (size_t)n, path, err);
    }
    free(text);
    close(fd);
    return status;
}

static int read_given(struct etch_policy **policy, const char *path, struct etch_error *err)
{
    int status = etch_policy_read(policy, path, false, err);

    if (status <= 0)
        return status;
    errno = ENOENT;
    return cannot_read(err, path);
}

int etch_policy_find(struct etch_policy **policy, const char *path, struct etch_error *err)
{
    const char *given = path ? path : getenv("ETCH_POLICY"), *home = getenv("HOME");
    char own[4096];
    int status;

    if (given && (path || given[0]))
        return read_given(policy, given, err);
    status = etch_policy_read(policy, "/etc/etch/policy", true, err);
    if (status > 0 && home && home[0] == '/') {
        snprintf(own, sizeof(own), "%.4000s/.config/etch/policy", home);
        status = etch_policy_read(policy, own, false, err);
    }
    return status > 0 ? etch_policy_standard(policy, err) : status;
}
