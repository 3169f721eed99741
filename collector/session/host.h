/* SPDX-License-Identifier: MIT */
/* This machine, as the bundle describes it. */
#ifndef ETCH_COLLECTOR_SESSION_HOST_H
#define ETCH_COLLECTOR_SESSION_HOST_H

#include "base/error.h"
#include "proto/bundle.h"

/* What this CPU calls itself. */
void etch_host_cpu(char vendor[13], uint32_t *family, uint32_t *model, uint32_t *stepping);

/* Writes the Host record. */
int etch_host_write(struct etch_bundle_writer *bundle, struct etch_error *err);

#endif
