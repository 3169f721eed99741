/* SPDX-License-Identifier: MIT */
/* Stands in for the importers until they are there. */
#include "decoder/loaders.h"

int etch_recording_load_perf(struct etch_recording *recording, const char *path, struct etch_error *err)
{
    (void)recording;
    return etch_error_set(err, "%s is a perf.data, which this etch cannot read", path);
}

int etch_recording_load_lldb(struct etch_recording *recording, const char *path, struct etch_error *err)
{
    (void)recording;
    return etch_error_set(err, "%s is an LLDB trace bundle, which this etch cannot read", path);
}
