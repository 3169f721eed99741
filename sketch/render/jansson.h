/* SPDX-License-Identifier: MIT */
/* Building JSON without a check at every line: what fails is noted, and the text is not written then. */
#ifndef ETCH_SKETCH_RENDER_JANSSON_H
#define ETCH_SKETCH_RENDER_JANSSON_H

#include "proto/etch.pb-c.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Each takes over the reference to `value`; a NULL value counts as failed. */
void etch_json_set(json_t *object, const char *key, json_t *value, bool *failed);
void etch_json_push(json_t *list, json_t *value, bool *failed);

/* Text from outside: bytes that are not UTF-8 become U+FFFD. */
json_t *etch_json_text(const char *text);

/* "0x5581c0" */
json_t *etch_json_hex(uint64_t v);

/* As far as JSON's reader can be expected to hold it: at most INT64_MAX. */
json_t *etch_json_count(uint64_t v);

/* null where it is not a number. */
json_t *etch_json_real(double v);

/* The text with a newline behind it; takes over the reference. NULL where anything failed. */
char *etch_json_write(json_t *root, bool failed, size_t *size);

json_t *etch_json_place(const Etch__Place *place, bool *failed);

/* The name of an enumerator, without the part that all of them begin with. */
json_t *etch_json_enum(const ProtobufCEnumDescriptor *descriptor, int value);

/* The exception that a program ended with; null where it ended otherwise. */
json_t *etch_json_exception(const Etch__Failure *failure, bool *failed);

#endif
