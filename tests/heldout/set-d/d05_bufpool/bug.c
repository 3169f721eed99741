/* SPDX-License-Identifier: MIT */ /*
 * Packet buffers from a lock-free pool.  The pool is a Treiber stack of
 * indices; the upper half of the head word is the epoch of the pool,
 * which pool_init() sets, so that a stale index of an earlier pool is
 * never taken for one of this one.
 */
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NBUF      6
#define NTHREADS  3
#define ROUNDS    150
#define NIL       0xffffffffu

#ifdef FIXED
#define EPOCH_STEP 1u
#else
#define EPOCH_STEP 0u
#endif

struct buf {
    _Atomic uint32_t next;
    int owner;                  /* thread id, 0 when free */
    unsigned len;
    unsigned char data[512];
};

struct pool {
    _Atomic uint64_t head;      /* epoch << 32 | index */
    struct buf bufs[NBUF];
    atomic_ulong exhausted;
};

static struct pool pool;

static uint64_t pack(uint32_t epoch, uint32_t idx)
{
    return (uint64_t)epoch << 32 | idx;
}

static void pool_init(struct pool *p, uint32_t epoch)
{
    for (uint32_t i = 0; i < NBUF; i++) {
        atomic_store(&p->bufs[i].next, i + 1 < NBUF ? i + 1 : NIL);
        p->bufs[i].owner = 0;
    }
    atomic_store(&p->head, pack(epoch, 0));
}

static struct buf *pool_get(struct pool *p)
{
    uint64_t old = atomic_load(&p->head), new;

    do {
        uint32_t idx = (uint32_t)old;
        if (idx == NIL)
            return NULL;
        uint32_t next = atomic_load(&p->bufs[idx].next);
        new = pack((uint32_t)(old >> 32) + EPOCH_STEP, next);
    } while (!atomic_compare_exchange_weak(&p->head, &old, new));
    return &p->bufs[(uint32_t)old];
}

static void pool_put(struct pool *p, struct buf *b)
{
    uint64_t old = atomic_load(&p->head), new;

    do {
        atomic_store(&b->next, (uint32_t)old);
        new = pack((uint32_t)(old >> 32) + EPOCH_STEP, (uint32_t)(b - p->bufs));
    } while (!atomic_compare_exchange_weak(&p->head, &old, new));
}

/* ---- users of the pool ---------------------------------------------- */

static struct buf *packet_new(int who, unsigned seq)
{
    struct buf *b = pool_get(&pool);

    if (!b) {
        atomic_fetch_add(&pool.exhausted, 1);
        return NULL;
    }
    b->owner = who;
    b->len = 64 + seq % 400;
    return b;
}

static unsigned packet_build(struct buf *b, unsigned seed)
{
    unsigned sum = 0;

    for (unsigned i = 0; i < b->len; i++) {
        seed = seed * 69069u + 1u;
        b->data[i] = (unsigned char)(seed >> 24);
        sum = sum * 31 + b->data[i];
    }
    return sum;
}

static unsigned packet_sum(const struct buf *b)
{
    unsigned sum = 0;

    for (unsigned i = 0; i < b->len; i++)
        sum = sum * 31 + b->data[i];
    return sum;
}

static void packet_free(struct buf *b, int who)
{
    assert(b->owner == who);
    b->owner = 0;
    pool_put(&pool, b);
}

static void *worker(void *arg)
{
    int who = (int)(intptr_t)arg;
    unsigned long sent = 0;

    for (unsigned i = 0; i < ROUNDS; i++) {
        struct buf *hdr = packet_new(who, i);
        struct buf *body = packet_new(who, i * 7);

        if (hdr && body) {
            unsigned h = packet_build(hdr, i), s = packet_build(body, i ^ h);
            sent += packet_sum(hdr) == h && packet_sum(body) == s;
        }
        if (hdr)
            packet_free(hdr, who);
        if (body)
            packet_free(body, who);
    }
    return (void *)sent;
}

int main(void)
{
    pthread_t t[NTHREADS];
    unsigned long total = 0;

    pool_init(&pool, 1);
    for (intptr_t i = 0; i < NTHREADS; i++)
        if (pthread_create(&t[i], NULL, worker, (void *)(i + 1)))
            return 2;
    for (int i = 0; i < NTHREADS; i++) {
        void *r;
        pthread_join(t[i], &r);
        total += (unsigned long)r;
    }
    printf("%lu packets sent, pool empty %lu times\n", total,
           atomic_load(&pool.exhausted));
    return total == NTHREADS * ROUNDS ? 0 : 1;
}
