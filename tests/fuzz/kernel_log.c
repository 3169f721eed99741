/* SPDX-License-Identifier: MIT */
/* Records of the kernel's log. Names of processes in them are chosen by strangers. */
#include "collector/left/kernel_log.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *record = malloc(size ? size : 1); /* a byte behind the record is a finding */
    struct etch_kernel_kill kill;

    if (!record)
        return -1;
    memcpy(record, data, size);
    if (etch_kernel_log_parse(record, size, &kill) && (!kill.name[0] || kill.name[sizeof(kill.name) - 1]))
        abort();
    free(record);
    return 0;
}
