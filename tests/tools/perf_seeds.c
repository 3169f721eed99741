/* SPDX-License-Identifier: MIT */
/* perf_seeds FOLDER: small synthetic perf.data files, file and pipe layout, for the fuzzer to start from. */
#include "tests/unit/perf_bytes.h"

#include <stdio.h>

static struct perf_bytes bytes;

static void make(bool pipe, bool snapshot)
{
    static const uint8_t psb[16] = {2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82};

    pb_start(&bytes, pipe);
    pb_features(&bytes);
    pb_auxtrace_info(&bytes, snapshot);
    pb_comm(&bytes, 10, 100, false, "shell");
    pb_mmap2(&bytes, 10, 0x1000, 0x3000, 110, "/bin/shell");
    pb_task(&bytes, PERF_RECORD_FORK, 20, 10, 20, 10, 120);
    pb_comm(&bytes, 20, 130, true, "program");
    pb_mmap2(&bytes, 20, 0x1000, 0x1000, 140, "/bin/program");
    pb_mmap2(&bytes, 10, 0x2000, 0x1000, 160, "/lib/late.so");
    pb_words(&bytes, PERF_RECORD_SWITCH_CPU_WIDE, PERF_RECORD_MISC_SWITCH_OUT, (uint64_t[]){0}, 1, 20, 170);
    pb_words(&bytes, PERF_RECORD_AUX, 0, (uint64_t[]){0, 20, 1}, 3, 20, 200);
    pb_words(&bytes, PERF_RECORD_LOST, 0, (uint64_t[]){PB_DUMMY_ID, 7}, 2, 20, 210);
    pb_auxtrace(&bytes, 0, 1, 20, psb, sizeof(psb));
    pb_auxtrace(&bytes, 16, 1, 20, psb, sizeof(psb));
    pb_task(&bytes, PERF_RECORD_EXIT, 20, 10, 20, 20, 300);
    pb_finish(&bytes);
}

int main(int argc, char **argv)
{
    for (int i = 0; argc == 2 && i < 4; i++) {
        char path[4096];
        FILE *out;

        make(i & 1, i & 2);
        snprintf(path, sizeof(path), "%s/perf-%d", argv[1], i);
        out = fopen(path, "we");
        if (!out || fwrite(bytes.v, 1, bytes.n, out) != bytes.n || fclose(out) != 0)
            return 1;
    }
    return argc != 2;
}
