/* SPDX-License-Identifier: MIT */
/* CRC32C; see crc32c.h. */
#include "base/crc32c.h"

#include <pthread.h>
#include <string.h>

#define POLYNOMIAL 0x82f63b78u /* 0x1edc6f41, bits reversed */

static uint32_t table[8][256];
static pthread_once_t table_once = PTHREAD_ONCE_INIT;

static void table_make(void)
{
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t crc = byte;

        for (int bit = 0; bit < 8; bit++)
            crc = (crc >> 1) ^ (crc & 1 ? POLYNOMIAL : 0);
        table[0][byte] = crc;
    }
    for (int slice = 1; slice < 8; slice++)
        for (int byte = 0; byte < 256; byte++)
            table[slice][byte] = (table[slice - 1][byte] >> 8) ^ table[0][table[slice - 1][byte] & 0xff];
}

uint32_t etch_crc32c_portable(uint32_t crc, const void *data, size_t size)
{
    const unsigned char *p = data;

    pthread_once(&table_once, table_make);
    crc = ~crc;
    for (; size >= 8; size -= 8, p += 8) {
        uint64_t word;

        memcpy(&word, p, sizeof(word)); /* little endian, as the only machines we record on */
        word ^= crc;
        crc = table[7][word & 0xff] ^ table[6][(word >> 8) & 0xff] ^ table[5][(word >> 16) & 0xff] ^
              table[4][(word >> 24) & 0xff] ^ table[3][(word >> 32) & 0xff] ^ table[2][(word >> 40) & 0xff] ^
              table[1][(word >> 48) & 0xff] ^ table[0][word >> 56];
    }
    for (; size; size--, p++)
        crc = (crc >> 8) ^ table[0][(crc ^ *p) & 0xff];
    return ~crc;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) static uint32_t crc32c_sse42(uint32_t crc, const void *data, size_t size)
{
    const unsigned char *p = data;
    uint64_t wide = ~crc;

    for (; size >= 8; size -= 8, p += 8) {
        uint64_t word;

        memcpy(&word, p, sizeof(word));
        wide = __builtin_ia32_crc32di(wide, word);
    }
    crc = (uint32_t)wide;
    for (; size; size--, p++)
        crc = __builtin_ia32_crc32qi(crc, *p);
    return ~crc;
}
#endif

uint32_t etch_crc32c(uint32_t crc, const void *data, size_t size)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("sse4.2"))
        return crc32c_sse42(crc, data, size);
#endif
    return etch_crc32c_portable(crc, data, size);
}
