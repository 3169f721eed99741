/* SPDX-License-Identifier: MIT */
/* Private: calls on descriptors, in the runtime inside a program in the lab. */
#ifndef ETCH_COLLECTOR_LAB_DESCRIPTOR_H
#define ETCH_COLLECTOR_LAB_DESCRIPTOR_H

#include "collector/lab/runtime.h"

/* How many bytes a call returned that returns -1 if it fails. */
#define LAB_GOT(n) ((n) > 0 ? (size_t)(n) : 0)

/* The answer to a call without data: the one that was kept, or what `ask` says now. */
#define LAB_ANSWERED(call, fd, ask) LAB_ANSWERED_BY(lab_input_way(fd), call, fd, ask)
#define LAB_ANSWERED_BY(way, call, fd, ask)                                                                            \
    __extension__({                                                                                                    \
        enum lab_way way_ = (way);                                                                                     \
        int64_t answer_ = way_ == LAB_GIVE ? lab_input_take(call, fd, NULL, 0) : (int64_t)(ask);                       \
        way_ == LAB_KEEP ? lab_input_keep(call, fd, answer_, NULL, 0, 0) : answer_;                                    \
    })

/* A call that may wait is a point. If it would wait, others run until the descriptor is ready. False if a signal came
 * first, with errno set. */
bool lab_await_fd(int fd, short events, uint64_t site);

/* poll() until `deadline` in virtual time. */
int lab_poll(struct pollfd *list, nfds_t n, uint64_t deadline, uint64_t site);

#endif
