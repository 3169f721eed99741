/* SPDX-License-Identifier: MIT */
/* Folders in memory, shared with the recorded program, one for each run: /dev/shm/etch-UID/run-*. Only their user can
 * enter them, and no link is followed. A folder is locked as long as its etch lives, also across PID namespaces. The
 * folder of a killed etch is kept for a while for recovery, within bounds on number, bytes and age. */
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
    int fd;    /* descriptor of the run's folder, locked; -1: none */
    int place; /* descriptor of the parent folder */
    char path[ETCH_FOLDER_SIZE];
};

#define ETCH_FOLDER_NONE ((struct etch_folder){.fd = -1, .place = -1})

/* Makes a new folder, and removes the left folders beyond the bounds. Returns 0, or -1 with `err` set. */
int etch_folder_make(struct etch_folder *folder, struct etch_error *err);

/* Removes the folder with the files in it. ETCH_FOLDER_NONE is allowed. */
void etch_folder_remove(struct etch_folder *folder);

/* Closes the folder and keeps its files, for a later recovery. */
void etch_folder_leave(struct etch_folder *folder);

/* Facts for a recovery: the source that filled the folder, the recorded process, and the path of the bundle. The path
 * may be relative. */
struct etch_folder_story {
    char source[16];
    uint32_t pid;
    char output[4096];
};

void etch_folder_tell(const struct etch_folder *folder, const struct etch_folder_story *story);

/* Returns 0, or -1 if the folder has no story or the story cannot be parsed. */
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

/* Removes the folders beyond the bounds and lists the others whose etch is dead. */
void etch_folder_lefts(struct etch_lefts *lefts);

/* Takes a left folder over. Returns 0, or -1 with `err` set if the path is not such a folder or its etch lives. */
int etch_folder_take(struct etch_folder *folder, const char *path, struct etch_error *err);

#endif
