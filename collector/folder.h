/* SPDX-License-Identifier: MIT */
/* Folders in memory, shared with the recorded program, one for each run: /dev/shm/etch-UID/run-*. Nobody but their user
 * gets in, no link is followed, and each is locked as long as its etch lives, in whatever PID namespace that is. What a
 * killed etch left behind is kept for a while, so that it can be recovered, within bounds on number, bytes and age. */
#ifndef ETCH_COLLECTOR_FOLDER_H
#define ETCH_COLLECTOR_FOLDER_H

#include "base/array.h"
#include "base/error.h"

#include <stdint.h>

#define ETCH_FOLDER_SIZE 64u
#define ETCH_FOLDER_KEPT 8u /* folders of killed etches, at most */
#define ETCH_FOLDER_KEPT_BYTES                                                                                         \
    (256u << 20)                         /* and bytes in them; no more than a quarter of the memory for files either */
#define ETCH_FOLDER_KEPT_S (7u * 86400u) /* and seconds */

struct etch_folder {
    int fd;    /* of the run's folder, locked; -1: none */
    int place; /* of the folder that it is in */
    char path[ETCH_FOLDER_SIZE];
};

#define ETCH_FOLDER_NONE ((struct etch_folder){.fd = -1, .place = -1})

/* Makes one, and removes what is beyond the bounds. Returns 0, or -1 with `err` set. */
int etch_folder_make(struct etch_folder *folder, struct etch_error *err);

/* Removes it with the files in it. One that was not made is fine. */
void etch_folder_remove(struct etch_folder *folder);

/* Leaves it as it is, for another time. */
void etch_folder_leave(struct etch_folder *folder);

/* What a recovery must know: who filled it, of which process, and where the bundle is, which may be relative. */
struct etch_folder_story {
    char source[16];
    uint32_t pid;
    char output[4096];
};

void etch_folder_tell(const struct etch_folder *folder, const struct etch_folder_story *story);

/* Returns 0, or -1 where there is none or it makes no sense. */
int etch_folder_told(const struct etch_folder *folder, struct etch_folder_story *story);

struct etch_left {
    char path[ETCH_FOLDER_SIZE];
    uint64_t bytes;
    int64_t changed; /* seconds */
};

struct etch_lefts {
    ETCH_ARRAY(struct etch_left) list; /* the newest first */
    uint32_t removed;                  /* beyond the bounds, by this call */
};

/* The folders whose etch is dead, after those beyond the bounds are removed. */
void etch_folder_lefts(struct etch_lefts *lefts);

/* Takes one of them over. Returns 0, or -1 with `err` set: no folder of ours, or its etch lives. */
int etch_folder_take(struct etch_folder *folder, const char *path, struct etch_error *err);

#endif
