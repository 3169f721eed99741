/* SPDX-License-Identifier: MIT */
/* Damage to one message, field by field, by its descriptor; see damage.h. */
#ifndef ETCH_TESTS_DAMAGE_MESSAGE_H
#define ETCH_TESTS_DAMAGE_MESSAGE_H

#include "tests/damage/damage.h"

#include <protobuf-c/protobuf-c.h>

/* Changes one field of `message`, or of a message in it. `other` is a message of any type whose values may be taken.
 * Both were made by protobuf_c_message_unpack() without an allocator of its own. */
void damage_message(struct damage *damage, ProtobufCMessage *message, const ProtobufCMessage *other);

#endif
