/* SPDX-License-Identifier: MIT */
/* etch decode --as perf-data: writes the recording as a perf.data, without decoding. perf decodes the perf.data. */
#include "cli/decode.h"
#include "decoder/perf_data_write.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

static int write_stdout(void *context, const void *bytes, size_t size)
{
    (void)context;
    return fwrite(bytes, 1, size, stdout) == size ? 0 : -errno;
}

/* Only a file has room beside it for code that no other file holds, so a pipe goes without that code. */
static int end(const struct etch_decode *d, void *context, int status, struct etch_error *err)
{
    const struct etch_perf_write_options options = {.sysroot = d->options.sysroot};
    const struct etch_perf_sink sink = {.write = write_stdout};

    (void)context;
    if (status)
        return -1;
    if (d->output && strcmp(d->output, "-") != 0)
        return etch_perf_data_write_file(d->recording, d->options.sysroot, d->output, err);
    if (isatty(STDOUT_FILENO)) {
        etch_error_set(err, "a perf.data cannot be printed on a terminal");
        return etch_error_advise(err, "-o FILE");
    }
    return etch_perf_data_write(d->recording, &options, &sink, err);
}

const struct etch_decode_form etch_decode_perf = {
    .name = "perf-data",
    .summary = "a perf.data for perf script",
    .end = end,
};
