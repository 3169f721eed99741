/* SPDX-License-Identifier: MIT */
/* See memory_recording.h. */
#include "tests/unit/memory_recording.h"

#include "decoder/recording/loaders.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static ssize_t read_memory(const struct etch_stream *stream, const struct etch_piece *piece, uint64_t skip,
                           void *buffer, size_t size)
{
    const uint8_t *bytes = (const uint8_t *)(uintptr_t)piece->where;
    size_t n = piece->size - skip < size ? (size_t)(piece->size - skip) : size;

    (void)stream;
    memcpy(buffer, bytes + skip, n);
    return (ssize_t)n;
}

static void close_memory(struct etch_recording *r)
{
    for (size_t i = 0; i < r->streams.n; i++)
        for (size_t k = 0; k < r->streams.v[i].pieces.n; k++)
            free((void *)(uintptr_t)r->streams.v[i].pieces.v[k].where);
}

struct etch_recording *memory_recording(const char *path)
{
    struct etch_recording *r = calloc(1, sizeof(*r));

    r->path = strdup(path);
    r->read = read_memory;
    r->close = close_memory;
    return r;
}

static void add_piece(struct etch_stream *stream, uint64_t offset, const void *bytes, size_t size)
{
    uint8_t *copy = malloc(size ? size : 1);
    struct etch_piece piece = {offset, size, (uintptr_t)copy};

    memcpy(copy, bytes, size);
    (void)!etch_array_push(&stream->pieces, piece);
}

Etch__Stream *memory_stream(struct etch_recording *r, uint32_t cpu, uint32_t pid, uint32_t tid, const void *bytes,
                            size_t size)
{
    Etch__Stream *about = malloc(sizeof(*about));
    struct etch_stream stream = {.about = about, .recording = r};

    etch__stream__init(about);
    about->id = (uint32_t)r->streams.n + 1;
    about->source = ETCH__SOURCE__SOURCE_PT;
    about->of_case = cpu == UINT32_MAX ? ETCH__STREAM__OF_TID : ETCH__STREAM__OF_CPU;
    if (cpu == UINT32_MAX)
        about->tid = tid;
    else
        about->cpu = cpu;
    about->pid = pid;
    about->pt = malloc(sizeof(*about->pt));
    etch__pt_config__init(about->pt);
    add_piece(&stream, 0, bytes, size);
    (void)!etch_array_push(&r->streams, stream);
    return about;
}

void memory_hole(struct etch_recording *r, uint64_t hole, const void *bytes, size_t size)
{
    struct etch_stream *stream = &r->streams.v[r->streams.n - 1];

    add_piece(stream, etch_stream_end(stream) + hole, bytes, size);
}

Etch__Image *memory_image(struct etch_recording *r, uint32_t pid, uint64_t start, uint64_t size, const char *path,
                          const void *code)
{
    Etch__Image *image = malloc(sizeof(*image));

    etch__image__init(image);
    image->pid = pid;
    image->start = start;
    image->size = size;
    image->prot = 5;
    if (path)
        image->path = strdup(path);
    if (code) {
        image->code.data = malloc(size);
        image->code.len = size;
        memcpy(image->code.data, code, size);
    }
    (void)!etch_array_push(&r->images, image);
    return image;
}

void memory_done(struct etch_recording *r)
{
    etch_recording_sort(r);
    for (size_t i = 0; i < r->streams.n; i++)
        r->streams.v[i].recording = r;
}

int see_step(void *context, const struct etch_step *step)
{
    struct seen *seen = context;
    uint64_t ip = step->first;

    if (seen->tid && step->tid != seen->tid)
        return 0;
    if (step->kind != ETCH_STEP_BLOCK) {
        (void)!etch_array_push(&seen->events, *step);
        return 0;
    }
    (void)!etch_array_push(&seen->blocks, *step);
    for (uint32_t i = 0; i < step->count; ip += step->sizes[i++])
        (void)!etch_array_push(&seen->ips, ip);
    return 0;
}

void seen_free(struct seen *seen)
{
    etch_array_free(&seen->ips);
    etch_array_free(&seen->events);
    etch_array_free(&seen->blocks);
}

uint8_t *slurp(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    uint8_t *bytes;
    long n;

    if (!file)
        return NULL;
    fseek(file, 0, SEEK_END);
    n = ftell(file);
    rewind(file);
    bytes = malloc((size_t)n + 1);
    *size = fread(bytes, 1, (size_t)n, file);
    fclose(file);
    return bytes;
}

const char *real_captures(void)
{
    static char path[4096];
    const char *given = getenv("ETCH_PTDATA"), *source = getenv("ETCH_SOURCE");

    snprintf(path, sizeof(path), "%s%s",
             given    ? given
             : source ? source
                      : ETCH_SOURCE_DIR,
             given ? "" : "/../shared/ptdata");
    return access(path, R_OK) == 0 ? path : NULL;
}
