/* SPDX-License-Identifier: MIT */
/* The library that LD_PRELOAD puts (or a link with it) between a program and its pthread functions. Each call goes on
 * to the real one and leaves an event in the thread's ring: what acquires is stamped after it returned, what releases
 * before it is called, so that the stamps of a pair are in the order in which the pair happened. Where a call does not
 * wait, a second stamp on its other side says how long it took at most. No locks, no allocation, no system call but one
 * per thread. Without ETCH_SYNC in the environment it does nothing. */
#include "collector/sync/shim.h"
#include "proto/soft_layout.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/prctl.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* As in etch.proto; the library does not link protobuf. */
enum {
    THREAD_CREATE = 1,
    THREAD_START = 2,
    THREAD_EXIT = 3,
    THREAD_JOIN = 4,
    MUTEX_LOCK = 5,
    MUTEX_UNLOCK = 6,
    RWLOCK_RDLOCK = 7,
    RWLOCK_WRLOCK = 8,
    RWLOCK_UNLOCK = 9,
    COND_WAIT_BEGIN = 10,
    COND_WAIT_END = 11,
    COND_SIGNAL = 12,
    COND_BROADCAST = 13,
    BARRIER_ENTER = 14,
    BARRIER_LEAVE = 15,
    SEM_POST = 16,
    SEM_WAIT = 17,
    SPIN_LOCK = 18,
    SPIN_UNLOCK = 19,
    MUTEX_BLOCKED = 20,
    MUTEX_INIT = 21,
    MUTEX_DESTROY = 22,
    SEM_INIT = 23,
    BARRIER_INIT = 24,
};

#define EXPORT __attribute__((visibility("default")))
#define CALLER ((uint64_t)(uintptr_t)__builtin_return_address(0))
#define ADDRESS(p) ((uint64_t)(uintptr_t)(p))

/* On a page that the kernel empties in every child process, however that is made: a child must not write into its
 * parent's rings. */
struct joined {
    struct etch_sync_memory *memory; /* NULL: not recording synchronisation */
    struct etch_sync_memory *mapped; /* NULL: not recording at all */
};

static struct joined not_joined;
static struct joined *joined = &not_joined;
static bool emulated;
static pthread_key_t exit_key;

/* initial-exec: an access is one instruction, also in a signal handler. */
static __thread struct etch_sync_ring *ring __attribute__((tls_model("initial-exec")));
static __thread bool no_ring __attribute__((tls_model("initial-exec")));
static __thread unsigned exit_rounds __attribute__((tls_model("initial-exec")));

/* ---- The real functions ---- */

static struct {
    int (*create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    int (*join)(pthread_t, void **);
    int (*tryjoin)(pthread_t, void **);
    int (*timedjoin)(pthread_t, void **, const struct timespec *);
    int (*mutex_init)(pthread_mutex_t *, const pthread_mutexattr_t *);
    int (*mutex_destroy)(pthread_mutex_t *);
    int (*mutex_lock)(pthread_mutex_t *);
    int (*mutex_trylock)(pthread_mutex_t *);
    int (*mutex_timedlock)(pthread_mutex_t *, const struct timespec *);
    int (*mutex_clocklock)(pthread_mutex_t *, clockid_t, const struct timespec *);
    int (*mutex_unlock)(pthread_mutex_t *);
    int (*rdlock)(pthread_rwlock_t *);
    int (*tryrdlock)(pthread_rwlock_t *);
    int (*timedrdlock)(pthread_rwlock_t *, const struct timespec *);
    int (*wrlock)(pthread_rwlock_t *);
    int (*trywrlock)(pthread_rwlock_t *);
    int (*timedwrlock)(pthread_rwlock_t *, const struct timespec *);
    int (*rwunlock)(pthread_rwlock_t *);
    int (*cond_wait)(pthread_cond_t *, pthread_mutex_t *);
    int (*cond_timedwait)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);
    int (*cond_clockwait)(pthread_cond_t *, pthread_mutex_t *, clockid_t, const struct timespec *);
    int (*cond_signal)(pthread_cond_t *);
    int (*cond_broadcast)(pthread_cond_t *);
    int (*barrier_init)(pthread_barrier_t *, const pthread_barrierattr_t *, unsigned);
    int (*barrier_wait)(pthread_barrier_t *);
    int (*sem_init)(sem_t *, int, unsigned);
    int (*sem_post)(sem_t *);
    int (*sem_wait)(sem_t *);
    int (*sem_trywait)(sem_t *);
    int (*sem_timedwait)(sem_t *, const struct timespec *);
    int (*spin_lock)(pthread_spinlock_t *);
    int (*spin_trylock)(pthread_spinlock_t *);
    int (*spin_unlock)(pthread_spinlock_t *);
} real;

/* libc's own names for these; in place before dlsym() may be called, and should dlsym() itself come back here through a
 * preloaded malloc. */
extern int __pthread_mutex_lock(pthread_mutex_t *);
extern int __pthread_mutex_trylock(pthread_mutex_t *);
extern int __pthread_mutex_unlock(pthread_mutex_t *);

static void *next(const char *name, const char *version)
{
    void *found = version ? dlvsym(RTLD_NEXT, name, version) : NULL;

    return found ? found : dlsym(RTLD_NEXT, name);
}

/* POSIX's way around C's rule against data to function casts. */
#define FIND(member, name, version) (*(void **)(&real.member) = next(name, version))

static bool resolved;

static void resolve(void)
{
    static const char *cond = "GLIBC_2.3.2"; /* the older ones have another layout */

    if (!real.mutex_lock) {
        real.mutex_lock = __pthread_mutex_lock;
        real.mutex_trylock = __pthread_mutex_trylock;
        real.mutex_unlock = __pthread_mutex_unlock;
    }
    FIND(create, "pthread_create", NULL);
    FIND(join, "pthread_join", NULL);
    FIND(tryjoin, "pthread_tryjoin_np", NULL);
    FIND(timedjoin, "pthread_timedjoin_np", NULL);
    FIND(mutex_init, "pthread_mutex_init", NULL);
    FIND(mutex_destroy, "pthread_mutex_destroy", NULL);
    FIND(mutex_timedlock, "pthread_mutex_timedlock", NULL);
    FIND(mutex_clocklock, "pthread_mutex_clocklock", NULL);
    FIND(rdlock, "pthread_rwlock_rdlock", NULL);
    FIND(tryrdlock, "pthread_rwlock_tryrdlock", NULL);
    FIND(timedrdlock, "pthread_rwlock_timedrdlock", NULL);
    FIND(wrlock, "pthread_rwlock_wrlock", NULL);
    FIND(trywrlock, "pthread_rwlock_trywrlock", NULL);
    FIND(timedwrlock, "pthread_rwlock_timedwrlock", NULL);
    FIND(rwunlock, "pthread_rwlock_unlock", NULL);
    FIND(cond_wait, "pthread_cond_wait", cond);
    FIND(cond_timedwait, "pthread_cond_timedwait", cond);
    FIND(cond_clockwait, "pthread_cond_clockwait", NULL);
    FIND(cond_signal, "pthread_cond_signal", cond);
    FIND(cond_broadcast, "pthread_cond_broadcast", cond);
    FIND(barrier_init, "pthread_barrier_init", NULL);
    FIND(barrier_wait, "pthread_barrier_wait", NULL);
    FIND(sem_init, "sem_init", NULL);
    FIND(sem_post, "sem_post", NULL);
    FIND(sem_wait, "sem_wait", NULL);
    FIND(sem_trywait, "sem_trywait", NULL);
    FIND(sem_timedwait, "sem_timedwait", NULL);
    FIND(spin_lock, "pthread_spin_lock", NULL);
    FIND(spin_trylock, "pthread_spin_trylock", NULL);
    FIND(spin_unlock, "pthread_spin_unlock", NULL);
    FIND(mutex_lock, "pthread_mutex_lock", NULL);
    FIND(mutex_trylock, "pthread_mutex_trylock", NULL);
    FIND(mutex_unlock, "pthread_mutex_unlock", NULL);
    resolved = true;
}

/* Another library's constructor may call us before ours ran. */
#define READY()                                                                                                        \
    do {                                                                                                               \
        if (__builtin_expect(!resolved, 0))                                                                            \
            resolve();                                                                                                 \
    } while (0)

/* ---- Rings ---- */

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

/* libc knows the thread's id, and tells it with a mutex: a sandbox may forbid to ask the kernel. */
static uint32_t own_tid(void)
{
    pthread_mutex_t mutex = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
    uint32_t tid = 0;

    if (real.mutex_trylock(&mutex) == 0) {
        tid = (uint32_t)mutex.__data.__owner;
        real.mutex_unlock(&mutex);
    }
    return tid ? tid : (uint32_t)syscall(SYS_gettid);
}

static __attribute__((noinline, cold)) struct etch_sync_ring *first_event(struct etch_sync_memory *mapped)
{
    struct etch_sync_ring *own;

    if (no_ring)
        return NULL;
    no_ring = true; /* should a signal come now: its events are not placed */
    own = claim(mapped);
    if (!own)
        return NULL;
    own->tid = own_tid();
    ring = own;
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
    ring = NULL;
    no_ring = true;
    /* Release: pairs with etch's acquire; the events are there before the ring is said to have ended. */
    __atomic_store_n(&((struct etch_sync_ring *)own)->state, ETCH_SYNC_ENDED, __ATOMIC_RELEASE);
}

/* Takes the next place. Not locked, since no other thread writes it, but one instruction: a signal handler that comes
 * between gets a place of its own. */
static inline uint64_t take_place(struct etch_sync_ring *own)
{
    uint64_t index = 1;

    __asm__ volatile("xaddq %0, %1" : "+r"(index), "+m"(own->next) : : "memory", "cc");
    return index;
}

/* Under QEMU the counter is the machine's, the CPU's number is not: the kernel is asked, before and after. */
static __attribute__((noinline, cold)) uint64_t stamp_emulated(uint16_t *cpu)
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

/* After everything before it has executed. */
static inline uint64_t stamp(uint16_t *cpu)
{
    uint32_t lo, hi, aux;

    if (__builtin_expect(emulated, 0))
        return stamp_emulated(cpu);
    __asm__ volatile("rdtscp" : "=a"(lo), "=d"(hi), "=c"(aux) : : "memory");
    *cpu = (uint16_t)(aux & 0xfff);
    return (uint64_t)hi << 32 | lo;
}

struct etch_throw_ring *etch_shim_throws(uint32_t *tid)
{
    struct etch_sync_memory *mapped = joined->mapped;
    struct etch_sync_ring *own = ring;

    if (!mapped)
        return NULL;
    if (!own)
        own = first_event(mapped);
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

/* In the middle of a lap, and from the next on: a handler that comes between sees the one or the other. */
static __attribute__((noinline, cold)) void grow(struct etch_sync_memory *memory, struct etch_sync_ring *own,
                                                 uint64_t index)
{
    uint32_t large;

    if (index - __atomic_load_n(&own->read, __ATOMIC_RELAXED) < ETCH_SYNC_EVENTS / 2 ||
        __atomic_load_n(&memory->larges, __ATOMIC_RELAXED) >= ETCH_SYNC_LARGES)
        return;
    large = __atomic_fetch_add(&memory->larges, 1, __ATOMIC_RELAXED);
    if (large >= ETCH_SYNC_LARGES)
        return;
    own->large = large;
    /* Release: pairs with the reader's acquire; where the large ring is, is known before that there is one. */
    __atomic_store_n(&own->grown, index + ETCH_SYNC_EVENTS / 2, __ATOMIC_RELEASE);
}

/* Takes a place and stamps it; the event is not to be seen before finish(). NULL: not recording. */
static inline struct etch_sync_event *begin_event(uint64_t *index)
{
    struct etch_sync_memory *memory = joined->memory;
    struct etch_sync_ring *own = ring;
    struct etch_sync_event *event;

    if (__builtin_expect(!memory, 0))
        return NULL;
    if (__builtin_expect(!own, 0)) {
        own = first_event(memory);
        if (!own) {
            __atomic_fetch_add(&memory->unplaced, 1, __ATOMIC_RELAXED);
            return NULL;
        }
    }
    *index = take_place(own);
    if (__builtin_expect(*index % ETCH_SYNC_EVENTS == ETCH_SYNC_EVENTS / 2 && !own->grown, 0))
        grow(memory, own, *index);
    event = etch_sync_place(memory, own, own->grown, own->large, *index);
    /* A reader that finds 0, or another lap's number, before or after its copy throws the copy away. */
    __atomic_store_n(&event->sequence, 0, __ATOMIC_RELAXED);
    __atomic_signal_fence(__ATOMIC_SEQ_CST); /* x86 keeps stores in order; the compiler must as well */
    event->across = 0;
    event->tsc = stamp(&event->cpu);
    return event;
}

/* A stamp before a call that acquires. */
struct before {
    uint64_t tsc;
    uint16_t cpu;
};

static inline struct before before_call(void)
{
    struct before before = {0};

    if (joined->memory)
        before.tsc = stamp(&before.cpu);
    return before;
}

static inline void finish_event(struct etch_sync_event *event, uint64_t index, uint8_t op, uint64_t object,
                                uint64_t other, int result, uint64_t caller)
{
    event->object = object;
    event->other = other;
    event->caller = caller;
    event->result = result;
    event->op = op;
    /* Release: pairs with the reader's acquire of the sequence. */
    __atomic_store_n(&event->sequence, index + 1, __ATOMIC_RELEASE);
}

static inline struct etch_sync_event *put(uint8_t op, uint64_t object, uint64_t other, int result, uint64_t caller)
{
    uint64_t index;
    struct etch_sync_event *event = begin_event(&index);

    if (event)
        finish_event(event, index, op, object, other, result, caller);
    return event;
}

/* After an acquire that began with `before`. */
static inline void put_since(struct before before, uint8_t op, uint64_t object, int result, uint64_t caller)
{
    uint64_t index;
    struct etch_sync_event *event = begin_event(&index);

    if (!event)
        return;
    event->across = before.cpu == event->cpu ? before.tsc : 0;
    finish_event(event, index, op, object, 0, result, caller);
}

/* After a release that put `event`. The reader may have it already; then it does without. */
static inline void call_over(struct etch_sync_event *event)
{
    uint16_t cpu;
    uint64_t tsc;

    if (!event || !joined->memory)
        return;
    tsc = stamp(&cpu);
    if (cpu == event->cpu)
        __atomic_store_n(&event->across, tsc, __ATOMIC_RELAXED);
}

/* ---- Beginning and end ---- */

/* The child of a fork must not write into its parent's rings. */
static void in_child(void)
{
    joined->memory = joined->mapped = NULL;
    ring = NULL;
}

/* Reading the time stamp counter would be a fault from now on. */
static void go_quiet(void)
{
    struct etch_sync_memory *memory = joined->memory;

    if (memory)
        __atomic_fetch_add(&memory->unplaced, 1, __ATOMIC_RELAXED);
    joined->memory = joined->mapped = NULL;
}

/* A program that makes the system call itself is not seen. */
EXPORT int prctl(int option, unsigned long a, unsigned long b, unsigned long c, unsigned long d);
EXPORT int prctl(int option, unsigned long a, unsigned long b, unsigned long c, unsigned long d)
{
    if ((option == PR_SET_TSC && a == PR_TSC_SIGSEGV) || (option == PR_SET_SECCOMP && a == SECCOMP_MODE_STRICT))
        go_quiet();
    return (int)syscall(SYS_prctl, option, a, b, c, d);
}

/* A program with the software recorder in it has a prctl of its own, and tells us. */
static void ask_to_be_told(void)
{
    void (**told)(void) = dlsym(RTLD_DEFAULT, "etch_soft_quieting");

    if (told)
        *told = go_quiet;
}

static void join(struct etch_sync_memory *map)
{
    struct joined *page = mmap(NULL, sizeof(*page), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (page != MAP_FAILED && madvise(page, 4096, MADV_WIPEONFORK) == 0)
        joined = page;
    emulated = map->emulated;
    joined->mapped = map;
    joined->memory = map->only_throws ? NULL : map;
    ask_to_be_told();
}

/* The program sees its environment as it would without us: the first variables are taken out of the array itself,
 * which is also what main() gets as its third argument. */
static void restore_environment(void)
{
    extern char **environ;
    const char *before = getenv(ETCH_SYNC_PRELOAD_VARIABLE);
    char **to = environ;

    for (char **from = environ; *from; from++) {
        if (strncmp(*from, ETCH_SYNC_VARIABLE "=", sizeof(ETCH_SYNC_VARIABLE)) == 0 ||
            strncmp(*from, ETCH_SYNC_PRELOAD_VARIABLE "=", sizeof(ETCH_SYNC_PRELOAD_VARIABLE)) == 0)
            continue;
        if (strncmp(*from, "LD_PRELOAD=", 11) == 0) {
            if (!before)
                continue;
            memmove(*from + 11, before, strlen(before) + 1); /* it is what ours ended in: shorter */
        }
        *to++ = *from;
    }
    *to = NULL;
}

static void join_memory(const char *path)
{
    struct etch_sync_memory *map;
    struct stat st;
    int fd = open(path, O_RDWR | O_CLOEXEC);

    if (fd < 0)
        return;
    if (fstat(fd, &st) == 0 && (size_t)st.st_size >= sizeof(*map)) {
        map = mmap(NULL, sizeof(*map), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (map != MAP_FAILED && map->magic == ETCH_SYNC_MAGIC && map->version == ETCH_SYNC_VERSION && map->pid == 0 &&
            pthread_key_create(&exit_key, thread_ends) == 0) {
            pthread_atfork(NULL, NULL, in_child);
            map->pid = (uint32_t)getpid();
            join(map);
        }
    }
    close(fd);
}

__attribute__((constructor(101))) static void begin(void)
{
    const char *path = secure_getenv(ETCH_SYNC_VARIABLE); /* not where the program was given rights */
    int saved = errno;

    READY();
    if (path) {
        join_memory(path);
        restore_environment();
    }
    errno = saved;
}

/* ---- Threads ---- */

struct birth {
    void *(*routine)(void *);
    void *argument;
};

static void *live(void *at)
{
    struct birth birth = *(struct birth *)at;

    free(at);
    put(THREAD_START, ADDRESS(pthread_self()), ADDRESS(birth.routine), 0, 0);
    if (ring)
        ring->start_routine = ADDRESS(birth.routine);
    return birth.routine(birth.argument);
}

static void leave(void *unused)
{
    (void)unused;
    put(THREAD_EXIT, ADDRESS(pthread_self()), 0, 0, 0);
}

/* Also when the thread ends by pthread_exit() or is cancelled. */
static void *live_and_leave(void *at)
{
    void *result;

    pthread_cleanup_push(leave, NULL);
    result = live(at);
    pthread_cleanup_pop(1);
    return result;
}

EXPORT int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*routine)(void *), void *argument)
{
    struct birth *birth;
    struct etch_sync_event *event;
    uint64_t caller = CALLER, index;
    int result;

    READY();
    if (!joined->memory)
        return real.create(thread, attr, routine, argument);
    birth = malloc(sizeof(*birth));
    if (!birth)
        return real.create(thread, attr, routine, argument);
    *birth = (struct birth){routine, argument};
    /* Stamped before, as all that releases: the new thread may run before the call returns. Its name is known after. */
    event = begin_event(&index);
    result = real.create(thread, attr, live_and_leave, birth);
    call_over(event);
    if (event)
        finish_event(event, index, THREAD_CREATE, ADDRESS(routine), result ? 0 : ADDRESS(*thread), result, caller);
    if (result)
        free(birth);
    return result;
}

EXPORT int pthread_join(pthread_t thread, void **value)
{
    int result;

    READY();
    result = real.join(thread, value);
    put(THREAD_JOIN, ADDRESS(thread), ADDRESS(thread), result, CALLER);
    return result;
}

EXPORT int pthread_tryjoin_np(pthread_t thread, void **value)
{
    int result;

    READY();
    result = real.tryjoin(thread, value);
    put(THREAD_JOIN, ADDRESS(thread), ADDRESS(thread), result, CALLER);
    return result;
}

EXPORT int pthread_timedjoin_np(pthread_t thread, void **value, const struct timespec *until)
{
    int result;

    READY();
    result = real.timedjoin(thread, value, until);
    put(THREAD_JOIN, ADDRESS(thread), ADDRESS(thread), result, CALLER);
    return result;
}

/* ---- Mutexes ---- */

EXPORT int pthread_mutex_init(pthread_mutex_t *mutex, const pthread_mutexattr_t *attr)
{
    int result;

    READY();
    result = real.mutex_init(mutex, attr);
    put(MUTEX_INIT, ADDRESS(mutex), 0, result, CALLER);
    return result;
}

EXPORT int pthread_mutex_destroy(pthread_mutex_t *mutex)
{
    READY();
    put(MUTEX_DESTROY, ADDRESS(mutex), 0, 0, CALLER);
    return real.mutex_destroy(mutex);
}

EXPORT int pthread_mutex_lock(pthread_mutex_t *mutex)
{
    struct before before;
    int result;

    READY();
    if (!joined->memory)
        return real.mutex_lock(mutex);
    before = before_call();
    /* A try tells whether it will wait; whatever else it says, it says what lock would. */
    result = real.mutex_trylock(mutex);
    if (result == EBUSY) {
        put(MUTEX_BLOCKED, ADDRESS(mutex), 0, 0, CALLER);
        result = real.mutex_lock(mutex);
    }
    put_since(before, MUTEX_LOCK, ADDRESS(mutex), result, CALLER);
    return result;
}

/* One by which the software recorder finds a ring for its thread: nothing of the program's. */
static bool is_recorders(const pthread_mutex_t *mutex)
{
    return mutex->__data.__nusers & ETCH_SOFT_LOCK_MARK;
}

EXPORT int pthread_mutex_trylock(pthread_mutex_t *mutex)
{
    struct before before;
    int result;

    READY();
    if (is_recorders(mutex))
        return real.mutex_trylock(mutex);
    before = before_call();
    result = real.mutex_trylock(mutex);
    put_since(before, MUTEX_LOCK, ADDRESS(mutex), result, CALLER);
    return result;
}

EXPORT int pthread_mutex_timedlock(pthread_mutex_t *mutex, const struct timespec *until)
{
    struct before before;
    int result;

    READY();
    before = before_call();
    result = real.mutex_timedlock(mutex, until);
    put_since(before, MUTEX_LOCK, ADDRESS(mutex), result, CALLER);
    return result;
}

EXPORT int pthread_mutex_clocklock(pthread_mutex_t *mutex, clockid_t clock, const struct timespec *until)
{
    struct before before;
    int result;

    READY();
    before = before_call();
    result = real.mutex_clocklock(mutex, clock, until);
    put_since(before, MUTEX_LOCK, ADDRESS(mutex), result, CALLER);
    return result;
}

EXPORT int pthread_mutex_unlock(pthread_mutex_t *mutex)
{
    struct etch_sync_event *event;
    int result;

    READY();
    if (is_recorders(mutex))
        return real.mutex_unlock(mutex);
    event = put(MUTEX_UNLOCK, ADDRESS(mutex), 0, 0, CALLER);
    result = real.mutex_unlock(mutex);
    call_over(event);
    return result;
}

/* ---- Read-write locks ---- */

EXPORT int pthread_rwlock_rdlock(pthread_rwlock_t *lock)
{
    struct before before;
    int result;

    READY();
    before = before_call();
    result = real.rdlock(lock);
    put_since(before, RWLOCK_RDLOCK, ADDRESS(lock), result, CALLER);
    return result;
}

EXPORT int pthread_rwlock_tryrdlock(pthread_rwlock_t *lock)
{
    struct before before;
    int result;

    READY();
    before = before_call();
    result = real.tryrdlock(lock);
    put_since(before, RWLOCK_RDLOCK, ADDRESS(lock), result, CALLER);
    return result;
}

EXPORT int pthread_rwlock_timedrdlock(pthread_rwlock_t *lock, const struct timespec *until)
{
    struct before before;
    int result;

    READY();
    before = before_call();
    result = real.timedrdlock(lock, until);
    put_since(before, RWLOCK_RDLOCK, ADDRESS(lock), result, CALLER);
    return result;
}

EXPORT int pthread_rwlock_wrlock(pthread_rwlock_t *lock)
{
    struct before before;
    int result;

    READY();
    before = before_call();
    result = real.wrlock(lock);
    put_since(before, RWLOCK_WRLOCK, ADDRESS(lock), result, CALLER);
    return result;
}

EXPORT int pthread_rwlock_trywrlock(pthread_rwlock_t *lock)
{
    struct before before;
    int result;

    READY();
    before = before_call();
    result = real.trywrlock(lock);
    put_since(before, RWLOCK_WRLOCK, ADDRESS(lock), result, CALLER);
    return result;
}

EXPORT int pthread_rwlock_timedwrlock(pthread_rwlock_t *lock, const struct timespec *until)
{
    struct before before;
    int result;

    READY();
    before = before_call();
    result = real.timedwrlock(lock, until);
    put_since(before, RWLOCK_WRLOCK, ADDRESS(lock), result, CALLER);
    return result;
}

EXPORT int pthread_rwlock_unlock(pthread_rwlock_t *lock)
{
    struct etch_sync_event *event;
    int result;

    READY();
    event = put(RWLOCK_UNLOCK, ADDRESS(lock), 0, 0, CALLER);
    result = real.rwunlock(lock);
    call_over(event);
    return result;
}

/* ---- Conditions: waiting releases the mutex at its beginning and acquires it at its end ---- */

EXPORT int pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex)
{
    int result;

    READY();
    put(COND_WAIT_BEGIN, ADDRESS(cond), ADDRESS(mutex), 0, CALLER);
    result = real.cond_wait(cond, mutex);
    put(COND_WAIT_END, ADDRESS(cond), ADDRESS(mutex), result, CALLER);
    return result;
}

EXPORT int pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex, const struct timespec *until)
{
    int result;

    READY();
    put(COND_WAIT_BEGIN, ADDRESS(cond), ADDRESS(mutex), 0, CALLER);
    result = real.cond_timedwait(cond, mutex, until);
    put(COND_WAIT_END, ADDRESS(cond), ADDRESS(mutex), result, CALLER);
    return result;
}

EXPORT int pthread_cond_clockwait(pthread_cond_t *cond, pthread_mutex_t *mutex, clockid_t clock,
                                  const struct timespec *until)
{
    int result;

    READY();
    put(COND_WAIT_BEGIN, ADDRESS(cond), ADDRESS(mutex), 0, CALLER);
    result = real.cond_clockwait(cond, mutex, clock, until);
    put(COND_WAIT_END, ADDRESS(cond), ADDRESS(mutex), result, CALLER);
    return result;
}

EXPORT int pthread_cond_signal(pthread_cond_t *cond)
{
    struct etch_sync_event *event;
    int result;

    READY();
    event = put(COND_SIGNAL, ADDRESS(cond), 0, 0, CALLER);
    result = real.cond_signal(cond);
    call_over(event);
    return result;
}

EXPORT int pthread_cond_broadcast(pthread_cond_t *cond)
{
    struct etch_sync_event *event;
    int result;

    READY();
    event = put(COND_BROADCAST, ADDRESS(cond), 0, 0, CALLER);
    result = real.cond_broadcast(cond);
    call_over(event);
    return result;
}

/* ---- Barriers, semaphores, spin locks ---- */

/* One that other processes may use too, unseen, is not to be counted: it lets through 0 at a time. */
EXPORT int pthread_barrier_init(pthread_barrier_t *barrier, const pthread_barrierattr_t *attr, unsigned count)
{
    int result, shared = PTHREAD_PROCESS_PRIVATE;

    READY();
    result = real.barrier_init(barrier, attr, count);
    if (attr)
        pthread_barrierattr_getpshared(attr, &shared);
    put(BARRIER_INIT, ADDRESS(barrier), shared == PTHREAD_PROCESS_PRIVATE ? count : 0, result, CALLER);
    return result;
}

EXPORT int pthread_barrier_wait(pthread_barrier_t *barrier)
{
    int result;

    READY();
    put(BARRIER_ENTER, ADDRESS(barrier), 0, 0, CALLER);
    result = real.barrier_wait(barrier);
    put(BARRIER_LEAVE, ADDRESS(barrier), 0, result, CALLER);
    return result;
}

/* Only of one that this process has for itself; without its first value nothing is counted. */
EXPORT int sem_init(sem_t *sem, int shared, unsigned value)
{
    int result;

    READY();
    result = real.sem_init(sem, shared, value);
    if (result == 0 && !shared)
        put(SEM_INIT, ADDRESS(sem), value, 0, CALLER);
    return result;
}

EXPORT int sem_post(sem_t *sem)
{
    struct etch_sync_event *event;
    int result;

    READY();
    event = put(SEM_POST, ADDRESS(sem), 0, 0, CALLER);
    result = real.sem_post(sem);
    call_over(event);
    return result;
}

/* These report through errno; nothing of ours touches it. */
EXPORT int sem_wait(sem_t *sem)
{
    struct before before;
    int result;

    READY();
    before = before_call();
    result = real.sem_wait(sem);
    put_since(before, SEM_WAIT, ADDRESS(sem), result ? errno : 0, CALLER);
    return result;
}

EXPORT int sem_trywait(sem_t *sem)
{
    struct before before;
    int result;

    READY();
    before = before_call();
    result = real.sem_trywait(sem);
    put_since(before, SEM_WAIT, ADDRESS(sem), result ? errno : 0, CALLER);
    return result;
}

EXPORT int sem_timedwait(sem_t *sem, const struct timespec *until)
{
    struct before before;
    int result;

    READY();
    before = before_call();
    result = real.sem_timedwait(sem, until);
    put_since(before, SEM_WAIT, ADDRESS(sem), result ? errno : 0, CALLER);
    return result;
}

EXPORT int pthread_spin_lock(pthread_spinlock_t *lock)
{
    struct before before;
    int result;

    READY();
    before = before_call();
    result = real.spin_lock(lock);
    put_since(before, SPIN_LOCK, ADDRESS(lock), result, CALLER);
    return result;
}

EXPORT int pthread_spin_trylock(pthread_spinlock_t *lock)
{
    struct before before;
    int result;

    READY();
    before = before_call();
    result = real.spin_trylock(lock);
    put_since(before, SPIN_LOCK, ADDRESS(lock), result, CALLER);
    return result;
}

EXPORT int pthread_spin_unlock(pthread_spinlock_t *lock)
{
    READY();
    put(SPIN_UNLOCK, ADDRESS(lock), 0, 0, CALLER);
    return real.spin_unlock(lock);
}
