/* SPDX-License-Identifier: MIT */
/* Every byte of an etch file's records, unpacked, on standard output: for tests that look for what must not be there.
 */
#include "proto/bundle.h"

#include <stdio.h>
#include <stdlib.h>

static int print(const Etch__Record *record)
{
    size_t size = etch__record__get_packed_size(record);
    uint8_t *bytes = malloc(size ? size : 1);
    int status = bytes ? 0 : -1;

    if (bytes) {
        etch__record__pack(record, bytes);
        status = fwrite(bytes, 1, size, stdout) == size ? 0 : -1;
    }
    free(bytes);
    return status;
}

int main(int argc, char **argv)
{
    struct etch_bundle_reader *reader;
    struct etch_bundle_item item;
    struct etch_error err;
    enum etch_bundle_event event;
    int status = 0;

    if (argc != 2 || etch_bundle_open(&reader, argv[1], &err) < 0)
        return 2;
    do {
        event = etch_bundle_next(reader, &item, &err);
        if (event == ETCH_BUNDLE_RECORD && item.record)
            status |= print(item.record);
    } while (event == ETCH_BUNDLE_RECORD || event == ETCH_BUNDLE_DAMAGED);
    etch_bundle_reader_free(reader);
    return status || fflush(stdout) ? 1 : event == ETCH_BUNDLE_FAILED ? 2 : 0;
}
