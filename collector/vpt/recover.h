/* SPDX-License-Identifier: MIT */
/* Recovers the rings of vpt after their etch was killed. Private to the collector. */
#ifndef ETCH_COLLECTOR_VPT_RECOVER_H
#define ETCH_COLLECTOR_VPT_RECOVER_H

#include "base/array.h"
#include "collector/folder.h"
#include "collector/source.h"

/* Data that the bundle has already: the end of each stream, and each thread's newest access. */
struct etch_vpt_known {
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

/* From where on a ring's bytes are wanted: its tail, unless the bundle has more. */
uint64_t etch_vpt_known_end(const struct etch_vpt_known *known, uint32_t stream, uint64_t tail);
bool etch_vpt_known_stream(const struct etch_vpt_known *known, uint32_t stream);
bool etch_vpt_known_access(const struct etch_vpt_known *known, uint32_t tid, uint64_t tsc);

/* Writes the rest to the recorder's bundle and leaves the folder as it is. `options` are those of the recorder, filled
 * here. Returns 0, or -1 with `err` set. */
int etch_vpt_recover(struct etch_recorder *recorder, struct etch_folder *folder, struct etch_record_options *options,
                     const struct etch_vpt_known *known, struct etch_error *err);

#endif
