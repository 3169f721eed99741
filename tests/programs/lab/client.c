/* SPDX-License-Identifier: MIT */
/* A client of a loopback server, with two threads that add to one number without a lock: its failure depends on the
 * schedule and on what the server says. */
#include <arpa/inet.h>
#include <assert.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

static int fd, total;
static const char *how;

static ssize_t receive(char *to, size_t n)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    struct epoll_event event = {.events = EPOLLIN};
    struct iovec part = {to, n};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    fd_set set;

    if (strcmp(how, "poll") == 0 && poll(&p, 1, 60000) != 1)
        return -1;
    if (strcmp(how, "select") == 0) {
        FD_ZERO(&set);
        FD_SET(fd, &set);
        if (select(fd + 1, &set, NULL, NULL, NULL) != 1)
            return -1;
        return recvmsg(fd, &message, 0);
    }
    if (strcmp(how, "epoll") == 0) {
        int epoll = epoll_create1(0);

        if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) < 0 || epoll_wait(epoll, &event, 1, -1) != 1)
            return -1;
        close(epoll);
        return readv(fd, &part, 1);
    }
    return strcmp(how, "read") == 0 ? read(fd, to, n) : recv(fd, to, n, 0);
}

static void *reader(void *unused)
{
    char line[64];
    ssize_t n;

    while ((n = receive(line, sizeof(line))) > 0) {
        int was = total;
        total = was + (int)n;
    }
    return unused;
}

int main(int argc, char **argv)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    char hello[64];
    unsigned salt = 0;
    pthread_t t;

    if (argc < 3)
        return 2;
    how = argv[2];
    to.sin_port = htons((unsigned short)atoi(argv[1]));
    getrandom(&salt, sizeof(salt), 0);
    fd = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(fd, (struct sockaddr *)&to, sizeof(to)) < 0)
        return 7;
    snprintf(hello, sizeof(hello), "%u %d\n", salt, (int)getpid());
    if (send(fd, hello, strlen(hello), 0) < 0)
        return 8;
    shutdown(fd, SHUT_WR);
    pthread_create(&t, NULL, reader, NULL);
    for (int i = 0; i < 3; i++) {
        int was = total;
        total = was + 100;
    }
    pthread_join(t, NULL);
    close(fd);
    printf("total %d salt %u pid %d\n", total, salt, (int)getpid());
    fflush(stdout);
    assert(total >= 300 + 10);
    return 0;
}
