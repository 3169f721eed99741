/* SPDX-License-Identifier: MIT */
/* The recording of an etch that was killed: its bundle, which ends where etch did, and what its rings still hold, which
 * may have gone on with the program, in one new bundle that says what happened. */
#ifndef ETCH_COLLECTOR_RECOVER_H
#define ETCH_COLLECTOR_RECOVER_H

#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

struct etch_recovery {
    char folder[64], source[16];
    char bundle[4096];       /* of the killed etch; empty where there is none of it */
    uint64_t records;        /* from there */
    uint64_t threads, bytes; /* from the rings */
    bool alive;              /* the program goes on, and its rings with it */
};

/* Takes the folder of a killed etch, or where it is NULL the newest, and removes it when all is in `output`. Returns 0,
 * or -1 with `err` set. */
int etch_recover(const char *folder, const char *output, struct etch_recovery *recovery, struct etch_error *err);

#endif
