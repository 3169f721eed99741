/* SPDX-License-Identifier: MIT */
/* The plainest decoder there is, to hold others against: libipt's instruction decoder over each stream of a bundle, one
 * after another. Prints the address of each instruction of thread TID (of all without it), one a line; errors and their
 * number go to standard error, and make the exit status 1. */
#include "proto/bundle.h"

#include <fcntl.h>
#include <intel-pt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX 4096

struct image {
    uint32_t pid;
    uint64_t start, size, mapped_tsc;
    uint8_t *bytes;
};

struct stream {
    uint32_t id, tid, pid;
    uint8_t *bytes;
    size_t size;
    struct pt_insn_decoder *decoder;
};

static struct image images[MAX];
static struct stream streams[MAX];
static size_t n_images, n_streams;

static void add_image(const Etch__Image *from)
{
    struct image *i = &images[n_images];
    int fd;

    if (n_images == MAX)
        return;
    *i = (struct image){from->pid, from->start, from->size, from->mapped_tsc, calloc(1, from->size)};
    if (from->code.len) {
        memcpy(i->bytes, from->code.data, from->code.len);
        n_images++;
        return;
    }
    fd = open(from->path, O_RDONLY);
    if (fd >= 0 && pread(fd, i->bytes, from->size, (off_t)from->file_offset) > 0)
        n_images++;
    if (fd >= 0)
        close(fd);
}

static struct stream *stream_of(uint32_t id)
{
    for (size_t i = 0; i < n_streams; i++)
        if (streams[i].id == id)
            return &streams[i];
    return NULL;
}

static void add_flow(const Etch__Flow *flow)
{
    struct stream *s = stream_of(flow->stream);
    uint8_t *grown;

    if (!s)
        return;
    grown = realloc(s->bytes, s->size + flow->data.len);
    if (!grown)
        abort();
    s->bytes = grown;
    memcpy(s->bytes + s->size, flow->data.data, flow->data.len);
    s->size += flow->data.len;
}

/* The newest image that was there at the decoder's time. */
static const struct image *find_image(const struct stream *s, uint64_t ip)
{
    const struct image *found = NULL;
    uint64_t tsc = UINT64_MAX;

    pt_insn_time(s->decoder, &tsc, NULL, NULL);
    for (size_t i = 0; i < n_images; i++) {
        const struct image *image = &images[i];

        if (image->pid == s->pid && ip >= image->start && ip < image->start + image->size && image->mapped_tsc <= tsc &&
            (!found || image->mapped_tsc >= found->mapped_tsc))
            found = image;
    }
    return found;
}

static int read_code(uint8_t *buffer, size_t size, const struct pt_asid *asid, uint64_t ip, void *context)
{
    const struct image *image = find_image(context, ip);
    uint64_t left;

    (void)asid;
    if (!image)
        return -pte_nomap;
    left = image->start + image->size - ip;
    memcpy(buffer, image->bytes + (ip - image->start), size < left ? size : left);
    return (int)(size < left ? size : left);
}

static unsigned complain(struct pt_insn_decoder *d, const struct stream *s, int status, uint64_t ip)
{
    uint64_t offset = 0;

    pt_insn_get_offset(d, &offset);
    fprintf(stderr, "thread %u: %s at byte 0x%" PRIx64 " of %zu, address 0x%" PRIx64 "\n", s->tid,
            pt_errstr(pt_errcode(status)), offset, s->size, ip);
    return 1;
}

/* Events until none is pending. */
static int drain_events(struct pt_insn_decoder *d, int status)
{
    while (status >= 0 && status & pts_event_pending) {
        struct pt_event event;

        status = pt_insn_event(d, &event, sizeof(event));
    }
    return status;
}

static unsigned decode(struct stream *s)
{
    struct pt_config config;
    struct pt_insn_decoder *d;
    struct pt_insn insn = {0};
    unsigned errors = 0;
    int status;

    pt_config_init(&config);
    config.begin = s->bytes;
    config.end = s->bytes + s->size;
    d = pt_insn_alloc_decoder(&config);
    s->decoder = d;
    pt_image_set_callback(pt_insn_get_image(d), read_code, s);
    status = pt_insn_sync_forward(d);
    while (status >= 0) {
        status = drain_events(d, status);
        if (status >= 0 && status & pts_eos)
            break;
        if (status >= 0) {
            insn.iclass = ptic_error;
            status = pt_insn_next(d, &insn, sizeof(insn));
            if (insn.iclass != ptic_error)
                printf("%" PRIx64 "\n", insn.ip);
        }
        if (status == -pte_eos)
            break;
        if (status < 0) {
            errors += complain(d, s, status, insn.ip);
            status = pt_insn_sync_forward(d);
        }
    }
    pt_insn_free_decoder(d);
    return errors;
}

static void add_record(const Etch__Record *record)
{
    if (record->body_case == ETCH__RECORD__BODY_IMAGE)
        add_image(record->image);
    else if (record->body_case == ETCH__RECORD__BODY_FLOW)
        add_flow(record->flow);
    else if (record->body_case == ETCH__RECORD__BODY_STREAM && n_streams < MAX)
        streams[n_streams++] =
            (struct stream){record->stream->id, record->stream->tid, record->stream->pid, NULL, 0, NULL};
}

int main(int argc, char **argv)
{
    uint32_t tid = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 0;
    struct etch_bundle_reader *reader;
    struct etch_bundle_item item;
    struct etch_error err;
    unsigned errors = 0;

    if (argc < 2 || etch_bundle_open(&reader, argv[1], &err) < 0) {
        fprintf(stderr, "plain_decode: %s\n", argc < 2 ? "which bundle?" : err.what);
        return 2;
    }
    for (;;) {
        enum etch_bundle_event event = etch_bundle_next(reader, &item, &err);

        if (event == ETCH_BUNDLE_RECORD && item.record)
            add_record(item.record);
        else if (event != ETCH_BUNDLE_RECORD && event != ETCH_BUNDLE_DAMAGED)
            break;
    }
    for (size_t i = 0; i < n_streams; i++)
        if (!tid || streams[i].tid == tid)
            errors += decode(&streams[i]);
    etch_bundle_reader_free(reader);
    return errors != 0;
}
