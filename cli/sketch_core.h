/* SPDX-License-Identifier: MIT */
/* Private. The cores of etch sketch: --core FILE and --coredump PID|latest. */
#ifndef ETCH_CLI_SKETCH_CORE_H
#define ETCH_CLI_SKETCH_CORE_H

#include "cli/command.h"
#include "decoder/recording.h"
#include "diagnose/run_set.h"

/* Runs coredumpctl if an argument is --coredump. It must run before the sandbox. For struct etch_command. */
int etch_sketch_core_before(const struct etch_command *self, int argc, char **argv);

/* A core as a bundle. */
struct etch_sketch_core {
    char path[4200];
    char core[4200]; /* the core file itself */
    struct etch_recording *recording;
};

/* Makes a bundle of the core and opens it. `core` is NULL for the core that coredumpctl gave. Notes about the core go
 * to the runs. Returns 0, or -1 with `err` set. */
int etch_sketch_core_make(struct etch_sketch_core *made, struct etch_run_set *runs, const char *program,
                          const char *core, struct etch_error *err);
void etch_sketch_core_release(struct etch_sketch_core *made);

/* The folder of rings that etch core noted, if it is there now; NULL: none. */
const char *etch_sketch_core_rings(const struct etch_sketch_core *made);

/* Removes the temporary files. */
void etch_sketch_core_clean(void);

#endif
