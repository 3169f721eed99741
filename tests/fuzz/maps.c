/* SPDX-License-Identifier: MIT */
/* Text of /proc/PID/maps, line by line, and the texts that name what to watch. */
#include "collector/session/place.h"
#include "collector/session/process.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1), *rest = text, *line;
    struct etch_place_operand operand;
    struct etch_mapping mapping;
    struct etch_place place;
    struct etch_error err;

    if (!text)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    while (rest && (line = strsep(&rest, "\n"))) {
        char *copy = strdup(line); /* on its own, so that a byte too far is seen */

        if (copy) {
            etch_place_parse(&place, copy, &err);
            etch_place_operand_parse(&operand, copy, &err);
            if (etch_mapping_parse(copy, &mapping) && strlen(mapping.path) > strlen(line))
                __builtin_trap();
        }
        free(copy);
    }
    free(text);
    return 0;
}
