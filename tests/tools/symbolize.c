/* SPDX-License-Identifier: MIT */
/* symbolize FILE [--demangle] [--debug-dir DIR] [--time]: reads addresses as FILE's symbols count them and prints what
 * etch says, in the form of llvm-symbolizer, so that the two can be compared. The file is placed as a loader would
 * place it, segment by segment at an odd base, to go through the same arithmetic as a recorded address. */
#include "binary/symbols.h"

#include <elf.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const uint64_t base = 0x7f1200345000;

struct segment {
    Etch__Image image;
    uint64_t address, size;
};

static int read_segments(const char *path, struct segment *segments, int room)
{
    FILE *file = fopen(path, "rb");
    Elf64_Ehdr header;
    int n = 0;

    if (!file)
        return -1;
    if (fread(&header, sizeof(header), 1, file) != 1 || fseek(file, (long)header.e_phoff, SEEK_SET) != 0)
        header.e_phnum = 0;
    for (int i = 0; i < header.e_phnum && n < room; i++) {
        Elf64_Phdr load;
        uint64_t slack;

        if (fread(&load, sizeof(load), 1, file) != 1)
            break;
        if (load.p_type != PT_LOAD || !(load.p_flags & PF_X))
            continue;
        slack = load.p_vaddr & 4095;
        etch__image__init(&segments[n].image);
        segments[n].image.start = base + load.p_vaddr - slack;
        segments[n].image.file_offset = load.p_offset - slack;
        segments[n].image.size = (slack + load.p_filesz + 4095) & ~(uint64_t)4095;
        segments[n].image.path = (char *)path;
        segments[n].address = load.p_vaddr;
        segments[n++].size = load.p_filesz;
    }
    fclose(file);
    return n;
}

static void print_frames(const struct etch_location *location)
{
    for (const struct etch_frame *f = &location->frame; f; f = f->caller) {
        const char *name = f->caller ? f->function : location->symbol;

        printf("%s\n%s:%" PRIu32 ":%" PRIu32 "\n", name ? name : "??", f->file ? f->file : "??", f->line, f->column);
    }
    printf("\n");
}

int main(int argc, char **argv)
{
    struct etch_symbols_options options = {.mangled = true};
    struct etch_symbols *symbols;
    struct segment segments[16];
    const char *path = argc > 1 ? realpath(argv[1], NULL) : NULL;
    int n = path ? read_segments(path, segments, 16) : -1;
    uint64_t address, count = 0;
    bool quiet = false;
    clock_t start;

    for (int i = 2; i < argc; i++) {
        if (strcmp(argv[i], "--demangle") == 0)
            options.mangled = false;
        else if (strcmp(argv[i], "--debug-dir") == 0 && i + 1 < argc)
            options.debug_dir = argv[++i];
        else if (strcmp(argv[i], "--time") == 0)
            quiet = true;
    }
    if (n < 0 || !(symbols = etch_symbols_new(&options)))
        return 1;
    start = clock();
    while (scanf("%" SCNx64, &address) == 1) {
        struct etch_location location;
        const Etch__Image *image = NULL;

        for (int i = 0; i < n; i++)
            if (address >= segments[i].address && address - segments[i].address < segments[i].size)
                image = &segments[i].image;
        etch_symbols_find(symbols, image, base + address, &location);
        count++;
        if (!quiet)
            print_frames(&location);
    }
    if (quiet)
        printf("%" PRIu64 " lookups, %.3f s\n", count, (double)(clock() - start) / CLOCKS_PER_SEC);
    etch_symbols_free(symbols);
    free((char *)path);
    return 0;
}
