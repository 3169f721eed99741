/* SPDX-License-Identifier: MIT */
/* The description of this machine in a bundle. */
#ifndef ETCH_COLLECTOR_SESSION_HOST_H
#define ETCH_COLLECTOR_SESSION_HOST_H

#include "collector/session/recorder.h"

/* Reads vendor, family, model and stepping from CPUID. */
void etch_host_cpu(char vendor[13], uint32_t *family, uint32_t *model, uint32_t *stepping);

/* Writes the Host record, the first of every bundle. Returns 0, or -1 with `err` set if the bundle cannot be written.
 */
int etch_host_write(struct etch_recorder *recorder, struct etch_error *err);

#endif
