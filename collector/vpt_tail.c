/* SPDX-License-Identifier: MIT */
/* A killed thread's last packets; see vpt_tail.h. Written by hand because the collector has no libipt. */
#include "collector/vpt_tail.h"

#include <string.h>

#define TNT_64 "\x02\xa3"
#define FUP_48 0x7d /* 48 bits of address, sign-extended */
#define TIP_PGD 0x01

size_t etch_vpt_tail(uint8_t bytes[ETCH_VPT_TAIL_MAX], uint64_t tnt, uint64_t at)
{
    size_t n = 0;

    if (!at)
        return 0;
    if (tnt > 1 && !(tnt >> 48)) { /* the stop bit is where ours is */
        memcpy(bytes, TNT_64, 2);
        memcpy(bytes + 2, &tnt, 6);
        n = 8;
    }
    bytes[n++] = FUP_48;
    memcpy(bytes + n, &at, 6);
    n += 6;
    bytes[n++] = TIP_PGD;
    return n;
}
