/* SPDX-License-Identifier: MIT */
/* Any bytes as a perf.data: loaded, its streams read, and written again as a perf.data. */
#include "decoder/perf_data_write.h"
#include "decoder/recording/perf_recording.h"
#include "tests/unit/recording_release.h"

struct input {
    const uint8_t *bytes;
    size_t size;
};

static ssize_t read_input(void *context, void *buffer, size_t size, uint64_t offset)
{
    const struct input *in = context;

    if (offset >= in->size)
        return 0;
    if (size > in->size - offset)
        size = (size_t)(in->size - offset);
    memcpy(buffer, in->bytes + offset, size);
    return (ssize_t)size;
}

static int forget(void *context, const void *bytes, size_t size)
{
    *(uint64_t *)context += size + (size && *(const uint8_t *)bytes);
    return 0;
}

static void check_streams(const struct etch_recording *r)
{
    uint8_t buffer[64];

    for (size_t i = 0; i < r->streams.n; i++) {
        uint64_t end = 0;

        for (size_t k = 0; k < r->streams.v[i].pieces.n; k++) {
            const struct etch_piece *p = &r->streams.v[i].pieces.v[k];

            if (p->offset < end || p->offset + p->size < p->offset)
                abort(); /* pieces are in order and do not overlap */
            if (p->size == 0 && k > 0 && k + 1 == r->streams.v[i].pieces.n && p->offset == end + 1)
                continue; /* the stream ends with a cut */
            end = p->offset + p->size;
            if (p->size == 0 || r->read(&r->streams.v[i], p, p->size - 1, buffer, sizeof(buffer)) != 1)
                abort();
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct input in = {bytes, size};
    struct etch_perf_source source = {.read = read_input, .context = &in, .size = size};
    struct etch_recording r = {0};
    struct etch_error err;
    uint64_t sum = 0;

    if (etch_recording_load_perf_source(&r, &source, "fuzz", &err) == 0) {
        struct etch_perf_write_options options = {0};
        struct etch_perf_sink sink = {.write = forget, .context = &sum};

        check_streams(&r);
        etch_perf_data_write(&r, &options, &sink, &err);
    }
    recording_release(&r);
    return 0;
}
