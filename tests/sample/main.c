/* SPDX-License-Identifier: MIT */
/* sample_bundle FILE: writes the sample. sample_bundle --corpus DIR: seeds for the fuzzer of the reader. */
#include "tests/sample/sample.h"

#include <stdio.h>
#include <string.h>

static int fail(const struct etch_error *err)
{
    etch_error_print(err, "sample_bundle", stderr);
    return 1;
}

int main(int argc, char **argv)
{
    struct etch_bundle_writer *writer;
    struct etch_error err;
    char path[4096];

    if (argc == 2)
        return etch_sample_make(argv[1], &err) < 0 ? fail(&err) : 0;
    if (argc != 3 || strcmp(argv[1], "--corpus") != 0)
        return 2;
    snprintf(path, sizeof(path), "%s/whole", argv[2]);
    if (etch_sample_make(path, &err) < 0)
        return fail(&err);
    snprintf(path, sizeof(path), "%s/unfinished", argv[2]);
    if (etch_bundle_create(&writer, path, &err) < 0)
        return fail(&err);
    if (etch_sample_write(writer, &err) < 0)
        return fail(&err);
    etch_bundle_writer_free(writer);
    return 0;
}
