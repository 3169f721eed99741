/* SPDX-License-Identifier: MIT */
/* Private to the software recorder's runtime: the budget, and the functions that go dark to keep it. */
#ifndef ETCH_COLLECTOR_SOFT_BUDGET_H
#define ETCH_COLLECTOR_SOFT_BUDGET_H

#include "collector/soft/runtime.h"

/* When a module begins and is to record: lights its functions, except those that are to be dark. */
HIDDEN void etch_soft_light(char *const *environment);

/* Reads the budget of the process from the environment. */
HIDDEN uint32_t etch_soft_read_budget(const char *text);

/* A chunk was filled between these two times. */
HIDDEN void etch_soft_charge(uint64_t from, uint64_t to);

/* Recorded code that goes on at `where` filled a chunk. If that is too much, its function goes dark. */
HIDDEN void etch_soft_weigh(uintptr_t where);

/* The function's plain copy runs from its next call on. */
HIDDEN void etch_soft_go_dark(struct etch_soft_lit *lit, uint64_t tsc);

#endif
