/* SPDX-License-Identifier: MIT */
/* Private to the loader of LLDB's bundles: the description's JSON. */
#ifndef ETCH_DECODER_RECORDING_LLDB_JSON_H
#define ETCH_DECODER_RECORDING_LLDB_JSON_H

#include "base/error.h"

#include <jansson.h>
#include <stdint.h>

/* NULL with `err` set where the text is not JSON. */
json_t *etch_lldb_parse(const char *path, const char *text, size_t n, struct etch_error *err);

/* 0 where there is none. */
uint64_t etch_lldb_number(const json_t *object, const char *key);

/* "" where there is none. */
const char *etch_lldb_string(const json_t *object, const char *key);

#endif
