/* SPDX-License-Identifier: MIT */
/* Recovers the rings of vpt after their etch was killed. */
#ifndef ETCH_COLLECTOR_VPT_RECOVER_H
#define ETCH_COLLECTOR_VPT_RECOVER_H

#include "base/array.h"
#include "collector/folder.h"
#include "collector/sink.h"

#include <sys/types.h>

/* The old bundle has these already: the program, the end of each stream, and each thread's newest access. */
struct etch_vpt_known {
    pid_t pid;
    char program[4096];
    ETCH_ARRAY(struct {
        uint32_t id;
        uint64_t end;
    })
    streams;
    ETCH_ARRAY(struct {
        uint32_t tid;
        uint64_t tsc;
    })
    accesses;
};

/* Takes note of a record of the old bundle. Returns false if memory is short. */
bool etch_vpt_known_add(struct etch_vpt_known *known, const Etch__Record *record);

void etch_vpt_known_free(struct etch_vpt_known *known);

/* Writes the rest to the sink and leaves the folder as it is. Returns 0, or -1 with `err` set. */
int etch_vpt_recover(const struct etch_folder *folder, const struct etch_vpt_known *known, const struct etch_sink *sink,
                     struct etch_error *err);

#endif
