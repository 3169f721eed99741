/* SPDX-License-Identifier: MIT */
/* File and frame headers to bytes and back; see frame.h. */
#include "proto/frame.h"

#include "base/crc32c.h"

#include <string.h>

enum { MARKER = 0, KIND = 4, FLAGS = 6, LENGTH = 8, RAW_LENGTH = 12, PAYLOAD_CRC = 16, HEADER_CRC = 20 };
enum { MAGIC_SIZE = 8, MAJOR = 8, MINOR = 10 };

static void put16(uint8_t *p, uint16_t v)
{
    p[0] = (uint8_t)v;
    p[1] = (uint8_t)(v >> 8);
}

static void put32(uint8_t *p, uint32_t v)
{
    put16(p, (uint16_t)v);
    put16(p + 2, (uint16_t)(v >> 16));
}

static uint16_t get16(const uint8_t *p)
{
    return (uint16_t)(p[0] | p[1] << 8);
}

static uint32_t get32(const uint8_t *p)
{
    return get16(p) | (uint32_t)get16(p + 2) << 16;
}

void etch_frame_header_encode(const struct etch_frame_header *header, uint8_t bytes[ETCH_FRAME_HEADER_SIZE])
{
    put32(bytes + MARKER, ETCH_FRAME_MARKER);
    put16(bytes + KIND, header->kind);
    put16(bytes + FLAGS, header->flags);
    put32(bytes + LENGTH, header->length);
    put32(bytes + RAW_LENGTH, header->raw_length);
    put32(bytes + PAYLOAD_CRC, header->payload_crc);
    put32(bytes + HEADER_CRC, etch_crc32c(0, bytes, HEADER_CRC));
}

int etch_frame_header_decode(const uint8_t bytes[ETCH_FRAME_HEADER_SIZE], struct etch_frame_header *header)
{
    if (get32(bytes + MARKER) != ETCH_FRAME_MARKER || get32(bytes + HEADER_CRC) != etch_crc32c(0, bytes, HEADER_CRC))
        return -1;
    header->kind = get16(bytes + KIND);
    header->flags = get16(bytes + FLAGS);
    header->length = get32(bytes + LENGTH);
    header->raw_length = get32(bytes + RAW_LENGTH);
    header->payload_crc = get32(bytes + PAYLOAD_CRC);
    if (header->length > ETCH_RECORD_MAX || header->raw_length > ETCH_RECORD_MAX)
        return -1;
    return 0;
}

void etch_file_header_encode(uint8_t bytes[ETCH_FILE_HEADER_SIZE])
{
    memset(bytes, 0, ETCH_FILE_HEADER_SIZE);
    memcpy(bytes, ETCH_FILE_MAGIC, MAGIC_SIZE);
    put16(bytes + MAJOR, ETCH_FORMAT_MAJOR);
    put16(bytes + MINOR, ETCH_FORMAT_MINOR);
}

enum etch_file_header_verdict etch_file_header_decode(const uint8_t *bytes, size_t size, uint16_t *major,
                                                      uint16_t *minor)
{
    *major = *minor = 0;
    if (memcmp(bytes, ETCH_FILE_MAGIC, size < MAGIC_SIZE ? size : MAGIC_SIZE) != 0)
        return ETCH_FILE_HEADER_FOREIGN;
    if (size < ETCH_FILE_HEADER_SIZE)
        return ETCH_FILE_HEADER_CUT;
    *major = get16(bytes + MAJOR);
    *minor = get16(bytes + MINOR);
    if (*major == 0)
        return ETCH_FILE_HEADER_FOREIGN;
    return *major > ETCH_FORMAT_MAJOR ? ETCH_FILE_HEADER_FUTURE : ETCH_FILE_HEADER_OK;
}
