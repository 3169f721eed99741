/* SPDX-License-Identifier: MIT */
/* Private to the source `pt`: rings that are kept for processes that crash. Nothing is written until etch core asks for
 * the trace of a dying process. Then one bundle is written beside the core, and the rings go on. */
#ifndef ETCH_COLLECTOR_PT_FOR_CORES_H
#define ETCH_COLLECTOR_PT_FOR_CORES_H

#include "base/array.h"
#include "collector/pt.h"
#include "collector/session/recorder.h"
#include "collector/standby.h"

struct etch_pt_for_cores {
    const struct etch_record_options *options;
    struct etch_record_summary *summary;
    struct etch_standby standby;
    struct etch_sink sink;                  /* of the time in between: keeps the newest losses, drops all else */
    ETCH_ARRAY(struct Etch__Loss *) losses; /* a ring */
    uint64_t n_losses;                      /* so far */
    Etch__Clock *clock;                     /* of the CPUs; NULL: not measured */
};

/* Close it in any case. */
int etch_pt_for_cores_open(struct etch_pt_for_cores *cores, const struct etch_record_options *options,
                           struct etch_record_summary *summary, struct etch_error *err);

/* From now on etch core finds this recorder. */
int etch_pt_for_cores_listen(struct etch_pt_for_cores *cores, struct etch_error *err);

/* Serves the requests that are there. */
void etch_pt_for_cores_serve(struct etch_pt_for_cores *cores, struct etch_pt *pt);

void etch_pt_for_cores_close(struct etch_pt_for_cores *cores);

#endif
