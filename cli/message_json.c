/* SPDX-License-Identifier: MIT */
/* Messages as JSON; see message_json.h. */
#include "cli/message_json.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SHORT_BYTES 64u

static bool starved;

static void *allocate(size_t size)
{
    void *memory = malloc(size);

    starved |= !memory;
    return memory;
}

void etch_json_begin(void)
{
    starved = false;
    json_set_alloc_funcs(allocate, free);
}

/* Errors of writing are found when the output is closed. */
static int print_part(const char *text, size_t size, void *unused)
{
    (void)unused;
    fwrite(text, 1, size, stdout);
    return 0;
}

/* Prints part by part: one whole text would need as much memory again as the value. */
int etch_json_print(json_t *value, size_t flags, struct etch_error *err)
{
    int status = starved ? -1 : json_dump_callback(value, print_part, NULL, flags | JSON_ENSURE_ASCII);

    json_decref(value);
    putchar('\n');
    return status == 0 ? 0 : etch_error_no_memory(err);
}

json_t *etch_text_json(const char *s)
{
    char safe[1024];
    json_t *value;
    size_t n = 0;

    if (!s)
        return json_string("");
    value = strchr(s, 0x7f) ? NULL : json_string(s); /* jansson writes DEL as it is */
    if (value)
        return value;
    for (; *s && n + 5 < sizeof(safe); s++) {
        unsigned char c = (unsigned char)*s;

        if (c >= 0x20 && c < 0x7f)
            safe[n++] = (char)c;
        else
            n += (size_t)snprintf(safe + n, sizeof(safe) - n, "\\x%02x", c);
    }
    safe[n] = '\0';
    return json_string(safe);
}

static json_t *hexadecimal(uint64_t v)
{
    char digits[24];

    snprintf(digits, sizeof(digits), "0x%" PRIx64, v);
    return json_string(digits);
}

static json_t *bytes(const ProtobufCBinaryData *data)
{
    char digits[2 * SHORT_BYTES + 1] = "";

    if (data->len > SHORT_BYTES)
        return json_pack("{s:I}", "bytes", (json_int_t)data->len);
    for (size_t i = 0; i < data->len; i++)
        snprintf(digits + 2 * i, 3, "%02x", data->data[i]);
    return json_string(digits);
}

static json_t *enumeration(const ProtobufCEnumDescriptor *descriptor, int v)
{
    const ProtobufCEnumValue *value = protobuf_c_enum_descriptor_get_value(descriptor, v);
    char name[64];
    const char *tail;
    size_t n = 0;

    if (!value)
        return json_integer(v);
    tail = strchr(value->name, '_');
    for (tail = tail ? tail + 1 : value->name; *tail && n + 1 < sizeof(name); tail++)
        name[n++] = (char)tolower((unsigned char)*tail);
    name[n] = '\0';
    return json_string(name);
}

static json_t *scalar(const ProtobufCFieldDescriptor *field, const void *at)
{
    switch (field->type) {
    case PROTOBUF_C_TYPE_BOOL:
        return json_boolean(*(const protobuf_c_boolean *)at);
    case PROTOBUF_C_TYPE_ENUM:
        return enumeration(field->descriptor, *(const int *)at);
    case PROTOBUF_C_TYPE_INT32:
    case PROTOBUF_C_TYPE_SINT32:
    case PROTOBUF_C_TYPE_SFIXED32:
        return json_integer(*(const int32_t *)at);
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_FIXED32:
        return json_integer(*(const uint32_t *)at);
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64:
    case PROTOBUF_C_TYPE_UINT64:
        return json_integer(*(const int64_t *)at);
    case PROTOBUF_C_TYPE_FIXED64:
        return hexadecimal(*(const uint64_t *)at);
    case PROTOBUF_C_TYPE_FLOAT:
        return json_real((double)*(const float *)at);
    case PROTOBUF_C_TYPE_DOUBLE:
        return json_real(*(const double *)at);
    case PROTOBUF_C_TYPE_STRING:
        return etch_text_json(*(const char *const *)at);
    case PROTOBUF_C_TYPE_BYTES:
        return bytes(at);
    case PROTOBUF_C_TYPE_MESSAGE:
        return etch_message_json(*(const ProtobufCMessage *const *)at);
    }
    return json_null();
}

static size_t element_size(const ProtobufCFieldDescriptor *field)
{
    switch (field->type) {
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_MESSAGE:
        return sizeof(void *);
    case PROTOBUF_C_TYPE_BYTES:
        return sizeof(ProtobufCBinaryData);
    case PROTOBUF_C_TYPE_BOOL:
        return sizeof(protobuf_c_boolean);
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64:
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_DOUBLE:
        return 8;
    default:
        return 4;
    }
}

static json_t *repeated(const ProtobufCFieldDescriptor *field, const char *first, size_t n)
{
    json_t *list = json_array();

    for (size_t i = 0; i < n; i++)
        json_array_append_new(list, scalar(field, first + i * element_size(field)));
    return list;
}

static int is_present(const ProtobufCFieldDescriptor *field, const char *message)
{
    if (field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF)
        return *(const uint32_t *)(const void *)(message + field->quantifier_offset) == field->id;
    if (field->type == PROTOBUF_C_TYPE_MESSAGE)
        return *(const void *const *)(const void *)(message + field->offset) != NULL;
    return 1;
}

json_t *etch_message_json(const ProtobufCMessage *message)
{
    json_t *object = json_object();

    for (unsigned i = 0; object && i < message->descriptor->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &message->descriptor->fields[i];
        const char *base = (const char *)message;
        const char *at = base + field->offset;

        if (field->label == PROTOBUF_C_LABEL_REPEATED)
            json_object_set_new(object, field->name,
                                repeated(field, *(const char *const *)(const void *)at,
                                         *(const size_t *)(const void *)(base + field->quantifier_offset)));
        else if (is_present(field, base))
            json_object_set_new(object, field->name, scalar(field, at));
    }
    return object;
}
