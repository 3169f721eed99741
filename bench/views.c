/* SPDX-License-Identifier: MIT */
/* views FILE: what the views cost per block, apart from decoding: blocks of FILE's code, visited over and over in a
 * fixed pseudo-random order, through each view into /dev/null. Prints nanoseconds per block and for making the tables.
 */
#include "cli/decode_view.h"

#include <elf.h>
#include <inttypes.h>
#include <stdlib.h>
#include <time.h>

enum { DISTINCT = 20000 };
static const double visits_timed = 5e6;

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static bool place(Etch__Image *image, const char *path)
{
    FILE *file = fopen(path, "rb");
    Elf64_Ehdr header;
    Elf64_Phdr load;
    bool found = false;

    etch__image__init(image);
    image->path = (char *)path;
    if (!file)
        return false;
    if (fread(&header, sizeof(header), 1, file) != 1 || fseek(file, (long)header.e_phoff, SEEK_SET) != 0)
        header.e_phnum = 0;
    for (int i = 0; i < header.e_phnum && !found && fread(&load, sizeof(load), 1, file) == 1; i++)
        found = load.p_type == PT_LOAD && (load.p_flags & PF_X);
    fclose(file);
    if (!found || load.p_filesz <= 4096)
        return false;
    image->start = 0x7f0000000000;
    image->file_offset = load.p_offset;
    image->size = load.p_filesz;
    return true;
}

static uint32_t next(uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 8;
}

static int none(void *context, const struct etch_step *step)
{
    *(uint64_t *)context += step->count;
    return 0;
}

static double visit(const struct etch_step *steps, size_t visits, etch_step_visitor *visitor, void *context)
{
    uint32_t seed = 1;
    double start = now();

    for (size_t i = 0; i < visits; i++)
        if (visitor(context, &steps[next(&seed) % DISTINCT]) != 0)
            break;
    return now() - start;
}

static void measure(const struct etch_view *view, const struct etch_step *steps)
{
    struct etch_symbols_options symbol_options = {0};
    struct etch_symbols *symbols = etch_symbols_new(&symbol_options);
    struct etch_view_options options = {fopen("/dev/null", "w"), NULL, symbols, NULL};
    struct etch_error err;
    void *context;
    double first, rest;

    if (!symbols || !options.out || view->begin(&context, &options, &err) < 0)
        exit(1);
    first = visit(steps, (size_t)DISTINCT * 4, view->step, context);
    rest = visit(steps, (size_t)visits_timed, view->step, context);
    printf("%-8s %8.1f ns a block; %.1f ms for the first %d\n", view->name, rest / visits_timed, first / 1e6,
           DISTINCT * 4);
    view->end(context, &err);
    fclose(options.out);
    etch_symbols_free(symbols);
}

int main(int argc, char **argv)
{
    static struct etch_step steps[DISTINCT];
    char *path = argc > 1 ? realpath(argv[1], NULL) : NULL;
    Etch__Image image;
    uint32_t seed = 7;
    uint64_t sum = 0;

    if (!path || !place(&image, path))
        return 2;
    for (size_t i = 0; i < DISTINCT; i++) {
        uint64_t at = image.start + next(&seed) * (uint64_t)16 % (image.size - 64);

        steps[i] = (struct etch_step){.pid = 1,
                                      .tid = 1,
                                      .time = {1, 2},
                                      .first = at,
                                      .last = at + 20,
                                      .end = at + 24,
                                      .count = 6,
                                      .branch = ETCH_BRANCH_CONDITIONAL,
                                      .image = &image};
    }
    printf("%-8s %8.1f ns a block\n", "nothing", visit(steps, (size_t)visits_timed, none, &sum) / visits_timed);
    measure(&etch_view_line, steps);
    free(path);
    return 0;
}
