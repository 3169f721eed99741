/* SPDX-License-Identifier: MIT */
/* The statements of a claim, by the line table of the lab build. */
#ifndef ETCH_DIAGNOSE_LAB_PLACES_H
#define ETCH_DIAGNOSE_LAB_PLACES_H

#include "diagnose/lab_cause.h"
#include "sketch/run.h"

/* Gives each moment of the claim its place among `names`: the line of the user's own code at that moment. Returns 0, or
 * -1 if a moment has no such line, or memory is short. */
int etch_lab_places(const struct etch_lab_cause *cause, const char *twin, struct etch_names *names, uint32_t *places);

#endif
