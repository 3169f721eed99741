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
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>

#define LAB_API __attribute__((visibility("default")))
#define LAB_SITE ((uint64_t)(uintptr_t)__builtin_return_address(0))
#define LAB_NEVER UINT64_MAX

#define LAB_NOBODY (UINT32_MAX - 1)  /* has the baton: all that could run are away */
#define LAB_CLAIMED (UINT32_MAX - 2) /* somebody is about to take the baton from a thread that sleeps in the kernel */

/* LAB_AWAY: the thread waits in the kernel for something that the lab does not control. It comes back by itself. */
enum lab_state { LAB_FREE, LAB_READY, LAB_BLOCKED, LAB_AWAY, LAB_DEAD };

struct lab_thread {
    uint32_t state;
    int go; /* futex: 1: has the baton */
    struct etch_lab_op op;
    uint32_t wait; /* enum etch_lab_wait, if blocked */
    uint64_t object;
    uint64_t deadline;  /* virtual; LAB_NEVER: none */
    struct pollfd *set; /* ETCH_LAB_DESCRIPTOR: the descriptors, and the events to wait for */
    nfds_t n_set;
    bool outside;   /* one of them is outside */
    bool resumes;   /* at its next point: it waited there */
    uint64_t locks; /* as in an event */
    uint64_t flow;  /* a hash of the instructions that ran since the last point */
    bool timed_out;
    bool writes;                /* ETCH_LAB_RWLOCK: it wants to write */
    bool off;                   /* parked or away: a signal handler that runs now is not under control */
    bool patient;               /* the call that it makes will end by itself soon */
    bool cancel;                /* it is to be cancelled when it runs next */
    bool interrupted;           /* its last wait ended because of a signal */
    bool halts;                 /* for the debugger, when it executes its next operation */
    bool plain;                 /* its next operation is an access that the program makes itself */
    int back;                   /* LAB_AWAY: it wants to run again */
    uint64_t pending;           /* signals that it gets when it runs next: a bit for each */
    uint64_t mask;              /* signals that it blocks */
    uint64_t sigwait;           /* ETCH_LAB_SIGNAL: the signals that sigwait() takes */
    bool shared;                /* what it waits for may be used by other processes */
    uint32_t made;              /* threads that it made */
    uint32_t seen, seen_holder; /* while parked: how often the baton has not moved */
    uint64_t seen_points;
    unsigned long seen_sleeps;
    uint64_t turn; /* when it began to wait, for first come, first served */
    pthread_t self;
    void *result;
};

extern struct etch_lab_shared *lab; /* NULL: not in the lab, or a child of fork */
extern struct lab_thread lab_threads[ETCH_LAB_THREADS];
extern __thread uint32_t lab_me;
extern uint32_t lab_alive;
extern uint32_t lab_running; /* who has the baton */

extern bool lab_choosing; /* the holder of the baton looks for somebody who can run */

/* True if the calling thread is one of the lab's. */
bool lab_is_mine(void);

/* True if the calling thread is under control and has the baton. */
bool lab_controlled(void);

/* A point before an operation: others may run first. */
void lab_point(struct etch_lab_op op, uint64_t site);

/* The same, after lab_rules_arrive(). */
void lab_point_arrived(struct etch_lab_op op, uint64_t site);

/* The same, and others are to run first if they can. */
void lab_yield(uint64_t site);

/* Waits until lab_wake() for the same object, or until `deadline`. Returns false if the time was up first. */
bool lab_block(enum etch_lab_wait wait, uint64_t object, uint64_t deadline, uint64_t site);

/* Waits until one of the descriptors has one of its events, or until `deadline`. Returns false if the time was up
 * first. */
bool lab_block_fds(struct pollfd *set, nfds_t n, uint64_t deadline, uint64_t site);

/* The thread is about to wait in the kernel for something outside; others run meanwhile. lab_come_back() follows. */
void lab_go_away(uint64_t site);
void lab_come_back(void);

/* Wakes the first thread, or all threads, that wait for `object`. Returns how many it woke. */
uint32_t lab_wake(uint64_t object, bool all);

/* Wakes all threads that wait for any lock, condition, semaphore or thread: somebody outside may have released it. */
void lab_wake_everybody(void);
extern int lab_released; /* by a thread that is not under control */

/* Virtual time since the start. */
uint64_t lab_now(void);

/* Makes the state of a new thread; the caller starts it. Returns its number. */
uint32_t lab_new_thread(uint64_t routine);

/* The new thread's first act: waits for its turn. */
void lab_begin_thread(uint32_t thread);

/* The last act of a thread under control. */
void lab_end_thread(void);

/* The lab begins to control the program. */
void lab_take_control(struct etch_lab_shared *shared);

/* Called in a child of fork (control.c). */
void lab_control_child(void);

/* The same in a child of fork, by the thread that forked. What the child ends with is told to the parent's memory. */
void lab_in_child(struct etch_lab_shared *parent, struct etch_lab_shared *own);

/* A parked thread has the baton and looks for somebody who can run. True if that is the thread itself. */
bool lab_schedule(void);

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

/* ---- Synchronisation ---- */

struct etch_lab_op lab_sync_op(const volatile void *object);
struct etch_lab_op lab_release_op(const volatile void *lock);

/* The thread has taken a lock, or is about to release it. */
void lab_lock_held(uint64_t object, bool held);

/* Notes the operation, and returns its result. */
int lab_noted(enum lab_sync op, const volatile void *object, int result, uint64_t site);

/* The object was released, perhaps by a thread that is not under control. */
void lab_wake_waiters(const volatile void *object);

/* The part of a lock behind its point. */
int lab_take_mutex(pthread_mutex_t *m, uint64_t deadline, uint64_t site);

/* A time of a clock, in virtual time; whether it is one. */
uint64_t lab_virtual(clockid_t clock, const struct timespec *at);
bool lab_is_time(const struct timespec *at);

/* ---- Misused locks (misuse.c) ---- */

void lab_lock_destroyed(const pthread_mutex_t *lock, uint64_t site);
void lab_lock_check(const pthread_mutex_t *lock, uint64_t site);

/* ---- Who can run (enabled.c) ---- */

bool lab_can_run(struct lab_thread *t);

/* A thread's descriptors have one of their events. */
bool lab_fds_ready(const struct lab_thread *t);

/* Nobody can run: waits for the world outside, or virtual time jumps. Ends the run if there is nothing to wait for. */
void lab_make_runnable(void);

/* A thread that is away, or waits for a descriptor, may come back by itself: waits a little for it in real time. */
bool lab_await_outside(const struct lab_thread *t);

/* ---- The baton of a thread that sleeps in the kernel (away.c) ---- */

/* A parked thread looks after the holder of the baton. True if the thread has the baton now. */
bool lab_look_after(struct lab_thread *t);

/* ---- Signals, timers, cancellation (signals.c, timers.c) ---- */

/* The thread runs again: it gets the signals that were sent to it meanwhile. */
void lab_signals_deliver(void);

/* The last handler lets a call that it interrupted go on. */
bool lab_signals_restart(void);

/* A signal for the process, by a timer. */
void lab_signals_post(int number, const void *value);

void lab_signals_begin(void);
void lab_signals_forget(void); /* in a child of fork */

/* The first and the last function of the lab (edge.c). */
void lab_first_edge(void);
void lab_last_edge(void);

/* The signal that a thread in sigwait() waits for is there. */
bool lab_signals_waiting(const struct lab_thread *t);

/* When the next timer is due, in virtual time. */
uint64_t lab_timers_next(void);
void lab_timers_fire(void);
void lab_timers_forget(void);

/* The calling thread's own process is the receiver of a signal (signals.c). */
int lab_signals_kill_self(int number, uint64_t site);

/* A descriptor both of whose ends are in this process (input.c). */
bool lab_input_is_inner(int fd);

/* Makes a thread under control. */
int lab_make_thread(pthread_t *made, const pthread_attr_t *attributes, void *(*routine)(void *), void *argument,
                    uint64_t site);

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

/* The block is about to be freed. To free is to write to the whole block: others may come first. */
void lab_access_freed(const void *block, size_t size, uint64_t site);

/* ---- Orders to enforce (rules.c) ---- */

void lab_rules_begin(void);

/* A thread was made: it may have a name. */
void lab_rules_made(uint32_t thread);

/* The calling thread comes to an access or a call. Returns whether a rule names it, so that it is a point. */
bool lab_rules_arrive(uint64_t site, bool write);

/* The thread is at an access or a call that a rule names. */
bool lab_rules_named(uint32_t thread);

/* Which access or call of a place the thread is at, counted from 1. 0: at none; `place` is not set. */
uint32_t lab_rules_arrival(uint32_t thread, uint32_t *place);

/* The thread executes its operation. */
void lab_rules_follow(uint32_t thread, uint64_t site);

/* The thread has ended. */
void lab_rules_end(uint32_t thread);

/* The thread is at a moment that has to wait. */
bool lab_rules_hold(uint32_t thread);

/* A thread that is held waits for this thread. */
bool lab_rules_await(uint32_t thread);

/* The thread waited for a moment that has come. */
bool lab_rules_due(uint32_t thread);

/* ---- Halting for a debugger (halt.c) ---- */

/* Waits until the debugger is there. */
void lab_halt_await(struct etch_lab_shared *shared);

/* The thread executes its operation, which is a point or none. Halts if that was asked for. */
void lab_halt_if_due(bool at_point);

void lab_halt(void);

/* ---- Notes of a run that is recorded (note.c) ---- */

/* The program is about to make an access, or has called a function that makes it (`made`). The value of a write is
 * taken when the thread enters the lab again. */
void lab_note_access(const volatile void *at, size_t size, bool write, bool made, uint64_t site);

/* The same, of an instruction that is no point. */
void lab_note_aside(const volatile void *at, size_t size, bool write, bool made, uint64_t site);

/* The lab made an access for the program: an atomic operation. */
void lab_note_atomic(const volatile void *at, size_t size, bool read, bool write, uint64_t value, uint64_t site);

/* A synchronisation, with the meaning of the arguments that the preloaded library's records have. */
void lab_note_sync(enum lab_sync op, uint64_t object, uint64_t other, int result, uint64_t site);

/* Reads memory by the kernel, at most eight bytes. False if the memory cannot be read. */
bool lab_peek(uint64_t at, size_t size, uint64_t *value);

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
