/* SPDX-License-Identifier: MIT */
/* What the loaders of foreign recordings share: making the messages of a recording one by one. All that is made here is
 * freed by etch_recording_free(). */
#ifndef ETCH_DECODER_RECORDING_RECORDING_FILL_H
#define ETCH_DECODER_RECORDING_RECORDING_FILL_H

#include "decoder/recording.h"

/* Each appends an empty message and returns it, NULL where memory is short. */
Etch__Image *etch_recording_add_image(struct etch_recording *recording);
Etch__Thread *etch_recording_add_thread(struct etch_recording *recording);
Etch__Loss *etch_recording_add_loss(struct etch_recording *recording);
Etch__Clock *etch_recording_add_clock(struct etch_recording *recording);

/* A stream with the next free id, without pieces; its message is `about`. */
struct etch_stream *etch_recording_add_stream(struct etch_recording *recording, Etch__Stream **about);

/* Replaces a message's string or bytes by a copy. False where memory is short. */
bool etch_message_set_string(char **field, const char *value);
bool etch_message_set_bytes(ProtobufCBinaryData *field, const void *bytes, size_t size);

/* Brings images (by pid, start, time) and switches (by CPU, time) into the order that every recording promises. */
void etch_recording_fill_end(struct etch_recording *recording);

#endif
