/* SPDX-License-Identifier: MIT */
/* A stepped run in a file: the records, the mappings, and all memory that can be read. Stepping takes long, and the
 * values of one run may be recovered many times. */
#include "tests/tools/stepper.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAPS_MAX (1u << 18)

struct head {
    uint64_t end_size, record_size; /* of the structures: a file of another layout is refused */
    struct stepper_end end;
    uint64_t n, maps;
};

char *stepper_maps(pid_t pid)
{
    char path[64], *text = calloc(1, MAPS_MAX);
    FILE *f;

    (void)snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
    f = fopen(path, "r");
    if (text && f)
        text[fread(text, 1, MAPS_MAX - 1, f)] = 0;
    if (f)
        fclose(f);
    return text;
}

/* The next mapping of the text that can be read, from `*at` on. */
static bool next_readable(const char **at, uint64_t *start, uint64_t *end)
{
    char r;

    while (**at) {
        const char *line = *at, *newline = strchr(line, '\n');

        *at = newline ? newline + 1 : line + strlen(line);
        if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %c", start, end, &r) == 3 && r == 'r')
            return true;
    }
    return false;
}

int stepper_save(const struct stepper_end *end, const char *path)
{
    struct head h = {sizeof(*end), sizeof(*end->records), *end, end->n, strlen(end->maps)};
    FILE *f = fopen(path, "wb");
    const char *at = end->maps;
    uint64_t from, to;
    bool good = f && fwrite(&h, sizeof(h), 1, f) == 1 && fwrite(end->maps, h.maps, 1, f) == 1 &&
                fwrite(end->records, sizeof(*end->records), end->n, f) == end->n;

    while (good && next_readable(&at, &from, &to)) {
        char *bytes = calloc(1, to - from);

        good = bytes != NULL;
        if (good) {
            (void)stepper_read(end, from, bytes, to - from);
            good = fwrite(bytes, to - from, 1, f) == 1;
        }
        free(bytes);
    }
    return f && fclose(f) == 0 && good ? 0 : -1;
}

int stepper_load(const char *path, struct stepper_end *end)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat st;
    const struct head *h;
    const char *bytes;

    if (fd < 0 || fstat(fd, &st) < 0 || st.st_size < (off_t)sizeof(*h))
        return -1;
    bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    close(fd);
    h = (const struct head *)(const void *)bytes;
    if (bytes == MAP_FAILED || h->end_size != sizeof(*end) || h->record_size != sizeof(*end->records))
        return -1;
    *end = h->end;
    end->pid = 0;
    end->maps = strndup(bytes + sizeof(*h), h->maps);
    end->records = malloc((h->n + 1) * sizeof(*end->records));
    if (!end->maps || !end->records)
        return -1;
    memcpy(end->records, bytes + sizeof(*h) + h->maps, h->n * sizeof(*end->records));
    end->saved = bytes + sizeof(*h) + h->maps + h->n * sizeof(*end->records);
    return 0;
}

size_t stepper_read_saved(const struct stepper_end *end, uint64_t address, void *to, size_t size)
{
    const char *at = end->maps, *memory = end->saved;
    uint64_t from, until;

    while (next_readable(&at, &from, &until)) {
        if (from <= address && address < until) {
            size = size < until - address ? size : (size_t)(until - address);
            memcpy(to, memory + (address - from), size);
            return size;
        }
        memory += until - from;
    }
    return 0;
}
