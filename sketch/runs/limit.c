/* SPDX-License-Identifier: MIT */
/* Losses by a limit; see limit.h. */
#include "sketch/runs/limit.h"

#include <stdlib.h>
#include <string.h>

int etch_run_limit(struct etch_run *run, uint32_t tid, uint64_t events, const char *detail)
{
    Etch__Loss *loss = events ? malloc(sizeof(*loss)) : NULL;

    if (!events)
        return 0;
    if (!loss)
        return -1;
    etch__loss__init(loss);
    loss->cause = ETCH__LOSS_CAUSE__LOSS_LIMIT;
    loss->tid = tid;
    loss->events = events;
    loss->detail = strdup(detail);
    if (loss->detail && etch_array_push(&run->losses, loss))
        return 0;
    etch__loss__free_unpacked(loss, NULL);
    return -1;
}
