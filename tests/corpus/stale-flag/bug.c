// SPDX-License-Identifier: MIT
// Flags without a fence: each thread raises its own and looks at the other's; each may see the other's old value. A note written
// to memory that no cache holds stands before the flag in the CPU's store buffer, so the flag comes late, on any pair of CPUs.
#include "../corpus.h"
#include <sched.h>

static volatile int flag_a __attribute__((aligned(64))), flag_b __attribute__((aligned(64)));
static volatile int saw_a __attribute__((aligned(64))), saw_b __attribute__((aligned(64)));
static int arrived __attribute__((aligned(64)));
static char *notes; // two halves, one for each thread

static int rounds; // a little work or much, as it comes

enum { MOST = 256, STRIDE = 65536 + 64 };

#ifdef FIXED
#define FENCE() __atomic_thread_fence(__ATOMIC_SEQ_CST)
#else
#define FENCE() (void)0
#endif

static void meet(int round)
{
    __atomic_add_fetch(&arrived, 1, __ATOMIC_SEQ_CST);
    for (int i = 0; __atomic_load_n(&arrived, __ATOMIC_SEQ_CST) < round * 2; i++)
        if (i > 2000)
            sched_yield();
}

static void spin(unsigned n)
{
    for (volatile unsigned i = 0; i < n; i++)
        ;
}

static void *first(void *arg)
{
    (void)arg;
    for (int i = 0; i < rounds; i++) {
        flag_a = 0;
        meet(2 * i + 1);
        spin(draw(40));
        notes[i * STRIDE] = 1;
        flag_a = 1;                //@raise_a
        FENCE();
        saw_b = flag_b;            //@look_b
        meet(2 * i + 2);
    }
    return NULL;
}

int main(void)
{
    pthread_t t;

    notes = malloc((size_t)2 * MOST * STRIDE);
    CHECK(notes);
    rounds = 1 << draw(9);
    memset(notes, 0, (size_t)2 * MOST * STRIDE);
    pthread_create(&t, NULL, first, NULL);
    for (int i = 0; i < rounds; i++) {
        flag_b = 0;
        meet(2 * i + 1);
        spin(draw(40));
        notes[(MOST + i) * STRIDE] = 1;
        flag_b = 1;                //@raise_b
        FENCE();
        saw_a = flag_a;            //@look_a
        meet(2 * i + 2);
        CHECK(saw_a || saw_b);     //@check
    }
    pthread_join(t, NULL);
    return 0;
}
