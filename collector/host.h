/* SPDX-License-Identifier: MIT */
/* This machine, as the bundle describes it. */
#ifndef ETCH_COLLECTOR_HOST_H
#define ETCH_COLLECTOR_HOST_H

#include "base/error.h"
#include "proto/bundle.h"

/* Writes the Host record. */
int etch_host_write(struct etch_bundle_writer *bundle, struct etch_error *err);

#endif
