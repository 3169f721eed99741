/* SPDX-License-Identifier: MIT */
/* The file of a kept measurement of the clocks: magic and checksum are set right, so that what is in it is reached. */
#include "calibrate/kept.h"
#include "base/crc32c.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct etch_kept_key key = {.text = "", .raw_ns = UINT64_C(1) << 62};
    struct etch_calibration c;
    struct etch_error err;
    uint8_t *bytes;
    uint32_t crc;

    if (size < 12)
        return 0;
    bytes = malloc(size);
    if (!bytes)
        return 0;
    memcpy(bytes, data, size);
    memcpy(bytes, "etchclk\1", 8);
    crc = etch_crc32c(0, bytes + 12, size - 12);
    memcpy(bytes + 8, &crc, sizeof(crc));
    if (etch_kept_parse(&c, &key, bytes, size, &err) == 0) {
        for (size_t i = 0; i < c.n_cpus; i++)
            if (!etch_skew_bounds_known(&c.cpus[i].bounds) || c.cpus[i].best >= ETCH_RACE_VARIANTS)
                abort();
        etch_calibration_free(&c);
    }
    free(bytes);
    return 0;
}
