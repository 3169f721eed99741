/* SPDX-License-Identifier: MIT */
/* The description of this machine in a bundle. */
#ifndef ETCH_COLLECTOR_SESSION_HOST_H
#define ETCH_COLLECTOR_SESSION_HOST_H

#include "base/error.h"
#include "proto/bundle.h"

/* Reads vendor, family, model and stepping from CPUID. */
void etch_host_cpu(char vendor[13], uint32_t *family, uint32_t *model, uint32_t *stepping);

/* Writes the Host record. */
int etch_host_write(struct etch_bundle_writer *bundle, struct etch_error *err);

#endif
