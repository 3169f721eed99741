/* SPDX-License-Identifier: MIT */
/* Private. The rings of etch sketch: --rings FOLDER. */
#ifndef ETCH_CLI_SKETCH_RINGS_H
#define ETCH_CLI_SKETCH_RINGS_H

#include "decoder/recording.h"
#include "diagnose/run_set.h"

/* Makes a bundle of each process of `program` that left rings in `folder`, in a temporary folder, and adds the bundles
 * of those that failed or passed to the runs. Returns 0, or -1 with `err` set: no such folder, no rings, none of the
 * program, none that failed. With `failed` a process need not have failed: another run has. `core` is a core as a
 * recording, or NULL: its failure takes the place of what the rings of its process say. `core_file` is the core itself,
 * from which values are recovered. `joined` says whether the folder has rings of that process. */
int etch_sketch_rings_add(struct etch_run_set *runs, const char *program, const char *folder, bool failed,
                          const struct etch_recording *core, const char *core_file, bool *joined,
                          struct etch_error *err);

/* Removes the temporary files. */
void etch_sketch_rings_clean(void);

#endif
