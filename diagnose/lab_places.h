/* SPDX-License-Identifier: MIT */
/* The statements of a claim, by the line table of the lab build. */
#ifndef ETCH_DIAGNOSE_LAB_PLACES_H
#define ETCH_DIAGNOSE_LAB_PLACES_H

#include "diagnose/lab_cause.h"
#include "sketch/run.h"

/* Gives each moment of the claim its place among `names`: the line of the user's own code at that moment. Returns 0, or
 * -1 if a moment has no such line, or memory is short. */
int etch_lab_places(const struct etch_lab_cause *cause, const char *twin, struct etch_names *names, uint32_t *places);

/* The same of one moment. ETCH_NOWHERE if it has no such line. */
uint32_t etch_lab_place(const struct etch_lab_cause *cause, const char *twin, const struct etch_lab_event *moment,
                        struct etch_names *names);

#endif
