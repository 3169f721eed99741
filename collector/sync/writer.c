/* SPDX-License-Identifier: MIT */
/* Private to the preloaded library: the rare operations of a thread on its ring: it claims a ring, gets a larger ring,
 * leaves its ring. */
#include "collector/sync/writer.h"

#include "collector/sync/real.h"
#include "collector/sync/shim.h"

#include <limits.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct etch_shim_joined not_joined;
struct etch_shim_joined *etch_shim_joined = &not_joined;
bool etch_shim_emulated;
__thread struct etch_sync_ring *etch_shim_ring __attribute__((tls_model("initial-exec")));

static pthread_key_t exit_key;
static __thread bool no_ring __attribute__((tls_model("initial-exec")));
static __thread unsigned exit_rounds __attribute__((tls_model("initial-exec")));

static struct etch_sync_ring *claim(struct etch_sync_memory *mapped)
{
    for (unsigned i = 0; i < ETCH_SYNC_THREADS; i++) {
        uint32_t expected = ETCH_SYNC_FREE;

        /* Acquire: pairs with etch's release when it has read the last owner's events. */
        if (__atomic_compare_exchange_n(&mapped->rings[i].state, &expected, ETCH_SYNC_USED, false, __ATOMIC_ACQUIRE,
                                        __ATOMIC_RELAXED)) {
            uint32_t claimed = __atomic_load_n(&mapped->claimed, __ATOMIC_RELAXED);

            while (claimed < i + 1 && !__atomic_compare_exchange_n(&mapped->claimed, &claimed, i + 1, false,
                                                                   __ATOMIC_RELEASE, __ATOMIC_RELAXED))
                ;
            return &mapped->rings[i];
        }
    }
    return NULL;
}

/* libc writes the thread's id into a mutex that the thread locks. A sandbox may forbid the system call. */
static uint32_t own_tid(void)
{
    pthread_mutex_t mutex = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
    uint32_t tid = 0;

    if (etch_shim_real.mutex_trylock(&mutex) == 0) {
        tid = (uint32_t)mutex.__data.__owner;
        etch_shim_real.mutex_unlock(&mutex);
    }
    return tid ? tid : (uint32_t)syscall(SYS_gettid);
}

struct etch_sync_ring *etch_shim_claim_ring(struct etch_sync_memory *mapped)
{
    struct etch_sync_ring *own;

    if (no_ring)
        return NULL;
    no_ring = true; /* should a signal come now: its events are not placed */
    own = claim(mapped);
    if (!own)
        return NULL;
    own->tid = own_tid();
    etch_shim_ring = own;
    no_ring = false;
    pthread_setspecific(exit_key, own);
    return own;
}

/* Other destructors of this thread may still use locks: stay to the last round. */
static void thread_ends(void *own)
{
    if (++exit_rounds < PTHREAD_DESTRUCTOR_ITERATIONS) {
        pthread_setspecific(exit_key, own);
        return;
    }
    etch_shim_ring = NULL;
    no_ring = true;
    /* Release: pairs with etch's acquire; the events are written before the state is. */
    __atomic_store_n(&((struct etch_sync_ring *)own)->state, ETCH_SYNC_ENDED, __ATOMIC_RELEASE);
}

bool etch_shim_watch_ends(void)
{
    return pthread_key_create(&exit_key, thread_ends) == 0;
}

/* Under QEMU the counter is the machine's, the CPU's number is not: the kernel is asked, before and after. */
uint64_t etch_shim_stamp_emulated(uint16_t *cpu)
{
    unsigned before, after = 0;
    uint32_t lo, hi;

    do {
        syscall(SYS_getcpu, &before, NULL, NULL);
        __asm__ volatile("rdtsc" : "=a"(lo), "=d"(hi) : : "memory");
        syscall(SYS_getcpu, &after, NULL, NULL);
    } while (before != after);
    *cpu = (uint16_t)(after & 0xfff);
    return (uint64_t)hi << 32 | lo;
}

/* In the middle of a lap, and from the next on: a handler that comes between sees the one or the other. */
void etch_shim_grow_ring(struct etch_sync_memory *memory, struct etch_sync_ring *own, uint64_t index)
{
    uint32_t large;

    if (index - __atomic_load_n(&own->read, __ATOMIC_RELAXED) < ETCH_SYNC_EVENTS / 2 ||
        __atomic_load_n(&memory->larges, __ATOMIC_RELAXED) >= ETCH_SYNC_LARGES)
        return;
    large = __atomic_fetch_add(&memory->larges, 1, __ATOMIC_RELAXED);
    if (large >= ETCH_SYNC_LARGES)
        return;
    own->large = large;
    /* Release: pairs with the reader's acquire; `large` is written before `grown` is. */
    __atomic_store_n(&own->grown, index + ETCH_SYNC_EVENTS / 2, __ATOMIC_RELEASE);
}

struct etch_throw_ring *etch_shim_throws(uint32_t *tid)
{
    struct etch_sync_memory *mapped = etch_shim_joined->mapped;
    struct etch_sync_ring *own = etch_shim_ring;

    if (!mapped)
        return NULL;
    if (!own)
        own = etch_shim_claim_ring(mapped);
    if (!own)
        return NULL;
    *tid = own->tid;
    return &mapped->throws[own - mapped->rings];
}

uint64_t etch_shim_stamp(void)
{
    uint16_t cpu;

    return stamp(&cpu);
}
