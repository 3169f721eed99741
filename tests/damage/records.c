/* SPDX-License-Identifier: MIT */
/* A bundle as a list of packed records; see records.h. */
#include "tests/damage/records.h"

#include "base/crc32c.h"
#include "proto/frame.h"

#include <string.h>
#include <zstd.h>

#define COMPRESSED_FROM 512u /* bytes of a record */

void records_release(struct records *records)
{
    for (size_t i = 0; i < records->list.n; i++)
        free(records->list.v[i].bytes);
    etch_array_free(&records->list);
}

static uint8_t *copy_bytes(const uint8_t *bytes, size_t size)
{
    uint8_t *copy = malloc(size + 1);

    if (copy && size)
        memcpy(copy, bytes, size);
    return copy;
}

bool records_insert(struct records *records, size_t at, const struct packed_record *record)
{
    struct packed_record copy = {copy_bytes(record->bytes, record->size), record->size, record->kind};

    if (!copy.bytes || !etch_array_push(&records->list, copy)) {
        free(copy.bytes);
        return false;
    }
    for (size_t i = records->list.n - 1; i > at; i--) {
        records->list.v[i] = records->list.v[i - 1];
        records->list.v[i - 1] = copy;
    }
    return true;
}

void records_remove(struct records *records, size_t at)
{
    free(records->list.v[at].bytes);
    records->list.n--;
    memmove(&records->list.v[at], &records->list.v[at + 1], (records->list.n - at) * sizeof(records->list.v[0]));
}

static uint8_t *unpack(const struct etch_frame_header *header, const uint8_t *payload)
{
    uint8_t *raw;
    size_t got;

    if (!(header->flags & ETCH_FRAME_ZSTD))
        return header->raw_length == header->length ? copy_bytes(payload, header->length) : NULL;
    raw = malloc((size_t)header->raw_length + 1);
    got = raw ? ZSTD_decompress(raw, header->raw_length, payload, header->length) : 0;
    if (raw && (ZSTD_isError(got) || got != header->raw_length)) {
        free(raw);
        return NULL;
    }
    return raw;
}

bool records_read(struct records *records, const uint8_t *data, size_t size)
{
    struct etch_frame_header header;
    size_t at = ETCH_FILE_HEADER_SIZE;

    while (at + ETCH_FRAME_HEADER_SIZE <= size) {
        const uint8_t *payload = data + at + ETCH_FRAME_HEADER_SIZE;
        struct packed_record record;

        if (etch_frame_header_decode(data + at, &header) < 0 || header.length > size - at - ETCH_FRAME_HEADER_SIZE) {
            at++;
            continue;
        }
        record = (struct packed_record){unpack(&header, payload), header.raw_length, header.kind};
        at += ETCH_FRAME_HEADER_SIZE + header.length;
        if (record.bytes && !etch_array_push(&records->list, record)) {
            free(record.bytes);
            return false;
        }
    }
    return true;
}

/* Appends one frame. Returns its size; `to` has room for the record as it is, or compressed. */
static size_t write_frame(const struct packed_record *record, uint8_t *to)
{
    struct etch_frame_header header = {
        .kind = record->kind, .length = (uint32_t)record->size, .raw_length = (uint32_t)record->size};
    uint8_t *payload = to + ETCH_FRAME_HEADER_SIZE;
    size_t packed = 0;

    if (record->size >= COMPRESSED_FROM)
        packed = ZSTD_compress(payload, ZSTD_compressBound(record->size), record->bytes, record->size, 1);
    if (packed && !ZSTD_isError(packed)) {
        header.flags = ETCH_FRAME_ZSTD;
        header.length = (uint32_t)packed;
    } else if (record->size) {
        memcpy(payload, record->bytes, record->size);
    }
    header.payload_crc = etch_crc32c(0, payload, header.length);
    etch_frame_header_encode(&header, to);
    return ETCH_FRAME_HEADER_SIZE + header.length;
}

uint8_t *records_write(const struct records *records, size_t *size)
{
    size_t room = ETCH_FILE_HEADER_SIZE, at = ETCH_FILE_HEADER_SIZE;
    uint8_t *file;

    for (size_t i = 0; i < records->list.n; i++)
        room += ETCH_FRAME_HEADER_SIZE + ZSTD_compressBound(records->list.v[i].size);
    file = malloc(room);
    if (!file)
        return NULL;
    etch_file_header_encode(file);
    for (size_t i = 0; i < records->list.n; i++)
        at += write_frame(&records->list.v[i], file + at);
    *size = at;
    return file;
}
