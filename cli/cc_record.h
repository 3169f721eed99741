/* SPDX-License-Identifier: MIT */
/* Behind etch cc --record: the compiler's own commands, each run with the software recorder put in between
 * optimisation and code generation. Private to cli/. */
#ifndef ETCH_CLI_CC_RECORD_H
#define ETCH_CLI_CC_RECORD_H

#include "base/error.h"
#include "slicer/instrument.h"

/* Runs `args` (a clang driver's command line, NULL at its end). Returns clang's status, or -1 with `err` set. */
int etch_cc_record(char **args, const struct etch_instrument_options *options, struct etch_error *err);

#endif
