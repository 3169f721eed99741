/* SPDX-License-Identifier: MIT */
/* The memory that etch and a program in the lab share: etch writes the head and the inputs before the program starts,
 * the runtime writes the rest while it runs. The memory outlives the program, so a crash loses nothing. The runtime is
 * the only writer of its part and etch reads it after the program's death, so no field needs to be atomic. */
#ifndef ETCH_COLLECTOR_LAB_LAYOUT_H
#define ETCH_COLLECTOR_LAB_LAYOUT_H

#include "collector/lab/strategy.h"

#define ETCH_LAB_MAGIC UINT64_C(0x3142414c48435445) /* "ETCHLAB1" */
#define ETCH_LAB_VARIABLE "ETCH_LAB_FD"
#define ETCH_LAB_SITES (1u << 16)    /* instructions that make points; a power of two */
#define ETCH_LAB_SEGMENTS (1u << 21) /* stretches of one thread; beyond them a run cannot be repeated exactly */
#define ETCH_LAB_CHECK_EVERY 256u    /* points between two kept hashes */
#define ETCH_LAB_CHECKS (1u << 17)
#define ETCH_LAB_EVENTS (1u << 16) /* points whose particulars are kept, the first ones */
#define ETCH_LAB_NOTES (1u << 18)  /* accesses and synchronisations that a recorded run keeps, the first ones */
#define ETCH_LAB_RULES 8u          /* of one experiment */
#define ETCH_LAB_CHOSEN 64u        /* interesting instructions of one run */
#define ETCH_LAB_MOST_RULES 1024u  /* of a script */
#define ETCH_LAB_PLACES 256u       /* lines that rules name */
#define ETCH_LAB_RANGES 8192u      /* of code: of these lines, and of no line of the program's own source */
#define ETCH_LAB_NAMES 256u        /* of threads in rules */
#define ETCH_LAB_GENERATIONS 8u    /* a thread that main made, that this thread made, ... */
#define ETCH_LAB_WORDS 8192u       /* of it the last byte is 0 */
#define ETCH_LAB_BARRIERS 1024u
#define ETCH_LAB_ONCES 256u
#define ETCH_LAB_CALLERS 6u
#define ETCH_LAB_NOTE_CALLERS 4u
#define ETCH_LAB_STACK 12u           /* addresses of a stack in a report about the heap, the innermost first */
#define ETCH_LAB_FRAMES 32u          /* callers that are kept, the outermost first */
#define ETCH_LAB_JOURNAL (64u << 20) /* bytes of answers from outside that a run keeps */
#define ETCH_LAB_FLOWS (1u << 20)    /* points whose hash is kept, the first ones */

/* `count` points in a row of one thread. */
struct etch_lab_segment {
    uint32_t thread, count;
};

/* What happened at one point. */
struct etch_lab_event {
    uint64_t site, object;
    uint64_t callers[ETCH_LAB_CALLERS]; /* the innermost first; 0: none */
    uint32_t thread, visit; /* the `visit`-th time that the thread was at this site, from 1; 0: too many to count */
    uint32_t size;          /* bytes from `object` on; 0: eight */
    uint32_t bytes;         /* exactly, from `address` on; 0: not known */
    uint64_t address;
    uint64_t point;          /* its number, from 0; that of the next point, if no other thread was left */
    uint32_t place, arrival; /* the `arrival`-th access or call of the thread at `place`; 0: at none */
    bool write;
    bool sync;             /* of a synchronisation */
    bool resumed;          /* the thread goes on after a wait */
    bool release;          /* of a lock */
    bool alone;            /* no other thread was left */
    uint32_t made, joined; /* the number of the thread that it made, or waited for until its end, plus 1; 0: none */
    uint64_t locks;        /* that the thread holds: a bit for each, by a hash of its address */
};

/* Who could run at one point. */
struct etch_lab_choice {
    uint64_t enabled; /* a bit for each of the first 64 threads */
    uint32_t last;    /* the thread that ran before */
    bool yields;      /* it gives way */
};

/* An access to shared memory, or a synchronisation, of a run that is recorded. */
struct etch_lab_note {
    uint64_t tsc; /* grows from note to note: one thread runs at a time */
    uint64_t site, object;
    uint64_t callers[ETCH_LAB_NOTE_CALLERS]; /* return addresses, the innermost first; 0: none */
    uint64_t other;                          /* of an access: its value; of a synchronisation: Sync.other */
    uint32_t thread;
    int32_t result;
    uint32_t size;
    uint16_t op; /* Etch__SyncOp; 0: an access */
    bool read : 1, write : 1, known : 1;
    bool made : 1;  /* `site` is behind the access: the lab made the access itself */
    bool aside : 1; /* of an instruction that is no point */
};

/* Code from `from` up to, but without, `to`, counted from the begin of the program. */
struct etch_lab_range {
    uint64_t from, to;
};

/* Accesses and calls of a line. */
struct etch_lab_place {
    uint32_t first, n; /* in `ranges`, by address */
    uint32_t kind;     /* enum etch_lab_kind */
};

enum etch_lab_kind { ETCH_LAB_ANY, ETCH_LAB_READS, ETCH_LAB_WRITES };

/* A thread by its creators: the `ordinals[depth - 1]`-th thread that ... the `ordinals[0]`-th thread that main made. */
struct etch_lab_name {
    uint32_t depth; /* 0: main */
    uint32_t ordinals[ETCH_LAB_GENERATIONS];
};

enum etch_lab_what {
    ETCH_LAB_AT_SITE,  /* the `visit`-th point at `site` */
    ETCH_LAB_AT_PLACE, /* the `visit`-th access or call at `place`, point or not */
    ETCH_LAB_AT_BEGIN, /* of the thread */
    ETCH_LAB_AT_END,   /* of the thread */
};

/* A moment of a run, named so that it can be found in another run. */
struct etch_lab_moment {
    uint64_t site;
    uint32_t thread, visit; /* visits of this thread, from 1 */
    uint32_t what;          /* enum etch_lab_what */
    uint32_t place;
    uint32_t name; /* in `names`, plus 1, in place of `thread`; 0: none */
};

/* An order to enforce: `then` does not happen before `first` has. */
struct etch_lab_rule {
    struct etch_lab_moment first, then;
};

/* Which values loads may read. */
enum etch_lab_memory {
    ETCH_LAB_SC,  /* the newest */
    ETCH_LAB_TSO, /* the stores of other threads come late */
    ETCH_LAB_C11, /* any that C11 allows, with the orders that the program states */
};

/* How `input` is repeated. */
enum etch_lab_repeat {
    ETCH_LAB_NOT,
    ETCH_LAB_EXACTLY, /* a thread that cannot run ends the run */
    ETCH_LAB_LOOSELY, /* others run until it can */
};

/* Calls of the program whose answers come from outside the process. */
enum etch_lab_call {
    ETCH_LAB_CALL_CLASS, /* not a call: from here on the descriptor is (1) or is not (0) outside */
    ETCH_LAB_CALL_READY, /* not a call: 1: a descriptor of the thread is ready, 0: it is not, 2: it does not wait */
    ETCH_LAB_CALL_JUMP,  /* not a call: virtual time jumped to `result` before point `fd`; of no thread */
    ETCH_LAB_CALL_READ,
    ETCH_LAB_CALL_RECEIVE,
    ETCH_LAB_CALL_WRITE,
    ETCH_LAB_CALL_SEND,
    ETCH_LAB_CALL_SOCKET,
    ETCH_LAB_CALL_CONNECT,
    ETCH_LAB_CALL_BIND,
    ETCH_LAB_CALL_LISTEN,
    ETCH_LAB_CALL_ACCEPT,
    ETCH_LAB_CALL_SHUTDOWN,
    ETCH_LAB_CALL_SETSOCKOPT,
    ETCH_LAB_CALL_GETSOCKOPT,
    ETCH_LAB_CALL_GETSOCKNAME,
    ETCH_LAB_CALL_GETPEERNAME,
    ETCH_LAB_CALL_POLL,
    ETCH_LAB_CALL_EPOLL,
    ETCH_LAB_CALL_RANDOM,
    ETCH_LAB_CALL_CLOCK,
    ETCH_LAB_CALL_PROCESS,
    ETCH_LAB_CALL_WAIT,
    ETCH_LAB_CALLS,
};

/* What is input, so that it is kept and given back. The rest is done again when a run is repeated. */
enum etch_lab_source {
    ETCH_LAB_SOCKETS = 1,
    ETCH_LAB_PIPES = 2, /* from other processes */
    ETCH_LAB_TERMINALS = 4,
    ETCH_LAB_DEVICES = 8,
    ETCH_LAB_RANDOM_NUMBERS = 16,
    ETCH_LAB_CLOCKS = 32, /* the machine's own; virtual ones need no keeping */
    ETCH_LAB_PROCESSES = 64,
    ETCH_LAB_ALL_SOURCES = 127,
};

/* One answer from outside. `size` bytes follow, up to the next multiple of eight. */
struct etch_lab_answer {
    uint32_t thread; /* ETCH_LAB_THREADS: of no thread */
    uint16_t call;   /* enum etch_lab_call */
    uint16_t error;  /* errno */
    int64_t result;
    int32_t fd;
    uint32_t size;
    uint64_t next; /* where the thread's next answer is, plus 1; 0: it has none. Filled in when it is given back */
};

/* Why a schedule or its input does not fit the program. */
enum etch_lab_misfit {
    ETCH_LAB_FITS,
    ETCH_LAB_CANNOT_RUN,       /* the thread was to run, but waits */
    ETCH_LAB_HAS_ENDED,        /* the thread was to run, but has ended */
    ETCH_LAB_NOT_MADE,         /* the thread was to run, but does not exist yet */
    ETCH_LAB_OTHER_CALL,       /* the thread makes another call than the one whose answer is next */
    ETCH_LAB_NO_ANSWER,        /* the thread makes a call for which no answer was kept */
    ETCH_LAB_WRONG_SIZE,       /* the thread makes the call, but with a smaller buffer than the answer needs */
    ETCH_LAB_DESCRIPTOR_TAKEN, /* the answer is a descriptor that the program has already */
};

enum etch_lab_misuse {
    ETCH_LAB_NO_MISUSE,
    ETCH_LAB_AFTER_FREE,     /* an access to freed memory */
    ETCH_LAB_BEYOND,         /* an access right behind a block */
    ETCH_LAB_FREED_TWICE,    /* a block was freed again */
    ETCH_LAB_FREED_INSIDE,   /* free() got an address inside a block */
    ETCH_LAB_DESTROYED_HELD, /* a mutex was destroyed while a thread held it */
    ETCH_LAB_AFTER_DESTROY,  /* a mutex was used after it was destroyed */
};

enum etch_lab_outcome {
    ETCH_LAB_RUNNING,      /* the program ended by itself: its status says how */
    ETCH_LAB_DEADLOCK,     /* no thread can run, and none ever will */
    ETCH_LAB_LIMIT,        /* the limit of points was reached */
    ETCH_LAB_DESYNC,       /* the schedule to repeat does not fit */
    ETCH_LAB_INFEASIBLE,   /* a rule cannot be kept: all that could run wait for it */
    ETCH_LAB_MISUSED,      /* memory or a lock was used as it must not be: `misuse` says how */
    ETCH_LAB_THREADS_OUT,  /* more threads than ETCH_LAB_THREADS */
    ETCH_LAB_BARRIERS_OUT, /* more barriers than ETCH_LAB_BARRIERS at a time */
    ETCH_LAB_ONCES_OUT,    /* more initialisers than ETCH_LAB_ONCES run at a time */
};

/* What a thread waits for. */
enum etch_lab_wait {
    ETCH_LAB_NOTHING,
    ETCH_LAB_MUTEX,
    ETCH_LAB_RWLOCK,
    ETCH_LAB_CONDITION,
    ETCH_LAB_SEMAPHORE,
    ETCH_LAB_BARRIER,
    ETCH_LAB_JOIN,
    ETCH_LAB_ONCE,
    ETCH_LAB_FUTEX,
    ETCH_LAB_SLEEP,
    ETCH_LAB_DESCRIPTOR,
    ETCH_LAB_CHILD,
    ETCH_LAB_SIGNAL,
};

struct etch_lab_thread {
    uint32_t creator, ordinal; /* the `ordinal`-th thread that `creator` made, from 1 */
    uint32_t tid;
    uint32_t wait; /* enum etch_lab_wait; at the end of the run */
    uint32_t dead;
    uint32_t holder; /* the owner of the mutex that the thread waits for; UINT32_MAX: unknown */
    uint64_t object; /* that it waits for */
    uint64_t site;   /* the last instruction of the program that it was seen at */
    uint64_t routine;
    uint64_t points, interesting;
    uint64_t depth; /* of calls; may be beyond ETCH_LAB_FRAMES */
    uint64_t frames[ETCH_LAB_FRAMES];
};

struct etch_lab_shared {
    /* Written by etch. */
    uint64_t magic;
    uint64_t size; /* of all this */
    struct etch_lab_spec spec;
    uint64_t max_points;                /* 0: no limit */
    uint64_t slack_ns;                  /* a sleep may end that much early in comparison with others */
    uint64_t realtime_ns, monotonic_ns; /* the clocks at the start */
    uint32_t real_time;                 /* sleeps and clocks are the machine's own */
    uint32_t heap_check;                /* freed memory is kept, and accesses to it end the run */
    uint32_t all_points;                /* every access is a point */
    uint32_t recorded;                  /* `notes` are wanted, and a failure is to be seen by a tracer */
    uint32_t memory;                    /* enum etch_lab_memory */
    uint32_t debugged;                  /* the program waits for a debugger, and halts for it */
    uint32_t halt_moment;               /* halts at `halt`, of any thread if `halt_any` */
    uint32_t halt_any;
    uint64_t halt_point; /* halts at this point, from 1; 0: at none */
    struct etch_lab_moment halt;
    uint32_t n_ruled; /* the first places, which rules name: an access there is a point */
    uint32_t repeat;  /* enum etch_lab_repeat; behind `input`, `spec` goes on */
    uint32_t n_input;
    uint32_t keeps_choices; /* `choices` are wanted */
    uint32_t n_rules;
    struct etch_lab_rule rules[ETCH_LAB_MOST_RULES];
    uint32_t n_places, n_names, n_foreign;
    struct etch_lab_place places[ETCH_LAB_PLACES];
    struct etch_lab_range ranges[ETCH_LAB_RANGES];
    struct etch_lab_range foreign[ETCH_LAB_RANGES]; /* code of no line of the program's own: its caller's line counts */
    struct etch_lab_name names[ETCH_LAB_NAMES];
    char words[ETCH_LAB_WORDS]; /* settings of the software recorder: NAME=VALUE, a 0 behind each */
    uint32_t sources;           /* enum etch_lab_source: what is kept, or given back */
    uint32_t feeds;             /* answers from outside come from `feed` */
    uint64_t feed_size;
    uint64_t feed_first[ETCH_LAB_THREADS + 1]; /* where a thread's first answer is, plus 1; the last: of no thread */
    uint32_t n_flows;                          /* hashes to compare with */
    uint32_t n_chosen; /* surw: only these instructions are interesting; 0: all that share memory */
    uint64_t chosen[ETCH_LAB_CHOSEN];
    uint64_t expected[ETCH_LAB_THREADS]; /* interesting operations of each thread, from an earlier run; 0: unknown */
    uint64_t sites[ETCH_LAB_SITES];      /* a hash table by address; 0: free */

    /* Written by the runtime. */
    uint32_t started;
    uint32_t halt_waits;    /* the program waits for the debugger */
    uint32_t halt_attached; /* written by the debugger */
    uint32_t halt_plain;    /* the thread halts right before its access: `halt_site` is its next instruction */
    uint32_t halted;        /* how often */
    uint64_t halt_site;
    uint64_t halt_here, halt_attached_at, halt_site_at, halt_plain_at; /* addresses in the program */
    uint64_t halt_first, halt_last;                                    /* of the runtime's own code */
    uint32_t outcome;                                                  /* enum etch_lab_outcome */
    uint32_t threads;
    uint32_t desync_thread;
    uint32_t misfit;                     /* enum etch_lab_misfit, of ETCH_LAB_DESYNC */
    uint32_t misfit_call, misfit_answer; /* enum etch_lab_call: that was made, and that was kept */
    int32_t misfit_fd;
    uint32_t strayed;        /* the hash of a point differs from the one to compare with: soft desync */
    uint32_t strayed_thread; /* that point, the first */
    uint64_t strayed_point, strayed_site;
    uint64_t answers, journal_size;
    uint64_t journal_lost; /* answers: the journal was full */
    uint32_t running;      /* who had the baton last */
    uint64_t base, end;    /* of the program's own code and data */
    uint64_t points, switches, hash;
    uint64_t virtual_ns;
    uint64_t uncontrolled; /* points in signal handlers of threads that were not to run */
    uint64_t forks;
    uint64_t sites_lost;    /* instructions: the table was full */
    uint64_t accesses_lost; /* to memory beyond what is watched: not checked, and no points */
    uint64_t blocks_lost;   /* of the heap: the table was full, and their use is not checked */
    uint64_t events_lost;   /* points behind the last event */
    uint32_t misuse;        /* enum etch_lab_misuse */
    uint32_t misuse_made_by, misuse_freed_by;
    uint64_t misuse_address, misuse_size, misuse_made, misuse_freed;
    int64_t misuse_offset;                                                          /* from the block's begin */
    uint64_t misuse_made_stack[ETCH_LAB_STACK], misuse_freed_stack[ETCH_LAB_STACK]; /* return addresses; 0: no more */
    uint32_t n_segments, segments_lost;
    uint32_t n_checks, n_events;
    uint32_t n_choices;
    uint64_t choices_lost; /* points behind the last, and points with more threads than a choice can name */
    uint32_t n_notes;
    uint64_t notes_lost;
    uint32_t kept;                                /* rules whose two moments both came */
    uint32_t unkept;                              /* ETCH_LAB_INFEASIBLE: the rule, plus 1 */
    uint32_t rule_state[ETCH_LAB_MOST_RULES];     /* 1: the first moment came, 2: the second did */
    uint32_t rule_thread[ETCH_LAB_MOST_RULES][2]; /* numbers of the threads of both moments; UINT32_MAX: not made */
    struct etch_lab_thread thread[ETCH_LAB_THREADS];
    uint64_t learnt[ETCH_LAB_SITES]; /* like `sites`: its members, and the instructions that this run found */
    uint64_t check[ETCH_LAB_CHECKS]; /* the hash at each ETCH_LAB_CHECK_EVERY points */
    uint32_t flow[ETCH_LAB_FLOWS];   /* a hash of what ran until each point */
    uint32_t flows[ETCH_LAB_FLOWS];  /* to compare with; written by etch */
    uint64_t journal[ETCH_LAB_JOURNAL / 8], feed[ETCH_LAB_JOURNAL / 8]; /* `feed` is written by etch */
    struct etch_lab_event events[ETCH_LAB_EVENTS];
    struct etch_lab_choice choices[ETCH_LAB_EVENTS]; /* by point */
    struct etch_lab_note notes[ETCH_LAB_NOTES];
    struct etch_lab_segment segments[ETCH_LAB_SEGMENTS];
    struct etch_lab_segment input[ETCH_LAB_SEGMENTS];
};

/* The index of `site` in a table of sites, or the free index for it; ETCH_LAB_SITES if the table is full. */
static inline uint32_t etch_lab_site_slot(const uint64_t *table, uint64_t site)
{
    uint32_t at = (uint32_t)(site * UINT64_C(0x9e3779b97f4a7c15) >> 48) & (ETCH_LAB_SITES - 1);

    for (uint32_t i = 0; i < ETCH_LAB_SITES; i++, at = (at + 1) & (ETCH_LAB_SITES - 1))
        if (!table[at] || table[at] == site)
            return at;
    return ETCH_LAB_SITES;
}

#endif
