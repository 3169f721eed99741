/* SPDX-License-Identifier: MIT */
/* Private: the runtime inside a program in the lab. One thread runs at a time: the holder of the baton. It hands the
 * baton on at points, and a strategy says to whom. Only the holder of the baton touches the state below, so it needs no
 * lock; handing over by futex orders the accesses. */
#ifndef ETCH_COLLECTOR_LAB_RUNTIME_H
#define ETCH_COLLECTOR_LAB_RUNTIME_H

#include "collector/lab/layout.h"

#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stddef.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>

#define LAB_API __attribute__((visibility("default")))
#define LAB_SITE ((uint64_t)(uintptr_t)__builtin_return_address(0))
#define LAB_NEVER UINT64_MAX

struct epoll_event;

enum lab_state { LAB_FREE, LAB_READY, LAB_BLOCKED, LAB_DEAD };

struct lab_thread {
    uint32_t state;
    int go; /* futex: 1: has the baton */
    struct etch_lab_op op;
    uint32_t wait; /* enum etch_lab_wait, if blocked */
    uint64_t object;
    uint64_t deadline;  /* virtual; LAB_NEVER: none */
    struct pollfd *set; /* ETCH_LAB_DESCRIPTOR: the descriptors, and the events to wait for */
    nfds_t n_set;
    bool outside;  /* one of them is outside */
    uint64_t flow; /* a hash of the instructions that ran since the last point */
    bool timed_out;
    bool canceled;
    bool detached;
    uint32_t made; /* threads that it made */
    uint64_t turn; /* when it began to wait, for first come, first served */
    pthread_t self;
    void *result;
};

extern struct etch_lab_shared *lab; /* NULL: not in the lab, or a child of fork */
extern struct lab_thread lab_threads[ETCH_LAB_THREADS];
extern __thread uint32_t lab_me;
extern uint32_t lab_alive;

/* True if the calling thread is under control and has the baton. */
bool lab_controlled(void);

/* A point before an operation: others may run first. */
void lab_point(struct etch_lab_op op, uint64_t site);

/* The same, and others are to run first if they can. */
void lab_yield(uint64_t site);

/* Waits until lab_wake() for the same object, or until `deadline`. Returns false if the time was up first. */
bool lab_block(enum etch_lab_wait wait, uint64_t object, uint64_t deadline, uint64_t site);

/* Waits until one of the descriptors has one of its events, or until `deadline`. Returns false if the time was up
 * first. */
bool lab_block_fds(struct pollfd *set, nfds_t n, uint64_t deadline, uint64_t site);

/* Wakes the first thread, or all threads, that wait for `object`. Returns how many it woke. */
uint32_t lab_wake(uint64_t object, bool all);

/* Virtual time since the start. */
uint64_t lab_now(void);

/* Makes the state of a new thread; the caller starts it. Returns its number. */
uint32_t lab_new_thread(uint64_t routine);

/* The new thread's first act: waits for its turn. */
void lab_begin_thread(uint32_t thread);

/* The last act of a thread under control. */
void lab_end_thread(void);

/* Ends the program: the run's outcome is known. */
__attribute__((noreturn)) void lab_stop(enum etch_lab_outcome outcome);

/* The schedule or the input to repeat does not fit the program: ends the run. */
__attribute__((noreturn)) void lab_misfit(uint32_t thread, enum etch_lab_misfit why);

/* An access of the program to `size` bytes. */
void lab_access(const void *at, size_t size, bool write, uint64_t site);

/* The same, by a function that the program has called. */
void lab_access_called(const void *at, size_t size, bool write, uint64_t site);

/* ---- Input (input.c) ---- */

void lab_input_begin(void);

/* Answers are given back, not asked for. */
bool lab_input_feeds(void);

/* True if the calling thread is under control and the source is input. */
bool lab_input_is(uint32_t source);

/* True if answers about the descriptor are input. */
bool lab_input_is_outside(int fd);
bool lab_input_was_outside(int fd); /* as it was at its last use */
void lab_input_set_outside(int fd, bool is);

/* An epoll descriptor with a descriptor in it that is outside (poll.c). */
bool lab_input_is_watched(int fd);
void lab_input_closed(int fd);

/* A pipe or a pair of sockets that the program made for itself; all of them, once another process has them too. */
void lab_input_made_inner(int fd);
void lab_input_shared_inner(void);

/* How a call is answered. */
enum lab_way {
    LAB_ASK,  /* by the machine: it is no input */
    LAB_KEEP, /* by the machine, and the answer is kept */
    LAB_GIVE, /* by an answer that was kept */
};
enum lab_way lab_input_way(int fd);
enum lab_way lab_input_way_of(uint32_t source);

/* Keeps an answer, errno, and the first `size` bytes of the parts. Returns `result`. */
int64_t lab_input_keep(enum etch_lab_call call, int fd, int64_t result, const struct iovec *parts, int n, size_t size);
void lab_input_keep_for(uint32_t thread, enum etch_lab_call call, int fd, int64_t result);

/* Gives the next answer back, with errno. Ends the run if the answer is one to another call. */
int64_t lab_input_take(enum etch_lab_call call, int fd, const struct iovec *parts, int n);
const struct etch_lab_answer *lab_input_take_for(uint32_t thread, enum etch_lab_call call, int fd);

/* Virtual time has jumped while a thread waited for the world outside; does so again. */
void lab_input_jumped(void);
void lab_input_jump(void);

/* Moves the descriptor `made` to the number that it had. Returns that number. */
int lab_input_place(int made, int64_t wanted);

/* The calling thread, which is under control, passes an instruction. */
static inline void lab_flow(uint64_t site)
{
    lab_threads[lab_me].flow = (lab_threads[lab_me].flow ^ site) * UINT64_C(0x9e3779b97f4a7c15);
}

/* ---- Orders to enforce (rules.c) ---- */

/* The thread passes an instruction. */
void lab_rules_follow(uint32_t thread, uint64_t site);

/* The thread has ended. */
void lab_rules_end(uint32_t thread);

/* The thread is at a moment that has to wait. */
bool lab_rules_hold(uint32_t thread);

/* A thread that is held waits for this thread. */
bool lab_rules_await(uint32_t thread);

/* ---- Notes of a run that is recorded (note.c) ---- */

/* The program is about to make an access, or has called a function that makes it (`made`). The value of a write is
 * taken when the thread enters the lab again. */
void lab_note_access(const volatile void *at, size_t size, bool write, bool made, uint64_t site);

/* The lab made an access for the program: an atomic operation. */
void lab_note_atomic(const volatile void *at, size_t size, bool read, bool write, uint64_t value, uint64_t site);

/* The numbers of Etch__SyncOp (flow.c checks them). */
enum lab_sync {
    LAB_THREAD_CREATE = 1,
    LAB_THREAD_START,
    LAB_THREAD_EXIT,
    LAB_THREAD_JOIN,
    LAB_MUTEX_LOCK,
    LAB_MUTEX_UNLOCK,
    LAB_RWLOCK_RDLOCK,
    LAB_RWLOCK_WRLOCK,
    LAB_RWLOCK_UNLOCK,
    LAB_COND_WAIT_BEGIN,
    LAB_COND_WAIT_END,
    LAB_COND_SIGNAL,
    LAB_COND_BROADCAST,
    LAB_BARRIER_ENTER,
    LAB_BARRIER_LEAVE,
    LAB_SEM_POST,
    LAB_SEM_WAIT,
    LAB_SPIN_LOCK,
    LAB_SPIN_UNLOCK,
    LAB_MUTEX_BLOCKED,
};

/* A synchronisation, with the meaning of the arguments that the preloaded library's records have. */
void lab_note_sync(enum lab_sync op, uint64_t object, uint64_t other, int result, uint64_t site);

/* The thread is in the lab again: its last write is done. */
void lab_note_settle(void);

/* The mark of eight bytes in the heap. */
enum { LAB_HEAP_FINE, LAB_HEAP_GONE, LAB_HEAP_ZONE };
void lab_heap_mark(const void *at, size_t size, uint32_t mark);

/* An access to eight bytes that are marked: ends the run if it must not be. */
void lab_heap_judge(uint64_t address, uint32_t mark, uint64_t site);

/* A function of the C library by its name. */
void *lab_next(const char *name);

/* Memory that was given back: what is there next has nothing to do with it. */
void lab_forget(const void *at, size_t size);

#define LAB_OBJECT(p) ((uint64_t)(uintptr_t)(p))

/* The functions of the C library behind ours. */
#define LAB_REAL(result, name, ...) extern result (*lab_real_##name)(__VA_ARGS__);
#include "collector/lab/real.h"
#undef LAB_REAL

/* Finds the functions of the C library. Libraries may call ours before our constructor has run. */
void lab_find_real(void);
#define LAB_ENTER()                                                                                                    \
    do {                                                                                                               \
        if (!lab_real_syscall)                                                                                         \
            lab_find_real();                                                                                           \
    } while (0)

#endif
