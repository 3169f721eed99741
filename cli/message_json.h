/* SPDX-License-Identifier: MIT */
/* Any message of etch.proto as JSON, by its descriptor: enums by name without their prefix, addresses and bit patterns
 * (fixed64) and short byte strings in hexadecimal, bulk bytes as {"bytes": N}. A field of a oneof that is not set is
 * left out, because unknown is not zero. */
#ifndef ETCH_CLI_MESSAGE_JSON_H
#define ETCH_CLI_MESSAGE_JSON_H

#include "base/error.h"

#include <jansson.h>
#include <protobuf-c/protobuf-c.h>

/* Makes a JSON text of text from outside. Bytes that are not UTF-8 are written as \\xNN. Returns a new reference. */
json_t *etch_text_json(const char *text);

/* Starts to watch for failed allocations of jansson: without memory jansson leaves out values silently. */
void etch_json_begin(void);

/* Prints the value, unless a part of the value is missing. Frees the value. Returns 0, or -1 with `err` set. */
int etch_json_print(json_t *value, size_t flags, struct etch_error *err);

/* Returns a new reference, or NULL when memory is short. */
json_t *etch_message_json(const ProtobufCMessage *message);

#endif
