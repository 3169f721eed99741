/* SPDX-License-Identifier: MIT OR GPL-2.0-or-later */
/* Which files' bytes are at which guest addresses, reported as events: found when code is first translated there, and
 * when the guest maps and unmaps. Not on the hot path; one lock for all threads. */
#ifndef ETCH_VPT_IMAGES_H
#define ETCH_VPT_IMAGES_H

#include "collector/vpt/thread.h"

/* Mappings from before `after` (the time of an exec; 0: the recording began with this program) are gone. */
void etch_vpt_images_begin(uint64_t guest_base, uint64_t after);

/* Code of [start, start + size) was translated; `bytes` are its bytes. */
void etch_vpt_images_translated(struct etch_vpt_self *self, uint64_t start, const uint8_t *bytes, uint64_t size);

/* The guest mapped a file's code, or made it go away, at `tsc`. */
void etch_vpt_images_mapped(struct etch_vpt_self *self, uint64_t start, uint64_t size, uint64_t tsc);
void etch_vpt_images_unmapped(struct etch_vpt_self *self, uint64_t start, uint64_t size, uint64_t tsc);

/* Another program replaces this program at `tsc`: all mappings are gone. etch_vpt_images_kept() undoes that if exec
 * failed.
 */
void etch_vpt_images_replaced(struct etch_vpt_self *self, uint64_t tsc);
void etch_vpt_images_kept(struct etch_vpt_self *self, uint64_t tsc);

/* After fork: the child has all that the parent had. */
void etch_vpt_images_forked(struct etch_vpt_self *self);
void etch_vpt_images_fork_lock(void);
void etch_vpt_images_fork_unlock(void);

/* Guest address of `path`'s byte 0; 0 where it is not mapped. */
uint64_t etch_vpt_images_base_of(const char *path);

#endif
