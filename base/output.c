/* SPDX-License-Identifier: MIT */
/* See output.h. */
#include "base/output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct etch_output {
    int fd;
    FILE *stream; /* owns the descriptor, once there is one */
    char *path;
    char *made;  /* the file of this run: at `path`, or beside it; NULL: a pipe, a device, a descriptor */
    char *aside; /* where an older file waits; NULL: there was none */
};

static int out_of_memory(const char *path, struct etch_error *err)
{
    return etch_error_set_errno(err, ENOMEM, "cannot write %s", path);
}

static int cannot_create(const char *path, struct etch_error *err)
{
    etch_error_set_errno(err, errno, "cannot write %s", path);
    return etch_error_advise(err, "choose a place that you may write to");
}

static void release(struct etch_output *o)
{
    free(o->path);
    free(o->made);
    free(o->aside);
    free(o);
}

static struct etch_output *new_output(const char *path)
{
    struct etch_output *o = calloc(1, sizeof(*o));

    if (!o)
        return NULL;
    o->fd = -1;
    o->path = strdup(path);
    if (o->path)
        return o;
    free(o);
    return NULL;
}

int etch_output_fresh(const char *path)
{
    return open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
}

int etch_output_lasting(const char *path)
{
    return open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
}

/* ---- Descriptors, pipes and devices ---- */

/* The number in "/dev/fd/7"; -1: no such name. */
static int descriptor_of(const char *path)
{
    static const char *const folders[] = {"/dev/fd/", "/proc/self/fd/"};

    if (strcmp(path, "-") == 0 || strcmp(path, "/dev/stdout") == 0)
        return STDOUT_FILENO;
    if (strcmp(path, "/dev/stderr") == 0)
        return STDERR_FILENO;
    for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
        const char *number = path + strlen(folders[i]);

        if (strncmp(path, folders[i], strlen(folders[i])) == 0 && *number && strlen(number) < 7 &&
            strspn(number, "0123456789") == strlen(number))
            return atoi(number);
    }
    return -1;
}

static int refuse(const char *path, const char *why, const char *advice, struct etch_error *err)
{
    etch_error_set(err, "cannot write %s: %s", path, why);
    return etch_error_advise(err, "%s", advice);
}

/* A pipe or a device. One that another user put there could be meant to listen. */
static int open_other(struct etch_output *o, const struct stat *st, struct etch_error *err)
{
    struct stat opened;

    if (S_ISDIR(st->st_mode))
        return refuse(o->path, "it is a folder", "the name of a file in it", err);
    if (S_ISLNK(st->st_mode))
        return refuse(o->path, "it is a link", "the name of the file that it leads to, or remove it", err);
    if (st->st_uid != geteuid() && st->st_uid != 0)
        return refuse(o->path, "it belongs to another user", "another name", err);
    o->fd = open(o->path, O_WRONLY | O_NOFOLLOW | O_NOCTTY | O_CLOEXEC);
    if (o->fd < 0)
        return cannot_create(o->path, err);
    if (fstat(o->fd, &opened) < 0 || opened.st_ino != st->st_ino || opened.st_dev != st->st_dev)
        return refuse(o->path, "it was changed meanwhile", "another name", err);
    return 0;
}

/* Returns 1 where there is a plain file, or nothing, at the path, which is for the caller to see to. */
static int open_as_is(struct etch_output *o, struct stat *st, bool *exists, struct etch_error *err)
{
    int number = descriptor_of(o->path);

    *exists = false;
    if (number >= 0) {
        o->fd = fcntl(number, F_DUPFD_CLOEXEC, 3);
        return o->fd < 0 ? cannot_create(o->path, err) : 0;
    }
    if (lstat(o->path, st) < 0)
        return errno == ENOENT ? 1 : cannot_create(o->path, err);
    *exists = true;
    return S_ISREG(st->st_mode) ? 1 : open_other(o, st, err);
}

/* ---- Opening ---- */

static int open_beside(struct etch_output *o, struct etch_error *err)
{
    if (asprintf(&o->made, "%s.XXXXXX", o->path) < 0) {
        o->made = NULL;
        return out_of_memory(o->path, err);
    }
    o->fd = mkostemp(o->made, O_CLOEXEC); /* exclusive, 0600 */
    if (o->fd >= 0)
        return 0;
    free(o->made);
    o->made = NULL;
    return cannot_create(o->path, err);
}

/* Gives the output to the caller, or discards it if `status` says that it could not be opened. */
static int hand_over(struct etch_output **output, struct etch_output *o, int status)
{
    if (status < 0) {
        etch_output_discard(o);
        return -1;
    }
    *output = o;
    return 0;
}

int etch_output_report(struct etch_output **output, const char *path, struct etch_error *err)
{
    struct etch_output *o = new_output(path);
    struct stat st;
    bool exists;
    int status;

    *output = NULL;
    if (!o)
        return out_of_memory(path, err);
    status = open_as_is(o, &st, &exists, err);
    if (status > 0)
        status = open_beside(o, err);
    return hand_over(output, o, status);
}

static bool begins_with(const char *path, const void *magic, size_t size)
{
    char begin[64];
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, begin, size < sizeof(begin) ? size : sizeof(begin));

    if (fd >= 0)
        close(fd);
    return n == (ssize_t)size && memcmp(begin, magic, size) == 0;
}

/* A file system that cannot say no is asked first. */
static int rename_to_free(const char *from, const char *to)
{
    if (renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0)
        return 0;
    if (errno != EINVAL && errno != ENOSYS)
        return -1;
    if (access(to, F_OK) == 0) {
        errno = EEXIST;
        return -1;
    }
    return rename(from, to);
}

/* NAME.old, or NAME.2.old and so on where that is taken. */
static int move_aside(struct etch_output *o, struct etch_error *err)
{
    for (unsigned i = 1; i < 100000; i++) {
        int n = i == 1 ? asprintf(&o->aside, "%s.old", o->path) : asprintf(&o->aside, "%s.%u.old", o->path, i);

        if (n < 0) {
            o->aside = NULL;
            return out_of_memory(o->path, err);
        }
        if (rename_to_free(o->path, o->aside) == 0)
            return 0;
        n = errno;
        free(o->aside);
        o->aside = NULL;
        errno = n;
        if (n != EEXIST)
            break;
    }
    return cannot_create(o->path, err);
}

static int open_at_name(struct etch_output *o, struct etch_error *err)
{
    char *made = strdup(o->path);

    if (!made)
        return out_of_memory(o->path, err);
    o->fd = etch_output_fresh(made);
    if (o->fd < 0) {
        cannot_create(o->path, err);
        free(made);
        return -1;
    }
    o->made = made;
    return 0;
}

int etch_output_recording(struct etch_output **output, const char *path, const void *magic, size_t magic_size,
                          struct etch_error *err)
{
    struct etch_output *o = new_output(path);
    struct stat st;
    bool exists;
    int status;

    *output = NULL;
    if (!o)
        return out_of_memory(path, err);
    status = open_as_is(o, &st, &exists, err);
    if (status > 0 && exists && st.st_size > 0 && !begins_with(path, magic, magic_size))
        status = refuse(path, "there is a file that is not etch's", "another name, or remove it", err);
    if (status > 0 && exists)
        status = move_aside(o, err) < 0 ? -1 : 1;
    if (status > 0)
        status = open_at_name(o, err);
    return hand_over(output, o, status);
}

int etch_output_fd(struct etch_output **output, int fd, const char *name, struct etch_error *err)
{
    *output = new_output(name);
    if (!*output) {
        close(fd);
        return out_of_memory(name, err);
    }
    (*output)->fd = fd;
    return 0;
}

/* ---- Writing ---- */

int etch_output_descriptor(const struct etch_output *o)
{
    return o->fd;
}

FILE *etch_output_stream(struct etch_output *o)
{
    if (!o->stream)
        o->stream = fdopen(o->fd, "w");
    return o->stream;
}

const char *etch_output_path(const struct etch_output *o)
{
    return o->path;
}

const char *etch_output_aside(const struct etch_output *o)
{
    return o->aside;
}

/* ---- The end ---- */

static int failed(const struct etch_output *o, struct etch_error *err)
{
    int cause = errno;

    etch_error_set_errno(err, cause, "cannot write %s", o->path);
    if (cause == ENOSPC || cause == EDQUOT)
        etch_error_advise(err, "free some disk space, or choose another place");
    return -1;
}

static int close_file(struct etch_output *o)
{
    FILE *stream = o->stream;
    int fd = o->fd;

    o->stream = NULL;
    o->fd = -1;
    if (stream)
        return fclose(stream);
    return fd < 0 ? 0 : close(fd);
}

/* Pipes and some file systems cannot sync; that is not a failure. */
static int bring_to_disk(struct etch_output *o)
{
    if (o->stream && (fflush(o->stream) != 0 || ferror(o->stream)))
        return -1;
    return o->fd >= 0 && fsync(o->fd) < 0 && errno != EINVAL && errno != EROFS && errno != ENOTSUP ? -1 : 0;
}

static bool is_beside(const struct etch_output *o)
{
    return o->made && strcmp(o->made, o->path) != 0;
}

int etch_output_finish(struct etch_output *o, struct etch_error *err)
{
    int status = bring_to_disk(o);

    if (status < 0)
        failed(o, err);
    if (close_file(o) < 0 && status == 0)
        status = failed(o, err);
    if (status == 0 && is_beside(o) && rename(o->made, o->path) < 0)
        status = failed(o, err);
    if (status < 0 && is_beside(o))
        unlink(o->made);
    if (status == 0 && o->aside)
        unlink(o->aside);
    release(o);
    return status;
}

void etch_output_leave(struct etch_output *o)
{
    if (!o)
        return;
    close_file(o);
    release(o);
}

void etch_output_discard(struct etch_output *o)
{
    if (!o)
        return;
    close_file(o);
    if (o->made)
        unlink(o->made);
    if (o->aside)
        rename_to_free(o->aside, o->path);
    release(o);
}

static int write_all(int fd, const char *bytes, size_t size)
{
    while (size) {
        ssize_t n = write(fd, bytes, size);

        if (n < 0 && errno != EINTR)
            return -1;
        if (n > 0) {
            bytes += n;
            size -= (size_t)n;
        }
    }
    return 0;
}

int etch_output_write(const char *path, const void *bytes, size_t size, struct etch_error *err)
{
    struct etch_output *o = NULL;

    if (etch_output_report(&o, path, err) < 0 || !o)
        return -1;
    if (write_all(o->fd, bytes, size) == 0)
        return etch_output_finish(o, err);
    failed(o, err);
    etch_output_discard(o);
    return -1;
}
