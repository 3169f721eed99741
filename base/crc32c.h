/* SPDX-License-Identifier: MIT */
/* CRC32C (Castagnoli), by the CPU's own instruction where it has one. */
#ifndef ETCH_BASE_CRC32C_H
#define ETCH_BASE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* The checksum of `size` bytes; to go on over several pieces, pass the last result as `crc` (0 at the start). */
uint32_t etch_crc32c(uint32_t crc, const void *data, size_t size);

/* The same without the instruction, for CPUs that lack it. */
uint32_t etch_crc32c_portable(uint32_t crc, const void *data, size_t size);

#endif
