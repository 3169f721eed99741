/* SPDX-License-Identifier: MIT */
/* Etch's end of the synchronisation rings. */
#ifndef ETCH_COLLECTOR_SYNC_READER_H
#define ETCH_COLLECTOR_SYNC_READER_H

#include "base/error.h"
#include "collector/sync/ring.h"
#include "proto/etch.pb-c.h"

#include <stddef.h>
#include <stdint.h>

struct etch_sync_reader;

/* Makes the memory, of which nothing is left when the last of its users is gone. */
int etch_sync_reader_new(struct etch_sync_reader **reader, struct etch_error *err);
void etch_sync_reader_free(struct etch_sync_reader *reader);

/* Before the program starts: it will run under QEMU. */
void etch_sync_reader_emulated(struct etch_sync_reader *reader);

/* Before the program starts: no synchronisation events are wanted, only C++ exceptions. */
void etch_sync_reader_only_throws(struct etch_sync_reader *reader);

/* What ETCH_SYNC must say. */
void etch_sync_reader_path(const struct etch_sync_reader *reader, char *path, size_t size);

struct etch_sync_sink {
    void *context;
    void (*event)(void *context, uint32_t tid, const struct etch_sync_event *event);
    /* 0 is no thread: such events were not written at all. */
    void (*lost)(void *context, uint32_t tid, uint64_t events);
};

/* Takes what is new in every ring. After the program's end call it with `last`: events that were begun and never
 * finished then count as lost. Returns how many events the fullest ring held. */
uint64_t etch_sync_reader_drain(struct etch_sync_reader *reader, const struct etch_sync_sink *sink, int last);

/* As the bundle has it. */
void etch_sync_event_record(Etch__Sync *sync, uint32_t tid, const struct etch_sync_event *event);

/* Not 0 if the library came up in the program. */
int etch_sync_reader_joined(const struct etch_sync_reader *reader);

/* The memory itself. */
struct etch_sync_memory *etch_sync_reader_memory(struct etch_sync_reader *reader);

#endif
