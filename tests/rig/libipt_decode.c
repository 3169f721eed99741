/* SPDX-License-Identifier: MIT */
/* libipt_decode FILE PID: libipt's instruction decoder over each CPU's trace in a recording of one thread on one CPU,
 * with the code of process PID; the address of each instruction, one a line. Nothing of etch but the reading of the
 * file. Errors go to standard error and make the exit status 1. */
#include "decoder/recording.h"

#include <fcntl.h>
#include <intel-pt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct code {
    const struct etch_recording *recording;
    uint32_t pid;
};

static int read_code(uint8_t *buffer, size_t size, const struct pt_asid *asid, uint64_t ip, void *context)
{
    const struct code *code = context;

    (void)asid;
    for (size_t i = 0; i < code->recording->images.n; i++) {
        const Etch__Image *image = code->recording->images.v[i];
        uint64_t left = image->start + image->size - ip;
        ssize_t n = -1;
        int fd;

        if (image->pid != code->pid || ip < image->start || ip >= image->start + image->size)
            continue;
        fd = open(image->path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
            continue;
        n = pread(fd, buffer, size < left ? size : left, (off_t)(image->file_offset + (ip - image->start)));
        close(fd);
        if (n > 0)
            return (int)n;
    }
    return -pte_nomap;
}

/* Events until none is pending */
static int drain(struct pt_insn_decoder *decoder, int status)
{
    struct pt_event event;

    while (status >= 0 && status & pts_event_pending)
        status = pt_insn_event(decoder, &event, sizeof(event));
    return status;
}

static unsigned decode(struct pt_insn_decoder *decoder)
{
    unsigned errors = 0;
    int status = pt_insn_sync_forward(decoder);

    while (status >= 0 || status != -pte_eos) {
        struct pt_insn insn = {.iclass = ptic_error};
        uint64_t offset = 0;

        if (status >= 0)
            status = drain(decoder, status);
        if (status >= 0 && status & pts_eos)
            break;
        if (status >= 0)
            status = pt_insn_next(decoder, &insn, sizeof(insn));
        if (insn.iclass != ptic_error)
            printf("%" PRIx64 "\n", insn.ip);
        if (status >= 0 || status == -pte_eos)
            continue;
        pt_insn_get_offset(decoder, &offset);
        fprintf(stderr, "%s at byte 0x%" PRIx64 ", address 0x%" PRIx64 "\n", pt_errstr(pt_errcode(status)), offset,
                insn.ip);
        errors++;
        status = pt_insn_sync_forward(decoder);
    }
    return errors;
}

static unsigned decode_stream(const struct etch_stream *stream, struct code *code)
{
    size_t size = (size_t)etch_stream_end(stream), at = 0;
    uint8_t *bytes = malloc(size + 1);
    struct pt_insn_decoder *decoder;
    struct pt_config config;
    unsigned errors;

    while (bytes && at < size) {
        ssize_t n = etch_stream_read(stream, at, bytes + at, size - at);

        if (n <= 0)
            break;
        at += (size_t)n;
    }
    pt_config_init(&config);
    config.begin = bytes;
    config.end = bytes + at;
    decoder = at ? pt_insn_alloc_decoder(&config) : NULL;
    if (!decoder) {
        free(bytes);
        return at != 0;
    }
    pt_image_set_callback(pt_insn_get_image(decoder), read_code, code);
    errors = decode(decoder);
    pt_insn_free_decoder(decoder);
    free(bytes);
    return errors;
}

int main(int argc, char **argv)
{
    struct etch_recording *recording;
    struct etch_error err;
    struct code code;
    unsigned errors = 0;

    if (argc != 3 || etch_recording_open(&recording, argv[1], &err) < 0) {
        fprintf(stderr, "libipt_decode: %s\n", argc != 3 ? "FILE PID" : err.what);
        return 2;
    }
    code = (struct code){recording, (uint32_t)strtoul(argv[2], NULL, 10)};
    for (size_t i = 0; i < recording->streams.n; i++)
        errors += decode_stream(&recording->streams.v[i], &code);
    etch_recording_free(recording);
    return errors != 0;
}
