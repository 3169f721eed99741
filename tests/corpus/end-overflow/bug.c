// SPDX-License-Identifier: MIT
// Where a member of an archive ends is computed in 32 bits and wraps around; the check lets an offset pass that lies far outside.
#include "../corpus.h"
#include <stdint.h>

struct member {
    char name[16];
    uint32_t offset;
    uint32_t length;
};

static unsigned char *archive;
static uint32_t archive_size;
static unsigned rejected;

static void parse(struct member *m, const char *line)
{
    char *rest;
    size_t n = strcspn(line, " ");

    memset(m, 0, sizeof(*m));
    memcpy(m->name, line, n < sizeof(m->name) ? n : sizeof(m->name) - 1);
    m->offset = (uint32_t)strtoul(line + n, &rest, 10); //@offset
    m->length = (uint32_t)strtoul(rest, NULL, 10);      //@length
}

static unsigned extract(const struct member *m)
{
    unsigned sum = 0;
#ifdef FIXED
    uint64_t end = (uint64_t)m->offset + m->length;
#else
    uint32_t end = m->offset + m->length;               //@end
#endif

    if (end > archive_size) {                           //@check
        rejected++;
        return 0;
    }
    for (uint32_t i = 0; i < m->length; i++)
        sum = sum * 17 + archive[m->offset + i];        //@use
    return sum;
}

static void archive_make(uint32_t size)
{
    archive = malloc(size);
    for (uint32_t i = 0; i < size; i++)
        archive[i] = (unsigned char)(i ^ i >> 8);
    archive_size = size;
}

int main(void)
{
    static const char *const listing[] = {
        "README 0 120",        "main.c 120 900",         "huge.bin 9000 70000", "empty 4096 0",
        "lost 4294967264 200", "Makefile 1020 40",       "notes 2000 16",       "icon.png 3000 1000",
    };
    unsigned sum = 0;

    archive_make(4096);
    for (int i = 0; i < 3; i++) {
        struct member m;
        const char *line = listing[draw(8)];            //@input
        parse(&m, line);                                //@parse
        sum ^= extract(&m);                             //@extract
    }
    printf("sum %08x, %u rejected\n", sum, rejected);
    return 0;
}
