/* SPDX-License-Identifier: MIT */
/* A perf.data with Intel PT as a recording. */
#ifndef ETCH_DECODER_RECORDING_PERF_RECORDING_H
#define ETCH_DECODER_RECORDING_PERF_RECORDING_H

#include "decoder/recording.h"
#include "decoder/recording/perf_data.h"

/* Fills a zeroed `recording` from the perf.data at `path` ("-" or a pipe is spooled to an unlinked temporary file
 * first). AUX data stays in the file. Returns 0, or -1 with `err` set; the recording must be freed in both cases. */
int etch_recording_load_perf(struct etch_recording *recording, const char *path, struct etch_error *err);

/* The same over bytes from anywhere, which must stay readable as long as the recording. */
int etch_recording_load_perf_source(struct etch_recording *recording, const struct etch_perf_source *source,
                                    const char *name, struct etch_error *err);

#endif
