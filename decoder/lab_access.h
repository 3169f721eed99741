/* SPDX-License-Identifier: MIT */
/* The instruction of an access in a lab build. The lab is called right before an access, so the access is the next
 * instruction that fits. */
#ifndef ETCH_DECODER_LAB_ACCESS_H
#define ETCH_DECODER_LAB_ACCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Looks for an access to `access` bytes in the code at `ip`, up to the next call or jump. Returns the address of the
 * instruction, or 0 if none fits. */
uint64_t etch_lab_access_find(const uint8_t *bytes, size_t size, uint64_t ip, uint32_t access, bool write);

#endif
