/* SPDX-License-Identifier: MIT */
/* Private to the collector: files of rings, as programs left them, and folders of them. */
#ifndef ETCH_COLLECTOR_SOFT_POOL_FILES_H
#define ETCH_COLLECTOR_SOFT_POOL_FILES_H

#include "collector/soft.h"

/* The reader of the rings of several files. */
struct etch_soft_pools {
    const struct etch_soft_sink *sink;
    struct etch_soft_summary *summary;
    uint32_t known, stream;
    bool stopped;
};

/* Hands the rings of one open file to the sink. */
void etch_soft_pool_take(struct etch_soft_pools *pools, int fd);

#endif
