/* SPDX-License-Identifier: MIT */
/* Recorders that keep rings for processes that crash (etch record --for-cores). Each listens at a socket in the folder
 * of cores. etch core, the kernel's handler of cores, asks each recorder for the rings of the dying process. The folder
 * belongs to its owner alone, so nobody else can ask. */
#ifndef ETCH_COLLECTOR_STANDBY_H
#define ETCH_COLLECTOR_STANDBY_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define ETCH_STANDBY_TRACE ".pt.etch" /* NAME.pt.etch is the trace of the core NAME.core */

/* ---- The recorder's side ---- */

struct etch_standby {
    char folder[4096];
    char path[108]; /* of the socket; "": none */
    int listener;
};

struct etch_standby_request {
    int connection;
    pid_t pid;         /* as etch sees it */
    char output[4096]; /* the bundle to write */
};

/* Makes the folder if it is missing, and listens. Returns 0, or -1 with `err` set. Close it in any case. */
int etch_standby_open(struct etch_standby *standby, const char *folder, struct etch_error *err);

/* Takes a request. Returns false if there is none. A request that makes no sense is dropped. */
bool etch_standby_take(struct etch_standby *standby, struct etch_standby_request *request);

/* Ends the request. `mine`: the trace was taken and will be written. The handler waits for this answer, so it
 * comes before the writing. */
void etch_standby_answer(const struct etch_standby_request *request, bool mine);

void etch_standby_close(struct etch_standby *standby);

/* ---- The handler's side ---- */

/* Asks all recorders of the folder for the trace of process `pid`, for at most half a second. Returns how many
 * of them write it. `name` is that of the core. */
size_t etch_standby_ask(const char *folder, pid_t pid, const char *name);

#endif
