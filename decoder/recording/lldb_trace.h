/* SPDX-License-Identifier: MIT */
/* An LLDB trace bundle (trace.json, `trace save`) as a recording. */
#ifndef ETCH_DECODER_RECORDING_LLDB_TRACE_H
#define ETCH_DECODER_RECORDING_LLDB_TRACE_H

#include "decoder/recording.h"

/* Fills a zeroed `recording` from the bundle at `path`: the description itself or the folder that has it as trace.json.
 * The traces stay in their files. Returns 0, or -1 with `err` set; the recording must be freed in both cases. */
int etch_recording_load_lldb(struct etch_recording *recording, const char *path, struct etch_error *err);

#endif
