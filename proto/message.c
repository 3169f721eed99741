/* SPDX-License-Identifier: MIT */
/* See message.h. */
#include "proto/message.h"

#include <protobuf-c/protobuf-c.h>
#include <stdlib.h>

void *etch_message_copy(const void *message)
{
    const ProtobufCMessage *from = message;
    size_t size = protobuf_c_message_get_packed_size(from);
    uint8_t *bytes = malloc(size ? size : 1);
    void *copy = NULL;

    if (bytes) {
        protobuf_c_message_pack(from, bytes);
        copy = protobuf_c_message_unpack(from->descriptor, NULL, size, bytes);
    }
    free(bytes);
    return copy;
}
