/* SPDX-License-Identifier: MIT */
#include "decoder/recording/recording_fill.h"

#include <string.h>

#define ADD(list, type, init)                                                                                          \
    do {                                                                                                               \
        type *message = malloc(sizeof(*message));                                                                      \
        if (!message)                                                                                                  \
            return NULL;                                                                                               \
        init(message);                                                                                                 \
        if (etch_array_push(list, message))                                                                            \
            return message;                                                                                            \
        free(message);                                                                                                 \
        return NULL;                                                                                                   \
    } while (0)

Etch__Image *etch_recording_add_image(struct etch_recording *recording)
{
    ADD(&recording->images, Etch__Image, etch__image__init);
}

Etch__Thread *etch_recording_add_thread(struct etch_recording *recording)
{
    ADD(&recording->threads, Etch__Thread, etch__thread__init);
}

Etch__Loss *etch_recording_add_loss(struct etch_recording *recording)
{
    ADD(&recording->losses, Etch__Loss, etch__loss__init);
}

Etch__Clock *etch_recording_add_clock(struct etch_recording *recording)
{
    ADD(&recording->clocks, Etch__Clock, etch__clock__init);
}

struct etch_stream *etch_recording_add_stream(struct etch_recording *recording, Etch__Stream **about)
{
    Etch__Stream *message = malloc(sizeof(*message));
    struct etch_stream stream = {.about = message, .recording = recording};

    if (!message)
        return NULL;
    etch__stream__init(message);
    message->id = (uint32_t)recording->streams.n;
    message->source = recording->source;
    if (!etch_array_push(&recording->streams, stream)) {
        free(message);
        return NULL;
    }
    *about = message;
    return &recording->streams.v[recording->streams.n - 1];
}

bool etch_message_set_string(char **field, const char *value)
{
    char *copy = strdup(value ? value : "");

    if (!copy)
        return false;
    if (*field != protobuf_c_empty_string)
        free(*field);
    *field = copy;
    return true;
}

bool etch_message_set_bytes(ProtobufCBinaryData *field, const void *bytes, size_t size)
{
    uint8_t *copy = size ? malloc(size) : NULL;

    if (size && !copy)
        return false;
    if (size)
        memcpy(copy, bytes, size);
    free(field->data);
    field->data = copy;
    field->len = size;
    return true;
}

static int compare(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

static int compare_images(const void *a, const void *b)
{
    const Etch__Image *x = *(Etch__Image *const *)a, *y = *(Etch__Image *const *)b;
    int c = compare(x->pid, y->pid);

    c = c ? c : compare(x->start, y->start);
    c = c ? c : compare(x->mapped_tsc, y->mapped_tsc);
    return c ? c : compare(x->size, y->size);
}

/* At one instant the thread that leaves comes before the one that comes. */
static int compare_switches(const void *a, const void *b)
{
    const Etch__Switch *x = a, *y = b;
    int c = compare(x->cpu, y->cpu);

    c = c ? c : compare(x->perf_ns, y->perf_ns);
    c = c ? c : compare(x->tsc, y->tsc);
    return c ? c : compare(x->in != 0, y->in != 0);
}

void etch_recording_fill_end(struct etch_recording *recording)
{
    if (recording->images.n)
        qsort(recording->images.v, recording->images.n, sizeof(*recording->images.v), compare_images);
    if (recording->switches.n)
        qsort(recording->switches.v, recording->switches.n, sizeof(*recording->switches.v), compare_switches);
    for (size_t i = 0; i < recording->streams.n; i++) /* the array moved while it grew */
        recording->streams.v[i].recording = recording;
}
