/* SPDX-License-Identifier: MIT */
/* Descriptors in the lab. A call that may wait is a point, and a thread that would wait lets others run. Answers of
 * descriptors that lead outside the process are kept or given back (input.c). */
#include "collector/lab/descriptor.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* ---- Waiting ---- */

enum { WAITS, READY, NEVER_WAITS };

static int look(int fd, short events)
{
    struct pollfd p = {.fd = fd, .events = events};
    int flags = fcntl(fd, F_GETFL);

    if (flags >= 0 && flags & O_NONBLOCK)
        return NEVER_WAITS;
    return lab_real_poll(&p, 1, 0) == 0 ? WAITS : READY;
}

static int64_t look_again(int fd, short events)
{
    switch (lab_input_way(fd)) {
    case LAB_GIVE:
        return lab_input_take(ETCH_LAB_CALL_READY, fd, NULL, 0);
    case LAB_KEEP:
        return lab_input_keep(ETCH_LAB_CALL_READY, fd, look(fd, events), NULL, 0, 0);
    default:
        return look(fd, events);
    }
}

bool lab_await_fd(int fd, short events, uint64_t site)
{
    struct pollfd p = {.fd = fd, .events = events};
    int error = errno;

    if (!lab_controlled() || lab_alive < 2)
        return true;
    lab_point((struct etch_lab_op){.object = (uint64_t)fd, .write = true, .sync = true}, site);
    pthread_testcancel();
    while (look_again(fd, events) == WAITS) {
        lab_block_fds(&p, 1, LAB_NEVER, site);
        pthread_testcancel();
        if (lab_threads[lab_me].interrupted && !lab_signals_restart()) {
            errno = EINTR;
            return false;
        }
    }
    errno = error;
    return true;
}

/* ---- Reading and writing ---- */

LAB_API ssize_t read(int fd, void *to, size_t n);
ssize_t read(int fd, void *to, size_t n)
{
    struct iovec part = {to, n};
    enum lab_way way;
    ssize_t got;

    LAB_ENTER();
    if (!lab_await_fd(fd, POLLIN, LAB_SITE))
        return -1;
    way = lab_input_way(fd);
    got = way == LAB_GIVE ? lab_input_take(ETCH_LAB_CALL_READ, fd, &part, 1) : lab_real_read(fd, to, n);
    return way == LAB_KEEP ? lab_input_keep(ETCH_LAB_CALL_READ, fd, got, &part, 1, LAB_GOT(got)) : got;
}

LAB_API ssize_t readv(int fd, const struct iovec *parts, int n);
ssize_t readv(int fd, const struct iovec *parts, int n)
{
    enum lab_way way;
    ssize_t got;

    LAB_ENTER();
    if (!lab_await_fd(fd, POLLIN, LAB_SITE))
        return -1;
    way = lab_input_way(fd);
    got = way == LAB_GIVE ? lab_input_take(ETCH_LAB_CALL_READ, fd, parts, n) : lab_real_readv(fd, parts, n);
    return way == LAB_KEEP ? lab_input_keep(ETCH_LAB_CALL_READ, fd, got, parts, n, LAB_GOT(got)) : got;
}

LAB_API ssize_t write(int fd, const void *from, size_t n);
ssize_t write(int fd, const void *from, size_t n)
{
    LAB_ENTER();
    if (!lab_await_fd(fd, POLLOUT, LAB_SITE))
        return -1;
    return LAB_ANSWERED(ETCH_LAB_CALL_WRITE, fd, lab_real_write(fd, from, n));
}

LAB_API ssize_t writev(int fd, const struct iovec *parts, int n);
ssize_t writev(int fd, const struct iovec *parts, int n)
{
    LAB_ENTER();
    if (!lab_await_fd(fd, POLLOUT, LAB_SITE))
        return -1;
    return LAB_ANSWERED(ETCH_LAB_CALL_WRITE, fd, lab_real_writev(fd, parts, n));
}

/* ---- Pipes of the program's own ---- */

LAB_API int pipe2(int ends[2], int flags);
int pipe2(int ends[2], int flags)
{
    int result;

    LAB_ENTER();
    result = lab_real_pipe2(ends, flags);
    if (result == 0 && lab)
        lab_input_made_inner(ends[0]);
    return result;
}

LAB_API int pipe(int ends[2]);
int pipe(int ends[2])
{
    return pipe2(ends, 0);
}
