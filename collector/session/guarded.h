/* SPDX-License-Identifier: MIT */
/* Files mapped into etch that the recorded program can cut short at any moment. Where it does, reading gives zeros from
 * there on and etch goes on: a mapping knows that it was cut. Not for several threads at a time. */
#ifndef ETCH_COLLECTOR_SESSION_GUARDED_H
#define ETCH_COLLECTOR_SESSION_GUARDED_H

#include <stdbool.h>
#include <stddef.h>

struct etch_guarded;

/* Maps `size` bytes of the file, to read and to write; `shared`: what etch writes is for others to see. NULL with errno
 * set where that fails or the file is shorter. */
struct etch_guarded *etch_guarded_map(int fd, size_t size, bool shared);

void *etch_guarded_at(const struct etch_guarded *mapping);

/* Whether a part of it was found missing so far. */
bool etch_guarded_cut(const struct etch_guarded *mapping);

/* NULL is fine. */
void etch_guarded_unmap(struct etch_guarded *mapping);

/* In a child that becomes another program: SIGBUS as it was before. */
void etch_guarded_forget(void);

#endif
