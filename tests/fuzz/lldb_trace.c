/* SPDX-License-Identifier: MIT */
/* Any text as the description of an LLDB bundle, in a folder that holds nothing else. */
#include "decoder/recording/lldb_trace.h"
#include "tests/unit/recording_release.h"

#include <stdio.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static char folder[] = P_tmpdir "/etch-fuzz-lldb-XXXXXX";
    static char path[64];
    struct etch_recording r = {0};
    struct etch_error err;
    FILE *out;

    if (!path[0]) {
        if (!mkdtemp(folder))
            abort();
        snprintf(path, sizeof(path), "%s/trace.json", folder);
    }
    out = fopen(path, "we");
    if (!out || fwrite(bytes, 1, size, out) != size || fclose(out) != 0)
        abort();
    etch_recording_load_lldb(&r, path, &err);
    recording_release(&r);
    unlink(path);
    return 0;
}
