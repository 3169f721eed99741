/* SPDX-License-Identifier: MIT */
/* Private to the software recorder's runtime: the pools that are in the folder when a program starts, and their space.
 */
#ifndef ETCH_COLLECTOR_SOFT_FOLDER_SPACE_H
#define ETCH_COLLECTOR_SOFT_FOLDER_SPACE_H

#include "collector/soft/runtime.h"

struct etch_soft_folder {
    int fd;
    uint32_t uid;
    uint64_t total; /* bytes of pools */
    uint32_t empties;
    uint32_t removed; /* to make room */
    uint32_t passed;  /* pools of processes that ended well */
    bool pressed;     /* too little space: the search is for the oldest pool that nobody writes to */
    bool oldest_passed;
    int64_t oldest_time;
    char oldest[256];
};

/* Weighs all pools. Pools of processes that ended well keep only the rings that they used, and only the newest of these
 * pools stay. */
HIDDEN void etch_soft_folder_read(struct etch_soft_folder *f);

/* Bytes that are left up to `bound`. If `wanted` bytes are not, pools that nobody writes to are removed: those of
 * processes that ended well first, then the oldest. */
HIDDEN uint64_t etch_soft_folder_left(struct etch_soft_folder *f, uint64_t bound, uint64_t wanted);

#endif
