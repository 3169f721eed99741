/* SPDX-License-Identifier: MIT */
/* Mappings of files that the recorded program can truncate at any moment. After a truncation, reads beyond the new end
 * give zeros, etch goes on, and the mapping is marked as cut. Not thread-safe. */
#ifndef ETCH_COLLECTOR_SESSION_GUARDED_H
#define ETCH_COLLECTOR_SESSION_GUARDED_H

#include <stdbool.h>
#include <stddef.h>

struct etch_guarded;

/* Maps `size` bytes of the file, to read and to write; `shared`: other processes see the writes of etch. NULL with
 * errno set if mapping fails or the file is shorter. */
struct etch_guarded *etch_guarded_map(int fd, size_t size, bool shared);

void *etch_guarded_at(const struct etch_guarded *mapping);

/* Returns true if an access found a part of the file missing so far. */
bool etch_guarded_cut(const struct etch_guarded *mapping);

/* NULL is fine. */
void etch_guarded_unmap(struct etch_guarded *mapping);

/* For a child that becomes another program: restores the former action of SIGBUS. */
void etch_guarded_forget(void);

#endif
