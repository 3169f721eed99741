/* SPDX-License-Identifier: MIT */
/* Whether a function keeps its part of the stack to itself: no instruction of it takes an address of the stack. Then
 * nobody else can write its variables there, whatever other threads and called functions do. */
#ifndef ETCH_DECODER_VALUES_PRIVATE_FRAME_H
#define ETCH_DECODER_VALUES_PRIVATE_FRAME_H

#include "decoder/backward.h"

/* `bytes` are all of the function's code. */
enum etch_stack_frame etch_frame_of(const uint8_t *bytes, size_t size);

#endif
