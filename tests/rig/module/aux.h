/* SPDX-License-Identifier: MIT OR GPL-2.0-or-later */
/* The AUX area of one event, as the ToPA tables of a CPU use it: output stops at page borders only, a full trace wakes
 * its reader a page before the end at the latest, a snapshot wraps and leaves its head within the buffer. */
#ifndef ETCH_RIG_AUX_H
#define ETCH_RIG_AUX_H

#include <linux/perf_event.h>

struct rig_aux {
    void **pages;
    unsigned long size;
    bool snapshot;
    unsigned long at;     /* where the next byte goes */
    unsigned long filled; /* bytes since begin */
    unsigned long room;   /* that begin found, full trace only */
    unsigned long wake;   /* bytes after which the reader is told, full trace only */
    bool full;            /* a byte found no room */
};

void *rig_aux_setup(struct perf_event *event, void **pages, int n_pages, bool snapshot);
void rig_aux_free(void *aux);
unsigned rig_aux_live(void);

/* Both for the CPU that the event is on. NULL where there is no room, or no buffer. */
struct rig_aux *rig_aux_begin(struct perf_output_handle *handle, struct perf_event *event);
void rig_aux_end(struct perf_output_handle *handle, struct rig_aux *aux);

void rig_aux_put(struct rig_aux *aux, const u8 *bytes, size_t n);

static inline bool rig_aux_wants_end(const struct rig_aux *aux)
{
    return !aux->snapshot && (aux->full || aux->filled >= aux->wake);
}

#endif
