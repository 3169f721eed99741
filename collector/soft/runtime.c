/* SPDX-License-Identifier: MIT */
/* The software recorder's runtime, linked into recorded programs by etch cc --record. Compiled code writes most bytes
 * itself; this is what happens when a chunk of the ring is full, a function is entered from code without a recorder,
 * or control comes back by longjmp or an exception.
 *
 * It uses one libc function (weakly), no vector register, no lock that waits, no system call, little stack, and no
 * memory but the ring, so it may run at any point of any program, signal handlers and sandboxes included. What needs
 * the kernel happens at the start (pool.c). The reader may be another process, or come after this one's death: what
 * counts is the order of the stores, which is the program's own. */
#include "collector/soft/runtime.h"

#include <linux/prctl.h>
#include <linux/seccomp.h>

SHARED __thread uint8_t *etch_soft_cur __attribute__((tls_model("initial-exec")));
SHARED __thread struct etch_soft_act *etch_soft_top __attribute__((tls_model("initial-exec")));
SHARED __thread struct etch_soft_ring *etch_soft_ring __attribute__((tls_model("initial-exec")));
SHARED struct etch_soft_recorder etch_soft_recorder;
SHARED uint32_t etch_soft_quiet;
SHARED void (*etch_soft_quieting)(void);

/* Compiled code of this module records; else it goes through the copies without a recorder. Decided once, before
 * anything but earlier constructors ran; what these called stays as it was until it returns. */
HIDDEN uint8_t etch_soft_on;

/* Where threads without a ring write: the same place for all modules, so that each knows it. */
static uint8_t nowhere[2 * ETCH_SOFT_CHUNK] __attribute__((aligned(ETCH_SOFT_CHUNK)));

static uint8_t *nowhere_begin(void)
{
    if (!etch_soft_recorder.nowhere)
        etch_soft_recorder.nowhere = nowhere;
    return etch_soft_recorder.nowhere + ETCH_SOFT_SLACK;
}
#define NOWHERE nowhere_begin()

static void zero(void *at, size_t size)
{
    size_t words = size / 8;

    __asm__ volatile("rep stosq" : "+D"(at), "+c"(words) : "a"(0L) : "memory");
}

/* 0 where the program may not read it. */
static uint64_t stamp(uint32_t *cpu)
{
    uint32_t lo, hi, aux;

    *cpu = 0;
    if (__builtin_expect(etch_soft_quiet, 0))
        return 0;
    __asm__ volatile("rdtscp" : "=a"(lo), "=d"(hi), "=c"(aux));
    *cpu = aux & 0xfff; /* Linux keeps the CPU there */
    return (uint64_t)hi << 32 | lo;
}

typedef uint64_t word __attribute__((aligned(1), may_alias));
typedef uint16_t half __attribute__((aligned(1), may_alias));

static void put_word(void *to, uint64_t value)
{
    *(volatile word *)to = value;
}

/* ---- Chunks ---- */

_Static_assert(sizeof(struct etch_soft_ring) <= ETCH_SOFT_SLACK, "a ring's head lies before its chunks");

static uint8_t *chunk_of(const uint8_t *cur)
{
    return (uint8_t *)((uintptr_t)(cur - 1 - ETCH_SOFT_SLACK) & ~(uintptr_t)(ETCH_SOFT_CHUNK - 1)) + ETCH_SOFT_SLACK;
}

static uint8_t *chunk_at(struct etch_soft_ring *ring, uint64_t number)
{
    return (uint8_t *)ring + ETCH_SOFT_SLACK + ETCH_SOFT_CHUNK * number;
}

static bool is_nowhere(const uint8_t *cur)
{
    return (uintptr_t)cur + ETCH_SOFT_SLACK - (uintptr_t)nowhere_begin() < sizeof(nowhere);
}

static bool has_ring(void)
{
    return etch_soft_ring && !is_nowhere(etch_soft_cur);
}

/* A chunk that an interrupted context goes on with must not be given away. */
static bool is_open(const struct etch_soft_ring *ring, const uint8_t *chunk)
{
    for (uint32_t i = 0; i < ring->handlers; i++)
        if (chunk_of((const uint8_t *)ring->handler[i].cur) == chunk)
            return true;
    return false;
}

static uint64_t next_seq(struct etch_soft_ring *ring)
{
    uint64_t one = 1;

    /* One instruction: a signal handler may do the same on this thread at any time. */
    __asm__ volatile("xaddq %0, %1" : "+r"(one), "+m"(ring->seq) : : "memory");
    return one;
}

/* Begins a chunk and returns where its records go; NULL where all chunks are in use. */
static uint8_t *begin_chunk(enum etch_soft_chunk_kind kind, uint64_t interrupted, uint64_t ip)
{
    struct etch_soft_ring *ring = etch_soft_ring;
    uint32_t chunks = etch_soft_recorder.chunks;

    for (uint32_t i = 0; i < chunks; i++) {
        uint64_t seq = next_seq(ring);
        uint8_t *at = chunk_at(ring, seq % chunks);
        volatile struct etch_soft_chunk *chunk = (volatile struct etch_soft_chunk *)at;
        uint32_t cpu;

        if (is_open(ring, at))
            continue;
        chunk->magic = 0; /* until it is whole, it is nothing */
        zero(at + sizeof(uint64_t), ETCH_SOFT_CHUNK - sizeof(uint64_t));
        chunk->kind = kind;
        chunk->seq = seq;
        if (kind == ETCH_SOFT_SIGNAL)
            ring->context = seq;
        chunk->context = ring->context;
        chunk->interrupted = interrupted;
        chunk->ip = ip;
        chunk->tsc = stamp(&cpu);
        chunk->cpu = cpu;
        chunk->magic = ETCH_SOFT_CHUNK_MAGIC;
        return at + sizeof(struct etch_soft_chunk);
    }
    return NULL;
}

/* The room in the chunk without the slack, which stays for compiled code. */
static size_t room(const uint8_t *cur)
{
    size_t used = ((uintptr_t)cur - ETCH_SOFT_SLACK - 1) & (ETCH_SOFT_CHUNK - 1);

    return used < ETCH_SOFT_FULL ? ETCH_SOFT_FULL - 1 - used : 0;
}

/* ---- Threads ---- */

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

/* Where there is no robust mutex a ring is taken once, and the kernel is asked who takes it. */
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

/* One that this thread had; one never used; else, of a thread that is gone, the one that began first. */
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
    __atomic_store_n(&ring->state, ETCH_SOFT_CLAIMED, __ATOMIC_RELEASE);
}

/* A signal handler may come at any point and do the same: what it set is kept. */
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
static void begin_thread(enum etch_soft_chunk_kind kind)
{
    struct etch_soft_ring *ring = etch_soft_ring ? etch_soft_ring : take_ring(&etch_soft_recorder);
    uint8_t *cur;

    if (!ring || etch_soft_cur)
        return;
    cur = begin_chunk(kind, 0, 0);
    if (!set_once(&etch_soft_cur, cur ? cur : NOWHERE) && cur)
        *(volatile uint32_t *)chunk_of(cur) = 0;
}

/* ---- Child processes ---- */

/* The page is empty in a child, by whatever call it was made. */
static bool is_copy(const struct etch_soft_recorder *s)
{
    return s->here && !*(volatile uint32_t *)s->here;
}

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
    begin_thread(ETCH_SOFT_FORKED);
    if (!s->pid)
        s->pool = NULL; /* its threads would not know whose they are */
}

static void enter_child(void)
{
    if (is_copy(&etch_soft_recorder))
        etch_soft_forked();
}

/* In a child that was made otherwise, libc's notion of the thread is still the parent's, and a lock would be taken in
 * its name. It records no more. */
static void detach(struct etch_soft_recorder *s)
{
    *s->here = 1;
    if (s->pool)
        __atomic_fetch_add(&s->pool->shared, 1, __ATOMIC_RELAXED);
    s->pool = NULL;
    etch_soft_ring = NULL;
    etch_soft_cur = NOWHERE;
}

static void leave_parent(void)
{
    if (__builtin_expect(is_copy(&etch_soft_recorder), 0))
        detach(&etch_soft_recorder);
}

/* ---- Where the thread is ---- */

/* They are written where they belong, not gathered on the stack first: that may be a handler's, and small. */
struct frames {
    uint8_t *to; /* NULL: they are counted only */
    uint8_t n, flags;
};

static bool push_frame(struct frames *f, uintptr_t ip)
{
    if (f->n == ETCH_SOFT_FRAMES) {
        f->flags = ETCH_SOFT_TRUNCATED;
        return false;
    }
    if (f->to)
        put_word(f->to + f->n * sizeof(uint64_t), ip);
    f->n++;
    return true;
}

/* On the stack between the two: else it was made by other code, or is on another stack, and is not touched. */
static bool is_between(uintptr_t frame, uintptr_t below, const struct etch_soft_act *top)
{
    return frame > below && frame <= top->frame && !(frame & 7);
}

/* Compiled code keeps frame pointers, so up to the entry from outside each frame leads to the next. Beyond it they may
 * lead on, where compiled code called by a pointer; a 0 stands between. */
static void collect_frames(struct frames *f, const struct etch_soft_act *top, uintptr_t frame)
{
    f->n = f->flags = 0;
    while (top) {
        const uintptr_t *words = (const uintptr_t *)frame;
        uintptr_t next = words[0];
        bool entry = frame == top->frame;

        if (!entry && next == top->frame) {
            if ((top->flags & ETCH_SOFT_OWN) && !push_frame(f, words[1]))
                return;
            frame = next;
            continue;
        }
        if (entry && (!top->prev || (top->flags & ETCH_SOFT_HANDLER)))
            return;
        if (!is_between(next, frame, entry ? top->prev : top)) {
            f->flags = ETCH_SOFT_TRUNCATED;
            return;
        }
        if ((entry && !push_frame(f, 0)) || !push_frame(f, words[1]))
            return;
        top = entry ? top->prev : top;
        frame = next;
    }
}

static uint8_t *frames_of(uint8_t *sync)
{
    return sync + 1 + sizeof(struct etch_soft_sync);
}

/* Behind it the frames are in place. */
static uint8_t *put_sync(uint8_t *cur, struct etch_soft_sync sync, const struct frames *f)
{
    sync.frames = f->n;
    sync.flags |= f->flags;
    put(cur + 1, &sync, sizeof(sync));
    *(volatile uint8_t *)cur = ETCH_SOFT_SYNC;
    return frames_of(cur) + f->n * sizeof(uint64_t);
}

static uint8_t *put_place(uint8_t *cur, struct etch_soft_sync sync, uintptr_t frame)
{
    struct frames frames = {.to = frames_of(cur)};

    collect_frames(&frames, etch_soft_top, frame);
    return put_sync(cur, sync, &frames);
}

static void continue_at(const struct etch_soft_sync *sync, uintptr_t frame)
{
    uint8_t *cur = begin_chunk(ETCH_SOFT_CONTINUED, 0, 0);

    *(uint8_t *volatile *)&etch_soft_cur = cur ? put_place(cur, *sync, frame) : NOWHERE;
}

/* The chunk is full. Called by etch_soft_turn3 with the registers saved; returns where it goes on. */
HIDDEN uint8_t *etch_soft_turned(uintptr_t where, uintptr_t edge, uintptr_t frame, uint8_t *cur);
uint8_t *etch_soft_turned(uintptr_t where, uintptr_t edge, uintptr_t frame, uint8_t *cur)
{
    struct etch_soft_sync sync = {.edge = (uint8_t)edge, .where = where};

    leave_parent();
    if (!etch_soft_ring)
        return etch_soft_cur = NOWHERE;
    *(uint8_t *volatile *)&etch_soft_cur = cur;
    if (is_nowhere(etch_soft_cur))
        etch_soft_cur = NOWHERE;
    else
        continue_at(&sync, frame);
    return etch_soft_cur;
}

/* Functions that compiled code calls where the compiler knows of no call: no register changes but what is said. `ready`
 * finds nine on the stack, the last saved first, then what the call left there. */
#define SAVED_CALL(name, ready, function, done)                                                                        \
    __asm__(".text\n.hidden " name "\n.globl " name "\n.type " name ",@function\n" name ":\n"                          \
            "  .cfi_startproc\n"                                                                                       \
            "  push %rax\n  .cfi_adjust_cfa_offset 8\n"                                                                \
            "  push %rcx\n  .cfi_adjust_cfa_offset 8\n"                                                                \
            "  push %rdx\n  .cfi_adjust_cfa_offset 8\n"                                                                \
            "  push %rsi\n  .cfi_adjust_cfa_offset 8\n"                                                                \
            "  push %rdi\n  .cfi_adjust_cfa_offset 8\n"                                                                \
            "  push %r8\n  .cfi_adjust_cfa_offset 8\n"                                                                 \
            "  push %r9\n  .cfi_adjust_cfa_offset 8\n"                                                                 \
            "  push %r10\n  .cfi_adjust_cfa_offset 8\n"                                                                \
            "  push %r11\n  .cfi_adjust_cfa_offset 8\n" ready                                                          \
            "  push %rbp\n  .cfi_adjust_cfa_offset 8\n  .cfi_rel_offset %rbp, 0\n"                                     \
            "  mov %rsp, %rbp\n  .cfi_def_cfa_register %rbp\n"                                                         \
            "  and $-16, %rsp\n"                                                                                       \
            "  call " function "\n"                                                                                    \
            "  mov %rbp, %rsp\n  .cfi_def_cfa_register %rsp\n"                                                         \
            "  pop %rbp\n  .cfi_adjust_cfa_offset -8\n  .cfi_restore %rbp\n" done                                      \
            "  pop %r11\n  .cfi_adjust_cfa_offset -8\n"                                                                \
            "  pop %r10\n  .cfi_adjust_cfa_offset -8\n"                                                                \
            "  pop %r9\n  .cfi_adjust_cfa_offset -8\n"                                                                 \
            "  pop %r8\n  .cfi_adjust_cfa_offset -8\n"                                                                 \
            "  pop %rdi\n  .cfi_adjust_cfa_offset -8\n"                                                                \
            "  pop %rsi\n  .cfi_adjust_cfa_offset -8\n"                                                                \
            "  pop %rdx\n  .cfi_adjust_cfa_offset -8\n"                                                                \
            "  pop %rcx\n  .cfi_adjust_cfa_offset -8\n"                                                                \
            "  pop %rax\n  .cfi_adjust_cfa_offset -8\n"                                                                \
            "  ret\n"                                                                                                  \
            "  .cfi_endproc\n"                                                                                         \
            ".size " name ",.-" name "\n")

/* On the stack is where it writes, which changes, and the edge taken. */
SAVED_CALL("etch_soft_turn3",
           "  mov 72(%rsp), %rdi\n  mov 80(%rsp), %rcx\n"
           "  mov 88(%rsp), %rsi\n  mov %rbp, %rdx\n",
           "etch_soft_turned", "  mov %rax, 80(%rsp)\n");

/* A chunk is full behind OUT. `where` is what the function outside returns to, `frame` that of who called it. */
HIDDEN void etch_soft_gone(uintptr_t where, uintptr_t frame);
void etch_soft_gone(uintptr_t where, uintptr_t frame)
{
    struct etch_soft_sync sync = {.flags = ETCH_SOFT_OUTSIDE, .where = where};

    leave_parent();
    if (!has_ring())
        etch_soft_cur = NOWHERE;
    else
        continue_at(&sync, frame);
}

/* From a stub: below where it goes on is what it was called with. */
SAVED_CALL("etch_soft_outside", "  mov 80(%rsp), %rdi\n  mov %rbp, %rsi\n", "etch_soft_gone", "");

/* ---- Entered from outside ---- */

/* Does the kernel's way back from a signal handler stand there: rt_sigreturn? */
static bool is_signal_return(const uint8_t *at)
{
    static const uint8_t glibc[] = {0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05},
                         musl[] = {0xb8, 0x0f, 0, 0, 0, 0x0f, 0x05};
    size_t i, k;

    for (i = 0; i < sizeof(glibc) && at[i] == glibc[i]; i++)
        ;
    for (k = 0; k < sizeof(musl) && i < sizeof(glibc) && at[k] == musl[k]; k++)
        ;
    return i == sizeof(glibc) || k == sizeof(musl);
}

/* The kernel's frame lies where the handler was entered: the return address, then a ucontext, whose registers begin
 * with r8 to r15, di, si, bp, bx, dx, ax, cx, sp, ip. */
static uint64_t interrupted_ip(uintptr_t frame)
{
    return *(const uint64_t *)(frame + 8 + 8 + 40 + (uintptr_t)16 * 8);
}

/* Compiled code that was interrupted, or left from a handler, may have written beyond what the variable says: paths,
 * and which function was called through a pointer. They begin with what is never 0, and what comes behind them in the
 * chunk is. */
static uint8_t *behind_paths(uint8_t *cur)
{
    const uint8_t *end = chunk_of(cur) + ETCH_SOFT_CHUNK;

    while (cur < end && *cur != ETCH_SOFT_NOTHING && (*cur < ETCH_SOFT_ENTRY || *cur == ETCH_SOFT_PASSED))
        cur += *cur == ETCH_SOFT_PASSED ? ETCH_SOFT_PASSED_SIZE : 1;
    return cur < end ? cur : (uint8_t *)(uintptr_t)end;
}

/* A handler writes into chunks of its own: the code it interrupted may be between any two instructions. */
static void begin_signal(struct etch_soft_act *act, uint64_t ip)
{
    uint8_t *chunk = chunk_of(etch_soft_cur), *cur;
    uint64_t written = (uint64_t)(behind_paths(etch_soft_cur) - chunk);
    uint64_t seq = ((struct etch_soft_chunk *)chunk)->seq;

    act->flags |= ETCH_SOFT_HANDLER;
    etch_soft_ring->handler[etch_soft_ring->handlers].act = (uintptr_t)act;
    etch_soft_ring->handler[etch_soft_ring->handlers].cur = (uintptr_t)etch_soft_cur;
    etch_soft_ring->handler[etch_soft_ring->handlers].context = etch_soft_ring->context;
    __asm__ volatile("" : : : "memory"); /* another handler may come at any time: whole before it counts */
    etch_soft_ring->handlers++;
    cur = begin_chunk(ETCH_SOFT_SIGNAL, seq * ETCH_SOFT_CHUNK + written, ip);
    etch_soft_cur = cur ? cur : NOWHERE;
}

/* A chunk that begins with where the entered function was called from, as far as frame pointers lead there. */
static uint8_t *begin_with_caller(const struct etch_soft_act *act, const uint8_t *from)
{
    struct etch_soft_sync sync = {.flags = ETCH_SOFT_OUTSIDE, .where = (uintptr_t)from};
    uint8_t *cur = begin_chunk(ETCH_SOFT_CONTINUED, 0, 0);
    struct frames frames = {.flags = act->prev ? ETCH_SOFT_TRUNCATED : 0};
    uintptr_t caller = *(const uintptr_t *)act->frame;

    if (!cur)
        return NULL;
    frames.to = frames_of(cur);
    if (act->prev && is_between(caller, act->frame, act->prev))
        collect_frames(&frames, act->prev, caller);
    return put_sync(cur, sync, &frames);
}

static void put_entry(const struct etch_soft_act *act, uint64_t function, const uint8_t *from)
{
    uint8_t *cur = etch_soft_cur;

    if (room(cur) < ETCH_SOFT_ENTRY_SIZE)
        cur = begin_with_caller(act, from);
    if (!cur) {
        etch_soft_cur = NOWHERE;
        return;
    }
    put_word(cur + 1, function);
    *(volatile uint8_t *)cur = ETCH_SOFT_ENTRY;
    etch_soft_cur = cur + ETCH_SOFT_ENTRY_SIZE;
}

/* Entered by a handler without a recorder: the code that it interrupted wrote paths that the variable does not know of.
 */
static bool is_behind(void)
{
    return behind_paths(etch_soft_cur) != etch_soft_cur;
}

/* Without a ring the place moves on as well, and only some of what writes asks for room. */
static void begin_nowhere(void)
{
    if (is_nowhere(etch_soft_cur))
        etch_soft_cur = NOWHERE;
}

/* Where a function goes on that was entered. What can be entered so tells the usual itself (instrument_entry.c). */
HIDDEN uint8_t *etch_soft_enter3(struct etch_soft_act *act, uint64_t function, uintptr_t frame, const uint8_t *from);
uint8_t *etch_soft_enter3(struct etch_soft_act *act, uint64_t function, uintptr_t frame, const uint8_t *from)
{
    leave_parent();
    act->prev = etch_soft_top;
    act->frame = frame & ~(uintptr_t)1;
    act->flags = frame & 1 ? ETCH_SOFT_OWN : 0;
    if (!etch_soft_cur)
        begin_thread(ETCH_SOFT_START);
    if (has_ring() && etch_soft_ring->handlers < ETCH_SOFT_HANDLERS) {
        if (is_signal_return(from))
            begin_signal(act, interrupted_ip(act->frame));
        else if (is_behind())
            begin_signal(act, 0);
    }
    etch_soft_top = act;
    if (has_ring())
        put_entry(act, function, from);
    else
        begin_nowhere();
    return etch_soft_cur;
}

/* In r11 is the act, in r10 the function, and then where it goes on; rbp is the entry's. */
SAVED_CALL("etch_soft_entered3",
           "  mov %r11, %rdi\n  mov %r10, %rsi\n"
           "  mov %rbp, %rdx\n  mov 8(%rbp), %rcx\n",
           "etch_soft_enter3", "  mov %rax, 8(%rsp)\n");

static void put_byte(uint8_t byte)
{
    uint8_t *cur = etch_soft_cur;

    if (room(cur) < 1)
        cur = begin_chunk(ETCH_SOFT_CONTINUED, 0, 0);
    if (!cur) {
        etch_soft_cur = NOWHERE;
        return;
    }
    *(volatile uint8_t *)cur = byte;
    etch_soft_cur = cur + 1;
}

/* Back to what the innermost handler interrupted. */
static void end_signal(void)
{
    struct etch_soft_ring *ring = etch_soft_ring;
    uint32_t last = ring->handlers - 1;

    ring->context = ring->handler[last].context;
    *(uint8_t *volatile *)&etch_soft_cur = (uint8_t *)ring->handler[last].cur;
    *(volatile uint32_t *)&ring->handlers = last;
}

/* In the slack there is always room for this byte. */
static void put_left(const struct etch_soft_act *act)
{
    uint8_t *cur = etch_soft_cur;

    *(volatile uint8_t *)cur++ = ETCH_SOFT_LEFT;
    if (!room(cur))
        cur = begin_with_caller(act, ((const uint8_t *const *)act->frame)[1]);
    etch_soft_cur = cur ? cur : NOWHERE;
}

/* An exception leaves the function: where it lands is told. */
HIDDEN void etch_soft_unwind(struct etch_soft_act *act);
void etch_soft_unwind(struct etch_soft_act *act)
{
    if ((act->flags & ETCH_SOFT_HANDLER) && etch_soft_ring && etch_soft_ring->handlers)
        end_signal();
    etch_soft_top = act->prev;
}

HIDDEN void etch_soft_leave(const struct etch_soft_act *act);
void etch_soft_leave(const struct etch_soft_act *act)
{
    bool handler = act->flags & ETCH_SOFT_HANDLER;

    leave_parent();
    if (has_ring() && handler)
        put_byte(ETCH_SOFT_RETURNED);
    else if (has_ring() && !act->prev)
        put_byte(ETCH_SOFT_END);
    else if (has_ring())
        put_left(act);
    if (handler && etch_soft_ring && etch_soft_ring->handlers)
        end_signal();
    etch_soft_top = act->prev;
}

/* In r11 is the act. */
SAVED_CALL("etch_soft_left3", "  mov %r11, %rdi\n", "etch_soft_leave", "");

/* ---- Control comes back by another way than a return ---- */

static uint64_t innermost_handler(void)
{
    return etch_soft_ring->handler[etch_soft_ring->handlers - 1].act;
}

static bool is_alive(const struct etch_soft_act *top, uint64_t act)
{
    while (top && (uintptr_t)top != act)
        top = top->prev;
    return top != NULL;
}

/* After setjmp, in a landing pad, and after fork: `top` is what etch_soft_top was when the function began. */
HIDDEN void etch_soft_land(struct etch_soft_act *top, uint64_t function, uint32_t node);
void etch_soft_land(struct etch_soft_act *top, uint64_t function, uint32_t node)
{
    uintptr_t frame = *(uintptr_t *)__builtin_frame_address(0);
    struct etch_soft_sync sync = {.flags = ETCH_SOFT_LANDED, .node = node & ~ETCH_SOFT_MAY_FORK, .where = function};
    struct frames frames = {0};

    if (node & ETCH_SOFT_MAY_FORK)
        enter_child();
    leave_parent();
    /* What was left lies on dead stack, and is not looked at; from `top` on all is alive. */
    while (etch_soft_ring && etch_soft_ring->handlers && !is_alive(top, innermost_handler()))
        end_signal();
    etch_soft_top = top;
    if (!has_ring()) {
        begin_nowhere();
        return;
    }
    etch_soft_cur = behind_paths(etch_soft_cur);
    collect_frames(&frames, etch_soft_top, frame);
    if (room(etch_soft_cur) < 1 + sizeof(sync) + frames.n * sizeof(uint64_t))
        continue_at(&sync, frame);
    else
        etch_soft_cur = put_place(etch_soft_cur, sync, frame);
}

/* Before and after calls that may wait. */
HIDDEN void etch_soft_stamp(void);
void etch_soft_stamp(void)
{
    uint8_t *cur;
    uint32_t cpu;
    uint64_t tsc;

    leave_parent();
    cur = etch_soft_cur;
    if (!has_ring() || room(cur) < ETCH_SOFT_TIME_SIZE || etch_soft_quiet)
        return;
    tsc = stamp(&cpu);
    put_word(cur + 1, tsc);
    *(volatile half *)(cur + 9) = (uint16_t)cpu;
    *(volatile uint8_t *)cur = ETCH_SOFT_TIME;
    etch_soft_cur = cur + ETCH_SOFT_TIME_SIZE;
}

/* ---- Sandboxes ---- */

/* After either the time stamp counter may not be read. A program that makes the system call itself is not seen. */
static bool forbids_time(int option, unsigned long value)
{
    return (option == PR_SET_TSC && value == PR_TSC_SIGSEGV) ||
           (option == PR_SET_SECCOMP && value == SECCOMP_MODE_STRICT);
}

__attribute__((weak, visibility("default"))) int prctl(int option, unsigned long a, unsigned long b, unsigned long c,
                                                       unsigned long d);
int prctl(int option, unsigned long a, unsigned long b, unsigned long c, unsigned long d)
{
    struct etch_soft_pool *pool = etch_soft_recorder.pool;
    uint32_t before = etch_soft_quiet;
    long result;

    if (forbids_time(option, a)) {
        *(volatile uint32_t *)&etch_soft_quiet = 1;
        if (etch_soft_quieting)
            etch_soft_quieting();
    }
    result = call6(__NR_prctl, option, (long)a, (long)b, (long)c, (long)d, 0);
    if (result >= 0 || result < -4095) {
        if (pool && etch_soft_quiet)
            pool->untimed = 1;
        return (int)result;
    }
    etch_soft_quiet = before;
    if (__errno_location)
        *__errno_location() = (int)-result;
    return -1;
}
