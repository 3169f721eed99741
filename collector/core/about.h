/* SPDX-License-Identifier: MIT */
/* The bundle that etch core wrote beside a core: what only /proc knew about the process. */
#ifndef ETCH_COLLECTOR_CORE_ABOUT_H
#define ETCH_COLLECTOR_CORE_ABOUT_H

#include "base/array.h"
#include "proto/etch.pb-c.h"

#include <stdbool.h>

struct core_about {
    Etch__Program *program; /* NULL: there is none of this process */
    Etch__Outcome *outcome;
    ETCH_ARRAY(Etch__Thread *) threads;
};

/* Reads NAME.etch beside the core NAME.core, if it is of process `pid`. */
void core_about_read(struct core_about *about, const char *core, uint32_t pid);
void core_about_release(struct core_about *about);

/* The name of a thread; NULL: not known. */
const char *core_about_name(const struct core_about *about, uint32_t tid);

#endif
