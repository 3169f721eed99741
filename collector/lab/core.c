/* SPDX-License-Identifier: MIT */
/* The lab's scheduler: the baton, points, waiting, and virtual time. See runtime.h. */
#include "collector/lab/runtime.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define POINT_NS 1000    /* how much virtual time a point takes */
#define SPIN_READS 100   /* a thread with so many points in a row without a write waits for others in a loop */
#define OUTSIDE_FDS 4096 /* that are waited for at a time when no thread can run */
#define SPIN_POINTS 5000 /* the same for points of any kind, while others could run */

struct etch_lab_shared *lab;
struct lab_thread lab_threads[ETCH_LAB_THREADS];
__thread uint32_t lab_me;
uint32_t lab_alive;

static struct etch_lab_strategy strategy;
static uint64_t turns;
static uint32_t running; /* who has the baton */
static uint32_t leaving; /* the kernel's number of a thread that has ended and may still be on its way out */
static uint32_t streak, streak_reads;
static uint32_t input_at, input_done; /* in the schedule to repeat */
static __thread bool controlled;

#define LAB_REAL(result, name, ...) result (*lab_real_##name)(__VA_ARGS__);
#include "collector/lab/real.h"
#undef LAB_REAL

/* ---- The baton ---- */

static void park(struct lab_thread *t)
{
    while (!__atomic_load_n(&t->go, __ATOMIC_ACQUIRE)) /* pairs with the release in hand_to() */
        lab_real_syscall(SYS_futex, &t->go, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
    __atomic_store_n(&t->go, 0, __ATOMIC_RELAXED);
}

/* A thread that has ended still frees memory on its way out of the C library. Nobody runs beside it. */
static void await_leaving(void)
{
    while (leaving && lab_real_syscall(SYS_tgkill, lab_real_syscall(SYS_getpid), (long)leaving, 0) == 0)
        lab_real_sched_yield();
    leaving = 0;
}

static void hand_to(uint32_t thread)
{
    struct lab_thread *t = &lab_threads[thread];

    running = lab->running = thread;
    __atomic_store_n(&t->go, 1, __ATOMIC_RELEASE);
    lab_real_syscall(SYS_futex, &t->go, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

bool lab_controlled(void)
{
    return lab && controlled && running == lab_me;
}

/* The recorder traces the program: it sees a signal, and a program in which no thread runs. */
static void show_failure(enum etch_lab_outcome outcome)
{
    if (outcome == ETCH_LAB_MISUSED) {
        signal(SIGABRT, SIG_DFL);
        lab_real_syscall(SYS_tgkill, lab_real_syscall(SYS_getpid), lab_real_syscall(SYS_gettid), (long)SIGABRT);
    }
    while (outcome == ETCH_LAB_DEADLOCK)
        park(&lab_threads[lab_me]);
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

    lab_rules_follow(thread, t->site);
    lab->events_lost += t->site && lab->n_events >= ETCH_LAB_EVENTS;
    if (lab->n_events >= ETCH_LAB_EVENTS || !t->site)
        return;
    lab->n_events++;
    e->site = t->site;
    e->object = op->object;
    e->thread = thread;
    e->visit = visit_of(thread, t->site);
    e->write = op->write;
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

    about->points++;
    about->interesting += op->interesting;
    note(thread);
    note(op->object);
    note(lab_threads[thread].flow);
    lab_threads[thread].flow = 0;
    follow_flow(thread);
    note_segment(thread);
    note_event(thread, op);
    if (lab->points % ETCH_LAB_CHECK_EVERY == 0 && lab->n_checks < ETCH_LAB_CHECKS)
        lab->check[lab->n_checks++] = lab->hash;
    lab->points++;
    lab->virtual_ns += POINT_NS;
    if (lab->max_points && lab->points >= lab->max_points)
        lab_stop(ETCH_LAB_LIMIT);
}

/* ---- Who can run ---- */

/* A run that is repeated has no world outside: the schedule says when the thread went on. */
static bool fd_ready(const struct lab_thread *t)
{
    return (t->outside && lab->feeds) || lab_real_poll(t->set, t->n_set, 0) != 0;
}

/* The thread goes on: because its descriptor is ready, or because its time is up. */
static bool is_ready_now(uint32_t thread)
{
    const struct lab_thread *t = &lab_threads[thread];
    bool ready;

    if (t->wait != ETCH_LAB_DESCRIPTOR)
        return false;
    if (t->outside && lab->feeds)
        return lab_input_take_for(thread, ETCH_LAB_CALL_READY, t->set->fd)->result != 0;
    ready = fd_ready(t);
    if (t->outside)
        lab_input_keep_for(thread, ETCH_LAB_CALL_READY, t->set->fd, ready);
    return ready;
}

/* A sleep, or a wait with a time limit, may end once its time has come. Its time has come a little early, too: the
 * others may have been slow. */
static bool may_time_out(const struct lab_thread *t)
{
    return t->deadline != LAB_NEVER && t->deadline <= lab->virtual_ns + lab->slack_ns;
}

static bool can_run(struct lab_thread *t)
{
    if (t->state == LAB_READY)
        return true;
    if (t->state != LAB_BLOCKED)
        return false;
    if (t->wait == ETCH_LAB_DESCRIPTOR && fd_ready(t))
        return true;
    return may_time_out(t);
}

static uint32_t list_candidates(struct etch_lab_candidate *list)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < lab->threads; i++)
        if (can_run(&lab_threads[i]) && !(lab->n_rules && lab_rules_hold(i)))
            list[n++] = (struct etch_lab_candidate){i, lab_threads[i].op};
    return n;
}

/* ---- Nobody can run ---- */

static uint64_t next_deadline(void)
{
    uint64_t next = LAB_NEVER;

    for (uint32_t i = 0; i < lab->threads; i++)
        if (lab_threads[i].state == LAB_BLOCKED && lab_threads[i].deadline < next)
            next = lab_threads[i].deadline;
    return next;
}

/* Waits for the world outside, in real time; at most as long as the next deadline is away. */
static bool await_outside(uint64_t deadline)
{
    static struct pollfd list[OUTSIDE_FDS]; /* one thread runs at a time */
    nfds_t n = 0;
    int ms = -1;

    for (uint32_t i = 0; i < lab->threads; i++)
        if (lab_threads[i].state == LAB_BLOCKED && lab_threads[i].wait == ETCH_LAB_DESCRIPTOR)
            for (nfds_t k = 0; k < lab_threads[i].n_set && n < OUTSIDE_FDS; k++)
                list[n++] = lab_threads[i].set[k];
    if (!n)
        return false;
    if (deadline != LAB_NEVER) {
        uint64_t away = deadline > lab->virtual_ns ? deadline - lab->virtual_ns : 0;

        ms = away / 1000000 > 100000 ? 100000 : (int)(away / 1000000) + 1;
    }
    return lab_real_poll(list, n, ms) > 0;
}

static bool is_any_held(void)
{
    for (uint32_t i = 0; i < lab->threads; i++)
        if (lab_threads[i].state == LAB_READY && lab_rules_hold(i))
            return true;
    return false;
}

static bool is_any_outside(void)
{
    for (uint32_t i = 0; i < lab->threads; i++)
        if (lab_threads[i].state == LAB_BLOCKED && lab_threads[i].wait == ETCH_LAB_DESCRIPTOR && lab_threads[i].outside)
            return true;
    return false;
}

/* Virtual time jumps to the next moment at which a thread can run. */
static void make_runnable(void)
{
    uint64_t deadline = next_deadline();

    if (await_outside(deadline))
        return;
    if (deadline == LAB_NEVER)
        lab_stop(is_any_held() ? ETCH_LAB_INFEASIBLE : ETCH_LAB_DEADLOCK);
    if (deadline > lab->virtual_ns) {
        lab->virtual_ns = deadline;
        if (is_any_outside())
            lab_input_jumped();
    }
}

/* ---- Choosing ---- */

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
    bool same = thread == running;

    streak = same ? streak + 1 : 0;
    streak_reads = same && !op->write ? streak_reads + 1 : 0;
}

/* Who executes the next operation. */
static uint32_t choose(bool yields)
{
    static struct etch_lab_candidate list[ETCH_LAB_THREADS]; /* the holder of the baton's; too large for small stacks */
    struct etch_lab_view view = {.enabled = list, .last = running, .point = lab->points};
    uint32_t at;

    lab_input_jump();
    while ((view.n = list_candidates(list)) == 0)
        make_runnable();
    view.yields = yields || is_spinning();
    if (view.yields && is_spinning())
        streak = streak_reads = 0;
    if (!lab->repeat || !choose_repeated(list, view.n, &at))
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

static void pass(bool yields)
{
    uint32_t next = choose(yields);

    release(next);
    note_point(next, &lab_threads[next].op);
    if (next == lab_me)
        return;
    lab->switches++;
    hand_to(next);
    if (lab_threads[lab_me].state != LAB_DEAD) {
        park(&lab_threads[lab_me]);
        await_leaving();
    }
}

void lab_point(struct etch_lab_op op, uint64_t site)
{
    if (!lab_controlled()) {
        if (lab && controlled)
            lab->uncontrolled++;
        return;
    }
    lab_note_settle();
    lab->thread[lab_me].site = site;
    if (lab_alive < 2)
        return;
    lab_threads[lab_me].op = op;
    pass(false);
}

void lab_yield(uint64_t site)
{
    if (!lab_controlled())
        return;
    lab_note_settle();
    lab->thread[lab_me].site = site;
    if (lab_alive < 2)
        return;
    lab_threads[lab_me].op = (struct etch_lab_op){0};
    pass(true);
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
    t->turn = turns++;
    t->op = (struct etch_lab_op){.object = object, .write = true, .interesting = true};
    lab->thread[lab_me].site = site;
    pass(false);
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
    return lab_block(ETCH_LAB_DESCRIPTOR, (uint64_t)set->fd, deadline, site);
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
    lab->threads++;
    lab_alive++;
    lab_threads[i] = (struct lab_thread){.state = LAB_READY, .deadline = LAB_NEVER};
    lab->thread[i].creator = lab_me;
    lab->thread[i].ordinal = ++lab_threads[lab_me].made;
    lab->thread[i].routine = routine;
    lab->thread[i].holder = UINT32_MAX;
    return i;
}

void lab_begin_thread(uint32_t thread)
{
    lab_me = thread;
    lab->thread[thread].tid = (uint32_t)lab_real_syscall(SYS_gettid);
    park(&lab_threads[thread]);
    await_leaving();
    controlled = true;
    lab_note_sync(LAB_THREAD_START, (uint64_t)pthread_self(), lab->thread[thread].routine, 0, 0);
}

void lab_end_thread(void)
{
    struct lab_thread *t = &lab_threads[lab_me];

    if (!lab_controlled())
        return;
    lab_note_settle();
    lab_note_sync(LAB_THREAD_EXIT, (uint64_t)pthread_self(), 0, 0, 0);
    t->state = LAB_DEAD;
    lab_alive--;
    lab_rules_end(lab_me);
    leaving = lab->thread[lab_me].tid;
    lab_wake(LAB_OBJECT(t), true);
    controlled = false;
    pass(false);
}

/* ---- Beginning ---- */

extern char __executable_start[] __attribute__((visibility("hidden"))), _end[] __attribute__((visibility("hidden")));

void *lab_next(const char *name)
{
    return dlsym(RTLD_NEXT, name);
}

void lab_find_real(void)
{
#define LAB_REAL(result, name, ...) *(void **)&lab_real_##name = dlsym(RTLD_NEXT, #name);
#include "collector/lab/real.h"
#undef LAB_REAL
}

/* The program sees the environment that it would have without the lab. */
static int take_variable(void)
{
    static const char name[] = ETCH_LAB_VARIABLE "=";
    extern char **environ;

    for (char **e = environ; e && *e; e++)
        if (strncmp(*e, name, sizeof(name) - 1) == 0) {
            int fd = atoi(*e + sizeof(name) - 1);

            for (; *e; e++)
                e[0] = e[1];
            return fd;
        }
    return -1;
}

static struct etch_lab_shared *map_shared(int fd)
{
    struct etch_lab_shared *shared = MAP_FAILED;
    struct stat st;

    if (fd >= 0 && fstat(fd, &st) == 0 && st.st_size == (off_t)sizeof(*shared))
        shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (fd >= 0)
        close(fd);
    return shared != MAP_FAILED && shared->magic == ETCH_LAB_MAGIC && shared->size == sizeof(*shared) ? shared : NULL;
}

__attribute__((constructor(101))) static void begin(void)
{
    struct etch_lab_shared *shared;

    lab_find_real();
    shared = map_shared(take_variable());
    if (!shared)
        return;
    memcpy(shared->learnt, shared->sites, sizeof(shared->learnt));
    etch_lab_strategy_init(&strategy, &shared->spec);
    for (uint32_t i = 0; i < ETCH_LAB_THREADS; i++)
        if (shared->expected[i])
            etch_lab_strategy_expect(&strategy, i, shared->expected[i]);
    shared->started = 1;
    shared->base = LAB_OBJECT(__executable_start);
    shared->end = LAB_OBJECT(_end);
    shared->threads = 1;
    shared->hash = UINT64_C(14695981039346656037);
    shared->thread[0].tid = (uint32_t)lab_real_syscall(SYS_getpid);
    shared->thread[0].holder = UINT32_MAX;
    lab_threads[0] = (struct lab_thread){.state = LAB_READY, .deadline = LAB_NEVER, .self = pthread_self()};
    lab_alive = 1;
    controlled = true;
    lab = shared;
    lab_input_begin();
}
