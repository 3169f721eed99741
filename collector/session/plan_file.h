/* SPDX-License-Identifier: MIT */
/* Reads the plan of etch slice: the places to watch, and the code to trace. */
#ifndef ETCH_COLLECTOR_SESSION_PLAN_FILE_H
#define ETCH_COLLECTOR_SESSION_PLAN_FILE_H

#include "base/error.h"
#include "proto/etch.pb-c.h"

/* The plan is valid during the call. Returns 0, or -1 with `err` set. */
typedef int etch_plan_visitor(void *context, const Etch__Plan *plan, struct etch_error *err);

/* Finds the plan in a file. Returns what the visitor returns, or -1 with `err` set if the file has no plan. */
int etch_plan_file_visit(const char *path, etch_plan_visitor *visit, void *context, struct etch_error *err);

#endif
