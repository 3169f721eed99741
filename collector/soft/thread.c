/* SPDX-License-Identifier: MIT */
/* The software recorder's runtime: a thread takes a ring from the pool, without a system call; a child process takes
 * rings of its own. */
#include "collector/soft/thread.h"

static struct etch_soft_ring *ring_at(const struct etch_soft_recorder *s, uint32_t slot)
{
    return (struct etch_soft_ring *)((uint8_t *)s->pool + sizeof(struct etch_soft_pool) +
                                     (uint64_t)slot * (1 + s->chunks) * ETCH_SOFT_CHUNK);
}

static uint64_t this_thread(void)
{
    uint64_t at;

    __asm__("mov %%fs:0, %0" : "=r"(at));
    return at;
}

static uint32_t *word_of(struct etch_soft_ring *ring)
{
    return (uint32_t *)ring->lock;
}

/* Without robust mutexes a ring is taken once, and the kernel is asked for the thread's id. */
static bool lock(const struct etch_soft_recorder *s, struct etch_soft_ring *ring)
{
    uint32_t expected = 0;
    int got;

    if (!s->robust)
        return __atomic_compare_exchange_n(word_of(ring), &expected, (uint32_t)call3(__NR_gettid, 0, 0, 0), false,
                                           __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
    got = pthread_mutex_trylock(ring->lock);
    return got == 0 || got == EOWNERDEAD;
}

static bool is_gone(struct etch_soft_ring *ring)
{
    return __atomic_load_n(word_of(ring), __ATOMIC_RELAXED) & ETCH_SOFT_GONE;
}

/* This thread's own, from before the library with the recorder was unloaded and loaded again. */
static bool is_left_to_us(const struct etch_soft_recorder *s, struct etch_soft_ring *ring)
{
    return ring->state == ETCH_SOFT_UNLOADED && ring->thread == this_thread() && ring->pid == s->pid && !is_gone(ring);
}

static struct etch_soft_ring *find_left(struct etch_soft_recorder *s, uint32_t used)
{
    for (uint32_t i = 0; i < used; i++)
        if (is_left_to_us(s, ring_at(s, i)))
            return ring_at(s, i);
    return NULL;
}

static struct etch_soft_ring *find_gone(struct etch_soft_recorder *s, uint32_t used)
{
    struct etch_soft_ring *oldest = NULL;

    for (uint32_t i = 0; i < used; i++)
        if (is_gone(ring_at(s, i)) && (!oldest || ring_at(s, i)->order < oldest->order))
            oldest = ring_at(s, i);
    return oldest;
}

static void empty(const struct etch_soft_recorder *s, struct etch_soft_ring *ring)
{
    ring->state = ETCH_SOFT_FREE;
    for (uint32_t i = 0; i < s->chunks; i++)
        *(volatile uint32_t *)chunk_at(ring, i) = 0;
    ring->seq = ring->context = 0;
    ring->handlers = 0;
}

/* Takes the ring that this thread had, else a ring never used, else the oldest ring of a thread that is gone. */
static struct etch_soft_ring *claim(struct etch_soft_recorder *s)
{
    struct etch_soft_pool *pool = s->pool;
    struct etch_soft_ring *ring;

    if (s->adopted && (ring = find_left(s, pool->used < s->slots ? pool->used : s->slots)))
        return ring;
    while (pool->used < s->slots) {
        uint32_t slot = __atomic_fetch_add(&pool->used, 1, __ATOMIC_RELAXED);

        if (slot < s->slots && lock(s, ring_at(s, slot)))
            return ring_at(s, slot);
    }
    do
        ring = find_gone(s, s->slots);
    while (ring && !lock(s, ring));
    if (!ring)
        return NULL;
    __atomic_fetch_add(&pool->reused, 1, __ATOMIC_RELAXED);
    empty(s, ring);
    return ring;
}

/* In a child of fork the only thread's id is the process's. */
static void own(struct etch_soft_recorder *s, struct etch_soft_ring *ring)
{
    uint32_t cpu;

    ring->tid = *word_of(ring) & ETCH_SOFT_TID;
    if (!s->pid)
        s->pid = ring->tid;
    ring->pid = s->pid;
    ring->thread = this_thread();
    ring->recorder = (uintptr_t)s;
    ring->order = __atomic_fetch_add(&s->pool->claims, 1, __ATOMIC_RELAXED);
    ring->start_tsc = stamp(&cpu);
    ring->context = ring->handlers = 0;
    ring->ended = 0;
    ring->end_tsc = 0;
    ring->name[0] = '\0';
    __atomic_store_n(&ring->state, ETCH_SOFT_CLAIMED, __ATOMIC_RELEASE);
}

/* A signal handler may run at any point and set the same variable. The handler's value is kept. */
static bool set_once(void *variable, void *value)
{
    void *expected = NULL;

    return __atomic_compare_exchange_n((void **)variable, &expected, value, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

static struct etch_soft_ring *take_ring(struct etch_soft_recorder *s)
{
    struct etch_soft_ring *ring = s->pool ? claim(s) : NULL;

    if (!ring) {
        if (set_once(&etch_soft_cur, NOWHERE) && s->pool)
            __atomic_fetch_add(&s->pool->ringless, 1, __ATOMIC_RELAXED);
        return NULL;
    }
    own(s, ring);
    if (set_once(&etch_soft_ring, ring))
        return ring;
    ring->state = ETCH_SOFT_UNLOADED;
    return etch_soft_ring;
}

/* No system call: the program may be in a sandbox. */
void etch_soft_begin_thread(enum etch_soft_chunk_kind kind)
{
    struct etch_soft_ring *ring = etch_soft_ring ? etch_soft_ring : take_ring(&etch_soft_recorder);
    uint8_t *cur;

    if (!ring || etch_soft_cur)
        return;
    cur = etch_soft_begin_chunk(kind, 0, 0);
    if (!set_once(&etch_soft_cur, cur ? cur : NOWHERE) && cur)
        *(volatile uint32_t *)chunk_of(cur) = 0;
}

/* ---- Child processes ---- */

static void forget_ring(void)
{
    etch_soft_ring = NULL;
    etch_soft_cur = NULL;
}

/* In a child of libc's fork: it takes rings of its own. */
void etch_soft_forked(void)
{
    struct etch_soft_recorder *s = &etch_soft_recorder;

    if (!s->pool)
        return;
    if (s->here)
        *s->here = 1;
    forget_ring();
    s->pid = 0;
    __atomic_fetch_add(&s->pool->begun, 1, __ATOMIC_RELAXED);
    etch_soft_begin_thread(ETCH_SOFT_FORKED);
    if (!s->pid)
        s->pool = NULL; /* its threads would not know whose they are */
}

void etch_soft_detach(struct etch_soft_recorder *s)
{
    *s->here = 1;
    if (s->pool)
        __atomic_fetch_add(&s->pool->shared, 1, __ATOMIC_RELAXED);
    s->pool = NULL;
    etch_soft_ring = NULL;
    etch_soft_cur = NOWHERE;
}
