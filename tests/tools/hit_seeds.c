/* SPDX-License-Identifier: MIT */
/* hit_seeds DIR: a watchpoint's records, for the fuzzer to begin with. */
#include "tests/unit/hit_bytes.h"

#include <stdio.h>

int main(int argc, char **argv)
{
    struct hit_bytes r, lost = {.words = {0, 77, 9}, .n = 3};
    char path[4096];
    FILE *file;

    snprintf(path, sizeof(path), "%s/records", argc > 1 ? argv[1] : ".");
    file = fopen(path, "w");
    if (!file)
        return 1;
    hit_sample(&r, 4, 24);
    fwrite(r.words, 8, r.n, file);
    hit_finish(&lost, PERF_RECORD_LOST);
    fwrite(lost.words, 8, lost.n, file);
    hit_sample(&r, 0, 0);
    fwrite(r.words, 8, r.n, file);
    return fclose(file) ? 1 : 0;
}
