/* SPDX-License-Identifier: MIT */
/* side_seeds DIR: a run of records beside a trace, for the fuzzer to begin with. */
#include "tests/unit/side_bytes.h"

#include <stdio.h>

static void put(FILE *file, const struct side_bytes *r)
{
    fwrite(r->bytes, 1, r->n, file);
}

int main(int argc, char **argv)
{
    struct side_bytes r;
    char path[4096];
    FILE *file;

    snprintf(path, sizeof(path), "%s/records", argc > 1 ? argv[1] : ".");
    file = fopen(path, "w");
    if (!file)
        return 1;
    fwrite("\0\0\0\0\0\0\0\0", 1, 8, file);
    side_mapped(&r, 7, 0x400000, 0x2000, 0, "/nonexistent/program", 1);
    put(file, &r);
    side_task(&r, PERF_RECORD_FORK, 8, 8, 7, 7, 2);
    put(file, &r);
    side_named(&r, 8, 8, "child", 1, 3);
    put(file, &r);
    side_begin(&r, PERF_RECORD_AUX, 0);
    side_u64(&r, 0);
    side_u64(&r, 4096);
    side_u64(&r, PERF_AUX_FLAG_TRUNCATED);
    side_end(&r, 7, 7, 4, 0);
    put(file, &r);
    side_task(&r, PERF_RECORD_EXIT, 8, 8, 7, 7, 5);
    put(file, &r);
    return fclose(file) ? 1 : 0;
}
