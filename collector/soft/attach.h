/* SPDX-License-Identifier: MIT */
/* Private to the collector: switches the recorder of a running process on, and off again.
 *
 * A process without rings runs its plain copies. etch stops all threads for a moment and changes three things in the
 * memory of the process: the flags that lead entries to recorded code, the first two bytes of plain copies, which then
 * jump to recorded code (ETCH_SOFT_DETOUR), and a request for rings. No thread is made to run code of etch. The next
 * thread that calls a function makes the rings itself. A function that is under way stays in its plain copy until it
 * returns. If etch is killed, the process goes on, and records until the next etch switches it off. */
#ifndef ETCH_COLLECTOR_SOFT_ATTACH_H
#define ETCH_COLLECTOR_SOFT_ATTACH_H

#include "collector/soft/doors.h"
#include "collector/target.h"

struct etch_soft_attach {
    struct etch_soft_doors doors;
    pid_t pid;
    int memory;           /* /proc/PID/mem; -1: none */
    int rings;            /* the file of rings that the process had before; -1: none */
    uint64_t pool, bytes; /* its address and size in the process; 0: none */
    bool switched;        /* etch switched the recorder on */
};

#define ETCH_SOFT_ATTACH_NONE ((struct etch_soft_attach){.memory = -1, .rings = -1})

struct etch_soft_wish {
    const char *folder;       /* for the rings */
    const char *kb, *threads; /* variables, as in the environment; "": the default */
};

/* All threads are traced by the caller. Returns 0, or -1 with `err` set, the process unchanged, and the reason. */
int etch_soft_attach(struct etch_soft_attach *attach, struct etch_target *target, const struct etch_soft_wish *wish,
                     struct etch_error *err);

/* Switches the recorder off if it was switched on. If the process had rings before, they are copied into `folder`. */
void etch_soft_attach_leave(struct etch_soft_attach *attach, struct etch_target *target, const char *folder);

/* Copies the rings that the process had before into `folder`, unless they are there. */
void etch_soft_attach_copy(struct etch_soft_attach *attach, const char *folder);

void etch_soft_attach_release(struct etch_soft_attach *attach);

#endif
