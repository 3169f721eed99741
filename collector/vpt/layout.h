/* SPDX-License-Identifier: MIT OR GPL-2.0-or-later */
/* The memory that the plugin, inside each traced process, shares with etch. Etch runs outside these processes. The
 * memory consists of files in one folder in /dev/shm. The files outlive a killed process.
 *
 *   control    Made by etch. Holds the settings of the recording. All processes share this file.
 *   N.thread   Made by the plugin for each guest thread. Holds a page of header, the ring of PT bytes and the ring of
 *              events.
 *
 * A ring's head and tail count bytes from the ring's start. The position of a byte is its count modulo the size. The
 * size is a power of two. Only the plugin moves heads, and only etch moves tails. */
#ifndef ETCH_VPT_LAYOUT_H
#define ETCH_VPT_LAYOUT_H

#include <stdatomic.h>
#include <stdint.h>

#define VPT_MAGIC 0x33747076u /* "vpt3": both sides come from one build, so a change of layout changes this */
#define VPT_PAGE 4096u
#define VPT_MAX_WATCHES 256u
#define VPT_MAX_ARMED 4096u /* those of sites included */
#define VPT_CALLS_KEPT 256u
#define VPT_MAX_PATH 4096u
#define VPT_CONTROL "control"

enum { VPT_SNAPSHOT = 1u, VPT_TRUTH = 2u };
enum { VPT_WATCH_READS = 1u, VPT_WATCH_WRITES = 2u, VPT_WATCH_IN_PROGRAM = 4u };
/* A site is an instruction: what it accesses is reported each time, and from the first time on whoever else accesses
 * it; with VPT_WATCH_HERE only the instruction's own accesses are. */
enum { VPT_WATCH_SITE = 8u, VPT_WATCH_HERE = 16u };

struct etch_vpt_watch {
    uint64_t address; /* VPT_WATCH_IN_PROGRAM: as the file has it, to be moved to where the program was loaded */
    uint32_t size;
    uint32_t flags;
};

struct etch_vpt_control {
    uint32_t magic;
    uint32_t flags;
    int32_t collector; /* etch's pid; whether it lives, the lock on the folder says */
    uint32_t n_watches;
    uint64_t flow_size, event_size;
    uint64_t psb_period;
    uint64_t max_rings;     /* bytes of all rings there are; 0: no bound */
    uint64_t program_vaddr; /* of the program's file offset 0, for VPT_WATCH_IN_PROGRAM */
    uint64_t program_size;  /* from there to the end of its last segment */
    struct etch_vpt_watch watches[VPT_MAX_WATCHES];
    char program[VPT_MAX_PATH];
    char truth[VPT_MAX_PATH]; /* folder */

    _Atomic uint32_t threads; /* numbers of .thread files handed out */
    _Atomic uint32_t wake;    /* futex: the plugin counts it up when a ring wants to be emptied */
    _Atomic uint32_t closed;  /* etch takes nothing more: record no further */
    _Atomic uint32_t refused; /* threads that could not be recorded, for lack of memory */
    _Atomic uint32_t limited; /* the same because of max_rings */
    _Atomic uint64_t rings;   /* bytes of all rings there are */
    _Atomic uint32_t starved; /* threads that were recorded no further, because etch took nothing out */
    _Atomic uint32_t log_size;
    char log[4096]; /* what QEMU itself had to say, kept off the target's standard error */
};

/* The state of a thread at one instant. All members must be from the same instant even if the thread is killed between
 * two instructions. So there are two states, and one store makes the other state current. While no packet is finished
 * only the last two words change, and one store of 16 bytes changes both. */
struct etch_vpt_state {
    _Atomic uint64_t head; /* whole packets end here */
    uint64_t unused;
    _Alignas(16) uint64_t tnt; /* branches not yet in a packet: a 1, then a bit for each, oldest first */
    uint64_t at;               /* first instruction of the block that runs; 0: in the kernel */
};

struct etch_vpt_thread {
    _Atomic uint32_t magic; /* set last: the rest of the header is there */
    uint32_t pid, tid, parent_pid;
    uint32_t parent_tid; /* of the thread that forked; other threads' parents come as events */
    uint32_t unused;
    uint64_t start_tsc;
    _Atomic uint64_t end_tsc;    /* 0: runs, or was killed */
    _Atomic uint32_t ended;      /* nothing more comes */
    _Atomic uint32_t tail_moved; /* futex: etch counts it up after taking bytes out */
    char name[16];

    _Alignas(64) _Atomic uint64_t tail;
    _Atomic uint64_t event_tail;

    _Alignas(64) _Atomic uint64_t event_head;
    _Alignas(64) _Atomic uint32_t current; /* its lowest bit says which state counts */
    struct etch_vpt_state states[2];
};

_Static_assert(sizeof(struct etch_vpt_thread) <= VPT_PAGE, "the header is one page");

/* ---- Events: each begins with this, sizes are multiples of 8 ---- */

enum etch_vpt_event_type {
    VPT_EVENT_IMAGE = 1,
    VPT_EVENT_ACCESS,
    VPT_EVENT_CHILD, /* a thread was created: number = its tid */
    VPT_EVENT_FAULT, /* the process is about to die of a signal: number = ip, address, value = signal, its code << 32 */
    VPT_EVENT_EXEC,  /* text: the program; number = 1 where it is recorded as well */
    VPT_EVENT_ARMED, /* a watch: number, address, value; flags 1: value known, 2: found at a site, that watch << 8 */
    VPT_EVENT_CAUGHT, /* a handler got a fault: number = ip, address, value = signal; flags 1: address known, 2: it
                         returned */
    VPT_EVENT_GAP, /* control flow that could not be followed, or accesses that could not; address = where it went on */
};

struct etch_vpt_event {
    uint32_t size;
    uint32_t type;
    uint64_t tsc;
};

struct etch_vpt_image {
    struct etch_vpt_event event;
    uint64_t start, size, file_offset, mapped_tsc, unmapped_tsc;
    uint32_t path_size, code_size; /* the bytes follow: path, code */
};

enum { VPT_ACCESS_READ = 1u, VPT_ACCESS_WRITE = 2u, VPT_ACCESS_VALUE = 4u };

struct etch_vpt_access {
    struct etch_vpt_event event;
    uint64_t ip, address, value;
    uint64_t since;  /* not before this TSC */
    uint64_t caller; /* where ip is outside of the program: return address of the nearest call within; 0: not known */
    uint32_t size, flags, watch, cpu;
};

struct etch_vpt_note {
    struct etch_vpt_event event;
    uint64_t number, address, value;
    uint32_t flags, text_size; /* VPT_EVENT_FAULT: flags 1: address is that of the access which failed */
};

#endif
