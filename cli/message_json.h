/* SPDX-License-Identifier: MIT */
/* Any message of etch.proto as JSON, by its descriptor: enums by name without their prefix, addresses and bit patterns
 * (fixed64) and short byte strings in hexadecimal, bulk bytes as {"bytes": N}. A field of a oneof that is not set is
 * left out, because unknown is not zero. */
#ifndef ETCH_CLI_MESSAGE_JSON_H
#define ETCH_CLI_MESSAGE_JSON_H

#include "base/error.h"

#include <jansson.h>
#include <protobuf-c/protobuf-c.h>

/* Text from outside, which need not be UTF-8: what is not is written as \\xNN. A new reference. */
json_t *etch_text_json(const char *text);

/* From here on it is seen whether jansson finds memory: it leaves out what it has none for, and says nothing. */
void etch_json_begin(void);

/* Prints what was made, unless a part of it is missing. Frees it. Returns 0, or -1 with `err` set. */
int etch_json_print(json_t *value, size_t flags, struct etch_error *err);

/* A new reference, or NULL when memory is short. */
json_t *etch_message_json(const ProtobufCMessage *message);

#endif
