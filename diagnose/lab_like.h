/* SPDX-License-Identifier: MIT */
/* A native recording as a pattern for runs in the lab: the orders of synchronisations that the recording proves, by
 * name, and how the run failed. */
#ifndef ETCH_DIAGNOSE_LAB_LIKE_H
#define ETCH_DIAGNOSE_LAB_LIKE_H

#include "collector/lab_run.h"
#include "collector/lab_script.h"
#include "diagnose/lab_names.h"

struct etch_lab_like {
    struct etch_lab_script script; /* the newest orders, if there are more than a script can have */
    size_t syncs;                  /* synchronisations of the recording */
    size_t named;                  /* of them, those with a thread and a line of the program's own source */
    size_t orders;                 /* that are proven */
    size_t dropped;                /* that cannot be kept in the lab */
    enum etch_lab_end end;         /* the failure */
    int number;
    char *exe;
    ETCH_ARRAY(char *) argv;
};

/* Reads a bundle. Returns 0, or -1 with `err` set: it cannot be read, or that run did not fail. To be released in
 * either case. */
int etch_lab_like_read(struct etch_lab_like *like, const char *bundle, struct etch_error *err);
void etch_lab_like_release(struct etch_lab_like *like);

/* Finds the code of the orders in the lab build. Orders of lines without code there are dropped. */
int etch_lab_like_resolve(struct etch_lab_like *like, struct etch_lab_names *names, struct etch_lab_enforced *orders,
                          struct etch_error *err);

/* Drops the order that could not be kept in a run. False: all were kept. */
bool etch_lab_like_adapt(struct etch_lab_like *like, struct etch_lab_enforced *orders,
                         const struct etch_lab_result *result);

/* The run failed as the recorded one did. Memory that is misused ends a run in the lab, but natively a signal may come
 * later. */
bool etch_lab_like_is(const struct etch_lab_like *like, const struct etch_lab_result *result);

#endif
