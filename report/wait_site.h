/* SPDX-License-Identifier: MIT */
/* Private to report/: the places that waited, and the recorded operation that each wait was in. */
#ifndef ETCH_REPORT_WAIT_SITE_H
#define ETCH_REPORT_WAIT_SITE_H

#include "report/measure.h"

/* The steps of this thread come next. */
void etch_wait_site_thread(struct etch_measure *m, uint32_t tid);

/* The function waited between these ticks, in the call at `where`, of which image and address are set. */
void etch_wait_site_add(struct etch_measure *m, const struct etch_measure_site *where, uint32_t function, uint64_t from,
                        uint64_t to);

#endif
