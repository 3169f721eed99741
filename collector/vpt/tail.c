/* SPDX-License-Identifier: MIT */
/* A killed thread's last packets; see vpt_tail.h. Written by hand because the collector has no libipt. */
#include "collector/vpt/tail.h"

#include <string.h>

static const uint8_t tnt_64[] = {0x02, 0xa3};
#define FUP_48 0x7d /* 48 bits of address, sign-extended */
#define TIP_PGD 0x01

size_t etch_vpt_tail(uint8_t bytes[ETCH_VPT_TAIL_MAX], uint64_t tnt, uint64_t at)
{
    size_t n = 0;

    if (!at)
        return 0;
    if (tnt > 1 && !(tnt >> 48)) { /* the stop bit is where ours is */
        memcpy(bytes, tnt_64, sizeof(tnt_64));
        memcpy(bytes + 2, &tnt, 6);
        n = 8;
    }
    bytes[n++] = FUP_48;
    memcpy(bytes + n, &at, 6);
    n += 6;
    bytes[n++] = TIP_PGD;
    return n;
}
