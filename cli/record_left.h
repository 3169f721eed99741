/* SPDX-License-Identifier: MIT */
/* Recordings that a killed etch, or a program that ran without etch, left behind. */
#ifndef ETCH_CLI_RECORD_LEFT_H
#define ETCH_CLI_RECORD_LEFT_H

#include "cli/command.h"
#include "collector/record.h"

/* --rings and --recover. Both return the command's exit status. */
int etch_record_rings(const struct etch_command *self, const char *folder, const struct etch_record_options *options);
int etch_record_recover(const struct etch_command *self, const char *folder, const char *output);

/* Prints how many recordings can be recovered. */
void etch_record_mention_killed(void);

#endif
