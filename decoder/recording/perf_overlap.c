/* SPDX-License-Identifier: MIT */
#include "decoder/recording/perf_overlap.h"

#include <errno.h>

#define CHUNK 65536u
#define PSB_SIZE 16u

static const uint8_t psb[PSB_SIZE] = {0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82,
                                      0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82};

static int read_all(const struct etch_perf_source *source, uint8_t *buffer, size_t size, uint64_t offset)
{
    while (size > 0) {
        ssize_t n = source->read(source->context, buffer, size, offset);

        if (n <= 0)
            return n < 0 ? (int)n : -EIO;
        buffer += n;
        size -= (size_t)n;
        offset += (uint64_t)n;
    }
    return 0;
}

/* The first PSB at or behind `from` of the `size` bytes at `where`; `size` where there is none. */
static int64_t find_psb(const struct etch_perf_source *source, uint64_t where, uint64_t size, uint64_t from,
                        uint8_t *buffer)
{
    while (size - from >= PSB_SIZE) {
        size_t n = size - from < CHUNK ? (size_t)(size - from) : CHUNK;
        int status = read_all(source, buffer, n, where + from);
        const uint8_t *hit;

        if (status < 0)
            return status;
        hit = memmem(buffer, n, psb, PSB_SIZE);
        if (hit)
            return (int64_t)(from + (uint64_t)(hit - buffer));
        from += n - (PSB_SIZE - 1);
    }
    return (int64_t)size;
}

/* 1: the same, 0: not, -errno. `buffer` has room for two chunks. */
static int same(const struct etch_perf_source *source, uint64_t a, uint64_t b, uint64_t size, uint8_t *buffer)
{
    for (uint64_t done = 0; done < size;) {
        size_t n = size - done < CHUNK ? (size_t)(size - done) : CHUNK;
        int status = read_all(source, buffer, n, a + done);

        if (status == 0)
            status = read_all(source, buffer + CHUNK, n, b + done);
        if (status < 0)
            return status;
        if (memcmp(buffer, buffer + CHUNK, n) != 0)
            return 0;
        done += n;
    }
    return 1;
}

static int64_t overlap(const struct etch_perf_source *source, uint64_t first, uint64_t first_size, uint64_t second,
                       uint64_t second_size, uint8_t *buffer)
{
    int64_t lead = find_psb(source, second, second_size, 0, buffer);
    int64_t at = 0;

    if (lead < 0 || (uint64_t)lead + PSB_SIZE > second_size)
        return lead < 0 ? lead : 0;
    for (;; at++) {
        uint64_t rest;
        int status;

        at = find_psb(source, first, first_size, (uint64_t)at, buffer);
        if (at < 0 || (uint64_t)at + PSB_SIZE > first_size)
            return at < 0 ? at : 0;
        rest = first_size - (uint64_t)at;
        /* More than a PSB must agree, or every end on a PSB would be taken for an overlap. */
        if (rest <= PSB_SIZE || rest > second_size - (uint64_t)lead)
            continue;
        status = same(source, first + (uint64_t)at, second + (uint64_t)lead, rest, buffer);
        if (status != 0)
            return status < 0 ? status : lead + (int64_t)rest;
    }
}

int64_t etch_perf_overlap(const struct etch_perf_source *source, uint64_t first, uint64_t first_size, uint64_t second,
                          uint64_t second_size)
{
    uint8_t *buffer = malloc((size_t)2 * CHUNK);
    int64_t result = buffer ? overlap(source, first, first_size, second, second_size, buffer) : -ENOMEM;

    free(buffer);
    return result;
}
