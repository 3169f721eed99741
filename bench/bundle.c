/* SPDX-License-Identifier: MIT */
/* bundle FILE write OUT | bundle FILE read IN: FILE's bytes through the bundle as chunks of control flow. Prints
 * seconds and the peak of resident memory in KiB. FILE itself is read in pieces, so that the peak is the bundle's. */
#include "proto/bundle.h"
#include "proto/frame.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int fail(const char *what)
{
    fprintf(stderr, "bundle: %s\n", what);
    return 1;
}

static int write_bundle(const char *from, const char *to)
{
    static uint8_t piece[ETCH_CHUNK_SIZE];
    struct etch_bundle_writer *writer;
    struct etch_error err;
    uint64_t offset = 0;
    int fd = open(from, O_RDONLY | O_CLOEXEC);
    ssize_t n;

    if (fd < 0 || etch_bundle_create(&writer, to, &err) < 0)
        return fail("cannot open");
    while ((n = read(fd, piece, sizeof(piece))) > 0) {
        if (etch_bundle_write_flow(writer, 1, offset, piece, (size_t)n, &err) < 0)
            return fail(err.what);
        offset += (uint64_t)n;
    }
    close(fd);
    etch_bundle_writer_free(writer); /* zstd(1) does not sync either */
    return 0;
}

/* Compares with the original, so that a fast reader is also a right one. */
static int read_bundle(const char *original, const char *from)
{
    static uint8_t piece[ETCH_CHUNK_SIZE];
    struct etch_bundle_reader *reader;
    struct etch_bundle_item item;
    struct etch_error err;
    int fd = open(original, O_RDONLY | O_CLOEXEC);

    if (fd < 0 || etch_bundle_open(&reader, from, &err) < 0)
        return fail("cannot open");
    while (etch_bundle_next(reader, &item, &err) == ETCH_BUNDLE_RECORD) {
        const ProtobufCBinaryData *data = &item.record->flow->data;

        if (read(fd, piece, data->len) != (ssize_t)data->len || memcmp(piece, data->data, data->len) != 0)
            return fail("what was read is not what was written");
    }
    if (read(fd, piece, 1) != 0)
        return fail("bytes are missing");
    close(fd);
    etch_bundle_reader_free(reader);
    return 0;
}

int main(int argc, char **argv)
{
    struct rusage usage;
    double start = now();
    int status;

    if (argc != 4)
        return 2;
    status = strcmp(argv[2], "write") == 0 ? write_bundle(argv[1], argv[3]) : read_bundle(argv[1], argv[3]);
    getrusage(RUSAGE_SELF, &usage);
    printf("%.3f %ld\n", now() - start, usage.ru_maxrss);
    return status;
}
