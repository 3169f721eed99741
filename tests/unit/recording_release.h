/* SPDX-License-Identifier: MIT */
/* Frees what a loader filled, for tests that link the loaders without the decoder. */
#ifndef ETCH_TESTS_RECORDING_RELEASE_H
#define ETCH_TESTS_RECORDING_RELEASE_H

#include "decoder/recording.h"

#include <string.h>

#define RELEASE_EACH(list)                                                                                             \
    do {                                                                                                               \
        for (size_t i_ = 0; i_ < (list)->n; i_++)                                                                      \
            protobuf_c_message_free_unpacked(&(list)->v[i_]->base, NULL);                                              \
        etch_array_free(list);                                                                                         \
    } while (0)

static inline void recording_release(struct etch_recording *r)
{
    if (r->close)
        r->close(r);
    if (r->host)
        etch__host__free_unpacked(r->host, NULL);
    if (r->program)
        etch__program__free_unpacked(r->program, NULL);
    RELEASE_EACH(&r->images);
    RELEASE_EACH(&r->threads);
    RELEASE_EACH(&r->clocks);
    RELEASE_EACH(&r->losses);
    for (size_t i = 0; i < r->streams.n; i++) {
        etch__stream__free_unpacked((Etch__Stream *)(uintptr_t)r->streams.v[i].about, NULL);
        etch_array_free(&r->streams.v[i].pieces);
    }
    etch_array_free(&r->streams);
    etch_array_free(&r->switches);
    free(r->path);
    memset(r, 0, sizeof(*r));
}

#endif
