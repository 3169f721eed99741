/* SPDX-License-Identifier: MIT */
/* etch record --source lab. The lab needs a lab build, which needs LLVM: etch runs etch-llvm for it. */
#ifndef ETCH_CLI_RECORD_LAB_H
#define ETCH_CLI_RECORD_LAB_H

#include "cli/command.h"
#include "collector/record.h"

struct etch_record_lab {
    const char *schedule; /* NULL: queue */
    const char *memory;   /* NULL: sc */
    char **argv;          /* of the command */
    bool automatic;       /* another source does if the program has no lab build */
};

/* Records options->argv. Returns 0 with `summary` set, or -1 with `err` set. */
int etch_record_in_lab(const struct etch_record_lab *about, struct etch_record_options *options,
                       struct etch_record_summary *summary, struct etch_error *err);

#endif
