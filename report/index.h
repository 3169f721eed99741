/* SPDX-License-Identifier: MIT */
/* A profile in a file beside the recordings, so that a large trace is decoded once. The file names the recordings by
 * path, size and time of change, and has a checksum. It may come from a stranger: the reader trusts no number in it. */
#ifndef ETCH_REPORT_INDEX_H
#define ETCH_REPORT_INDEX_H

#include "base/text.h"
#include "report/profile.h"

/* What the profile was made of. */
struct etch_profile_origin {
    char **files;
    size_t n;
    struct etch_profile_options options;
};

/* Appends the index. `text->failed` says if memory was short. */
void etch_profile_pack(const struct etch_profile *profile, const struct etch_profile_origin *origin,
                       struct etch_text *text);

/* The profile of an index; NULL: the bytes are no index of these recordings as they are now, or memory is short. */
struct etch_profile *etch_profile_unpack(const void *bytes, size_t size, const struct etch_profile_origin *origin);

/* The same without a look at the recordings: for tests. */
struct etch_profile *etch_profile_unpack_any(const void *bytes, size_t size);

#endif
