/* SPDX-License-Identifier: MIT */
/* The code that ran: which bytes stood at an address of a process at a time. The bytes come from the files that the
 * recording's images name, checked by build-id if a build-id is known, or from the recording itself. Made once, then
 * only read, from any thread. */
#ifndef ETCH_DECODER_CODE_H
#define ETCH_DECODER_CODE_H

#include "decoder/recording.h"
#include "decoder/steps.h"

struct etch_code;
struct etch_code_space; /* one process's addresses, over all its life */

/* One mapping, and its bytes if they are at hand. */
struct etch_code_section {
    const Etch__Image *image;
    uint64_t start, end;
    const uint8_t *bytes; /* of [start, start + size) */
    uint64_t size;
    const char *missing; /* why there are no bytes; NULL where there are */
    const uint8_t *file; /* all of the file that `bytes` are from; NULL: from none */
    size_t file_size;
};

/* Looks for the files: below `sysroot` (may be NULL), at their own path, beside the recording by base name. A file that
 * is not there or is another build is no error, but a section without bytes. Returns 0, or -1 with `err` set. */
int etch_code_open(struct etch_code **code, const struct etch_recording *recording, const char *sysroot,
                   struct etch_error *err);

void etch_code_free(struct etch_code *code);

/* The process's space. Never NULL: a process without images has an empty space. */
const struct etch_code_space *etch_code_space_of(const struct etch_code *code, uint32_t pid);

/* Its mappings of code. */
const struct etch_code_section *etch_code_space_sections(const struct etch_code_space *space, size_t *n);

/* How many times the meaning of some address of the space changed: 0 where every address had one mapping only. */
size_t etch_code_space_changes(const struct etch_code_space *space);

/* Which of the ages between the changes `tsc` lies in: 0 before the first, etch_code_space_changes() after the last. */
size_t etch_code_space_age(const struct etch_code_space *space, uint64_t tsc);

/* The section at `ip` within the ages [lo, hi]. NULL with the reason (static text) in `why` where there is none with
 * bytes, or where two of different content were there and the time does not tell which. */
const struct etch_code_section *etch_code_find(const struct etch_code_space *space, uint64_t ip, size_t lo, size_t hi,
                                               const char **why);

#endif
