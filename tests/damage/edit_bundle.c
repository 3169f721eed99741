/* SPDX-License-Identifier: MIT */
/* edit_bundle IN OUT EDIT...: a bundle with certain damage, as a test wants it. An edit is KIND.FIELD=NUMBER or
 * KIND.FIELD=TEXT (in all records of the kind; FIELD may lead into messages: failure.threads.tid), KIND.FIELD- (takes
 * the field away) or KIND- (takes the records away). */
#include "tests/damage/records.h"

#include "proto/etch.pb-c.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static __attribute__((noreturn)) void die(const char *what)
{
    fprintf(stderr, "edit_bundle: %s\n", what);
    exit(1);
}

static void *at_offset(ProtobufCMessage *message, unsigned offset)
{
    return (uint8_t *)message + offset;
}

static void set_text(char **field, const char *text)
{
    if (*field != protobuf_c_empty_string)
        free(*field);
    *field = strdup(text);
}

static void clear_list(ProtobufCMessage *m, const ProtobufCFieldDescriptor *f)
{
    size_t *n = at_offset(m, f->quantifier_offset);
    void **list;

    memcpy(&list, at_offset(m, f->offset), sizeof(list));
    for (size_t i = 0; i < *n && f->type == PROTOBUF_C_TYPE_MESSAGE; i++)
        protobuf_c_message_free_unpacked(list[i], NULL);
    for (size_t i = 0; i < *n && f->type == PROTOBUF_C_TYPE_STRING; i++)
        free(list[i]);
    *n = 0;
}

/* NULL takes it away. */
static void set_value(ProtobufCMessage *m, const ProtobufCFieldDescriptor *f, const char *value)
{
    void *at = at_offset(m, f->offset);
    uint64_t number = value ? strtoull(value, NULL, 0) : 0;

    if (f->flags & PROTOBUF_C_FIELD_FLAG_ONEOF)
        *(uint32_t *)at_offset(m, f->quantifier_offset) = value ? f->id : 0;
    if (f->label == PROTOBUF_C_LABEL_REPEATED && !value)
        clear_list(m, f);
    else if (f->label == PROTOBUF_C_LABEL_REPEATED)
        die("a list can only be taken away");
    else if (f->type == PROTOBUF_C_TYPE_STRING)
        set_text(at, value ? value : "");
    else if (f->type == PROTOBUF_C_TYPE_BYTES)
        ((ProtobufCBinaryData *)at)->len = 0;
    else if (f->type == PROTOBUF_C_TYPE_UINT64 || f->type == PROTOBUF_C_TYPE_FIXED64)
        memcpy(at, &number, 8);
    else if (f->type == PROTOBUF_C_TYPE_MESSAGE)
        die("a message has no value");
    else
        memcpy(at, &number, 4);
}

static void edit_message(ProtobufCMessage *m, const char *path, const char *value)
{
    size_t length = strcspn(path, ".");
    char name[64];
    const ProtobufCFieldDescriptor *f;
    ProtobufCMessage *one, **list = &one;
    size_t n = 1;

    snprintf(name, sizeof(name), "%.*s", (int)length, path);
    f = protobuf_c_message_descriptor_get_field_by_name(m->descriptor, name);
    if (!f)
        die(path);
    if (path[length] == '\0') {
        set_value(m, f, value);
        return;
    }
    if (f->type != PROTOBUF_C_TYPE_MESSAGE)
        die(path);
    memcpy(&one, at_offset(m, f->offset), sizeof(one));
    if (f->label == PROTOBUF_C_LABEL_REPEATED) {
        n = *(size_t *)at_offset(m, f->quantifier_offset);
        memcpy(&list, at_offset(m, f->offset), sizeof(list));
    }
    for (size_t i = 0; i < n; i++)
        if (list[i])
            edit_message(list[i], path + length + 1, value);
}

static void edit_record(struct packed_record *packed, const char *path, const char *value)
{
    Etch__Record *record = etch__record__unpack(NULL, packed->size, packed->bytes);

    if (!record)
        die("a record that does not unpack");
    edit_message(&record->base, path, value);
    packed->size = etch__record__get_packed_size(record);
    free(packed->bytes);
    packed->bytes = malloc(packed->size + 1);
    if (!packed->bytes)
        die("out of memory");
    etch__record__pack(record, packed->bytes);
    etch__record__free_unpacked(record, NULL);
}

static void edit(struct records *records, char *what)
{
    char *value = strchr(what, '='), *field = strchr(what, '.'), name[64];
    bool take_away = !value && *what && what[strlen(what) - 1] == '-';
    const ProtobufCFieldDescriptor *kind;

    if (!value && !take_away)
        die(what);
    *(value ? value : what + strlen(what) - 1) = '\0';
    snprintf(name, sizeof(name), "%.*s", (int)strcspn(what, "."), what);
    kind = protobuf_c_message_descriptor_get_field_by_name(&etch__record__descriptor, name);
    if (!kind || (!field && !take_away))
        die(what);
    for (size_t i = records->list.n; i-- > 0;) {
        if (records->list.v[i].kind != kind->id)
            continue;
        if (field)
            edit_record(&records->list.v[i], what, value ? value + 1 : NULL);
        else
            records_remove(records, i);
    }
}

int main(int argc, char **argv)
{
    static uint8_t data[16u << 20];
    struct records records = {0};
    FILE *in = argc > 2 ? fopen(argv[1], "rbe") : NULL, *out = in ? fopen(argv[2], "wbe") : NULL;
    uint8_t *file;
    size_t size;

    if (!out)
        die("usage: edit_bundle IN OUT EDIT...");
    size = fread(data, 1, sizeof(data), in);
    fclose(in);
    if (!records_read(&records, data, size))
        die("out of memory");
    for (int i = 3; i < argc; i++)
        edit(&records, argv[i]);
    file = records_write(&records, &size);
    if (!file || fwrite(file, 1, size, out) != size || fclose(out) != 0)
        die("cannot write");
    free(file);
    records_release(&records);
    return 0;
}
