/* SPDX-License-Identifier: MIT */
/* Sockets in the lab. When a run is repeated, sockets are there as numbers only, and all answers are the kept ones. */
#include "collector/lab/descriptor.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* A call with MSG_DONTWAIT does not wait. */
static bool await_message(int fd, int flags, short events, uint64_t site)
{
    return flags & MSG_DONTWAIT || lab_await_fd(fd, events, site);
}

/* ---- Making ---- */

/* A descriptor that stands for one that leads outside. */
static int stand_in(int flags, int64_t wanted)
{
    int error = errno;
    int made = wanted < 0 ? -1 : lab_real_socket(AF_UNIX, SOCK_STREAM | flags, 0);

    errno = error;
    return lab_input_place(made, wanted);
}

LAB_API int socket(int domain, int type, int protocol);
int socket(int domain, int type, int protocol)
{
    enum lab_way way;
    int fd;

    LAB_ENTER();
    way = lab_input_way_of(ETCH_LAB_SOCKETS);
    if (way == LAB_GIVE)
        return stand_in(type & (SOCK_CLOEXEC | SOCK_NONBLOCK), lab_input_take(ETCH_LAB_CALL_SOCKET, -1, NULL, 0));
    fd = lab_real_socket(domain, type, protocol);
    return way == LAB_KEEP ? (int)lab_input_keep(ETCH_LAB_CALL_SOCKET, -1, fd, NULL, 0, 0) : fd;
}

LAB_API int socketpair(int domain, int type, int protocol, int ends[2]);
int socketpair(int domain, int type, int protocol, int ends[2])
{
    int result;

    LAB_ENTER();
    result = lab_real_socketpair(domain, type, protocol, ends);
    if (result == 0 && lab) {
        lab_input_made_inner(ends[0]);
        lab_input_made_inner(ends[1]);
    }
    return result;
}

/* An address that a call returned, in a place of fixed size. */
struct named {
    socklen_t size;
    struct sockaddr_storage name;
};

static void name_begin(struct named *n, const struct sockaddr *to, const socklen_t *size)
{
    memset(n, 0, sizeof(*n));
    n->size = to && size && *size < sizeof(n->name) ? *size : sizeof(n->name);
}

static void name_end(const struct named *n, struct sockaddr *to, socklen_t *size)
{
    socklen_t fits = size && *size < n->size ? *size : n->size;

    if (!to || !size)
        return;
    memcpy(to, &n->name, fits < sizeof(n->name) ? fits : sizeof(n->name));
    *size = n->size;
}

LAB_API int accept4(int fd, struct sockaddr *restrict from, socklen_t *restrict size, int flags);
int accept4(int fd, struct sockaddr *restrict from, socklen_t *restrict size, int flags)
{
    struct named n;
    struct iovec part = {&n, sizeof(n)};
    enum lab_way way;
    int made;

    LAB_ENTER();
    if (!lab_await_fd(fd, POLLIN, LAB_SITE))
        return -1;
    way = lab_input_way(fd);
    if (way == LAB_ASK)
        return lab_real_accept4(fd, from, size, flags);
    name_begin(&n, from, size);
    if (way == LAB_GIVE)
        made = stand_in(flags, lab_input_take(ETCH_LAB_CALL_ACCEPT, fd, &part, 1));
    else
        made = lab_real_accept4(fd, (struct sockaddr *)&n.name, &n.size, flags);
    if (way == LAB_KEEP)
        lab_input_keep(ETCH_LAB_CALL_ACCEPT, fd, made, &part, 1, sizeof(n));
    if (made >= 0)
        name_end(&n, from, size);
    return made;
}

LAB_API int accept(int fd, struct sockaddr *restrict from, socklen_t *restrict size);
int accept(int fd, struct sockaddr *restrict from, socklen_t *restrict size)
{
    return accept4(fd, from, size, 0);
}

/* ---- Plain answers ---- */

LAB_API int connect(int fd, const struct sockaddr *to, socklen_t size);
int connect(int fd, const struct sockaddr *to, socklen_t size)
{
    LAB_ENTER();
    if (lab_controlled())
        lab_point((struct etch_lab_op){.object = (uint64_t)fd, .write = true, .sync = true}, LAB_SITE);
    return (int)LAB_ANSWERED(ETCH_LAB_CALL_CONNECT, fd, lab_real_connect(fd, to, size));
}

LAB_API int bind(int fd, const struct sockaddr *to, socklen_t size);
int bind(int fd, const struct sockaddr *to, socklen_t size)
{
    LAB_ENTER();
    return (int)LAB_ANSWERED(ETCH_LAB_CALL_BIND, fd, lab_real_bind(fd, to, size));
}

LAB_API int listen(int fd, int most);
int listen(int fd, int most)
{
    LAB_ENTER();
    return (int)LAB_ANSWERED(ETCH_LAB_CALL_LISTEN, fd, lab_real_listen(fd, most));
}

LAB_API int shutdown(int fd, int how);
int shutdown(int fd, int how)
{
    LAB_ENTER();
    return (int)LAB_ANSWERED(ETCH_LAB_CALL_SHUTDOWN, fd, lab_real_shutdown(fd, how));
}

LAB_API int setsockopt(int fd, int level, int name, const void *value, socklen_t size);
int setsockopt(int fd, int level, int name, const void *value, socklen_t size)
{
    LAB_ENTER();
    return (int)LAB_ANSWERED(ETCH_LAB_CALL_SETSOCKOPT, fd, lab_real_setsockopt(fd, level, name, value, size));
}

LAB_API int getsockopt(int fd, int level, int name, void *restrict value, socklen_t *restrict size);
int getsockopt(int fd, int level, int name, void *restrict value, socklen_t *restrict size)
{
    struct iovec parts[] = {{size, sizeof(*size)}, {value, *size}};
    enum lab_way way;
    int result;

    LAB_ENTER();
    way = lab_input_way(fd);
    result = way == LAB_GIVE ? (int)lab_input_take(ETCH_LAB_CALL_GETSOCKOPT, fd, parts, 2)
                             : lab_real_getsockopt(fd, level, name, value, size);
    return way == LAB_KEEP ? (int)lab_input_keep(ETCH_LAB_CALL_GETSOCKOPT, fd, result, parts, 2, sizeof(*size) + *size)
                           : result;
}

static int get_name(enum etch_lab_call call, int (*ask)(int, struct sockaddr *, socklen_t *), int fd,
                    struct sockaddr *to, socklen_t *size)
{
    enum lab_way way = lab_input_way(fd);
    struct named n;
    struct iovec part = {&n, sizeof(n)};
    int result;

    if (way == LAB_ASK)
        return ask(fd, to, size);
    name_begin(&n, to, size);
    result = way == LAB_GIVE ? (int)lab_input_take(call, fd, &part, 1) : ask(fd, (struct sockaddr *)&n.name, &n.size);
    if (way == LAB_KEEP)
        lab_input_keep(call, fd, result, &part, 1, sizeof(n));
    if (result == 0)
        name_end(&n, to, size);
    return result;
}

LAB_API int getsockname(int fd, struct sockaddr *restrict to, socklen_t *restrict size);
int getsockname(int fd, struct sockaddr *restrict to, socklen_t *restrict size)
{
    LAB_ENTER();
    return get_name(ETCH_LAB_CALL_GETSOCKNAME, lab_real_getsockname, fd, to, size);
}

LAB_API int getpeername(int fd, struct sockaddr *restrict to, socklen_t *restrict size);
int getpeername(int fd, struct sockaddr *restrict to, socklen_t *restrict size)
{
    LAB_ENTER();
    return get_name(ETCH_LAB_CALL_GETPEERNAME, lab_real_getpeername, fd, to, size);
}

/* ---- Receiving ---- */

static ssize_t receive(int fd, void *to, size_t n, int flags, struct sockaddr *from, socklen_t *size, uint64_t site)
{
    struct named name;
    struct iovec parts[] = {{&name, sizeof(name)}, {to, n}};
    enum lab_way way;
    ssize_t got;

    if (!await_message(fd, flags, POLLIN, site))
        return -1;
    way = lab_input_way(fd);
    if (way == LAB_ASK)
        return lab_real_recvfrom(fd, to, n, flags, from, size);
    name_begin(&name, from, size);
    got = way == LAB_GIVE ? lab_input_take(ETCH_LAB_CALL_RECEIVE, fd, parts, 2)
                          : lab_real_recvfrom(fd, to, n, flags, (struct sockaddr *)&name.name, &name.size);
    if (way == LAB_KEEP)
        lab_input_keep(ETCH_LAB_CALL_RECEIVE, fd, got, parts, 2, sizeof(name) + LAB_GOT(got));
    if (got >= 0)
        name_end(&name, from, size);
    return got;
}

LAB_API ssize_t recvfrom(int fd, void *restrict to, size_t n, int flags, struct sockaddr *restrict from,
                         socklen_t *restrict size);
ssize_t recvfrom(int fd, void *restrict to, size_t n, int flags, struct sockaddr *restrict from,
                 socklen_t *restrict size)
{
    LAB_ENTER();
    return receive(fd, to, n, flags, from, size, LAB_SITE);
}

LAB_API ssize_t recv(int fd, void *to, size_t n, int flags);
ssize_t recv(int fd, void *to, size_t n, int flags)
{
    LAB_ENTER();
    return receive(fd, to, n, flags, NULL, NULL, LAB_SITE);
}

#define PARTS 64 /* of one message; beyond them it cannot be given back */

/* The fields of a message that a call changes, its name and its control data, and then its bytes. */
static int parts_of(struct iovec *parts, struct msghdr *m, size_t *fixed)
{
    int n = 0;

    parts[n++] = (struct iovec){&m->msg_namelen, sizeof(m->msg_namelen)};
    parts[n++] = (struct iovec){&m->msg_controllen, sizeof(m->msg_controllen)};
    parts[n++] = (struct iovec){&m->msg_flags, sizeof(m->msg_flags)};
    parts[n++] = (struct iovec){m->msg_name, m->msg_name ? m->msg_namelen : 0};
    parts[n++] = (struct iovec){m->msg_control, m->msg_control ? m->msg_controllen : 0};
    *fixed = 0;
    for (int i = 0; i < n; i++)
        *fixed += parts[i].iov_len;
    for (size_t i = 0; i < m->msg_iovlen && n < PARTS; i++)
        parts[n++] = m->msg_iov[i];
    return n;
}

LAB_API ssize_t recvmsg(int fd, struct msghdr *m, int flags);
ssize_t recvmsg(int fd, struct msghdr *m, int flags)
{
    struct iovec parts[PARTS];
    enum lab_way way;
    size_t fixed;
    ssize_t got;
    int n;

    LAB_ENTER();
    if (!await_message(fd, flags, POLLIN, LAB_SITE))
        return -1;
    way = lab_input_way(fd);
    n = parts_of(parts, m, &fixed);
    got = way == LAB_GIVE ? lab_input_take(ETCH_LAB_CALL_RECEIVE, fd, parts, n) : lab_real_recvmsg(fd, m, flags);
    return way == LAB_KEEP ? lab_input_keep(ETCH_LAB_CALL_RECEIVE, fd, got, parts, n, fixed + LAB_GOT(got)) : got;
}

/* ---- Sending ---- */

LAB_API ssize_t send(int fd, const void *from, size_t n, int flags);
ssize_t send(int fd, const void *from, size_t n, int flags)
{
    LAB_ENTER();
    if (!await_message(fd, flags, POLLOUT, LAB_SITE))
        return -1;
    return LAB_ANSWERED(ETCH_LAB_CALL_SEND, fd, lab_real_send(fd, from, n, flags));
}

LAB_API ssize_t sendto(int fd, const void *from, size_t n, int flags, const struct sockaddr *to, socklen_t size);
ssize_t sendto(int fd, const void *from, size_t n, int flags, const struct sockaddr *to, socklen_t size)
{
    LAB_ENTER();
    if (!await_message(fd, flags, POLLOUT, LAB_SITE))
        return -1;
    return LAB_ANSWERED(ETCH_LAB_CALL_SEND, fd, lab_real_sendto(fd, from, n, flags, to, size));
}

LAB_API ssize_t sendmsg(int fd, const struct msghdr *m, int flags);
ssize_t sendmsg(int fd, const struct msghdr *m, int flags)
{
    LAB_ENTER();
    if (!await_message(fd, flags, POLLOUT, LAB_SITE))
        return -1;
    return LAB_ANSWERED(ETCH_LAB_CALL_SEND, fd, lab_real_sendmsg(fd, m, flags));
}
