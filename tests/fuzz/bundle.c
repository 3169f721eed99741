/* SPDX-License-Identifier: MIT */
/* Any bytes as a bundle. Most mutations break a checksum, so half of the inputs get their checksums set right first:
 * the layers behind them must hold as well. */
#include "base/crc32c.h"
#include "proto/contents.h"
#include "proto/frame.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct input {
    const uint8_t *data;
    size_t size, at;
};

static ssize_t read_input(void *context, void *buffer, size_t size)
{
    struct input *in = context;
    size_t n = in->size - in->at < size ? in->size - in->at : size;

    memcpy(buffer, in->data + in->at, n);
    in->at += n;
    return (ssize_t)n;
}

static uint32_t word(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

/* Makes every frame's marker and checksums right as far as the lengths allow. */
static void repair(uint8_t *data, size_t size)
{
    size_t at = ETCH_FILE_HEADER_SIZE;

    if (size >= ETCH_FILE_HEADER_SIZE)
        etch_file_header_encode(data);
    while (at + ETCH_FRAME_HEADER_SIZE <= size) {
        size_t room = size - at - ETCH_FRAME_HEADER_SIZE;
        uint32_t length = word(data + at + 8);
        struct etch_frame_header header = {
            .kind = (uint16_t)(data[at + 4] % 40),
            .flags = data[at + 6] & 3,
            .length = length <= room ? length : (uint32_t)room,
            .raw_length = word(data + at + 12),
        };

        header.payload_crc = etch_crc32c(0, data + at + ETCH_FRAME_HEADER_SIZE, header.length);
        etch_frame_header_encode(&header, data + at);
        at += ETCH_FRAME_HEADER_SIZE + header.length;
    }
}

static void read_all(const uint8_t *data, size_t size)
{
    struct input in = {data, size, 0};
    struct etch_bundle_reader *reader;
    struct etch_contents contents;
    struct etch_error err;

    if (etch_bundle_open_source(&reader, read_input, &in, "input", &err) < 0)
        return;
    (void)etch_contents_read(&contents, reader, &err);
    etch_contents_release(&contents);
    etch_bundle_reader_free(reader);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *copy;

    read_all(data, size);
    copy = malloc(size ? size : 1);
    if (size)
        memcpy(copy, data, size);
    repair(copy, size);
    read_all(copy, size);
    free(copy);
    return 0;
}
