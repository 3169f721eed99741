/* SPDX-License-Identifier: MIT */
/* See render_jansson.h. */
#include "sketch/render/jansson.h"
#include "sketch/render/model.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

void etch_json_set(json_t *object, const char *key, json_t *value, bool *failed)
{
    *failed |= json_object_set_new(object, key, value) != 0;
}

void etch_json_push(json_t *list, json_t *value, bool *failed)
{
    *failed |= json_array_append_new(list, value) != 0;
}

json_t *etch_json_text(const char *text)
{
    struct etch_text clean = {0};
    json_t *value = NULL;

    text = etch_render_string(text);
    while (*text)
        etch_render_put_rune(&clean, etch_utf8_next(&text));
    if (!clean.failed)
        value = json_stringn(clean.v ? clean.v : "", clean.n);
    free(clean.v);
    return value;
}

json_t *etch_json_hex(uint64_t v)
{
    char digits[24];

    snprintf(digits, sizeof(digits), "0x%" PRIx64, v);
    return json_string(digits);
}

json_t *etch_json_count(uint64_t v)
{
    return json_integer(v < INT64_MAX ? (json_int_t)v : INT64_MAX);
}

json_t *etch_json_real(double v)
{
    return isfinite(v) ? json_real(v) : json_null();
}

char *etch_json_write(json_t *root, bool failed, size_t *size)
{
    char *dumped =
        failed || !root ? NULL : json_dumps(root, JSON_INDENT(2) | JSON_REAL_PRECISION(6) | JSON_ENSURE_ASCII);
    struct etch_text out = {0};

    json_decref(root);
    if (!dumped)
        return NULL;
    etch_text_string(&out, dumped);
    etch_text_bytes(&out, "\n", 2);
    free(dumped);
    if (out.failed) {
        free(out.v);
        return NULL;
    }
    *size = out.n - 1;
    return out.v;
}

json_t *etch_json_place(const Etch__Place *place, bool *failed)
{
    json_t *o = json_object();
    const char *brief;
    char function[128];

    place = etch_render_place(place);
    brief = etch_render_function(place, function, sizeof(function));
    etch_json_set(o, "file", etch_json_text(place->file), failed);
    etch_json_set(o, "line", json_integer(place->line), failed);
    etch_json_set(o, "column", json_integer(place->column), failed);
    etch_json_set(o, "function", etch_json_text(brief), failed);
    if (strcmp(brief, etch_render_string(place->function)) != 0)
        etch_json_set(o, "signature", etch_json_text(place->function), failed);
    return o;
}

json_t *etch_json_enum(const ProtobufCEnumDescriptor *descriptor, int value)
{
    char name[64];

    etch_render_enum(descriptor, value, '_', name);
    return json_string(name);
}
