/* SPDX-License-Identifier: MIT */
/* pt_seeds FOLDER: PT streams for the fuzzer to begin with, one file each, by libipt's encoder. */
#include "tests/unit/pt_stream.h"

#include <stdio.h>

static struct pt_stream stream;

static void save(const char *folder, const char *name)
{
    char path[4096];
    FILE *file;

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    file = fopen(path, "wb");
    if (!file || fwrite(stream.bytes, 1, stream.n, file) != stream.n || fclose(file) != 0)
        exit(1);
    stream.n = 0;
}

static void put_round(uint64_t tsc)
{
    put_ip(&stream, ppt_tip_pge, 0x1000);
    put_tnt(&stream, "NT");
    put_ip(&stream, ppt_tip_pgd, 0);
    put_tsc(&stream, tsc);
}

static void put_timing(void)
{
    struct pt_packet tma = {.type = ppt_tma}, mtc = {.type = ppt_mtc}, cyc = {.type = ppt_cyc}, cbr = {.type = ppt_cbr};

    tma.payload.tma.ctc = 8;
    mtc.payload.mtc.ctc = 2;
    cyc.payload.cyc.value = 1000;
    cbr.payload.cbr.ratio = 20;
    put_packet(&stream, &tma);
    put_packet(&stream, &cbr);
    put_packet(&stream, &cyc);
    put_packet(&stream, &mtc);
}

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    put_psb(&stream, 100, 0);
    put_round(150);
    put_round(250);
    save(argv[1], "rounds");
    put_psb(&stream, 100, 0x1000);
    put_timing();
    put_tnt(&stream, "TTNTTNT");
    put(&stream, ppt_ovf);
    put_ip(&stream, ppt_fup, 0x1004);
    put_timing();
    put_psb(&stream, 320, 0x1010);
    save(argv[1], "overflow");
    put_psb(&stream, 100, 0);
    put_ip(&stream, ppt_tip_pge, 0x1020);
    put_ip(&stream, ppt_fup, 0x1021);
    put_ip(&stream, ppt_tip, 0x1023);
    put_tnt(&stream, "TT");
    put_ip(&stream, ppt_tip, 0x1000);
    put_ip(&stream, ppt_tip_pgd, 0x1000);
    put_ip(&stream, ppt_tip_pge, 0x9000);
    save(argv[1], "interrupt");
    return 0;
}
