/* SPDX-License-Identifier: MIT */
/* Recovers the recording of an etch that was killed. The old bundle ends at the death of etch. The rings may hold more,
 * because the program may have gone on. A new bundle gets the contents of both and says what happened. */
#ifndef ETCH_COLLECTOR_RECOVER_H
#define ETCH_COLLECTOR_RECOVER_H

#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

struct etch_recovery {
    char folder[64], source[16];
    char bundle[4096];       /* of the killed etch; empty: none */
    uint64_t records;        /* from that bundle */
    uint64_t threads, bytes; /* from the rings */
    bool alive;              /* the program still runs and fills its rings */
};

/* Recovers the folder of a killed etch; NULL: the newest folder. Removes the folder once all its contents are in
 * `output`. Returns 0, or -1 with `err` set. */
int etch_recover(const char *folder, const char *output, struct etch_recovery *recovery, struct etch_error *err);

#endif
