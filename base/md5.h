/* SPDX-License-Identifier: MIT */
/* MD5 (RFC 1321): the checksum that compilers put into debug information, so that a source file can be recognised. Good
 * for that and for nothing that somebody could attack. */
#ifndef ETCH_BASE_MD5_H
#define ETCH_BASE_MD5_H

#include <stddef.h>
#include <stdint.h>

void etch_md5(const void *data, size_t size, uint8_t digest[16]);

#endif
