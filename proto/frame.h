/* SPDX-License-Identifier: MIT */
/* How records lie in a file, byte by byte. All numbers are little endian.
 *
 *   file   = file header, then frames to the end
 *   header = 16 bytes: magic, major, minor, reserved
 *   frame  = 24 bytes of frame header, then `length` bytes of payload: a serialised etch.Record, perhaps in zstd
 *
 * The frame header has a checksum of its own, so its length can be trusted before the payload is read. The marker lets
 * a reader find the next frame behind damaged bytes. The kind in the header lets a reader pass over unwanted records
 * without unpacking them. Nothing is ever rewritten in place: a file cut at any byte is readable up to the cut. */
#ifndef ETCH_PROTO_FRAME_H
#define ETCH_PROTO_FRAME_H

#include <stddef.h>
#include <stdint.h>

#define ETCH_FILE_MAGIC                                                                                                \
    "\x89"                                                                                                             \
    "ETCH\r\n\x1a" /* as PNG's: shows text-mode damage and 7-bit lines at once */
#define ETCH_FILE_HEADER_SIZE 16u
#define ETCH_FORMAT_MAJOR 1u /* a reader refuses a greater number */
#define ETCH_FORMAT_MINOR 0u /* for people only */

#define ETCH_FRAME_MARKER 0xe7c4f7a3u
#define ETCH_FRAME_HEADER_SIZE 24u
#define ETCH_FRAME_ZSTD 1u /* flag: the payload is one zstd frame */

/* No record is larger than this, packed or unpacked; whoever has more writes several records. */
#define ETCH_RECORD_MAX (16u << 20)

/* The size of the pieces into which bulk data is cut. */
#define ETCH_CHUNK_SIZE (1u << 20)

struct etch_frame_header {
    uint16_t kind; /* field number of the record's body in etch.proto */
    uint16_t flags;
    uint32_t length;     /* payload bytes in the file */
    uint32_t raw_length; /* of the serialised record */
    uint32_t payload_crc;
};

void etch_frame_header_encode(const struct etch_frame_header *header, uint8_t bytes[ETCH_FRAME_HEADER_SIZE]);

/* Returns 0, or -1 where these bytes are no frame header: wrong marker, checksum, or a length beyond the limit. */
int etch_frame_header_decode(const uint8_t bytes[ETCH_FRAME_HEADER_SIZE], struct etch_frame_header *header);

void etch_file_header_encode(uint8_t bytes[ETCH_FILE_HEADER_SIZE]);

enum etch_file_header_verdict {
    ETCH_FILE_HEADER_OK,
    ETCH_FILE_HEADER_CUT,     /* a correct beginning of a header, without its end */
    ETCH_FILE_HEADER_FOREIGN, /* not an etch file */
    ETCH_FILE_HEADER_FUTURE,  /* a later format */
};

/* Looks at the first `size` bytes of a file (more than the header is fine). */
enum etch_file_header_verdict etch_file_header_decode(const uint8_t *bytes, size_t size, uint16_t *major,
                                                      uint16_t *minor);

#endif
