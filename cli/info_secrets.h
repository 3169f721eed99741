/* SPDX-License-Identifier: MIT */
/* etch info --secrets; private to info.c. */
#ifndef ETCH_CLI_INFO_SECRETS_H
#define ETCH_CLI_INFO_SECRETS_H

#include "cli/command.h"
#include "proto/bundle.h"

/* Prints what the file would give away to a recipient. Examples are masked unless `plain`. Returns the exit status. */
int etch_info_secrets(const struct etch_command *self, struct etch_bundle_reader *reader, const char *path, bool plain);

#endif
