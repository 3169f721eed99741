/* SPDX-License-Identifier: MIT */
/* The one line that etch record prints on standard error at the end. */
#ifndef ETCH_CLI_RECORD_SUMMARY_H
#define ETCH_CLI_RECORD_SUMMARY_H

#include "collector/record.h"

void etch_record_summary_print(const struct etch_record_options *options, const struct etch_record_summary *summary);

/* "512 B", "1.5 KiB", "20.0 MiB". */
void etch_print_size(char *text, size_t size, uint64_t bytes);

#endif
