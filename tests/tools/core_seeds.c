/* SPDX-License-Identifier: MIT */
/* core_seeds FOLDER: a small core file, whole and cut, for the fuzzer to start from. */
#include "tests/unit/binary/made_core.h"

#include <stdio.h>

int main(int argc, char **argv)
{
    static struct made_core made;

    made_core(&made);
    for (int i = 0; argc == 2 && i < 3; i++) {
        size_t size = sizeof(made) - (size_t)i * sizeof(made.stack);
        char path[4096];
        FILE *out;

        snprintf(path, sizeof(path), "%s/core-%d", argv[1], i);
        out = fopen(path, "we");
        if (!out || fwrite(&made, 1, size, out) != size || fclose(out) != 0)
            return 1;
    }
    return argc != 2;
}
