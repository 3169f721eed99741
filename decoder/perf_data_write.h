/* SPDX-License-Identifier: MIT */
/* A recording as a perf.data that `perf script --itrace=...` decodes: for those who live in perf, and as an oracle for
 * our own decoder. Written front to back in bounded memory; the output may be a pipe. */
#ifndef ETCH_DECODER_PERF_DATA_WRITE_H
#define ETCH_DECODER_PERF_DATA_WRITE_H

#include "decoder/recording.h"

/* Takes the bytes of the file, in order. Returns 0 or -errno. */
struct etch_perf_sink {
    int (*write)(void *context, const void *bytes, size_t size);
    void *context;
};

struct etch_perf_write_options {
    const char *sysroot; /* as for a decode */
    /* Folder, made if need be, for code that no file holds (vdso, generated code): perf reads code from files only.
     * NULL: such code is left out, and perf reports an error where it ran. */
    const char *code_folder;
};

/* Returns 0, or -1 with `err` set. */
int etch_perf_data_write(const struct etch_recording *recording, const struct etch_perf_write_options *options,
                         const struct etch_perf_sink *sink, struct etch_error *err);

/* The same into the file `path`, its code beside it in `path`.code; nothing is left behind on failure. */
int etch_perf_data_write_file(const struct etch_recording *recording, const char *sysroot, const char *path,
                              struct etch_error *err);

#endif
