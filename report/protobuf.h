/* SPDX-License-Identifier: MIT */
/* Private to report/: protobuf messages of other tools' formats, written field by field. */
#ifndef ETCH_REPORT_PROTOBUF_H
#define ETCH_REPORT_PROTOBUF_H

#include "base/text.h"

static inline void etch_pb_varint(struct etch_text *text, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        etch_text_char(text, (char)(value | 0x80));
    etch_text_char(text, (char)value);
}

static inline void etch_pb_number(struct etch_text *text, unsigned field, uint64_t value)
{
    etch_pb_varint(text, (uint64_t)field << 3);
    etch_pb_varint(text, value);
}

static inline void etch_pb_bytes(struct etch_text *text, unsigned field, const void *bytes, size_t size)
{
    etch_pb_varint(text, (uint64_t)field << 3 | 2);
    etch_pb_varint(text, size);
    etch_text_bytes(text, bytes, size);
}

static inline void etch_pb_string(struct etch_text *text, unsigned field, const char *string)
{
    etch_pb_bytes(text, field, string, strlen(string));
}

/* Adds `part` as a field and empties it. */
static inline void etch_pb_message(struct etch_text *text, unsigned field, struct etch_text *part)
{
    etch_pb_bytes(text, field, part->v, part->n);
    text->failed |= part->failed;
    part->n = 0;
}

#endif
