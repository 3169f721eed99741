/* SPDX-License-Identifier: MIT */
/* The lab's scheduler: the baton, points, waiting, and virtual time. See runtime.h. */
#include "collector/lab/memory.h"
#include "collector/lab/runtime.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LOOK_NS UINT64_C(100000000) /* between two looks of a parked thread, in real time */
#define POINT_NS 1000               /* how much virtual time a point takes */
#define SPIN_READS 100   /* a thread with so many points in a row without a write waits for others in a loop */
#define SPIN_POINTS 5000 /* the same for points of any kind, while others could run */

struct etch_lab_shared *lab;
struct lab_thread lab_threads[ETCH_LAB_THREADS];
__thread uint32_t lab_me;
uint32_t lab_alive;
uint32_t lab_running;
bool lab_choosing;
int lab_released;

static struct etch_lab_strategy strategy;
static uint64_t turns;
static uint32_t leaving; /* the kernel's number of a thread that has ended and may still be on its way out */
static uint32_t streak, streak_reads;
static uint32_t input_at, input_done; /* in the schedule to repeat */
static __thread bool controlled;
static struct etch_lab_shared *parent; /* in a child of fork: what etch sees */
static pid_t parent_pid;               /* of the process that etch started */

#define LAB_REAL(result, name, ...) result (*lab_real_##name)(__VA_ARGS__);
#include "collector/lab/real.h"
#undef LAB_REAL

/* ---- The baton ---- */

/* Waits for the baton. From time to time the thread looks whether the baton's holder sleeps in the kernel. */
static void park(struct lab_thread *t)
{
    const uint64_t ns = LOOK_NS * (1 + (uint64_t)(t - lab_threads) / 16);
    const struct timespec interval = {(time_t)(ns / 1000000000), (long)(ns % 1000000000)};
    int before = errno;

    t->off = true;
    while (!__atomic_load_n(&t->go, __ATOMIC_ACQUIRE)) /* pairs with the release in hand_to() */
        if (lab_real_syscall(SYS_futex, &t->go, FUTEX_WAIT_PRIVATE, 0, lab->outcome ? NULL : &interval, NULL, 0) < 0 &&
            errno == ETIMEDOUT && !lab->outcome && lab_look_after(t))
            break;
    __atomic_store_n(&t->go, 0, __ATOMIC_RELAXED);
    t->off = false;
    errno = before;
}

/* The first thread stays as a zombie until the process ends. */
static bool is_still_leaving(uint32_t tid)
{
    char path[64], state = 0;
    int fd;

    if (lab_real_syscall(SYS_tgkill, lab_real_syscall(SYS_getpid), (long)tid, 0) != 0)
        return false;
    if (tid != (uint32_t)lab_real_syscall(SYS_getpid))
        return true;
    snprintf(path, sizeof(path), "/proc/self/task/%u/stat", tid);
    fd = (int)lab_real_syscall(SYS_openat, (long)AT_FDCWD, path, (long)(O_RDONLY | O_CLOEXEC), 0L);
    for (char byte; !state && lab_real_read(fd, &byte, 1) == 1;)
        if (byte == ')' && lab_real_read(fd, &byte, 1) == 1 && lab_real_read(fd, &byte, 1) == 1)
            state = byte;
    lab_real_syscall(SYS_close, (long)fd);
    return state && state != 'Z';
}

/* A thread that has ended still frees memory on its way out of the C library. Nobody runs beside it. */
static void await_leaving(void)
{
    while (leaving && is_still_leaving(leaving))
        lab_real_sched_yield();
    leaving = 0;
}

static void hand_to(uint32_t thread)
{
    struct lab_thread *t = &lab_threads[thread];

    __atomic_store_n(&lab_running, thread, __ATOMIC_SEQ_CST);
    lab->running = thread;
    __atomic_store_n(&t->go, 1, __ATOMIC_RELEASE);
    lab_real_syscall(SYS_futex, &t->go, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

/* The baton was taken from the thread while it slept in the kernel. It runs again when its turn comes. */
static bool regain(void)
{
    struct lab_thread *t = &lab_threads[lab_me];

    if (t->off)
        return false;
    while (__atomic_load_n(&lab_running, __ATOMIC_SEQ_CST) == LAB_CLAIMED)
        lab_real_sched_yield();
    if (lab_running == lab_me)
        return true;
    lab->uncontrolled++;
    lab_come_back();
    return true;
}

bool lab_is_mine(void)
{
    return lab && controlled;
}

bool lab_controlled(void)
{
    return lab && controlled && (lab_running == lab_me || regain());
}

/* The recorder traces the program: it sees a signal, and a program in which no thread runs. */
static void show_failure(enum etch_lab_outcome outcome)
{
    if (outcome == ETCH_LAB_MISUSED) {
        signal(SIGABRT, SIG_DFL);
        lab_real_syscall(SYS_tgkill, lab_real_syscall(SYS_getpid), lab_real_syscall(SYS_gettid), (long)SIGABRT);
    }
    if (outcome == ETCH_LAB_DEADLOCK)
        for (;;)
            lab_real_syscall(SYS_pause);
}

/* A child of fork cannot go on: that is how the whole run ends. */
static void tell_parent(void)
{
    parent->misuse = lab->misuse;
    parent->misuse_address = lab->misuse_address;
    parent->misuse_size = lab->misuse_size;
    parent->misuse_made = lab->misuse_made;
    parent->misuse_freed = lab->misuse_freed;
    parent->misuse_offset = lab->misuse_offset;
    memcpy(parent->misuse_made_stack, lab->misuse_made_stack, sizeof(lab->misuse_made_stack));
    memcpy(parent->misuse_freed_stack, lab->misuse_freed_stack, sizeof(lab->misuse_freed_stack));
    memcpy(parent->thread, lab->thread, sizeof(parent->thread));
    parent->threads = lab->threads;
    parent->running = lab->running;
    parent->outcome = lab->outcome;
    lab_real_kill(parent_pid, SIGKILL);
}

void lab_stop(enum etch_lab_outcome outcome)
{
    lab->outcome = outcome;
    for (uint32_t i = 0; i < lab->threads; i++) {
        lab->thread[i].wait = lab_threads[i].state == LAB_BLOCKED ? lab_threads[i].wait : ETCH_LAB_NOTHING;
        lab->thread[i].object = lab_threads[i].object;
        lab->thread[i].dead = lab_threads[i].state == LAB_DEAD;
    }
    if (lab->recorded)
        show_failure(outcome);
    if (lab->debugged && !parent)
        lab_halt();
    if (parent)
        tell_parent();
    lab_real_syscall(SYS_exit_group, 0);
    __builtin_unreachable();
}

/* ---- The record of the run ---- */

static void note(uint64_t value)
{
    lab->hash = (lab->hash ^ value) * UINT64_C(1099511628211);
}

static void note_segment(uint32_t thread)
{
    uint32_t n = lab->n_segments;

    if (n && lab->segments[n - 1].thread == thread && lab->segments[n - 1].count < UINT32_MAX) {
        lab->segments[n - 1].count++;
    } else if (n < ETCH_LAB_SEGMENTS) {
        lab->segments[n] = (struct etch_lab_segment){thread, 1};
        lab->n_segments = n + 1;
    } else {
        lab->segments_lost++;
    }
}

/* ---- Points ---- */

/* The number of the thread's visits to the site. The table forgets no visit until it is full. */
static uint32_t visit_of(uint32_t thread, uint64_t site)
{
    static struct {
        uint64_t site;
        uint32_t thread, visits;
    } table[1u << 14];
    uint32_t at = (uint32_t)((site ^ (uint64_t)thread << 48) * UINT64_C(0x9e3779b97f4a7c15) >> 50);

    for (uint32_t i = 0; i < 64; i++, at = (at + 1) & ((1u << 14) - 1)) {
        if (!table[at].site) {
            table[at].site = site;
            table[at].thread = thread;
        }
        if (table[at].site == site && table[at].thread == thread)
            return ++table[at].visits;
    }
    return 0;
}

static void note_event(uint32_t thread, const struct etch_lab_op *op)
{
    const struct etch_lab_thread *t = &lab->thread[thread];
    struct etch_lab_event *e = &lab->events[lab->n_events];

    lab->events_lost += t->site && lab->n_events >= ETCH_LAB_EVENTS;
    if (lab->n_events >= ETCH_LAB_EVENTS || !t->site)
        return;
    lab->n_events++;
    e->site = t->site;
    e->object = op->object;
    e->thread = thread;
    e->visit = visit_of(thread, t->site);
    e->write = op->write;
    e->sync = op->sync;
    e->release = op->release;
    e->made = op->made;
    e->joined = op->joined;
    e->size = op->size;
    e->address = op->address;
    e->bytes = op->bytes;
    e->point = lab->points;
    e->resumed = lab_threads[thread].resumes;
    e->alone = lab_alive < 2;
    e->locks = lab_threads[thread].locks;
    e->arrival = lab_rules_arrival(thread, &e->place);
    for (uint32_t i = 0; i < ETCH_LAB_CALLERS && i < t->depth && t->depth <= ETCH_LAB_FRAMES; i++)
        e->callers[i] = t->frames[t->depth - 1 - i];
}

/* Compares the hash at this point with the one of the run that is repeated. The first difference is kept. */
static void follow_flow(uint32_t thread)
{
    if (lab->points >= ETCH_LAB_FLOWS)
        return;
    lab->flow[lab->points] = (uint32_t)lab->hash;
    if (lab->strayed || lab->points >= lab->n_flows || lab->flows[lab->points] == (uint32_t)lab->hash)
        return;
    lab->strayed = true;
    lab->strayed_thread = thread;
    lab->strayed_point = lab->points;
    lab->strayed_site = lab->thread[thread].site;
}

/* The thread executes its operation: this is the point. */
static void note_point(uint32_t thread, const struct etch_lab_op *op)
{
    struct etch_lab_thread *about = &lab->thread[thread];

    about->interesting += op->interesting;
    note(thread);
    note(op->object);
    note(lab_threads[thread].flow);
    lab_threads[thread].flow = 0;
    follow_flow(thread);
    note_segment(thread);
    note_event(thread, op);
    lab_rules_follow(thread, about->site);
    about->points++; /* behind the rules: they know the first point of a thread by it */
    if (lab->points % ETCH_LAB_CHECK_EVERY == 0 && lab->n_checks < ETCH_LAB_CHECKS)
        lab->check[lab->n_checks++] = lab->hash;
    lab->points++;
    lab->virtual_ns += POINT_NS;
    if (lab->max_points && lab->points >= lab->max_points)
        lab_stop(ETCH_LAB_LIMIT);
}

/* ---- Choosing ---- */

/* The thread goes on: because its descriptor is ready, or because its time is up. */
static bool is_ready_now(uint32_t thread)
{
    const struct lab_thread *t = &lab_threads[thread];
    bool ready;

    if (t->wait != ETCH_LAB_DESCRIPTOR)
        return false;
    if (t->outside && lab->feeds)
        return lab_input_take_for(thread, ETCH_LAB_CALL_READY, t->set->fd)->result != 0;
    ready = lab_fds_ready(t);
    if (t->outside)
        lab_input_keep_for(thread, ETCH_LAB_CALL_READY, t->set->fd, ready);
    return ready;
}

static struct etch_lab_candidate candidates[ETCH_LAB_THREADS]; /* the holder of the baton's; too large for stacks */

static uint32_t list_candidates(struct etch_lab_candidate *list)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < lab->threads; i++)
        if (lab_can_run(&lab_threads[i]) && !(lab->n_rules && lab_rules_hold(i)))
            list[n++] = (struct etch_lab_candidate){i, lab_threads[i].op};
    return n;
}

void lab_misfit(uint32_t thread, enum etch_lab_misfit why)
{
    lab->desync_thread = thread;
    lab->misfit = why;
    lab_stop(ETCH_LAB_DESYNC);
}

static enum etch_lab_misfit why_not(uint32_t thread)
{
    return thread >= lab->threads                  ? ETCH_LAB_NOT_MADE
           : lab_threads[thread].state == LAB_DEAD ? ETCH_LAB_HAS_ENDED
                                                   : ETCH_LAB_CANNOT_RUN;
}

static bool is_among(const struct etch_lab_candidate *list, uint32_t n, uint32_t thread, uint32_t *at)
{
    for (*at = 0; *at < n; ++*at)
        if (list[*at].thread == thread)
            return true;
    return false;
}

/* Chooses the thread from the schedule to repeat. False at the end of the schedule. */
static bool choose_repeated(const struct etch_lab_candidate *list, uint32_t n, uint32_t *at)
{
    const struct etch_lab_segment *s = &lab->input[input_at];

    /* A thread that was held goes on at once: the run stays as near to the repeated one as the order allows. */
    for (*at = 0; lab->repeat == ETCH_LAB_LOOSELY && lab->n_rules && *at < n; ++*at)
        if (lab_rules_due(list[*at].thread))
            return true;

    if (input_at < lab->n_input && input_done == s->count) {
        input_at++;
        input_done = 0;
        s++;
    }
    if (input_at >= lab->n_input)
        return false;
    if (is_among(list, n, s->thread, at)) {
        input_done++;
        return true;
    }
    if (lab->repeat == ETCH_LAB_EXACTLY)
        lab_misfit(s->thread, why_not(s->thread));
    /* Skips a thread that has ended. If the thread is held, the threads run that it waits for. */
    if (s->thread >= lab->threads || lab_threads[s->thread].state == LAB_DEAD) {
        input_at++;
        input_done = 0;
        return choose_repeated(list, n, at);
    }
    for (*at = 0; *at < n; ++*at)
        if (lab_rules_await(list[*at].thread))
            return true;
    return false;
}

/* A thread that waits for others in a loop would keep the baton for ever. */
static bool is_spinning(void)
{
    return streak_reads >= SPIN_READS || streak >= SPIN_POINTS;
}

static void count_streak(uint32_t thread, const struct etch_lab_op *op)
{
    bool same = thread == lab_running;

    streak = same ? streak + 1 : 0;
    streak_reads = same && !op->write ? streak_reads + 1 : 0;
}

/* The thread to repeat waits for the world outside, which may be slower than it was. */
static bool is_late(const struct etch_lab_candidate *list, uint32_t n)
{
    uint32_t next = input_at + (input_at < lab->n_input && input_done == lab->input[input_at].count), thread, at;

    if (next >= lab->n_input)
        return false;
    thread = lab->input[next].thread;
    return thread < lab->threads && !is_among(list, n, thread, &at) && lab_await_outside(&lab_threads[thread]);
}

/* Orders are switches for a strategy that keeps to the running thread: a thread whose moment has come runs at once, and
 * if the running thread is held, the threads run that it waits for. */
static bool choose_ordered(const struct etch_lab_candidate *list, const struct etch_lab_view *v, uint32_t *at)
{
    if (lab->spec.kind != ETCH_LAB_STAY || !lab->n_rules)
        return false;
    for (*at = 0; *at < v->n; ++*at)
        if (lab_rules_due(list[*at].thread))
            return true;
    if (is_among(list, v->n, lab_running, at) && !v->yields)
        return false;
    for (*at = 0; *at < v->n; ++*at)
        if (lab_rules_await(list[*at].thread))
            return true;
    return false;
}

static void note_choice(const struct etch_lab_view *v)
{
    struct etch_lab_choice *c = &lab->choices[lab->points];

    if (lab->points != lab->n_choices || lab->n_choices >= ETCH_LAB_EVENTS) {
        lab->choices_lost++;
        return;
    }
    lab->n_choices++;
    *c = (struct etch_lab_choice){.last = v->last, .yields = v->yields};
    for (uint32_t i = 0; i < v->n; i++)
        if (v->enabled[i].thread < 64)
            c->enabled |= UINT64_C(1) << v->enabled[i].thread;
        else
            lab->choices_lost++;
}

/* Who executes the next operation. */
static uint32_t choose(bool yields)
{
    struct etch_lab_candidate *list = candidates;
    struct etch_lab_view view = {.enabled = list, .last = lab_running, .point = lab->points};
    uint32_t at;

    lab_input_jump();
    if (lab_timers_next() <= lab->virtual_ns)
        lab_timers_fire();
    while ((view.n = list_candidates(list)) == 0) {
        lab_choosing = true;
        lab_make_runnable();
        lab_choosing = false;
    }
    while (lab->repeat && is_late(list, view.n))
        view.n = list_candidates(list);
    view.yields = yields || is_spinning();
    if (view.yields && is_spinning())
        streak = streak_reads = 0;
    if (lab->keeps_choices)
        note_choice(&view);
    if ((!lab->repeat || !choose_repeated(list, view.n, &at)) && !choose_ordered(list, &view, &at))
        at = etch_lab_strategy_choose(&strategy, &view);
    count_streak(list[at].thread, &list[at].op);
    return list[at].thread;
}

/* The chosen thread leaves its wait, if its time is up or its descriptor is ready. */
static void release(uint32_t thread)
{
    struct lab_thread *t = &lab_threads[thread];

    if (t->state != LAB_BLOCKED)
        return;
    t->timed_out = !is_ready_now(thread);
    if (t->timed_out && t->deadline > lab->virtual_ns)
        lab->virtual_ns = t->deadline;
    t->state = LAB_READY;
}

/* Chooses who runs next, and gives the baton to that thread. Returns true if it is the calling thread itself. */
static bool give(bool yields)
{
    uint32_t next = choose(yields);

    release(next);
    note_point(next, &lab_threads[next].op);
    if (next == lab_me)
        return true;
    lab->switches++;
    hand_to(next);
    return false;
}

static void pass(bool yields)
{
    struct lab_thread *t = &lab_threads[lab_me];

    if (!give(yields) && t->state != LAB_DEAD) {
        park(t);
        await_leaving();
    }
    if (t->state == LAB_DEAD)
        return;
    lab_halt_if_due(true);
    if (t->pending || t->cancel)
        lab_signals_deliver();
}

/* ---- Away ---- */

/* The holder of the baton cannot go on, and gives the baton to others, if there are any. */
static void leave_baton(void)
{
    uint32_t nobody;

    do {
        if (list_candidates(candidates)) {
            give(false);
            return;
        }
        __atomic_store_n(&lab_running, LAB_NOBODY, __ATOMIC_SEQ_CST);
        nobody = LAB_NOBODY; /* somebody may have come back before he could see that nobody has the baton */
    } while (list_candidates(candidates) &&
             __atomic_compare_exchange_n(&lab_running, &nobody, lab_me, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST));
}

void lab_go_away(uint64_t site)
{
    struct lab_thread *t = &lab_threads[lab_me];

    lab_note_settle();
    lab->thread[lab_me].site = site;
    t->op = (struct etch_lab_op){0};
    t->off = true;
    t->back = 0;
    t->state = LAB_AWAY;
    leave_baton();
}

void lab_come_back(void)
{
    struct lab_thread *t = &lab_threads[lab_me];
    uint32_t nobody = LAB_NOBODY;

    __atomic_store_n(&t->back, 1, __ATOMIC_SEQ_CST); /* pairs with the exchange in leave_baton() */
    if (__atomic_compare_exchange_n(&lab_running, &nobody, lab_me, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
        t->state = LAB_READY;
        t->back = 0;
        t->off = false;
        pass(false);
    } else {
        park(t);
        await_leaving();
        lab_halt_if_due(true);
        if (t->pending || t->cancel)
            lab_signals_deliver();
    }
    lab_memory_meet();
}

bool lab_schedule(void)
{
    if (!list_candidates(candidates)) {
        lab->virtual_ns += LOOK_NS; /* real time has passed */
        if (lab_timers_next() <= lab->virtual_ns)
            lab_timers_fire();
    }
    if (list_candidates(candidates))
        return give(false);
    __atomic_store_n(&lab_running, LAB_NOBODY, __ATOMIC_SEQ_CST);
    return false;
}

/* The instruction is interesting in this run. */
static bool is_chosen(uint64_t site)
{
    for (uint32_t i = 0; i < lab->n_chosen; i++)
        if (lab->chosen[i] == site)
            return true;
    return lab->n_chosen == 0;
}

void lab_point(struct etch_lab_op op, uint64_t site)
{
    bool meets = !lab_memory_is_quiet() && lab_controlled();

    if (lab_controlled())
        lab_rules_arrive(site, op.write);
    if (meets) {
        lab_note_settle();
        lab_memory_meet();
    }
    lab_point_arrived(op, site);
    if (meets && lab_alive > 1)
        lab_memory_meet();
}

void lab_point_arrived(struct etch_lab_op op, uint64_t site)
{
    if (!lab_controlled()) {
        if (lab && controlled)
            lab->uncontrolled++;
        return;
    }
    lab_note_settle();
    lab->thread[lab_me].site = site;
    if (lab_alive < 2 && !lab_rules_named(lab_me)) {
        if (lab->threads > 1) { /* no choice: but what the last thread does is compared with what the others did */
            note_event(lab_me, &op);
            lab_rules_follow(lab_me, site);
        }
        lab_halt_if_due(false);
        return;
    }
    op.interesting = op.interesting && is_chosen(site);
    lab_threads[lab_me].op = op;
    lab_threads[lab_me].resumes = false;
    pass(false);
}

void lab_yield(uint64_t site)
{
    if (!lab_controlled())
        return;
    lab_note_settle();
    lab->thread[lab_me].site = site;
    if (lab_timers_next() <= lab->virtual_ns)
        lab_timers_fire();
    if (lab_alive < 2) {
        if (lab_threads[lab_me].pending)
            lab_signals_deliver();
        return;
    }
    lab_threads[lab_me].op = (struct etch_lab_op){0};
    lab_memory_meet();
    lab_threads[lab_me].resumes = true;
    pass(true);
    lab_memory_meet();
}

bool lab_block(enum etch_lab_wait wait, uint64_t object, uint64_t deadline, uint64_t site)
{
    struct lab_thread *t = &lab_threads[lab_me];

    lab_note_settle();
    t->state = LAB_BLOCKED;
    t->wait = wait;
    t->object = object;
    t->deadline = deadline;
    t->timed_out = false;
    t->interrupted = false;
    t->turn = turns++;
    t->resumes = true;
    t->op = (struct etch_lab_op){.object = object, .write = true, .interesting = is_chosen(site), .sync = true};
    lab->thread[lab_me].site = site;
    lab_memory_meet();
    pass(false);
    lab_memory_meet();
    t->wait = ETCH_LAB_NOTHING;
    t->deadline = LAB_NEVER;
    return !t->timed_out;
}

bool lab_block_fds(struct pollfd *set, nfds_t n, uint64_t deadline, uint64_t site)
{
    struct lab_thread *t = &lab_threads[lab_me];

    t->set = set;
    t->n_set = n;
    t->outside = false;
    for (nfds_t i = 0; i < n; i++)
        t->outside |= lab_input_was_outside(set[i].fd);
    return lab_block(ETCH_LAB_DESCRIPTOR, n ? (uint64_t)set->fd : 0, deadline, site);
}

uint32_t lab_wake(uint64_t object, bool all)
{
    uint32_t woken = 0;

    for (;;) {
        struct lab_thread *first = NULL;

        for (uint32_t i = 0; i < lab->threads; i++) {
            struct lab_thread *t = &lab_threads[i];

            if (t->state == LAB_BLOCKED && t->object == object && t->wait != ETCH_LAB_DESCRIPTOR &&
                (!first || t->turn < first->turn))
                first = t;
        }
        if (!first || (woken && !all))
            return woken;
        first->state = LAB_READY;
        woken++;
    }
}

struct etch_lab_op lab_sync_op(const volatile void *object)
{
    return (struct etch_lab_op){.object = LAB_OBJECT(object), .write = true, .interesting = true, .sync = true};
}

struct etch_lab_op lab_release_op(const volatile void *lock)
{
    struct etch_lab_op op = lab_sync_op(lock);

    op.release = true;
    return op;
}

static uint64_t lock_bit(uint64_t object)
{
    return UINT64_C(1) << (object * UINT64_C(0x9e3779b97f4a7c15) >> 58);
}

void lab_lock_held(uint64_t object, bool held)
{
    uint64_t *locks = &lab_threads[lab_me].locks;

    *locks = held ? *locks | lock_bit(object) : *locks & ~lock_bit(object);
}

int lab_noted(enum lab_sync op, const volatile void *object, int result, uint64_t site)
{
    lab_note_sync(op, LAB_OBJECT(object), 0, result, site);
    return result;
}

void lab_wake_waiters(const volatile void *object)
{
    if (lab_controlled())
        lab_wake(LAB_OBJECT(object), true);
    else if (lab)
        __atomic_store_n(&lab_released, 1, __ATOMIC_SEQ_CST);
}

void lab_wake_everybody(void)
{
    for (uint32_t i = 0; i < lab->threads; i++) {
        struct lab_thread *t = &lab_threads[i];

        if (t->state == LAB_BLOCKED && t->wait != ETCH_LAB_DESCRIPTOR && t->wait != ETCH_LAB_SLEEP)
            t->state = LAB_READY;
    }
}

uint64_t lab_now(void)
{
    return lab->virtual_ns;
}

/* ---- Threads ---- */

uint32_t lab_new_thread(uint64_t routine)
{
    uint32_t i = lab->threads;

    if (i == ETCH_LAB_THREADS)
        lab_stop(ETCH_LAB_THREADS_OUT);
    lab_memory_meet();
    lab->threads++;
    lab_alive++;
    lab_threads[i] = (struct lab_thread){.state = LAB_READY, .deadline = LAB_NEVER, .mask = lab_threads[lab_me].mask};
    lab->thread[i].creator = lab_me;
    lab->thread[i].ordinal = ++lab_threads[lab_me].made;
    lab->thread[i].routine = routine;
    lab->thread[i].holder = UINT32_MAX;
    lab_rules_made(i);
    return i;
}

void lab_begin_thread(uint32_t thread)
{
    lab_me = thread;
    lab->thread[thread].tid = (uint32_t)lab_real_syscall(SYS_gettid);
    park(&lab_threads[thread]);
    await_leaving();
    controlled = true;
    lab_halt_if_due(true);
    lab_memory_meet();
    lab_note_sync(LAB_THREAD_START, (uint64_t)pthread_self(), lab->thread[thread].routine, 0, 0);
}

/* The kernel releases the robust mutexes of a thread that ends, and says nothing. */
static void wake_for_robust(void)
{
    for (uint32_t i = 0; i < lab->threads; i++)
        if (lab_threads[i].state == LAB_BLOCKED && lab_threads[i].wait == ETCH_LAB_MUTEX)
            lab_threads[i].state = LAB_READY;
}

void lab_end_thread(void)
{
    struct lab_thread *t = &lab_threads[lab_me];

    if (!lab_controlled())
        return;
    lab_note_settle();
    lab_memory_meet();
    lab_note_sync(LAB_THREAD_EXIT, (uint64_t)pthread_self(), 0, 0, 0);
    t->state = LAB_DEAD;
    lab_alive--;
    lab_rules_end(lab_me);
    leaving = lab->thread[lab_me].tid;
    lab_wake(LAB_OBJECT(t), true);
    wake_for_robust();
    controlled = false;
    if (lab_alive)
        pass(false);
}

/* ---- Control ---- */

void lab_take_control(struct etch_lab_shared *shared)
{
    etch_lab_strategy_init(&strategy, &shared->spec);
    for (uint32_t i = 0; i < ETCH_LAB_THREADS; i++)
        if (shared->expected[i] || shared->n_chosen)
            etch_lab_strategy_expect(&strategy, i, shared->expected[i]);
    shared->threads = 1;
    shared->thread[0] = (struct etch_lab_thread){.tid = (uint32_t)lab_real_syscall(SYS_getpid), .holder = UINT32_MAX};
    lab_threads[0] = (struct lab_thread){.state = LAB_READY, .deadline = LAB_NEVER, .self = pthread_self()};
    lab_me = 0;
    lab_alive = 1;
    lab_running = 0;
    leaving = 0;
    controlled = true;
    lab = shared;
    lab_rules_begin();
}

void lab_in_child(struct etch_lab_shared *of_parent, struct etch_lab_shared *own)
{
    if (!parent) {
        parent = of_parent;
        parent_pid = (pid_t)of_parent->thread[0].tid;
    }
    own->repeat = own->n_rules = own->n_places = own->n_names = own->recorded = own->feeds = own->sources =
        own->n_flows = own->n_chosen = own->debugged = 0;
    own->hash = of_parent->hash;
    own->virtual_ns = of_parent->virtual_ns;
    memcpy(own->learnt, own->sites, sizeof(own->learnt));
    memset(own->expected, 0, sizeof(own->expected));
    lab_take_control(own);
}
