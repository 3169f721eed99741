/* SPDX-License-Identifier: MIT */
/* How much a reader of files may take. A file of some kilobytes can unpack to terabytes, and a deep recursion can print
 * as much. Each bound has a default that no honest file reaches, and can be set. The reader counts the data that a
 * bound left out. */
#ifndef ETCH_BASE_BOUND_H
#define ETCH_BASE_BOUND_H

#include <stdbool.h>
#include <stdint.h>

enum etch_bound_kind {
    ETCH_BOUND_MEMORY,   /* what is kept of one file; by default 256 MiB, or 256 times what was read of it if that is
                          * more, and never more than half of the machine's memory */
    ETCH_BOUND_UNPACKED, /* what is unpacked of one file, kept or not; by default 4 GiB and 1,024 times what was read */
    ETCH_BOUND_OUTPUT,   /* what is printed; by default 64 GiB */
    ETCH_BOUNDS,
};

/* Takes "512M", "2G", "100000". Returns 0, or -1 and changes nothing. */
int etch_bound_set(enum etch_bound_kind which, const char *size);

/* ETCH_MAX_MEMORY, ETCH_MAX_UNPACKED, ETCH_MAX_OUTPUT, where they are set. Returns NULL, or the name of one that holds
 * no size. */
const char *etch_bound_set_by_environment(void);

/* The bound, in bytes, when `read` bytes of the file were read. */
uint64_t etch_bound(enum etch_bound_kind which, uint64_t read);

/* The memory that a reader keeps of a file. */
struct etch_budget {
    uint64_t used;
    uint64_t refused; /* how often it was not enough */
};

/* May `bytes` more be kept, when `read` bytes of the file were read? */
bool etch_budget_take(struct etch_budget *budget, uint64_t bytes, uint64_t read);

#endif
