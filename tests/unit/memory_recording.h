/* SPDX-License-Identifier: MIT */
/* A recording made in memory, for tests of the decoder: streams and images without a file. */
#ifndef ETCH_TESTS_MEMORY_RECORDING_H
#define ETCH_TESTS_MEMORY_RECORDING_H

#include "decoder/recording.h"
#include "decoder/steps.h"

/* Empty; free it with etch_recording_free(). `path` decides where binaries are looked for by base name. */
struct etch_recording *memory_recording(const char *path);

/* Adds a stream of a thread (cpu = UINT32_MAX) or of a CPU (tid ignored), whose bytes are copied. Returns its message,
 * to be changed at will. */
Etch__Stream *memory_stream(struct etch_recording *r, uint32_t cpu, uint32_t pid, uint32_t tid, const void *bytes,
                            size_t size);

/* Leaves a hole of `size` bytes behind what the last stream holds, and adds more behind it. */
void memory_hole(struct etch_recording *r, uint64_t hole, const void *bytes, size_t size);

/* Adds a mapping of a file, or of `code` where path is NULL. Returns its message. */
Etch__Image *memory_image(struct etch_recording *r, uint32_t pid, uint64_t start, uint64_t size, const char *path,
                          const void *code);

/* Ends the building: the order that recording.h promises. */
void memory_done(struct etch_recording *r);

/* What a decode gave: instruction addresses with their threads, and the losses. */
struct seen {
    ETCH_ARRAY(uint64_t) ips;
    ETCH_ARRAY(struct etch_step) events; /* all that are not blocks */
    ETCH_ARRAY(struct etch_step) blocks;
    uint32_t tid; /* keep only this thread's; 0: all */
};

int see_step(void *context, const struct etch_step *step);
void seen_free(struct seen *seen);

/* The file's bytes; NULL where it cannot be read. */
uint8_t *slurp(const char *path, size_t *size);

/* Where the real captures are; NULL where they are not here. */
const char *real_captures(void);

#endif
