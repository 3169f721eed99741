/* SPDX-License-Identifier: MIT */
/* Waiting for several descriptors in the lab: poll, select, epoll. */
#include "collector/lab/descriptor.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <unistd.h>

#define MS UINT64_C(1000000)
#define SECOND UINT64_C(1000000000)
#define EPOLLS 256 /* epoll descriptors whose members are known */

/* Looks at descriptors of which some may lead outside. */
static int look_at(struct pollfd *list, nfds_t n, int ms)
{
    struct iovec part = {list, n * sizeof(*list)};
    bool is_outside = false;
    int ready;

    for (nfds_t i = 0; i < n; i++)
        is_outside |= lab_input_is_outside(list[i].fd);
    if (!is_outside)
        return lab_real_poll(list, n, ms);
    if (lab_input_feeds())
        return (int)lab_input_take(ETCH_LAB_CALL_POLL, list->fd, &part, 1);
    ready = lab_real_poll(list, n, ms);
    return (int)lab_input_keep(ETCH_LAB_CALL_POLL, list->fd, ready, &part, 1, part.iov_len);
}

int lab_poll(struct pollfd *list, nfds_t n, uint64_t deadline, uint64_t site)
{
    int ready = look_at(list, n, 0);
    bool in_time = true;

    while (ready == 0 && in_time && lab_now() < deadline) {
        in_time = n ? lab_block_fds(list, n, deadline, site) : lab_block(ETCH_LAB_SLEEP, 0, deadline, site);
        pthread_testcancel();
        if (lab_threads[lab_me].interrupted) {
            errno = EINTR;
            return -1;
        }
        ready = look_at(list, n, 0);
    }
    return ready;
}

static uint64_t deadline_of(int64_t ns)
{
    return ns < 0 ? LAB_NEVER : lab_now() + (uint64_t)ns;
}

static bool is_alone(void)
{
    return lab_alive < 2 || lab->real_time;
}

static int poll_for(struct pollfd *list, nfds_t n, int64_t ns, uint64_t site)
{
    if (is_alone() && (n || lab->real_time))
        return look_at(list, n, ns < 0 ? -1 : (int)((ns + 999999) / 1000000));
    lab_point((struct etch_lab_op){.object = n ? (uint64_t)list->fd : 0, .write = true, .sync = true}, site);
    return lab_poll(list, n, deadline_of(ns), site);
}

LAB_API int poll(struct pollfd *list, nfds_t n, int ms);
int poll(struct pollfd *list, nfds_t n, int ms)
{
    LAB_ENTER();
    return lab_controlled() ? poll_for(list, n, ms < 0 ? -1 : ms * (int64_t)MS, LAB_SITE) : lab_real_poll(list, n, ms);
}

LAB_API int ppoll(struct pollfd *list, nfds_t n, const struct timespec *limit, const sigset_t *mask);
int ppoll(struct pollfd *list, nfds_t n, const struct timespec *limit, const sigset_t *mask)
{
    sigset_t old;
    int ready;

    LAB_ENTER();
    if (!lab_controlled())
        return lab_real_ppoll(list, n, limit, mask);
    if (mask)
        pthread_sigmask(SIG_SETMASK, mask, &old);
    ready = poll_for(list, n, limit ? limit->tv_sec * (int64_t)SECOND + limit->tv_nsec : -1, LAB_SITE);
    if (mask)
        pthread_sigmask(SIG_SETMASK, &old, NULL);
    return ready;
}

/* ---- select ---- */

static nfds_t to_list(struct pollfd *list, int n, const fd_set *in, const fd_set *out, const fd_set *odd)
{
    nfds_t k = 0;

    for (int fd = 0; fd < n && fd < FD_SETSIZE; fd++) {
        short events = (short)((in && FD_ISSET(fd, in) ? POLLIN : 0) | (out && FD_ISSET(fd, out) ? POLLOUT : 0) |
                               (odd && FD_ISSET(fd, odd) ? POLLPRI : 0));

        if (events)
            list[k++] = (struct pollfd){.fd = fd, .events = events};
    }
    return k;
}

/* Leaves the descriptors in `set` that have one of `events`. Returns their number. */
static int to_set(const struct pollfd *list, nfds_t n, fd_set *set, short wanted, short events)
{
    int left = 0;

    for (nfds_t i = 0; set && i < n; i++) {
        if (!(list[i].events & wanted))
            continue;
        if (list[i].revents & events)
            left++;
        else
            FD_CLR(list[i].fd, set);
    }
    return left;
}

static int select_for(int n, fd_set *in, fd_set *out, fd_set *odd, int64_t ns, uint64_t site)
{
    struct pollfd list[FD_SETSIZE];
    nfds_t k = to_list(list, n, in, out, odd);
    int ready = poll_for(list, k, ns, site);

    if (ready < 0)
        return -1;
    for (nfds_t i = 0; i < k; i++)
        if (list[i].revents & POLLNVAL) {
            errno = EBADF;
            return -1;
        }
    return to_set(list, k, in, POLLIN, POLLIN | POLLHUP | POLLERR) + to_set(list, k, out, POLLOUT, POLLOUT | POLLERR) +
           to_set(list, k, odd, POLLPRI, POLLPRI);
}

LAB_API int select(int n, fd_set *restrict in, fd_set *restrict out, fd_set *restrict odd,
                   struct timeval *restrict limit);
int select(int n, fd_set *restrict in, fd_set *restrict out, fd_set *restrict odd, struct timeval *restrict limit)
{
    LAB_ENTER();
    if (!lab_controlled())
        return lab_real_select(n, in, out, odd, limit);
    return select_for(n, in, out, odd, limit ? limit->tv_sec * (int64_t)SECOND + limit->tv_usec * 1000 : -1, LAB_SITE);
}

LAB_API int pselect(int n, fd_set *restrict in, fd_set *restrict out, fd_set *restrict odd,
                    const struct timespec *restrict limit, const sigset_t *restrict mask);
int pselect(int n, fd_set *restrict in, fd_set *restrict out, fd_set *restrict odd,
            const struct timespec *restrict limit, const sigset_t *restrict mask)
{
    sigset_t old;
    int ready;

    LAB_ENTER();
    if (!lab_controlled())
        return lab_real_pselect(n, in, out, odd, limit, mask);
    if (mask)
        pthread_sigmask(SIG_SETMASK, mask, &old);
    ready = select_for(n, in, out, odd, limit ? limit->tv_sec * (int64_t)SECOND + limit->tv_nsec : -1, LAB_SITE);
    if (mask)
        pthread_sigmask(SIG_SETMASK, &old, NULL);
    return ready;
}

/* ---- epoll ---- */

static int watching[EPOLLS]; /* epoll descriptors with members that lead outside, plus 1 */

bool lab_input_is_watched(int fd)
{
    for (size_t i = 0; i < EPOLLS; i++)
        if (watching[i] == fd + 1)
            return true;
    return false;
}

static void add_watching(int fd)
{
    for (size_t i = 0; i < EPOLLS && !lab_input_is_watched(fd); i++)
        if (!watching[i])
            watching[i] = fd + 1;
}

void lab_input_closed(int fd)
{
    for (size_t i = 0; i < EPOLLS; i++)
        if (watching[i] == fd + 1)
            watching[i] = 0;
}

LAB_API int epoll_ctl(int epoll, int op, int fd, struct epoll_event *event);
int epoll_ctl(int epoll, int op, int fd, struct epoll_event *event)
{
    LAB_ENTER();
    if (lab_input_is_outside(fd))
        add_watching(epoll);
    return lab_real_epoll_ctl(epoll, op, fd, event);
}

LAB_API int epoll_wait(int epoll, struct epoll_event *events, int n, int ms);
int epoll_wait(int epoll, struct epoll_event *events, int n, int ms)
{
    struct pollfd p = {.fd = epoll, .events = POLLIN};
    struct iovec part = {events, n > 0 ? (size_t)n * sizeof(*events) : 0};
    enum lab_way way;
    int ready;

    LAB_ENTER();
    if (!lab_controlled())
        return lab_real_epoll_wait(epoll, events, n, ms);
    if (!is_alone()) {
        if (poll_for(&p, 1, ms < 0 ? -1 : ms * (int64_t)MS, LAB_SITE) < 0)
            return -1;
        ms = 0;
    }
    way = lab_input_way(epoll);
    ready = way == LAB_GIVE ? (int)lab_input_take(ETCH_LAB_CALL_EPOLL, epoll, &part, 1)
                            : lab_real_epoll_wait(epoll, events, n, ms);
    return way == LAB_KEEP
               ? (int)lab_input_keep(ETCH_LAB_CALL_EPOLL, epoll, ready, &part, 1, LAB_GOT(ready) * sizeof(*events))
               : ready;
}

LAB_API int epoll_pwait(int epoll, struct epoll_event *events, int n, int ms, const sigset_t *mask);
int epoll_pwait(int epoll, struct epoll_event *events, int n, int ms, const sigset_t *mask)
{
    sigset_t old;
    int ready;

    LAB_ENTER();
    if (!lab_controlled())
        return lab_real_epoll_pwait(epoll, events, n, ms, mask);
    if (mask)
        pthread_sigmask(SIG_SETMASK, mask, &old);
    ready = epoll_wait(epoll, events, n, ms);
    if (mask)
        pthread_sigmask(SIG_SETMASK, &old, NULL);
    return ready;
}

LAB_API int close(int fd);
int close(int fd)
{
    LAB_ENTER();
    if (lab_controlled())
        lab_input_closed(fd);
    return lab_real_close(fd);
}
