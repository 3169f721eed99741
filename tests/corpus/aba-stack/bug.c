// SPDX-License-Identifier: MIT
// A free list without a lock: between a look at the top and the swap, another thread takes two blocks and gives the first one
// back. The swap sees the same top, succeeds, and puts a block on the list that is in use.
#include "../corpus.h"

enum { BLOCKS = 5, ROUNDS = 4 };

struct block {
    struct block *volatile next;
    volatile int used;
    unsigned char data[40];
};
struct pool {
    struct block *volatile top;
    struct block blocks[BLOCKS];
};
static struct pool pool;
#ifdef FIXED
static pthread_mutex_t pool_lock = PTHREAD_MUTEX_INITIALIZER;
#define LOCK() pthread_mutex_lock(&pool_lock)
#define UNLOCK() pthread_mutex_unlock(&pool_lock)
#else
#define LOCK() (void)0
#define UNLOCK() (void)0
#endif

static struct block *block_take(struct pool *p)
{
    struct block *old, *next;

    LOCK();
    for (;;) {
        old = p->top;                                          //@top
        next = old->next;                                      //@next
        window(250);
        if (__sync_bool_compare_and_swap(&p->top, old, next))  //@swap
            break;
    }
    UNLOCK();
    CHECK(!old->used);                                         //@check
    old->used = 1;                                             //@mark
    return old;
}

static void block_give(struct pool *p, struct block *b)
{
    struct block *old;

    b->used = 0;
    LOCK();
    for (;;) {
        old = p->top;
        b->next = old;
        if (__sync_bool_compare_and_swap(&p->top, old, b))     //@back
            break;
    }
    UNLOCK();
}

static void pool_init(struct pool *p)
{
    for (int i = 0; i < BLOCKS; i++)
        block_give(p, &p->blocks[i]);
}

static unsigned pack(struct block *to, const struct block *from)
{
    unsigned sum = 0;

    for (unsigned i = 0; i < sizeof(to->data); i++) {
        to->data[i] = from->data[i] ^ 0x55;
        sum += to->data[i];
    }
    return sum;
}

static void *worker(void *arg)
{
    struct pool *p = arg;
    unsigned long sum = 0;

    for (unsigned i = 0; i < ROUNDS; i++) {
        window(400);
        struct block *in = block_take(p);
        memset(in->data, (int)i, sizeof(in->data));
        struct block *out = block_take(p);
        sum += pack(out, in);
        block_give(p, in);
        window(600);
        block_give(p, out);
    }
    return (void *)sum;
}

int main(void)
{
    unsigned long sum = 0;
    pthread_t t[2];

    pool_init(&pool);
    for (int i = 0; i < 2; i++)
        pthread_create(&t[i], NULL, worker, &pool);
    for (int i = 0; i < 2; i++) {
        void *part;
        pthread_join(t[i], &part);
        sum += (unsigned long)part;
    }
    printf("sum %lu\n", sum);
    return 0;
}
