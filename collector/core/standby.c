/* SPDX-License-Identifier: MIT */
/* See collector/standby.h. */
#include "collector/standby.h"

#include "collector/core/store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define SUFFIX ".pt.sock"
#define WAIT_MS 500 /* of the dying process, for all recorders together */

static const char magic[8] = "etchpt1";
static const char yes = 'y', no = 'n';

struct question {
    char magic[8];
    int32_t pid;
    char name[196];
};

/* ---- The recorder's side ---- */

static int place_socket(struct etch_standby *s, struct etch_error *err)
{
    int n = snprintf(s->path, sizeof(s->path), "%s/%d%s", s->folder, (int)getpid(), SUFFIX);

    if (n > 0 && (size_t)n < sizeof(s->path))
        return 0;
    s->path[0] = '\0';
    etch_error_set(err, "cannot stand by in %s: its name is too long for a socket", s->folder);
    return etch_error_advise(err, "a folder with a shorter name, here and for etch core --to");
}

int etch_standby_open(struct etch_standby *s, const char *folder, struct etch_error *err)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    *s = (struct etch_standby){.listener = -1};
    snprintf(s->folder, sizeof(s->folder), "%s", folder);
    if (core_store_make(folder, err) < 0 || place_socket(s, err) < 0)
        return -1;
    memcpy(address.sun_path, s->path, sizeof(s->path));
    s->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    unlink(s->path); /* of a process that had this number before */
    if (s->listener >= 0 && bind(s->listener, (const struct sockaddr *)&address, sizeof(address)) == 0 &&
        listen(s->listener, 16) == 0)
        return 0;
    return etch_error_set_errno(err, errno, "cannot stand by at %s", s->path);
}

/* A name that etch core makes: letters, digits, _, - and dots, and no dot at the front. */
static bool is_name(const char *name, size_t max)
{
    size_t n = strnlen(name, max);

    return n > 0 && n < max && name[0] != '.' &&
           strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.") == n;
}

bool etch_standby_take(struct etch_standby *s, struct etch_standby_request *r)
{
    struct question q;
    struct pollfd p;

    r->connection = accept4(s->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (r->connection < 0)
        return false;
    p = (struct pollfd){.fd = r->connection, .events = POLLIN};
    if (poll(&p, 1, WAIT_MS) == 1 && read(r->connection, &q, sizeof(q)) == sizeof(q) &&
        memcmp(q.magic, magic, sizeof(magic)) == 0 && q.pid > 0 && is_name(q.name, sizeof(q.name))) {
        r->pid = q.pid;
        core_store_path(r->output, s->folder, q.name, ETCH_STANDBY_TRACE);
        return true;
    }
    close(r->connection);
    return false;
}

void etch_standby_answer(const struct etch_standby_request *r, bool mine)
{
    (void)!send(r->connection, mine ? &yes : &no, 1, MSG_NOSIGNAL); /* the handler may have ceased to wait */
    close(r->connection);
}

void etch_standby_close(struct etch_standby *s)
{
    if (s->listener >= 0)
        close(s->listener);
    if (s->path[0])
        unlink(s->path);
    *s = (struct etch_standby){.listener = -1};
}

/* ---- The handler's side ---- */

static int64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static int ask(const char *folder, const char *file, const struct question *q)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int n = snprintf(address.sun_path, sizeof(address.sun_path), "%s/%s", folder, file), fd;

    if (n < 0 || (size_t)n >= sizeof(address.sun_path))
        return -1;
    fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -1;
    if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) == 0 &&
        send(fd, q, sizeof(*q), MSG_NOSIGNAL) == (ssize_t)sizeof(*q))
        return fd;
    if (errno == ECONNREFUSED)
        unlink(address.sun_path); /* of a recorder that was killed */
    close(fd);
    return -1;
}

static bool is_answered(int fd, int64_t until)
{
    int64_t left = until - now_ms();
    struct pollfd p = {.fd = fd, .events = POLLIN};
    char answer = no;

    return poll(&p, 1, left > 0 ? (int)left : 0) == 1 && read(fd, &answer, 1) == 1 && answer == yes;
}

size_t etch_standby_ask(const char *folder, pid_t pid, const char *name)
{
    struct question q = {.pid = pid};
    int64_t until = now_ms() + WAIT_MS;
    DIR *dir = opendir(folder);
    struct dirent *entry;
    size_t traced = 0;

    memcpy(q.magic, magic, sizeof(magic));
    snprintf(q.name, sizeof(q.name), "%s", name);
    while (dir && (entry = readdir(dir))) {
        size_t length = strlen(entry->d_name);
        int fd;

        if (length <= strlen(SUFFIX) || strcmp(entry->d_name + length - strlen(SUFFIX), SUFFIX) != 0)
            continue;
        fd = ask(folder, entry->d_name, &q);
        if (fd < 0)
            continue;
        traced += is_answered(fd, until);
        close(fd);
    }
    if (dir)
        closedir(dir);
    return traced;
}
