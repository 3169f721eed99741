/* SPDX-License-Identifier: MIT */
/* See critical_wait.h. Stamps of two CPUs are compared as they are: docs/report.md says by how much that may be wrong.
 */
#include "report/critical_wait.h"

#include <stdlib.h>

/* For qsort, which has no context. */
static _Thread_local const Etch__Sync *sorted_syncs;

static int compare(uint64_t x, uint64_t y)
{
    return x < y ? -1 : x > y;
}

static int by_thread(const void *a, const void *b)
{
    size_t i = *(const size_t *)a, k = *(const size_t *)b;
    const Etch__Sync *x = &sorted_syncs[i], *y = &sorted_syncs[k];
    int order = compare(x->tid, y->tid);

    order = order ? order : compare(x->tsc, y->tsc);
    return order ? order : compare(i, k);
}

static int by_object(const void *a, const void *b)
{
    size_t i = *(const size_t *)a, k = *(const size_t *)b;
    const Etch__Sync *x = &sorted_syncs[i], *y = &sorted_syncs[k];
    int order = compare(x->object, y->object);

    order = order ? order : compare(x->tsc, y->tsc);
    return order ? order : compare(i, k);
}

bool etch_sync_table_build(struct etch_sync_table *t, const struct etch_recording *recording)
{
    size_t n = recording->syncs.n;

    t->recording = recording;
    if (!etch_array_reserve(&t->by_thread, n + 1) || !etch_array_reserve(&t->by_object, n + 1) ||
        !etch_array_reserve(&t->place, n + 1))
        return false;
    for (size_t i = 0; i < n; i++)
        t->by_thread.v[i] = t->by_object.v[i] = i;
    t->by_thread.n = t->by_object.n = t->place.n = n;
    sorted_syncs = recording->syncs.v;
    if (n) {
        qsort(t->by_thread.v, n, sizeof(size_t), by_thread);
        qsort(t->by_object.v, n, sizeof(size_t), by_object);
    }
    for (size_t i = 0; i < n; i++)
        t->place.v[t->by_thread.v[i]] = i;
    return true;
}

void etch_sync_table_release(struct etch_sync_table *t)
{
    etch_array_free(&t->by_thread);
    etch_array_free(&t->by_object);
    etch_array_free(&t->place);
}

static const Etch__Sync *sync_at(const struct etch_sync_table *t, size_t index)
{
    return &t->recording->syncs.v[index];
}

size_t etch_sync_table_thread(const struct etch_sync_table *t, uint32_t tid, size_t *n)
{
    size_t low = 0, high = t->by_thread.n, end;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (sync_at(t, t->by_thread.v[middle])->tid < tid)
            low = middle + 1;
        else
            high = middle;
    }
    for (end = low; end < t->by_thread.n && sync_at(t, t->by_thread.v[end])->tid == tid;)
        end++;
    *n = end - low;
    return low;
}

/* A set of operations, as bits. */
#define OP(name) (1u << ETCH__SYNC_OP__SYNC_##name)
#define UNLOCKS (OP(MUTEX_UNLOCK) | OP(RWLOCK_UNLOCK) | OP(SPIN_UNLOCK) | OP(COND_WAIT_BEGIN))
#define LOCKS (OP(MUTEX_LOCK) | OP(RWLOCK_RDLOCK) | OP(RWLOCK_WRLOCK) | OP(SPIN_LOCK))

static bool is_op(const Etch__Sync *s, uint32_t set)
{
    return (unsigned)s->op < 32 && set >> (unsigned)s->op & 1;
}

/* The last operation of the set on the object before `tsc`, of another thread than `tid` (or of `of`, if not 0). */
static size_t last_before(const struct etch_sync_table *t, uint64_t object, uint64_t tsc, uint32_t set, uint32_t tid,
                          uint32_t of)
{
    size_t low = 0, high = t->by_object.n;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const Etch__Sync *s = sync_at(t, t->by_object.v[middle]);

        if (s->object < object || (s->object == object && s->tsc < tsc))
            low = middle + 1;
        else
            high = middle;
    }
    while (low-- > 0) {
        const Etch__Sync *s = sync_at(t, t->by_object.v[low]);

        if (s->object != object)
            break;
        if (is_op(s, set) && s->tid != tid && (!of || s->tid == of))
            return t->by_object.v[low];
    }
    return ETCH_SYNC_NONE;
}

/* The operation of the same thread before this one; ETCH_SYNC_NONE: none. */
static size_t previous(const struct etch_sync_table *t, size_t index)
{
    size_t place = t->place.v[index];

    return place && sync_at(t, t->by_thread.v[place - 1])->tid == sync_at(t, index)->tid ? t->by_thread.v[place - 1]
                                                                                         : ETCH_SYNC_NONE;
}

/* When the thread began to wait: exactly by a record of that, or by the stamp before the call; else it was behind the
 * thread's previous operation. */
static uint64_t began(const struct etch_sync_table *t, size_t index, uint32_t beginnings, bool *exact)
{
    const Etch__Sync *s = sync_at(t, index);
    size_t before = previous(t, index);

    *exact = true;
    if (before != ETCH_SYNC_NONE && is_op(sync_at(t, before), beginnings) && sync_at(t, before)->object == s->object)
        return sync_at(t, before)->tsc;
    if (s->across && s->across < s->tsc)
        return s->across;
    *exact = false;
    return before == ETCH_SYNC_NONE ? 0 : sync_at(t, before)->tsc;
}

static bool is_ended_by(const struct etch_sync_table *t, size_t index, size_t ender, uint32_t beginnings,
                        enum etch_link_kind kind, struct etch_sync_wait *wait)
{
    const Etch__Sync *s = sync_at(t, index), *e;
    bool exact;

    if (ender == ETCH_SYNC_NONE)
        return false;
    e = sync_at(t, ender);
    wait->kind = kind;
    wait->tid = s->tid;
    wait->other = e->tid;
    wait->object = s->object;
    wait->caller = s->caller;
    wait->from = began(t, index, beginnings, &exact);
    wait->to = s->tsc;
    wait->ended = e->tsc;
    wait->owner_caller = 0;
    if (!wait->from || wait->ended <= wait->from || wait->ended >= wait->to)
        return false;
    wait->waited.lo = exact ? wait->ended - wait->from : 0;
    wait->waited.hi = wait->to - wait->from;
    return true;
}

static bool lock_wait(const struct etch_sync_table *t, size_t index, struct etch_sync_wait *wait)
{
    const Etch__Sync *s = sync_at(t, index);
    size_t ender = last_before(t, s->object, s->tsc, UNLOCKS, s->tid, 0), taken;

    if (s->result != 0 || !is_ended_by(t, index, ender, OP(MUTEX_BLOCKED), ETCH_LINK_LOCK, wait))
        return false;
    taken = last_before(t, s->object, wait->ended, LOCKS, s->tid, wait->other);
    if (taken != ETCH_SYNC_NONE)
        wait->owner_caller = sync_at(t, taken)->caller;
    return true;
}

/* A waiter needs the signal, and then the mutex: the later of the two ended the wait. */
static bool condition_wait(const struct etch_sync_table *t, size_t index, struct etch_sync_wait *wait)
{
    const Etch__Sync *s = sync_at(t, index);
    size_t ender = last_before(t, s->object, s->tsc, OP(COND_SIGNAL) | OP(COND_BROADCAST), s->tid, 0);
    struct etch_sync_wait mutex;

    if (!is_ended_by(t, index, ender, OP(COND_WAIT_BEGIN), ETCH_LINK_SIGNAL, wait))
        return false;
    ender = last_before(t, s->other, s->tsc, UNLOCKS, s->tid, 0);
    if (s->other && is_ended_by(t, index, ender, OP(COND_WAIT_BEGIN), ETCH_LINK_SIGNAL, &mutex) &&
        mutex.ended > wait->ended)
        *wait = mutex;
    return true;
}

/* The thread whose handle a create or a join has. */
static uint32_t thread_of(const struct etch_sync_table *t, uint64_t handle)
{
    for (size_t i = 0; i < t->recording->syncs.n; i++) {
        const Etch__Sync *s = sync_at(t, i);

        if (s->op == ETCH__SYNC_OP__SYNC_THREAD_START && (s->object == handle || s->tid == handle))
            return s->tid;
    }
    return 0;
}

static bool join_wait(const struct etch_sync_table *t, size_t index, struct etch_sync_wait *wait)
{
    const Etch__Sync *s = sync_at(t, index);
    uint32_t tid = thread_of(t, s->other ? s->other : s->object);
    size_t n, first = tid ? etch_sync_table_thread(t, tid, &n) : 0;

    if (!tid || !n || s->result != 0)
        return false;
    return is_ended_by(t, index, t->by_thread.v[first + n - 1], 0, ETCH_LINK_JOIN, wait);
}

bool etch_sync_wait_of(const struct etch_sync_table *t, size_t index, struct etch_sync_wait *wait)
{
    const Etch__Sync *s = sync_at(t, index);
    size_t ender;

    if (is_op(s, LOCKS))
        return lock_wait(t, index, wait);
    switch (s->op) {
    case ETCH__SYNC_OP__SYNC_COND_WAIT_END:
        return condition_wait(t, index, wait);
    case ETCH__SYNC_OP__SYNC_SEM_WAIT:
        ender = last_before(t, s->object, s->tsc, OP(SEM_POST), s->tid, 0);
        return s->result == 0 && is_ended_by(t, index, ender, 0, ETCH_LINK_POST, wait);
    case ETCH__SYNC_OP__SYNC_BARRIER_LEAVE:
        ender = last_before(t, s->object, s->tsc, OP(BARRIER_ENTER), s->tid, 0);
        return is_ended_by(t, index, ender, OP(BARRIER_ENTER), ETCH_LINK_BARRIER, wait);
    case ETCH__SYNC_OP__SYNC_THREAD_JOIN:
        return join_wait(t, index, wait);
    default:
        return false;
    }
}

bool etch_sync_creator(const struct etch_sync_table *t, uint32_t tid, uint32_t *creator, uint64_t *when)
{
    for (size_t i = 0; i < t->recording->syncs.n; i++) {
        const Etch__Sync *s = sync_at(t, i);

        if (s->op == ETCH__SYNC_OP__SYNC_THREAD_CREATE && thread_of(t, s->other ? s->other : s->object) == tid) {
            *creator = s->tid;
            *when = s->tsc;
            return true;
        }
    }
    return false;
}
