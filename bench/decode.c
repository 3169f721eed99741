/* SPDX-License-Identifier: MIT */
/* bench_decode FILE ipt|etch [JOBS]: decodes a recording of per-thread streams and prints the number of instructions:
 * by libipt's instruction decoder in the plainest loop, or by etch. Times are the caller's to take. */
#include "binary/code_file.h"
#include "decoder/steps.h"

#include <intel-pt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int count_step(void *context, const struct etch_step *step)
{
    *(uint64_t *)context += step->count;
    return 0;
}

static struct pt_image *image_of(const struct etch_recording *r, uint32_t pid, struct pt_image_section_cache *cache)
{
    struct pt_image *image = pt_image_alloc(NULL);

    for (size_t i = 0; i < r->images.n; i++) {
        const Etch__Image *from = r->images.v[i];
        int isid;

        if (from->pid != pid || !(from->prot & 4) || !from->path[0])
            continue;
        isid = pt_iscache_add_file(cache, from->path, from->file_offset, from->size, from->start);
        if (isid > 0)
            pt_image_add_cached(image, cache, isid, NULL);
    }
    return image;
}

static uint64_t loop(struct pt_insn_decoder *decoder, uint64_t *errors)
{
    uint64_t n = 0;
    int status = pt_insn_sync_forward(decoder);

    while (status >= 0) {
        struct pt_insn insn;
        struct pt_event event;

        while (status & pts_event_pending) {
            status = pt_insn_event(decoder, &event, sizeof(event));
            if (status < 0)
                break;
        }
        if (status >= 0)
            status = pt_insn_next(decoder, &insn, sizeof(insn));
        if (status >= 0) {
            n++;
        } else if (status != -pte_eos) {
            ++*errors;
            status = pt_insn_sync_forward(decoder);
        }
    }
    return n;
}

static uint64_t ipt_stream(const struct etch_stream *stream, uint64_t *errors)
{
    size_t size = (size_t)etch_stream_end(stream);
    struct pt_image_section_cache *cache = pt_iscache_alloc(NULL);
    struct pt_image *image = image_of(stream->recording, stream->about->pid, cache);
    uint8_t *bytes = malloc(size + 1);
    struct pt_insn_decoder *decoder;
    struct pt_config config;
    uint64_t n;

    if (etch_stream_read(stream, 0, bytes, size) != (ssize_t)size)
        exit(1);
    pt_iscache_set_limit(cache, (uint64_t)256 << 20);
    pt_config_init(&config);
    config.begin = bytes;
    config.end = bytes + size;
    config.cpu = (struct pt_cpu){pcv_intel, (uint16_t)stream->about->pt->family, (uint8_t)stream->about->pt->model,
                                 (uint8_t)stream->about->pt->stepping};
    decoder = pt_insn_alloc_decoder(&config);
    pt_insn_set_image(decoder, image);
    n = loop(decoder, errors);
    pt_insn_free_decoder(decoder);
    pt_image_free(image);
    pt_iscache_free(cache);
    free(bytes);
    return n;
}

int main(int argc, char **argv)
{
    struct etch_steps_options options = {.jobs = argc > 3 ? (unsigned)atoi(argv[3]) : 1};
    struct etch_recording *r;
    struct etch_error err;
    uint64_t n = 0, errors = 0;

    if (argc < 3 || etch_recording_open(&r, argv[1], &err) < 0)
        return 1;
    if (strcmp(argv[2], "ipt") == 0)
        for (size_t i = 0; i < r->streams.n; i++)
            n += ipt_stream(&r->streams.v[i], &errors);
    else if (etch_steps(r, &options, count_step, &n, NULL, &err) != 0)
        return 1;
    printf("%" PRIu64 " %" PRIu64 "\n", n, errors);
    etch_recording_free(r);
    return 0;
}
