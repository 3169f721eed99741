/* SPDX-License-Identifier: MIT */
/* Random access to a bundle's control-flow bytes: one Flow record by its place in the file. */
#include "proto/bundle.h"
#include "proto/frame.h"

#include "base/crc32c.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zstd.h>

static int read_all(int fd, uint64_t offset, void *buffer, size_t size)
{
    size_t got = 0;

    while (got < size) {
        ssize_t n = pread(fd, (uint8_t *)buffer + got, size - got, (off_t)(offset + got));

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        if (n == 0)
            return -EBADMSG;
        got += (size_t)n;
    }
    return 0;
}

/* Replaces a compressed payload by the decompressed bytes. */
static int inflate(const struct etch_frame_header *header, uint8_t **payload)
{
    uint8_t *raw;
    size_t got;

    if (!(header->flags & ETCH_FRAME_ZSTD))
        return header->length == header->raw_length ? 0 : -EBADMSG;
    raw = malloc(header->raw_length ? header->raw_length : 1);
    if (!raw)
        return -ENOMEM;
    got = ZSTD_decompress(raw, header->raw_length, *payload, header->length);
    free(*payload);
    *payload = raw;
    return ZSTD_isError(got) || got != header->raw_length ? -EBADMSG : 0;
}

static int take_flow(const struct etch_frame_header *header, const uint8_t *raw, uint8_t **data, size_t *size)
{
    Etch__Record *record = etch__record__unpack(NULL, header->raw_length, raw);
    int status = -EBADMSG;

    if (record && record->body_case == ETCH__RECORD__BODY_FLOW) {
        *data = record->flow->data.data; /* taken over, not copied */
        *size = record->flow->data.len;
        record->flow->data.data = NULL;
        record->flow->data.len = 0;
        status = 0;
    }
    if (record)
        etch__record__free_unpacked(record, NULL);
    return status;
}

int etch_bundle_read_flow(int fd, uint64_t offset, uint8_t **data, size_t *size)
{
    uint8_t bytes[ETCH_FRAME_HEADER_SIZE], *payload;
    struct etch_frame_header header;
    int status = read_all(fd, offset, bytes, sizeof(bytes));

    if (status < 0)
        return status;
    if (etch_frame_header_decode(bytes, &header) < 0 || header.kind != ETCH__RECORD__BODY_FLOW)
        return -EBADMSG;
    payload = malloc(header.length ? header.length : 1);
    if (!payload)
        return -ENOMEM;
    status = read_all(fd, offset + ETCH_FRAME_HEADER_SIZE, payload, header.length);
    if (status == 0 && etch_crc32c(0, payload, header.length) != header.payload_crc)
        status = -EBADMSG;
    if (status == 0)
        status = inflate(&header, &payload);
    if (status == 0)
        status = take_flow(&header, payload, data, size);
    free(payload);
    return status;
}
