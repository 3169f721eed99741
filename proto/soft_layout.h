/* SPDX-License-Identifier: MIT */
/* The format of the software recorder's rings, byte by byte. Three parts share it: the runtime that is linked into
 * recorded programs, the collector that takes the rings out, and the decoder. docs/soft.md explains the format. */
#ifndef ETCH_PROTO_SOFT_LAYOUT_H
#define ETCH_PROTO_SOFT_LAYOUT_H

#include <stdint.h>

#define ETCH_SOFT_MAGIC 0x746675732d686374u /* a pool */
#define ETCH_SOFT_VERSION 6u

/* A chunk begins SLACK bytes behind a multiple of its size, where a ring's head ends. When the address of the next byte
 * has crossed the next multiple, its FULL bits are 0. Compiled code tests these bits at some of its writes. The writes
 * between two tests fit into the slack. These numbers are part of every binary. */
#define ETCH_SOFT_CHUNK 4096u
#define ETCH_SOFT_SLACK 512u
#define ETCH_SOFT_FULL (ETCH_SOFT_CHUNK - ETCH_SOFT_SLACK)
#define ETCH_SOFT_CHUNK_MAGIC 0x6b6e6863u
#define ETCH_SOFT_SUFFIX ".etch-rings"

#define ETCH_SOFT_VARIABLE "ETCH_RING"                 /* the folder for the pool */
#define ETCH_SOFT_KB_VARIABLE "ETCH_RING_KB"           /* of each thread's ring */
#define ETCH_SOFT_THREADS_VARIABLE "ETCH_RING_THREADS" /* rings that a process has */
#define ETCH_SOFT_MB_VARIABLE "ETCH_RING_MB"           /* of all pools in the folder */
#define ETCH_SOFT_SIGNALS_VARIABLE "ETCH_RING_SIGNALS" /* 0: no handler notes how the process dies */
#define ETCH_SOFT_LOG_VARIABLE "ETCH_LOG"              /* set: an unusable folder is reported on standard error */
#define ETCH_SOFT_ON_VARIABLE "ETCH_RECORDED"          /* set: recorded code runs even without a ring */
#define ETCH_SOFT_BUDGET_VARIABLE "ETCH_RING_BUDGET"   /* percent of the processor time, or "off" */
#define ETCH_SOFT_KEEP_VARIABLE "ETCH_RING_KEEP"       /* functions that never go dark */
#define ETCH_SOFT_DARK_VARIABLE "ETCH_RING_DARK"       /* functions that are dark from the start */

/* The recorded code of a function f is f.etch. The code that runs without recording is f.etch.plain. */
#define ETCH_SOFT_CODE_SUFFIX ".etch"
#define ETCH_SOFT_PLAIN_SUFFIX ".etch.plain"
#define ETCH_SOFT_REST_SUFFIX ".etch.rest" /* runs without recording from one of f's loops on */
#define ETCH_SOFT_TELLER_SUFFIX ".etch.enter"
#define ETCH_SOFT_STUB_SUFFIX ".etch.out" /* of f.etch where f has no recorder: calls f */

/* Another module may replace a function f when the program is loaded. Then f.etch and f.etch.plain, which other files
 * call, are guards, and the code itself has the following names. */
#define ETCH_SOFT_GUARDED ".code"
#define ETCH_SOFT_GUARDED_CODE_SUFFIX ETCH_SOFT_GUARDED ETCH_SOFT_CODE_SUFFIX
#define ETCH_SOFT_GUARDED_PLAIN_SUFFIX ETCH_SOFT_GUARDED ETCH_SOFT_PLAIN_SUFFIX
#define ETCH_SOFT_GUARD_SUFFIX ".etch.guard" /* the guard f.etch by a name of its own; the only name in a comdat */
#define ETCH_SOFT_HERE_SUFFIX ".etch.here"   /* f of this module, whichever f the loader binds */

/* A module of the process: the start of the mapping of its file's first bytes, and its build-id as it was loaded. The
 * file may be replaced later. */
struct etch_soft_module {
    uint64_t start;
    uint32_t size; /* of the build-id; 0: it has none */
    uint8_t build_id[36];
};

#define ETCH_SOFT_MODULES 128u

/* `ended` of a pool and of a ring: this bit and the exit status. Without the bit the process runs, or it ended without
 * a word: by a signal, _exit or exec. */
#define ETCH_SOFT_ENDED 0x80000000u

/* Each part is complete before the state names it. */
enum etch_soft_death_state {
    ETCH_SOFT_DEATH_NONE,
    ETCH_SOFT_DEATH_BEGUN,
    ETCH_SOFT_DEATH_REGISTERS, /* everything but the stack */
    ETCH_SOFT_DEATH_WHOLE,
};

#define ETCH_SOFT_REGISTERS 24u
#define ETCH_SOFT_STACK 16384u

/* A process dies of a signal that it neither handles nor ignores. Written by the signal handler. */
struct etch_soft_death {
    uint32_t state;
    uint32_t pid, tid; /* tid 0: not known, the thread has no ring */
    int32_t signal, code;
    uint32_t cpu;
    uint64_t address; /* siginfo's si_addr */
    uint64_t tsc;
    uint64_t registers[ETCH_SOFT_REGISTERS]; /* in the order of Linux's perf x86 register numbers */
    uint64_t stack_start, stack_high;        /* the first noted byte; the end of the stack, 0: not known */
    uint32_t stack_size, reserved[3];
    uint8_t stack[ETCH_SOFT_STACK];
    char message[512 - 264]; /* of assert() or libc, before abort() */
};

#define ETCH_SOFT_DEATHS 4u
#define ETCH_SOFT_MAPS 64512u
#define ETCH_SOFT_WORDS 16384u
#define ETCH_SOFT_RESERVED 16384u

/* A function that went dark: from then on its plain copy runs. */
struct etch_soft_dark {
    uint64_t where; /* the address of its entry of the section etch_soft_lit; 0: not told yet */
    uint64_t tsc;   /* since then; 0: from the start */
    uint32_t pid, reserved;
};

#define ETCH_SOFT_DARK_MAX 160u

struct etch_soft_budget {
    uint32_t permille; /* of the processor time; ETCH_SOFT_UNBOUNDED: no budget */
    uint32_t n;        /* functions that went dark; beyond ETCH_SOFT_DARK_MAX they are counted only */
    struct etch_soft_dark dark[ETCH_SOFT_DARK_MAX];
};

#define ETCH_SOFT_UNBOUNDED UINT32_MAX

/* One file per process and its children: this, then `slots` rings of (1 + chunks) * ETCH_SOFT_CHUNK bytes each, all of
 * it backed before the first byte is written. A file of no bytes: its process found no room. A file may end behind the
 * last used ring: the process passed, and a later process took the space of the other rings back. */
struct etch_soft_pool {
    uint64_t magic;
    uint32_t version, pid;
    uint32_t chunks, slots; /* per ring; rings */
    uint32_t used;          /* the slots below this number were claimed at some time */
    uint32_t ringless;      /* threads and child processes that found no ring free */
    uint64_t start_tsc;
    uint32_t maps_size, maps_lost;
    uint32_t reused; /* rings of ended threads that later threads took */
    uint32_t shared; /* child processes that were not made by fork(), and may have written into their parent's ring */
    uint32_t begun, well; /* recorders of this process and its children: begun, ended well */
    uint32_t claims;      /* counts up */
    uint32_t untimed;     /* the program forbade itself to read the time */
    uint32_t robust;      /* the locks are robust: the kernel reports ended owners */
    uint32_t removed;     /* rings of other processes removed to make room: the folder has a bound */
    uint64_t spare_page;  /* an address that means something to the process only */
    /* ---- The process; not of its children ---- */
    uint64_t start_unix_ns; /* the same moment as start_tsc */
    uint64_t end_tsc;
    uint32_t ended;         /* see ETCH_SOFT_ENDED */
    uint32_t pid_namespace; /* its inode; 0: not known */
    uint32_t words_size; /* bytes of `words`: the program's path, the current folder, the arguments, a 0 behind each */
    uint32_t words_cut;  /* arguments that found no room */
    uint32_t n_modules, modules_lost;
    uint32_t n_deaths;                  /* claimed records, also beyond ETCH_SOFT_DEATHS */
    uint32_t signals;                   /* not 0: the handler was installed at the start, for this set of signals */
    char name[16];                      /* of the first thread at the start */
    uint8_t words_reserved[1024 - 152]; /* 0; for more words of the head */
    char maps[ETCH_SOFT_MAPS]; /* lines of /proc/self/maps, of code and of files, as they were when modules came */
    char words[ETCH_SOFT_WORDS];
    struct etch_soft_module modules[ETCH_SOFT_MODULES];
    struct etch_soft_death deaths[ETCH_SOFT_DEATHS];
    struct etch_soft_budget budget;
    uint8_t reserved[ETCH_SOFT_RESERVED - sizeof(struct etch_soft_budget)]; /* 0; for more areas of the head */
};

enum etch_soft_state {
    ETCH_SOFT_FREE,
    ETCH_SOFT_CLAIMED,
    ETCH_SOFT_UNLOADED, /* the recorder that claimed it was unloaded; its thread may go on with it */
};

/* The first word of a ring's lock is the first word of a robust mutex: the owner's thread id, and ETCH_SOFT_GONE once
 * the kernel saw the owner end, for any reason. A free ring is therefore found without a system call. */
#define ETCH_SOFT_TID 0x3fffffffu
#define ETCH_SOFT_GONE 0x40000000u
#define ETCH_SOFT_LOCK_MARK 0x80000000u /* in its fourth word: not a mutex of the program */

/* Before a ring's chunks, ETCH_SOFT_SLACK bytes. */
struct etch_soft_ring {
    uint32_t state, tid;
    uint64_t seq; /* of the next chunk */
    uint64_t start_tsc;
    uint64_t context; /* of the current writer; see the chunk */
    /* The state that each running signal handler interrupted, innermost handler last. Kept here rather than on their
     * stacks, because longjmp may leave a handler. */
    uint32_t handlers;
    uint32_t pid; /* a child process has rings in the pool of its parent */
    struct {
        uint64_t act, cur, context;
    } handler[16];
    uint64_t lock[5];          /* a pthread_mutex_t */
    uint64_t thread, recorder; /* addresses that mean something to the process only */
    uint32_t order;            /* when it was claimed */
    uint32_t ended;            /* the thread called exit(): see ETCH_SOFT_ENDED */
    uint64_t end_tsc;
    char name[16]; /* of the thread, where known */
};

#define ETCH_SOFT_HANDLERS 16u

enum etch_soft_chunk_kind {
    ETCH_SOFT_START = 1, /* the thread's first */
    ETCH_SOFT_CONTINUED, /* behind a full one; begins with SYNC */
    ETCH_SOFT_SIGNAL,    /* a handler that interrupted compiled code */
    ETCH_SOFT_FORKED,    /* the first of a child process */
};

struct etch_soft_chunk {
    uint32_t magic;
    uint32_t kind;
    uint64_t seq; /* counts up; the chunk lies at seq modulo the ring's chunks, or behind that place if the place was in
                     use */
    uint64_t context;     /* 0: the thread itself; else the seq of the SIGNAL chunk that the handler began with */
    uint64_t interrupted; /* SIGNAL: seq of the interrupted chunk times ETCH_SOFT_CHUNK, plus the offset in the chunk */
    uint64_t tsc;
    uint64_t ip; /* SIGNAL: the interrupted instruction */
    uint32_t cpu, reserved;
};

/* Bytes of a chunk behind its header. A byte of 0 ends the records of a chunk. The first byte of a record is written
 * last. */
enum etch_soft_byte {
    ETCH_SOFT_NOTHING = 0,
    ETCH_SOFT_PATH = 1,        /* .. ETCH_SOFT_PATHS: path number + 1, or which target of a computed goto + 1 */
    ETCH_SOFT_PATHS = 240,     /* most paths of a segment */
    ETCH_SOFT_GONE_DARK = 244, /* as DARK: the function went dark in a loop, and its rest runs */
    ETCH_SOFT_DARK = 245,      /* u32, u32: low halves of a dark function and of its return address: its copy runs */
    ETCH_SOFT_LEFT = 246,      /* a function that was entered from code without a recorder returned to it */
    ETCH_SOFT_OUT = 247,       /* a function called by name has no recorder */
    ETCH_SOFT_ENTRY = 248,     /* u64: a function was entered from code without a recorder */
    ETCH_SOFT_SYNC = 249,      /* struct etch_soft_sync: where the thread is */
    ETCH_SOFT_TIME = 250,      /* u64 tsc, u16 cpu */
    ETCH_SOFT_END = 251,       /* the thread left the function that it was first seen in */
    ETCH_SOFT_RETURNED = 252,  /* the signal handler is done; its context ends */
    /* u32, low half of its address: a function was called through a pointer, by code with a recorder; or a guard was
     * called, and the loader had replaced its function */
    ETCH_SOFT_PASSED = 253,
    ETCH_SOFT_HELD = 254 /* u64 tsc, u16 cpu: before a call that locks, if the lock was held */
};

#define ETCH_SOFT_ENTRY_SIZE 9u
#define ETCH_SOFT_PASSED_SIZE 5u
#define ETCH_SOFT_TIME_SIZE 11u
#define ETCH_SOFT_DARK_SIZE 9u
#define ETCH_SOFT_FRAMES 96u /* most return addresses of a SYNC */

enum etch_soft_sync_flags {
    ETCH_SOFT_LANDED = 1,
    ETCH_SOFT_TRUNCATED = 2, /* there are more frames */
    ETCH_SOFT_OUTSIDE = 4,   /* before an ENTRY: `where` is the return address of the entered function */
};

/* The record behind the byte ETCH_SOFT_SYNC in the chunk. Behind the struct stand `frames` return addresses of u64,
 * innermost first, up to the call from code without a recorder. A 0 is an entry from outside whose caller was compiled
 * code after all, through a pointer; its return address comes next. */
struct etch_soft_sync {
    uint8_t edge, frames, flags;
    uint32_t node;  /* LANDED: at which node of the function */
    uint64_t where; /* LANDED: the function; else where the recording code goes on */
} __attribute__((packed));

/* ---- In the process ---- */

/* An entry into compiled code from outside, kept on the stack of the entered function. */
struct etch_soft_act {
    struct etch_soft_act *prev;
    uintptr_t frame;
    uint64_t flags;
};

enum etch_soft_act_flags {
    ETCH_SOFT_HANDLER = 1, /* a signal handler that interrupted compiled code */
    ETCH_SOFT_OWN = 2,     /* `frame` belongs to a function that records its own entry */
};

/* A function that can go dark has an entry in the section etch_soft_lit, which is loaded. The function's recorded code
 * runs while the entry is lit. Recorded code that turned to the next chunk goes on with `nopl ENTRY(%rip)`. */
struct etch_soft_lit {
    uint8_t lit, kept; /* kept: never goes dark */
    uint16_t seen;     /* how often it turned to the next chunk */
    uint32_t name;     /* etch_soft_name() of the function */
};

#define ETCH_SOFT_LIT_SECTION "etch_soft_lit"
#define ETCH_SOFT_LIT_SUFFIX ".etch.lit"
#define ETCH_SOFT_LIT_NOP 0x051f0fu /* the first three bytes of the nopl; an offset of four bytes follows */

/* A function's name as a number (FNV-1a). */
static inline uint32_t etch_soft_name(const char *name, uint64_t n)
{
    uint32_t hash = 0x811c9dc5u;

    for (uint64_t i = 0; i < n; i++)
        hash = (hash ^ (uint8_t)name[i]) * 0x01000193u;
    return hash;
}

/* ---- Attaching to a running process ---- */

/* Before the code of a plain copy are this many bytes, and its first instruction has at least two bytes. The last five
 * of the bytes before are a jump to the code that reports an entry and records. Two bytes at the begin of the copy,
 * ETCH_SOFT_DETOUR, lead there. Other copies have no such jump: inline functions of C++. */
#define ETCH_SOFT_DETOUR_SIZE 16u
#define ETCH_SOFT_DETOUR 0xf9ebu    /* jmp to 5 bytes before */
#define ETCH_SOFT_DETOUR_JUMP 0xe9u /* the byte there */
#define ETCH_SOFT_DETOUR_PAD 0xccu  /* all bytes before that byte */

/* A request of etch for rings. etch writes it while all threads are stopped. The first thread that enters recorded code
 * makes the rings. */
struct etch_soft_request {
    uint32_t state; /* enum etch_soft_request_state */
    uint32_t reserved[3];
    char folder[112];
    char kb[32], threads[32]; /* variables, as in the environment */
};

enum etch_soft_request_state {
    ETCH_SOFT_REQUEST_NONE,
    ETCH_SOFT_REQUEST_MADE,
    ETCH_SOFT_REQUEST_TAKEN,
    ETCH_SOFT_REQUEST_DONE,  /* the pool is there */
    ETCH_SOFT_REQUEST_FAILED /* there is no room, or the folder cannot be used */
};

/* Each module with a recorder has one of these in the section etch_soft_door, which is loaded. Addresses of the
 * process. */
struct etch_soft_door {
    uint64_t magic;
    uint32_t version, secure; /* secure: the program has raised rights, and the runtime does nothing */
    uint64_t on;              /* the module's flag, a byte */
    uint64_t lit, lit_end;    /* its struct etch_soft_lit */
    uint64_t request;         /* of the process */
    uint64_t pool;            /* the address of the pool's address */
};

#define ETCH_SOFT_DOOR_SECTION "etch_soft_door"
#define ETCH_SOFT_DOOR_MAGIC 0x726f6f6468637465u /* "etchdoor" */

#define ETCH_SOFT_MAY_FORK 0x80000000u /* to the runtime, with a node: this may be a child process */

/* ---- In the binary: sections that are not loaded ---- */

#define ETCH_SOFT_MAP_SECTION ".etchmap"
#define ETCH_SOFT_MARK_SECTION ".etchmark"

/* A function: u64 address, u32 nodes, u32 edges, u32 flags, then the nodes, then the edges. */
enum etch_soft_function_flags {
    ETCH_SOFT_ENTERS = 1, /* the function records its own entry, whoever calls it */
    /* The function can go dark. Its last node but one calls the plain copy, and behind the call is only the return. */
    ETCH_SOFT_DIMS = 2,
    /* The function can go dark in its loops. Its last node but three calls its rest, with the return behind it. */
    ETCH_SOFT_RESTS = 4
};

struct etch_soft_map_node {
    uint8_t kind, flags;
    uint16_t paths; /* from here to the ends of the segment, where a segment begins here; else 0 */
    uint32_t first_edge;
    uint16_t tells; /* ETCH_SOFT_TELLS: its number */
    uint16_t reserved;
} __attribute__((packed));

struct etch_soft_map_edge {
    uint32_t target; /* node; UINT32_MAX: out of the function */
    uint8_t value;   /* added to the path number */
    uint8_t flags;
    uint16_t reserved;
} __attribute__((packed));

enum etch_soft_node_kind {
    ETCH_SOFT_FLOW,     /* a branch, or none */
    ETCH_SOFT_CALL,     /* of a function that may have a recorder */
    ETCH_SOFT_RETURN,   /* or anything else that leaves the function */
    ETCH_SOFT_COMPUTED, /* a computed goto: the target tells its number */
    ETCH_SOFT_RESUME,   /* an exception goes on to the callers */
};

enum etch_soft_node_flags { ETCH_SOFT_TELLS = 1 /* the target of a computed goto: a byte (or two) at its begin */ };
enum etch_soft_edge_flags { ETCH_SOFT_CUT = 1 /* the segment ends */, ETCH_SOFT_SILENT = 2 /* and leaves no byte */ };

/* The address at which a node begins in the machine code (several marks if the compiler copied the node), or at which
 * recording code goes on after it changed chunks. */
struct etch_soft_mark {
    uint64_t address, function;
    uint32_t node;
    uint32_t kind;
} __attribute__((packed));

enum etch_soft_mark_kind {
    ETCH_SOFT_MARK_NODE,
    ETCH_SOFT_MARK_FLUSH,
    /* A stub for a function of another file without a recorder: writes OUT, and has no function and no node. With a
     * function: a guard, which leads to the function or writes PASSED. */
    ETCH_SOFT_MARK_STUB,
    ETCH_SOFT_MARK_PLAIN, /* where the plain copy of a function begins */
    ETCH_SOFT_MARK_LIT    /* where the entry of a function in the section etch_soft_lit is */
};

#endif
