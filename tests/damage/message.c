/* SPDX-License-Identifier: MIT */
/* Damage to one message; see message.h. */
#include "tests/damage/message.h"

#include <string.h>

#define LIST_MAX 4096u /* elements of a list, so that doubling has an end */

static const uint64_t numbers[] = {0,
                                   1,
                                   2,
                                   0x7f,
                                   0xff,
                                   0xffff,
                                   INT32_MAX,
                                   (uint64_t)INT32_MAX + 1,
                                   UINT32_MAX,
                                   (uint64_t)UINT32_MAX + 1,
                                   INT64_MAX,
                                   (uint64_t)INT64_MAX + 1,
                                   UINT64_MAX - 1,
                                   UINT64_MAX};

static const char *const strings[] = {"",
                                      "/",
                                      "/dev/null",
                                      "/dev/zero",
                                      "/proc/self/exe",
                                      "main",
                                      "\x1b[2J",
                                      "\xff\xfe",
                                      "</script>",
                                      "%s%n",
                                      "a.cpp",
                                      "_ZN1a1b1cIXadL_Z1dEEEvv",
                                      "std::thread::_State_impl<",
                                      "[vdso]",
                                      "../../../etc/hostname"};

/* ---- What a field is made of ---- */

static size_t element_size(ProtobufCType type)
{
    switch (type) {
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64:
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_DOUBLE:
        return 8;
    case PROTOBUF_C_TYPE_BOOL:
        return sizeof(protobuf_c_boolean);
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_MESSAGE:
        return sizeof(void *);
    case PROTOBUF_C_TYPE_BYTES:
        return sizeof(ProtobufCBinaryData);
    default:
        return 4;
    }
}

static void *at_offset(const ProtobufCMessage *message, unsigned offset)
{
    return (uint8_t *)(uintptr_t)message + offset;
}

static size_t *count_of(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field)
{
    return at_offset(message, field->quantifier_offset);
}

static bool is_set(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field)
{
    const uint32_t *which = at_offset(message, field->quantifier_offset);

    return !(field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) || *which == field->id;
}

/* One value of the field: its only one, or one of its list, whose number is `*index`; NULL: it has none. */
static void *pick_value(struct damage *damage, const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field,
                        size_t *index)
{
    void *value = at_offset(message, field->offset);
    uint8_t *list;
    size_t n;

    *index = 0;
    if (!is_set(message, field))
        return NULL;
    if (field->label != PROTOBUF_C_LABEL_REPEATED)
        return value;
    n = *count_of(message, field);
    memcpy(&list, value, sizeof(list));
    *index = n ? damage_below(damage, n) : 0;
    return n ? list + *index * element_size(field->type) : NULL;
}

static ProtobufCMessage *copy_message(const ProtobufCMessage *from)
{
    size_t size = protobuf_c_message_get_packed_size(from);
    uint8_t *bytes = malloc(size + 1);
    ProtobufCMessage *copy = NULL;

    if (bytes)
        copy = protobuf_c_message_unpack(from->descriptor, NULL, protobuf_c_message_pack(from, bytes), bytes);
    free(bytes);
    return copy;
}

static void free_value(ProtobufCType type, void *value)
{
    ProtobufCBinaryData *bytes = value;
    void *pointer = NULL;

    if (type == PROTOBUF_C_TYPE_BYTES) {
        free(bytes->data);
        *bytes = (ProtobufCBinaryData){0};
        return;
    }
    if (type != PROTOBUF_C_TYPE_STRING && type != PROTOBUF_C_TYPE_MESSAGE)
        return;
    memcpy(&pointer, value, sizeof(pointer));
    if (type == PROTOBUF_C_TYPE_MESSAGE && pointer)
        protobuf_c_message_free_unpacked(pointer, NULL);
    else if (pointer != protobuf_c_empty_string)
        free(pointer);
    memset(value, 0, sizeof(pointer));
}

/* Makes `to` what `from` is, both of one type. */
static void copy_value(ProtobufCType type, void *to, const void *from)
{
    const ProtobufCBinaryData *bytes = from;
    void *pointer = NULL, *copy = NULL;

    if (type == PROTOBUF_C_TYPE_BYTES) {
        ProtobufCBinaryData made = {bytes->len, malloc(bytes->len + 1)};

        if (!made.data)
            return;
        if (bytes->len)
            memcpy(made.data, bytes->data, bytes->len);
        free_value(type, to);
        memcpy(to, &made, sizeof(made));
        return;
    }
    if (type != PROTOBUF_C_TYPE_STRING && type != PROTOBUF_C_TYPE_MESSAGE) {
        memmove(to, from, element_size(type));
        return;
    }
    memcpy(&pointer, from, sizeof(pointer));
    if (pointer)
        copy = type == PROTOBUF_C_TYPE_STRING ? (void *)strdup(pointer) : (void *)copy_message(pointer);
    if (copy) {
        free_value(type, to);
        memcpy(to, &copy, sizeof(copy));
    }
}

/* ---- Values of another message ---- */

/* A value of the same type somewhere in `message`; of the same name where there is one on the way: a thread's number
 * comes in the place of another thread's, an address in that of another. */
static const void *find_like(struct damage *damage, const ProtobufCMessage *message,
                             const ProtobufCFieldDescriptor *like, unsigned depth)
{
    const ProtobufCMessageDescriptor *d = message->descriptor;
    const void *found = NULL;
    size_t index;

    for (unsigned i = 0, start = (unsigned)damage_below(damage, d->n_fields); i < d->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &d->fields[(start + i) % d->n_fields];
        const void *value = pick_value(damage, message, field, &index);
        const void *inner = NULL;

        if (!value)
            continue;
        if (field->type == like->type && field->descriptor == like->descriptor) {
            if (strcmp(field->name, like->name) == 0)
                return value;
            found = found ? found : value;
        }
        if (field->type != PROTOBUF_C_TYPE_MESSAGE || depth == 0)
            continue;
        memcpy(&inner, value, sizeof(inner));
        if (inner && (inner = find_like(damage, inner, like, depth - 1)))
            found = inner;
    }
    return found;
}

/* ---- One value ---- */

static void damage_number(struct damage *damage, ProtobufCType type, void *value)
{
    size_t size = element_size(type);
    uint64_t number = 0;

    memcpy(&number, value, size);
    switch (damage_below(damage, 5)) {
    case 0:
        number = numbers[damage_below(damage, sizeof(numbers) / sizeof(numbers[0]))];
        break;
    case 1:
        number += damage_below(damage, 33) - 16;
        break;
    case 2:
        number ^= (uint64_t)1 << damage_below(damage, 8 * size);
        break;
    case 3:
        number = damage_below(damage, 32);
        break;
    default:
        number = damage_below(damage, UINT64_MAX);
        break;
    }
    if (type == PROTOBUF_C_TYPE_BOOL)
        number &= 1;
    memcpy(value, &number, size);
}

static void damage_string(struct damage *damage, char **value)
{
    size_t length = *value ? strlen(*value) : 0;
    const char *chosen = strings[damage_below(damage, sizeof(strings) / sizeof(strings[0]))];
    char *made;

    switch (damage_below(damage, 4)) {
    case 0:
        made = strdup(chosen);
        break;
    case 1:
        made = strndup(*value ? *value : "", length ? damage_below(damage, length) : 0);
        break;
    case 2:
        made = malloc(5000); /* longer than any buffer for a name */
        if (made)
            memset(made, 'a' + (int)damage_below(damage, 26), 4999);
        if (made)
            made[4999] = '\0';
        break;
    default:
        made = strdup(*value ? *value : "");
        if (made && length)
            made[damage_below(damage, length)] = (char)(1 + damage_below(damage, 255));
        break;
    }
    if (!made)
        return;
    if (*value != protobuf_c_empty_string)
        free(*value);
    *value = made;
}

static void damage_value(struct damage *damage, const ProtobufCFieldDescriptor *field, void *value,
                         const ProtobufCMessage *other)
{
    const void *like = damage_below(damage, 2) ? find_like(damage, other, field, 3) : NULL;
    ProtobufCMessage *inner = NULL;

    if (field->type == PROTOBUF_C_TYPE_MESSAGE) {
        memcpy(&inner, value, sizeof(inner));
        if (inner && damage_below(damage, 16))
            damage_message(damage, inner, other);
        else if (like && damage_below(damage, 2))
            copy_value(field->type, value, like);
        else if (field->label != PROTOBUF_C_LABEL_REPEATED)
            free_value(field->type, value);
    } else if (like) {
        copy_value(field->type, value, like);
    } else if (field->type == PROTOBUF_C_TYPE_STRING) {
        damage_string(damage, value);
    } else if (field->type == PROTOBUF_C_TYPE_BYTES) {
        damage_bytes(damage, ((ProtobufCBinaryData *)value)->data, &((ProtobufCBinaryData *)value)->len);
    } else {
        damage_number(damage, field->type, value);
    }
}

/* ---- Lists ---- */

static void remove_value(const ProtobufCFieldDescriptor *field, uint8_t *list, size_t *n, size_t index)
{
    size_t size = element_size(field->type);

    free_value(field->type, list + index * size);
    (*n)--;
    memmove(list + index * size, list + (index + 1) * size, (*n - index) * size);
}

/* Drops, doubles or swaps elements. False: nothing was done. */
static bool damage_list(struct damage *damage, ProtobufCMessage *message, const ProtobufCFieldDescriptor *field)
{
    size_t *n = count_of(message, field), size = element_size(field->type), from, to;
    uint8_t *list, *bigger, kept[sizeof(ProtobufCBinaryData)];
    uint64_t how = damage_below(damage, 8);

    if (!*n || how > 3)
        return false;
    memcpy(&list, at_offset(message, field->offset), sizeof(list));
    from = damage_below(damage, *n);
    to = damage_below(damage, *n);
    if (how == 0) {
        remove_value(field, list, n, from);
    } else if (how == 1) {
        while (*n > from)
            remove_value(field, list, n, *n - 1);
    } else if (how == 2) {
        memcpy(kept, list + from * size, size);
        memcpy(list + from * size, list + to * size, size);
        memcpy(list + to * size, kept, size);
    } else if (*n < LIST_MAX && (bigger = realloc(list, (*n + 1) * size))) {
        memcpy(at_offset(message, field->offset), &bigger, sizeof(bigger));
        memset(bigger + *n * size, 0, size);
        copy_value(field->type, bigger + *n * size, bigger + from * size);
        (*n)++;
    }
    return true;
}

/* ---- A message ---- */

/* Makes this the field that is set of those of which only one can be. */
static void choose_field(ProtobufCMessage *message, const ProtobufCFieldDescriptor *field)
{
    const ProtobufCMessageDescriptor *d = message->descriptor;
    uint32_t *which = at_offset(message, field->quantifier_offset);
    bool pointer = field->type == PROTOBUF_C_TYPE_MESSAGE || field->type == PROTOBUF_C_TYPE_STRING ||
                   field->type == PROTOBUF_C_TYPE_BYTES;

    for (unsigned i = 0; i < d->n_fields; i++)
        if (d->fields[i].quantifier_offset == field->quantifier_offset && d->fields[i].id == *which)
            free_value(d->fields[i].type, at_offset(message, d->fields[i].offset));
    *which = pointer ? 0 : field->id;
}

void damage_message(struct damage *damage, ProtobufCMessage *message, const ProtobufCMessage *other)
{
    const ProtobufCMessageDescriptor *d = message->descriptor;

    for (unsigned tries = 0; d->n_fields && tries < 16; tries++) {
        const ProtobufCFieldDescriptor *field = &d->fields[damage_below(damage, d->n_fields)];
        size_t index;
        void *value;

        if (field->label == PROTOBUF_C_LABEL_REPEATED && damage_list(damage, message, field))
            return;
        if (!is_set(message, field) && d->n_fields < 17 && damage_below(damage, 4) == 0)
            choose_field(message, field);
        value = pick_value(damage, message, field, &index);
        if (!value)
            continue;
        damage_value(damage, field, value, other);
        return;
    }
}
