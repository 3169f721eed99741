/* SPDX-License-Identifier: MIT */
/* Messages of etch.proto as values. */
#ifndef ETCH_PROTO_MESSAGE_H
#define ETCH_PROTO_MESSAGE_H

/* Copies a message of any type. Free the copy with the type's free_unpacked(copy, NULL). NULL: memory is short. */
void *etch_message_copy(const void *message);

#endif
