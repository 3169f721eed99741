/* SPDX-License-Identifier: MIT */
/* The simulator: a queue of what each thread does next, in true time; see sim.h. */
#include "tests/sim/sim.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define START INT64_C(1000000000000)
#define NEVER INT64_MAX

/* ---- Chance ---- */

uint64_t sim_next(struct sim_random *random)
{
    uint64_t z = (random->state += UINT64_C(0x9e3779b97f4a7c15));

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

uint64_t sim_below(struct sim_random *random, uint64_t limit)
{
    return limit ? sim_next(random) % limit : 0;
}

int64_t sim_between(struct sim_random *random, int64_t lo, int64_t hi)
{
    return lo + (int64_t)sim_below(random, (uint64_t)(hi - lo) + 1);
}

bool sim_chance(struct sim_random *random, unsigned in_thousand)
{
    return sim_below(random, 1000) < in_thousand;
}

double sim_normal(struct sim_random *random)
{
    double sum = -6;

    for (int i = 0; i < 12; i++)
        sum += (double)(sim_next(random) >> 11) / 9007199254740992.0;
    return sum;
}

/* ---- Calibration ---- */

struct etch_skew_round sim_write_round(struct sim_random *random, int64_t skew)
{
    int64_t a_begin = START + sim_between(random, 0, 400);
    int64_t b_begin = START + sim_between(random, 0, 400);
    int64_t a_write = a_begin + sim_between(random, 1, 60);
    int64_t b_write = b_begin + sim_between(random, 1, 60);
    bool b_second = b_write >= a_write;
    struct etch_skew_round round;

    /* The second write waits for the line; now and then somebody is interrupted. */
    if (b_second)
        b_write = (b_write > a_write + 60 ? b_write : a_write + 60) + sim_between(random, 0, 20);
    else
        a_write = (a_write > b_write + 60 ? a_write : b_write + 60) + sim_between(random, 0, 20);
    round.a_begin = (uint64_t)(a_begin - (sim_chance(random, 5) ? sim_between(random, 0, 100000) : 0));
    round.b_begin = (uint64_t)(b_begin - (sim_chance(random, 5) ? sim_between(random, 0, 100000) : 0) + skew);
    round.a_end = (uint64_t)(a_write + sim_between(random, 10, 60));
    round.b_end = (uint64_t)(b_write + sim_between(random, 10, 60) + skew);
    round.b_second = b_second;
    return round;
}

int64_t sim_flag_round(struct sim_random *random, double skew, double asymmetry, bool a_sets)
{
    double transfer = 360 + 8 * sim_normal(random);

    if (sim_chance(random, 3))
        transfer += (double)sim_below(random, 100000);
    return llround(skew + (a_sets ? transfer + asymmetry / 2 : -transfer + asymmetry / 2));
}

/* ---- The machine ---- */

struct machine {
    const struct sim_options *options;
    struct sim_random random;
    int64_t *skew;
    double *drift;
    int64_t change_at;
};

static uint64_t clock_of(const struct machine *m, uint32_t cpu, int64_t t)
{
    int64_t c = t + m->skew[cpu] + llround(m->drift[cpu] * (double)(t - START));

    if (m->options->wrong_by && cpu == m->options->wrong_cpu && t >= m->change_at)
        c += m->options->wrong_by;
    return (uint64_t)c;
}

/* ---- Threads and what they wait for ---- */

enum next { NEXT_STEP, NEXT_ACQUIRED, NEXT_DONE };

struct thread {
    int64_t at;    /* when its next effect comes; NEVER: it waits for somebody */
    int64_t ready; /* when it may go on: after its last stamp */
    uint32_t cpu;
    uint32_t steps; /* left */
    uint32_t held;  /* lock + 1 */
    bool shared;
    uint8_t doing; /* Etch__SyncOp, or ACCESS */
    uint32_t with; /* lock, condition, variable */
    bool woken, signalled;
    uint32_t barriers;
    uint32_t losing;
    bool hidden; /* a mark of loss stands for the lost ones already */
};

struct lock {
    uint32_t writer; /* thread + 1 */
    uint32_t readers;
};

struct world {
    struct machine m;
    struct sim_run *run;
    struct thread *threads;
    struct lock *locks; /* mutexes, then rwlocks */
    uint64_t *values;
    int64_t *counts; /* semaphores */
    uint64_t sequence, fresh;
    uint32_t arrived, started, done;
    int64_t horizon; /* the latest time seen */
    bool out_of_memory;
};

#define ACCESS 200

static uint64_t object_of(uint32_t kind, uint32_t index)
{
    return ((uint64_t)kind << 32) + index * 64 + 64;
}

static struct etch_event *emit(struct world *w, uint32_t thread, enum etch_event_kind kind)
{
    struct sim_run *r = w->run;
    struct etch_event *e;

    if (r->n == r->capacity) {
        size_t capacity = r->capacity ? 2 * r->capacity : 256;
        void *events = realloc(r->events, capacity * sizeof(*r->events));
        void *stamps, *truth;

        r->events = events ? events : r->events;
        stamps = realloc(r->stamps, capacity * sizeof(*r->stamps));
        r->stamps = stamps ? stamps : r->stamps;
        truth = realloc(r->truth, capacity * sizeof(*r->truth));
        r->truth = truth ? truth : r->truth;
        if (!events || !stamps || !truth) {
            w->out_of_memory = true;
            return NULL;
        }
        r->capacity = capacity;
    }
    e = &r->events[r->n];
    memset(e, 0, sizeof(*e));
    e->thread = thread;
    e->kind = (uint8_t)kind;
    r->stamps[r->n] = (struct etch_event_stamp){.cpu = ETCH_CPU_NONE, .stamping = ETCH_STAMPED_NOT};
    r->truth[r->n] = w->sequence++;
    r->n++;
    return e;
}

/* Whether this record of a thread is lost; a run of them leaves one mark. */
static bool lost(struct world *w, uint32_t thread)
{
    struct thread *t = &w->threads[thread];

    if (t->losing == 0 && sim_chance(&w->m.random, w->m.options->lose)) {
        t->losing = 1 + (uint32_t)sim_below(&w->m.random, 6);
        t->hidden = false;
    }
    if (t->losing == 0)
        return false;
    t->losing--;
    w->run->lost++;
    if (!t->hidden)
        emit(w, thread, ETCH_EVENT_LOSS);
    t->hidden = true;
    return true;
}

static void maybe_migrate(struct world *w, struct thread *t, unsigned chance)
{
    if (sim_chance(&w->m.random, chance))
        t->cpu = (uint32_t)sim_below(&w->m.random, w->m.options->cpus);
}

/* A step at true time `at`, known within an interval by the CPU's clock, of which it may not be known whose it is. */
static void mark(struct world *w, uint32_t thread, int64_t at)
{
    const struct sim_options *o = w->m.options;
    uint32_t cpu = w->threads[thread].cpu;
    uint64_t lo = clock_of(&w->m, cpu, at - sim_between(&w->m.random, 1, o->pace));
    uint64_t hi = clock_of(&w->m, cpu, at + sim_between(&w->m.random, 1, o->pace));

    if (!emit(w, o->threads + thread, ETCH_EVENT_MARK))
        return;
    /* For the time being; see set_marks(). */
    w->run->stamps[w->run->n - 1].tsc = lo;
    w->run->stamps[w->run->n - 1].latency = (uint32_t)(hi - lo);
    w->run->stamps[w->run->n - 1].cpu = sim_chance(&w->m.random, 300) ? ETCH_CPU_ANY : cpu;
}

static void set_marks(struct sim_run *run, uint32_t threads)
{
    for (size_t i = 0; i < run->n; i++) {
        const struct etch_event_stamp *s = &run->stamps[i];

        if (run->events[i].thread < threads)
            continue;
        run->events[i].lo = (struct etch_bound){.tsc = s->tsc, .cpu = s->cpu};
        run->events[i].hi = (struct etch_bound){.tsc = s->tsc + s->latency, .cpu = s->cpu};
    }
}

/* The stamp on the other side of a call, as etch-sync.so takes it: how far it is from the first. The CPU is the same.
 */
static uint32_t span_of(struct world *w, const struct thread *t, uint8_t op, int64_t ready, int64_t at,
                        const struct etch_event_stamp *stamp)
{
    uint64_t other;

    switch (op) {
    case ETCH__SYNC_OP__SYNC_MUTEX_LOCK:
    case ETCH__SYNC_OP__SYNC_RWLOCK_RDLOCK:
    case ETCH__SYNC_OP__SYNC_RWLOCK_WRLOCK:
    case ETCH__SYNC_OP__SYNC_SEM_WAIT: /* it was called at some time since the thread was free to */
        other = clock_of(&w->m, t->cpu, sim_between(&w->m.random, ready > at - 200 ? ready : at - 200, at));
        return (uint32_t)(stamp->tsc - other);
    case ETCH__SYNC_OP__SYNC_MUTEX_UNLOCK:
    case ETCH__SYNC_OP__SYNC_RWLOCK_UNLOCK:
    case ETCH__SYNC_OP__SYNC_COND_SIGNAL:
    case ETCH__SYNC_OP__SYNC_COND_BROADCAST:
    case ETCH__SYNC_OP__SYNC_SEM_POST:
    case ETCH__SYNC_OP__SYNC_THREAD_CREATE:
        other = clock_of(&w->m, t->cpu, at + sim_between(&w->m.random, 5, 60));
        return (uint32_t)(other - stamp->tsc);
    default:
        return 0;
    }
}

/* An effect at true time `at`, its record and its stamp. Sets when the thread may go on. */
static struct etch_event *effect(struct world *w, uint32_t thread, enum etch_event_kind kind, uint8_t op,
                                 uint64_t object, int64_t at)
{
    struct thread *t = &w->threads[thread];
    struct sim_random *random = &w->m.random;
    enum etch_stamping stamping = kind == ETCH_EVENT_SYNC ? etch_timeline_stamping(op) : ETCH_STAMPED_AFTER;
    int64_t delay = kind == ETCH_EVENT_ACCESS ? sim_between(random, w->m.options->trap / 8 + 1, w->m.options->trap + 2)
                                              : sim_between(random, 5, 60);
    int64_t stamp_at, ready = t->ready;
    uint32_t cpu = t->cpu;
    struct etch_event *e;

    if (w->m.options->mark && sim_chance(random, w->m.options->mark))
        mark(w, thread, at);
    if (sim_chance(random, w->m.options->preempt))
        delay += sim_between(random, 1000, 100000);
    /* Before: it was stamped when the thread last was free to, somewhere between then and now. */
    stamp_at = stamping == ETCH_STAMPED_BEFORE ? sim_between(random, t->ready, at) : at + delay;
    if (stamping == ETCH_STAMPED_AFTER && sim_chance(random, w->m.options->migrate / 4))
        maybe_migrate(w, t, 1000);
    t->ready = (stamping == ETCH_STAMPED_BEFORE ? at : stamp_at) + sim_between(random, 1, 20);
    if (t->ready > w->horizon)
        w->horizon = t->ready;
    if (lost(w, thread)) {
        w->sequence++;
        return NULL;
    }
    e = emit(w, thread, kind);
    if (!e)
        return NULL;
    e->op = op;
    e->object = object;
    w->run->stamps[w->run->n - 1] = (struct etch_event_stamp){
        .tsc = clock_of(&w->m, t->cpu, stamp_at), .cpu = t->cpu, .stamping = (uint8_t)stamping};
    if (w->m.options->spans && kind == ETCH_EVENT_SYNC && t->cpu == cpu)
        w->run->stamps[w->run->n - 1].latency = span_of(w, t, op, ready, at, &w->run->stamps[w->run->n - 1]);
    return e;
}

/* ---- Steps ---- */

static void plan(struct world *w, uint32_t thread, uint8_t doing, uint32_t with)
{
    struct thread *t = &w->threads[thread];

    t->doing = doing;
    t->with = with;
    maybe_migrate(w, t, w->m.options->migrate);
    t->at = t->ready + sim_between(&w->m.random, 10, 2 * w->m.options->pace);
}

/* What a thread that holds a lock does next, and what one does that holds none. */
static void choose(struct world *w, uint32_t thread)
{
    const struct sim_options *o = w->m.options;
    struct sim_random *random = &w->m.random;
    struct thread *t = &w->threads[thread];
    uint32_t locks = o->mutexes + o->rwlocks;
    uint64_t pick = sim_below(random, 100);

    if (t->steps)
        t->steps--;
    if (o->variables && pick < o->access) {
        plan(w, thread, ACCESS, (uint32_t)sim_below(random, o->variables));
    } else if (t->held) {
        bool mutex = t->held - 1 < o->mutexes;

        if (mutex && o->conditions && sim_chance(random, 150))
            plan(w, thread, ETCH__SYNC_OP__SYNC_COND_WAIT_BEGIN, t->held - 1);
        else
            plan(w, thread, mutex ? ETCH__SYNC_OP__SYNC_MUTEX_UNLOCK : ETCH__SYNC_OP__SYNC_RWLOCK_UNLOCK, t->held - 1);
    } else if (o->barrier && (o->steps - t->steps) / o->barrier > t->barriers) {
        t->barriers++;
        plan(w, thread, ETCH__SYNC_OP__SYNC_BARRIER_ENTER, 0);
    } else if (t->steps == 0) {
        plan(w, thread, ETCH__SYNC_OP__SYNC_THREAD_EXIT, 0);
    } else if (o->conditions && sim_chance(random, 80)) {
        plan(w, thread, sim_chance(random, 500) ? ETCH__SYNC_OP__SYNC_COND_SIGNAL : ETCH__SYNC_OP__SYNC_COND_BROADCAST,
             (uint32_t)sim_below(random, o->mutexes));
    } else if (o->semaphores && sim_chance(random, 200)) {
        uint32_t s = (uint32_t)sim_below(random, o->semaphores);

        plan(w, thread, sim_chance(random, 550) ? ETCH__SYNC_OP__SYNC_SEM_POST : ETCH__SYNC_OP__SYNC_SEM_WAIT, s);
    } else if (locks) {
        uint32_t lock = (uint32_t)sim_below(random, locks);

        plan(w, thread,
             lock < o->mutexes         ? ETCH__SYNC_OP__SYNC_MUTEX_LOCK
             : sim_chance(random, 600) ? ETCH__SYNC_OP__SYNC_RWLOCK_RDLOCK
                                       : ETCH__SYNC_OP__SYNC_RWLOCK_WRLOCK,
             lock);
    } else {
        plan(w, thread, ACCESS, (uint32_t)sim_below(random, o->variables));
    }
}

static uint64_t lock_object(const struct world *w, uint32_t lock)
{
    return object_of(lock < w->m.options->mutexes ? 1 : 2, lock);
}

static void acquire(struct world *w, uint32_t thread, int64_t at)
{
    struct thread *t = &w->threads[thread];
    struct lock *lock = &w->locks[t->with];
    bool shared = t->doing == ETCH__SYNC_OP__SYNC_RWLOCK_RDLOCK;

    if (lock->writer || (lock->readers && !shared)) {
        t->at = NEVER; /* until somebody releases it */
        return;
    }
    if (shared)
        lock->readers++;
    else
        lock->writer = thread + 1;
    t->held = t->with + 1;
    t->shared = shared;
    if (t->doing == ETCH__SYNC_OP__SYNC_COND_WAIT_END) {
        struct etch_event *e = effect(w, thread, ETCH_EVENT_SYNC, t->doing, object_of(3, t->with), at);

        if (e) {
            e->other = lock_object(w, t->with);
            e->result = w->m.options->signals_wake && !t->signalled ? 110 : 0;
        }
    } else {
        effect(w, thread, ETCH_EVENT_SYNC, t->doing, lock_object(w, t->with), at);
    }
    choose(w, thread);
}

static void release(struct world *w, uint32_t thread, int64_t at)
{
    struct thread *t = &w->threads[thread];
    uint32_t lock = t->held - 1;

    if (t->shared)
        w->locks[lock].readers--;
    else
        w->locks[lock].writer = 0;
    t->held = 0;
    for (uint32_t i = 0; i < w->m.options->threads; i++) {
        struct thread *other = &w->threads[i];
        bool waits =
            other->at == NEVER && other->with == lock &&
            (other->doing == ETCH__SYNC_OP__SYNC_MUTEX_LOCK || other->doing == ETCH__SYNC_OP__SYNC_RWLOCK_RDLOCK ||
             other->doing == ETCH__SYNC_OP__SYNC_RWLOCK_WRLOCK ||
             (other->doing == ETCH__SYNC_OP__SYNC_COND_WAIT_END && other->woken));

        if (waits)
            other->at = at + sim_between(&w->m.random, 40, 600);
    }
}

/* Gives the mutex up; comes back when signalled, or for no reason at all after a while. */
static void wait_begin(struct world *w, uint32_t thread, int64_t at)
{
    struct thread *t = &w->threads[thread];
    struct etch_event *e = effect(w, thread, ETCH_EVENT_SYNC, t->doing, object_of(3, t->with), at);

    if (e)
        e->other = lock_object(w, t->with);
    release(w, thread, at);
    t->doing = ETCH__SYNC_OP__SYNC_COND_WAIT_END;
    t->woken = true;
    t->signalled = false;
    t->at = at + sim_between(&w->m.random, 100, 60000);
}

static void signal_condition(struct world *w, uint32_t thread, int64_t at)
{
    struct thread *t = &w->threads[thread];

    effect(w, thread, ETCH_EVENT_SYNC, t->doing, object_of(3, t->with), at);
    for (uint32_t i = 0; i < w->m.options->threads; i++) {
        struct thread *other = &w->threads[i];

        if (other->doing != ETCH__SYNC_OP__SYNC_COND_WAIT_END || other->with != t->with || other->at == NEVER)
            continue;
        if (other->signalled && t->doing == ETCH__SYNC_OP__SYNC_COND_SIGNAL)
            continue;
        other->signalled = true;
        if (other->at > at + 600)
            other->at = at + sim_between(&w->m.random, 50, 600);
        if (t->doing == ETCH__SYNC_OP__SYNC_COND_SIGNAL)
            break;
    }
    choose(w, thread);
}

static void access_variable(struct world *w, uint32_t thread, int64_t at)
{
    struct sim_random *random = &w->m.random;
    struct thread *t = &w->threads[thread];
    uint64_t *value = &w->values[t->with];
    uint64_t seen = *value;
    unsigned what = (unsigned)sim_below(random, 5); /* 0, 1: write; 2: read-modify-write; 3, 4: read */
    struct etch_event *e;

    if (what <= 2)
        *value = w->m.options->unique_values ? ++w->fresh : sim_below(random, 3);
    e = effect(w, thread, ETCH_EVENT_ACCESS, 0, object_of(5, t->with), at);
    if (e) {
        e->written = *value;
        e->seen = seen;
        e->access = (uint8_t)((what <= 2 ? ETCH_ACCESS_WRITE | ETCH_ACCESS_WRITTEN_KNOWN : 0) |
                              (what >= 2 ? ETCH_ACCESS_READ | ETCH_ACCESS_SEEN_KNOWN : 0));
        if (what <= 2 && sim_chance(random, 20))
            e->access &= (uint8_t)~ETCH_ACCESS_WRITTEN_KNOWN;
        if (what == 2 && sim_chance(random, 500))
            e->access &= (uint8_t)~ETCH_ACCESS_SEEN_KNOWN;
    }
    choose(w, thread);
}

static void semaphore(struct world *w, uint32_t thread, int64_t at)
{
    struct thread *t = &w->threads[thread];

    if (t->doing == ETCH__SYNC_OP__SYNC_SEM_POST) {
        w->counts[t->with]++;
        effect(w, thread, ETCH_EVENT_SYNC, t->doing, object_of(4, t->with), at);
    } else if (w->counts[t->with] > 0) {
        w->counts[t->with]--;
        effect(w, thread, ETCH_EVENT_SYNC, t->doing, object_of(4, t->with), at);
    } else {
        struct etch_event *e = effect(w, thread, ETCH_EVENT_SYNC, t->doing, object_of(4, t->with), at);

        if (e)
            e->result = 11; /* a try that failed */
    }
    choose(w, thread);
}

/* The last one to come lets all go. */
static void barrier(struct world *w, uint32_t thread, int64_t at)
{
    struct thread *t = &w->threads[thread];

    if (t->doing == ETCH__SYNC_OP__SYNC_BARRIER_LEAVE) {
        struct etch_event *e = effect(w, thread, ETCH_EVENT_SYNC, t->doing, object_of(6, 0), at);

        if (e)
            e->result = t->woken ? -1 : 0;
        choose(w, thread);
        return;
    }
    effect(w, thread, ETCH_EVENT_SYNC, t->doing, object_of(6, 0), at);
    t->doing = ETCH__SYNC_OP__SYNC_BARRIER_LEAVE;
    t->woken = false;
    t->at = NEVER;
    if (++w->arrived < w->m.options->threads)
        return;
    w->arrived = 0;
    t->woken = true; /* the serial one */
    for (uint32_t i = 0; i < w->m.options->threads; i++)
        w->threads[i].at = at + sim_between(&w->m.random, 50, 2000);
}

/* Thread 0 makes the others, and joins them at the end. */
static void lifetime(struct world *w, uint32_t thread, int64_t at)
{
    struct thread *t = &w->threads[thread];
    uint32_t threads = w->m.options->threads;

    if (t->doing == ETCH__SYNC_OP__SYNC_THREAD_CREATE) {
        effect(w, thread, ETCH_EVENT_SYNC, t->doing, object_of(7, t->with), at);
        w->threads[t->with].ready = at;
        w->threads[t->with].at = at + sim_between(&w->m.random, 500, 20000);
        w->threads[t->with].doing = ETCH__SYNC_OP__SYNC_THREAD_START;
        if (t->with + 1 < threads)
            plan(w, thread, ETCH__SYNC_OP__SYNC_THREAD_CREATE, t->with + 1);
        else
            choose(w, thread);
    } else if (t->doing == ETCH__SYNC_OP__SYNC_THREAD_START) {
        effect(w, thread, ETCH_EVENT_SYNC, t->doing, object_of(7, thread), at);
        choose(w, thread);
    } else if (t->doing == ETCH__SYNC_OP__SYNC_THREAD_JOIN) {
        if (w->threads[t->with].doing != ACCESS + 1) {
            t->at = at + 3000;
            return;
        }
        effect(w, thread, ETCH_EVENT_SYNC, t->doing, object_of(7, t->with), at);
        if (t->with + 1 < threads)
            plan(w, thread, ETCH__SYNC_OP__SYNC_THREAD_JOIN, t->with + 1);
        else
            t->at = NEVER;
    } else if (thread == 0 && threads > 1) {
        t->ready = at;
        plan(w, thread, ETCH__SYNC_OP__SYNC_THREAD_JOIN, 1);
    } else {
        effect(w, thread, ETCH_EVENT_SYNC, t->doing, object_of(7, thread), at);
        t->doing = ACCESS + 1; /* gone */
        t->at = NEVER;
    }
}

static void step(struct world *w, uint32_t thread)
{
    struct thread *t = &w->threads[thread];
    int64_t at = t->at;

    switch (t->doing) {
    case ACCESS:
        access_variable(w, thread, at);
        break;
    case ETCH__SYNC_OP__SYNC_MUTEX_LOCK:
    case ETCH__SYNC_OP__SYNC_RWLOCK_RDLOCK:
    case ETCH__SYNC_OP__SYNC_RWLOCK_WRLOCK:
    case ETCH__SYNC_OP__SYNC_COND_WAIT_END:
        acquire(w, thread, at);
        break;
    case ETCH__SYNC_OP__SYNC_MUTEX_UNLOCK:
    case ETCH__SYNC_OP__SYNC_RWLOCK_UNLOCK:
        effect(w, thread, ETCH_EVENT_SYNC, t->doing, lock_object(w, t->with), at);
        release(w, thread, at);
        choose(w, thread);
        break;
    case ETCH__SYNC_OP__SYNC_COND_WAIT_BEGIN:
        wait_begin(w, thread, at);
        break;
    case ETCH__SYNC_OP__SYNC_COND_SIGNAL:
    case ETCH__SYNC_OP__SYNC_COND_BROADCAST:
        signal_condition(w, thread, at);
        break;
    case ETCH__SYNC_OP__SYNC_SEM_POST:
    case ETCH__SYNC_OP__SYNC_SEM_WAIT:
        semaphore(w, thread, at);
        break;
    case ETCH__SYNC_OP__SYNC_BARRIER_ENTER:
    case ETCH__SYNC_OP__SYNC_BARRIER_LEAVE:
        barrier(w, thread, at);
        break;
    default:
        lifetime(w, thread, at);
        break;
    }
}

/* ---- A run ---- */

static void play(struct world *w)
{
    const struct sim_options *o = w->m.options;

    for (uint32_t i = 0; i < o->threads; i++) {
        w->threads[i].at = NEVER;
        w->threads[i].ready = START;
        w->threads[i].steps = o->steps;
        w->threads[i].cpu = i % o->cpus;
    }
    for (uint32_t s = 0; s < o->semaphores; s++) {
        struct etch_event *e;

        w->counts[s] = (int64_t)(s % 3);
        w->threads[0].ready += 100;
        e = effect(w, 0, ETCH_EVENT_SYNC, ETCH__SYNC_OP__SYNC_SEM_INIT, object_of(4, s), w->threads[0].ready + 10);
        if (e)
            e->other = s % 3;
    }
    if (o->threads > 1)
        plan(w, 0, ETCH__SYNC_OP__SYNC_THREAD_CREATE, 1);
    else
        choose(w, 0);
    while (!w->out_of_memory) {
        uint32_t next = 0;

        for (uint32_t i = 1; i < o->threads; i++)
            if (w->threads[i].at < w->threads[next].at)
                next = i;
        if (w->threads[next].at == NEVER)
            break;
        step(w, next);
    }
}

/* Ranges that contain the truth from the first to the last moment, as two good calibrations would give them. */
static void set_ranges(struct world *w)
{
    const struct sim_options *o = w->m.options;

    for (uint32_t c = 0; c < o->cpus; c++) {
        struct etch_cpu_range *range = &w->run->cpus[c];
        int64_t first = w->m.skew[c];
        int64_t last = first + llround(w->m.drift[c] * (double)(w->horizon - START));

        range->known = !o->clocks_refused;
        range->local = true;
        if (c == 0)
            continue;
        range->lo = (first < last ? first : last) - sim_between(&w->m.random, 1, 150);
        range->hi = (first > last ? first : last) + sim_between(&w->m.random, 1, 150);
    }
}

static bool prepare(struct world *w, struct sim_run *run, const struct sim_options *o)
{
    w->m.options = o;
    w->m.random.state = o->seed * 7919 + 17;
    w->run = run;
    run->cpus = calloc(o->cpus, sizeof(*run->cpus));
    run->skew = w->m.skew = calloc(o->cpus, sizeof(*run->skew));
    run->locations = calloc(o->variables + 1, sizeof(*run->locations));
    run->tasks = calloc(2 * (size_t)o->threads, sizeof(*run->tasks));
    w->m.drift = calloc(o->cpus, sizeof(*w->m.drift));
    w->threads = calloc(o->threads, sizeof(*w->threads));
    w->locks = calloc(o->mutexes + o->rwlocks + 1, sizeof(*w->locks));
    w->values = calloc(o->variables + 1, sizeof(*w->values));
    w->counts = calloc(o->semaphores + 1, sizeof(*w->counts));
    if (!run->cpus || !run->skew || !run->locations || !run->tasks || !w->m.drift || !w->threads || !w->locks ||
        !w->values || !w->counts)
        return false;
    for (uint32_t c = 1; c < o->cpus; c++) {
        w->m.skew[c] = sim_between(&w->m.random, -o->max_skew, o->max_skew);
        w->m.drift[c] = (double)sim_between(&w->m.random, -o->drift_ppb, o->drift_ppb) * 1e-9;
    }
    for (uint32_t v = 0; v < o->variables; v++) {
        w->values[v] = sim_below(&w->m.random, 3);
        run->locations[v] = (struct etch_watched){
            .object = object_of(5, v), .initial = w->values[v], .initial_known = sim_chance(&w->m.random, 800)};
    }
    for (uint32_t i = 0; i < 2 * o->threads; i++)
        run->tasks[i] = i % o->threads;
    w->fresh = 10;
    w->m.change_at = START + llround(o->wrong_from * (double)o->steps * (double)o->pace);
    return true;
}

int sim_run_new(struct sim_run *run, const struct sim_options *options)
{
    struct world w = {0};
    bool good;

    memset(run, 0, sizeof(*run));
    good = prepare(&w, run, options);
    if (good) {
        play(&w);
        set_ranges(&w);
        etch_timeline_bounds(run->events, run->stamps, run->n, 2 * options->threads);
        set_marks(run, options->threads);
    }
    free(w.m.drift);
    free(w.threads);
    free(w.locks);
    free(w.values);
    free(w.counts);
    run->input = (struct etch_order_input){.events = run->events,
                                           .n = run->n,
                                           .threads = (options->mark ? 2 : 1) * options->threads,
                                           .tasks = run->tasks,
                                           .cpus = run->cpus,
                                           .n_cpus = options->cpus,
                                           .locations = run->locations,
                                           .n_locations = options->variables,
                                           .signals_wake = options->signals_wake};
    return good && !w.out_of_memory ? 0 : -1;
}

void sim_run_free(struct sim_run *run)
{
    free(run->events);
    free(run->stamps);
    free(run->truth);
    free(run->cpus);
    free(run->skew);
    free(run->locations);
    free(run->tasks);
    memset(run, 0, sizeof(*run));
}
