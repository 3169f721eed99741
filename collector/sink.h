/* SPDX-License-Identifier: MIT */
/* The receiver of everything that a recording finds: records and bytes for the bundle, and notes for the user. A sink
 * reports no errors to the source. session/recorder.h has the sink that writes a bundle. */
#ifndef ETCH_COLLECTOR_SINK_H
#define ETCH_COLLECTOR_SINK_H

#include "collector/record.h"
#include "proto/bundle.h"

struct etch_sink {
    void *context;
    void (*write)(void *context, Etch__Record__BodyCase kind, void *message);
    /* `hurry`: the source delivers more bytes than can be written with care. */
    void (*bytes)(void *context, uint32_t stream, uint64_t offset, const void *data, size_t size, bool hurry);
    void (*lost)(void *context, const Etch__Loss *loss);
    void (*note)(void *context, const char *text);
    struct etch_record_summary *summary;
};

/* Reports the loss of `events` of thread `tid`; 0: of no thread in particular. No events: reports nothing. */
void etch_sink_lose(const struct etch_sink *sink, Etch__LossCause cause, uint32_t tid, uint64_t events,
                    const char *detail);

#endif
