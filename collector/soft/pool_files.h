/* SPDX-License-Identifier: MIT */
/* Private to the collector: files of rings, as programs left them, and folders of them. */
#ifndef ETCH_COLLECTOR_SOFT_POOL_FILES_H
#define ETCH_COLLECTOR_SOFT_POOL_FILES_H

#include "collector/session/process.h"
#include "collector/soft.h"
#include "proto/soft_layout.h"

/* A file that stands for the module of the same build-id. The file of the module may be elsewhere, or be replaced. */
struct etch_soft_stand_in {
    const char *path; /* NULL: none */
    const uint8_t *build_id;
    uint32_t size;
};

/* The reader of the rings of several files. */
struct etch_soft_pools {
    const struct etch_sink *sink;
    struct etch_soft_summary *summary;
    uint32_t known, stream;
    uint32_t only; /* the process whose rings are taken; 0: all */
    struct etch_soft_stand_in program;
};

/* Takes the name of a file of the folder, and the open file. -1: the file cannot be opened. */
typedef void etch_soft_on_file(void *context, const char *name, int fd);

/* Hands out the files of rings in a folder, by name, except those of other users: a file is accepted if its owner is
 * the caller. A file of the folder's owner is accepted too if nobody else can write to the folder. Returns 0, or -1
 * with `err` set if the folder cannot be read. */
int etch_soft_each_file(const char *folder, etch_soft_on_file *take, void *context, struct etch_error *err);

/* Reads the head of an open file. Returns NULL, or the reason why it is not used. */
const char *etch_soft_pool_read(int fd, struct etch_soft_pool *pool, bool *other_version);

/* Reads the head of a ring. False: the file is too short. */
bool etch_soft_pool_ring(int fd, const struct etch_soft_pool *pool, uint32_t slot, struct etch_soft_ring *ring);

/* True if a thread had the ring. */
bool etch_soft_ring_is_taken(const struct etch_soft_ring *ring);

/* The next line of the pool's mappings; `*at` begins at 0. False at the end. */
bool etch_soft_next_mapping(const struct etch_soft_pool *pool, size_t *at, char line[600], struct etch_mapping *m);

/* The build-id that the file of a mapping had when it was loaded; NULL: not noted. */
const struct etch_soft_module *etch_soft_module_of(const struct etch_soft_pool *pool, const struct etch_mapping *m);

/* The path of the file of a mapping: that of `program`, if it is the same file. */
char *etch_soft_path_of(const struct etch_soft_stand_in *program, const struct etch_soft_module *module,
                        const struct etch_mapping *m);

/* Writes the images of a process. */
void etch_soft_write_images(struct etch_soft_pools *pools, const struct etch_soft_pool *pool, uint32_t pid);

#define ETCH_SOFT_DARK_TEXT 560

/* Writes the next functions that went dark, by name, as many as the text holds; `*at` begins at 0. Returns how many,
 * and 0 behind the last. */
uint32_t etch_soft_dark_text(const struct etch_soft_stand_in *program, const struct etch_soft_pool *pool, uint32_t *at,
                             char text[ETCH_SOFT_DARK_TEXT]);

/* Hands the rings of one open file to the sink. */
void etch_soft_pool_take(struct etch_soft_pools *pools, int fd);

#endif
