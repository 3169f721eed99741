// SPDX-License-Identifier: MIT
// Litmus tests: litmus NAME ROUNDS prints each outcome that appeared, and how often. An outcome is the values that the loads
// read, in the order of the threads. All threads meet before each round and after it.
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RLX memory_order_relaxed
#define ACQ memory_order_acquire
#define REL memory_order_release
#define SC memory_order_seq_cst
#define LOAD(x, order) atomic_load_explicit(&x, order)
#define STORE(x, order) atomic_store_explicit(&x, 1, order)
#define FENCE(order) atomic_thread_fence(order)

static atomic_int x, y;
static int plain;
static int r[4];

struct litmus {
    const char *name;
    int threads, results;
    void (*run)(int thread);
};

// Store buffering.
#define SB(name, store, load, fence)                                                                                   \
    static void name(int thread)                                                                                       \
    {                                                                                                                  \
        if (thread == 0) {                                                                                             \
            STORE(x, store);                                                                                           \
            fence;                                                                                                     \
            r[0] = LOAD(y, load);                                                                                      \
        } else {                                                                                                       \
            STORE(y, store);                                                                                           \
            fence;                                                                                                     \
            r[1] = LOAD(x, load);                                                                                      \
        }                                                                                                              \
    }
SB(sb_rlx, RLX, RLX, )
SB(sb_rel_acq, REL, ACQ, )
SB(sb_sc, SC, SC, )
SB(sb_fence, RLX, RLX, FENCE(SC))

// Message passing.
#define MP(name, store, load, before, behind)                                                                          \
    static void name(int thread)                                                                                       \
    {                                                                                                                  \
        if (thread == 0) {                                                                                             \
            STORE(x, RLX);                                                                                             \
            before;                                                                                                    \
            STORE(y, store);                                                                                           \
        } else {                                                                                                       \
            r[0] = LOAD(y, load);                                                                                      \
            behind;                                                                                                    \
            r[1] = LOAD(x, RLX);                                                                                       \
        }                                                                                                              \
    }
MP(mp_rlx, RLX, RLX, , )
MP(mp_rel_acq, REL, ACQ, , )
MP(mp_fences, RLX, RLX, FENCE(REL), FENCE(ACQ))

// Message passing of a variable that is not atomic.
static void mp_plain(int thread)
{
    if (thread == 0) {
        plain = 1;
        STORE(y, RLX);
    } else {
        r[0] = LOAD(y, RLX);
        r[1] = *(volatile int *)&plain;
    }
}

// Two readers of independent writes.
#define IRIW(name, order)                                                                                              \
    static void name(int thread)                                                                                       \
    {                                                                                                                  \
        if (thread == 0) {                                                                                             \
            STORE(x, order == SC ? SC : REL);                                                                          \
        } else if (thread == 1) {                                                                                      \
            STORE(y, order == SC ? SC : REL);                                                                          \
        } else if (thread == 2) {                                                                                      \
            r[0] = LOAD(x, order);                                                                                     \
            r[1] = LOAD(y, order);                                                                                     \
        } else {                                                                                                       \
            r[2] = LOAD(y, order);                                                                                     \
            r[3] = LOAD(x, order);                                                                                     \
        }                                                                                                              \
    }
IRIW(iriw_acq, ACQ)
IRIW(iriw_sc, SC)

// Load buffering.
static void lb_rlx(int thread)
{
    if (thread == 0) {
        r[0] = LOAD(x, RLX);
        STORE(y, RLX);
    } else {
        r[1] = LOAD(y, RLX);
        STORE(x, RLX);
    }
}

// Coherence: two reads of one location.
static void corr(int thread)
{
    if (thread == 0) {
        STORE(x, RLX);
    } else {
        r[0] = LOAD(x, RLX);
        r[1] = LOAD(x, RLX);
    }
}

static const struct litmus all[] = {
    {"sb_rlx", 2, 2, sb_rlx},       {"sb_rel_acq", 2, 2, sb_rel_acq}, {"sb_sc", 2, 2, sb_sc},
    {"sb_fence", 2, 2, sb_fence},   {"mp_rlx", 2, 2, mp_rlx},         {"mp_rel_acq", 2, 2, mp_rel_acq},
    {"mp_fences", 2, 2, mp_fences}, {"mp_plain", 2, 2, mp_plain},     {"iriw_acq", 4, 4, iriw_acq},
    {"iriw_sc", 4, 4, iriw_sc},     {"lb_rlx", 2, 2, lb_rlx},         {"corr", 2, 2, corr},
};

static const struct litmus *test;
static pthread_barrier_t barrier;
static long rounds, seen[16];

static void clear(void)
{
    atomic_store(&x, 0);
    atomic_store(&y, 0);
    plain = 0;
    memset(r, 0, sizeof(r));
}

static void *run(void *arg)
{
    int thread = (int)(long)arg;

    for (long i = 0; i < rounds; i++) {
        pthread_barrier_wait(&barrier);
        test->run(thread);
        pthread_barrier_wait(&barrier);
        if (thread == 0) {
            int outcome = 0;

            for (int k = 0; k < test->results; k++)
                outcome |= r[k] << k;
            seen[outcome]++;
            clear();
        }
    }
    return NULL;
}

static void print(void)
{
    for (int i = 0; i < 1 << test->results; i++) {
        if (!seen[i])
            continue;
        for (int k = 0; k < test->results; k++)
            putchar(i >> k & 1 ? '1' : '0');
        printf(" %ld\n", seen[i]);
    }
}

int main(int argc, char **argv)
{
    pthread_t threads[4];

    for (size_t i = 0; argc == 3 && i < sizeof(all) / sizeof(all[0]); i++)
        if (strcmp(all[i].name, argv[1]) == 0)
            test = &all[i];
    if (!test)
        return 2;
    rounds = atol(argv[2]);
    pthread_barrier_init(&barrier, NULL, (unsigned)test->threads);
    for (long i = 0; i < test->threads; i++)
        pthread_create(&threads[i], NULL, run, (void *)i);
    for (int i = 0; i < test->threads; i++)
        pthread_join(threads[i], NULL);
    print();
    return 0;
}
