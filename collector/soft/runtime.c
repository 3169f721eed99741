/* SPDX-License-Identifier: MIT */
/* The software recorder's runtime, linked into recorded programs by etch cc --record. Compiled code writes most bytes
 * itself; this is what happens when a chunk of the ring is full, a function is entered from code without a recorder,
 * or control comes back by longjmp or an exception.
 *
 * It uses no libc function (weakly one, for fork), no vector register, no lock, and no memory but the ring, so it may
 * run at any point of any program, signal handlers included. The reader may be another process, or come after this
 * one's death: what counts is the order of the stores, which is the program's own. */
#include "proto/soft_layout.h"

#include <asm/unistd.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/mman.h>

/* The names of what recorded code calls end with the version of how it calls recorded code of other files: objects of
 * another version are refused by the linker, where calls between them would go wrong. */
#define SHARED __attribute__((visibility("default"))) /* one for all modules of a process */
#define HIDDEN __attribute__((visibility("hidden")))

struct state {
    struct etch_soft_pool *pool;
    uint64_t pool_size;
    uint32_t chunks, slots;
    int pid;
    bool started;
    char folder[4000];
};

SHARED __thread uint8_t *etch_soft_cur __attribute__((tls_model("initial-exec")));
SHARED __thread struct etch_soft_act *etch_soft_top __attribute__((tls_model("initial-exec")));
SHARED __thread struct etch_soft_ring *etch_soft_ring __attribute__((tls_model("initial-exec")));
SHARED struct state etch_soft_state;

/* Compiled code of this module records; else it goes through the copies without a recorder. Decided once, before
 * anything but earlier constructors ran; what these called stays as it was until it returns. */
HIDDEN uint8_t etch_soft_on;

/* Where threads without a ring write. */
static uint8_t nowhere[2 * ETCH_SOFT_CHUNK] __attribute__((aligned(ETCH_SOFT_CHUNK)));
#define NOWHERE (nowhere + ETCH_SOFT_SLACK)

/* ---- System calls ---- */

static long call6(long number, long a, long b, long c, long d, long e, long f)
{
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    long result;

    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
}

static long call3(long number, long a, long b, long c)
{
    return call6(number, a, b, c, 0, 0, 0);
}

static void zero(void *at, size_t size)
{
    size_t words = size / 8;

    __asm__ volatile("rep stosq" : "+D"(at), "+c"(words) : "a"(0L) : "memory");
}

static uint64_t stamp(uint32_t *cpu)
{
    uint32_t lo, hi, aux;

    __asm__ volatile("rdtscp" : "=a"(lo), "=d"(hi), "=c"(aux));
    *cpu = aux & 0xfff; /* Linux keeps the CPU there */
    return (uint64_t)hi << 32 | lo;
}

/* Not memcpy: libc's may use vector registers, and may be the program's own. */
static void put(void *to, const void *from, size_t size)
{
    __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(size) : : "memory");
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
    return (uintptr_t)cur - (uintptr_t)nowhere < sizeof(nowhere);
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
    uint32_t chunks = etch_soft_state.chunks;

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

/* ---- Where the thread is ---- */

struct frames {
    uint64_t v[ETCH_SOFT_FRAMES];
    uint8_t n, flags;
};

static bool push_frame(struct frames *f, uintptr_t ip)
{
    if (f->n == ETCH_SOFT_FRAMES) {
        f->flags = ETCH_SOFT_TRUNCATED;
        return false;
    }
    f->v[f->n++] = ip;
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

static uint8_t *put_sync(uint8_t *cur, struct etch_soft_sync sync, const struct frames *f)
{
    sync.frames = f->n;
    sync.flags |= f->flags;
    put(cur + 1, &sync, sizeof(sync));
    for (uint8_t i = 0; i < f->n; i++)
        put_word(cur + 1 + sizeof(sync) + i * sizeof(f->v[0]), f->v[i]);
    *(volatile uint8_t *)cur = ETCH_SOFT_SYNC;
    return cur + 1 + sizeof(sync) + f->n * sizeof(f->v[0]);
}

static void continue_at(const struct etch_soft_sync *sync, uintptr_t frame)
{
    struct frames frames;
    uint8_t *cur = begin_chunk(ETCH_SOFT_CONTINUED, 0, 0);

    collect_frames(&frames, etch_soft_top, frame);
    *(uint8_t *volatile *)&etch_soft_cur = cur ? put_sync(cur, *sync, &frames) : NOWHERE;
}

/* The chunk is full. Called by etch_soft_turn3 with the registers saved; returns where it goes on. */
HIDDEN uint8_t *etch_soft_turned(uintptr_t where, uintptr_t edge, uintptr_t frame, uint8_t *cur);
uint8_t *etch_soft_turned(uintptr_t where, uintptr_t edge, uintptr_t frame, uint8_t *cur)
{
    struct etch_soft_sync sync = {.edge = (uint8_t)edge, .where = where};

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

    if (is_nowhere(etch_soft_cur))
        etch_soft_cur = NOWHERE;
    else
        continue_at(&sync, frame);
}

/* From a stub: below where it goes on is what it was called with. */
SAVED_CALL("etch_soft_outside", "  mov 80(%rsp), %rdi\n  mov %rbp, %rsi\n", "etch_soft_gone", "");

/* ---- Threads ---- */

static bool is_dead(const struct state *s, uint32_t tid)
{
    return call3(__NR_tgkill, s->pid, (long)tid, 0) == -3; /* ESRCH */
}

static struct etch_soft_ring *ring_at(const struct state *s, uint32_t slot)
{
    return (struct etch_soft_ring *)((uint8_t *)s->pool + sizeof(struct etch_soft_pool) +
                                     (uint64_t)slot * (1 + s->chunks) * ETCH_SOFT_CHUNK);
}

/* Backed by disk or memory now, so that no store can fail later. */
static bool back(const struct state *s, const struct etch_soft_ring *ring, int fd)
{
    long at = (const uint8_t *)ring - (const uint8_t *)s->pool, size = (1 + (long)s->chunks) * ETCH_SOFT_CHUNK;

    return call6(__NR_fallocate, fd, 0, at, size, 0, 0) == 0;
}

static int open_pool(const struct state *s, int flags);

/* A slot never used; else, of a thread that is gone, the one that began first. */
static struct etch_soft_ring *claim(struct state *s, uint32_t tid)
{
    struct etch_soft_pool *pool = s->pool;
    struct etch_soft_ring *oldest;

    while (pool->used < s->slots) {
        uint32_t slot = __atomic_fetch_add(&pool->used, 1, __ATOMIC_RELAXED);
        int fd = slot < s->slots ? open_pool(s, O_RDWR) : -1;
        bool backed = fd >= 0 && back(s, ring_at(s, slot), fd);

        if (fd >= 0)
            call3(__NR_close, fd, 0, 0);
        if (backed) {
            ring_at(s, slot)->tid = tid;
            return ring_at(s, slot);
        }
        if (slot < s->slots)
            break; /* no space */
    }
    for (;;) {
        uint32_t expected, used = pool->used < s->slots ? pool->used : s->slots;

        oldest = NULL;
        for (uint32_t i = 0; i < used; i++) {
            struct etch_soft_ring *ring = ring_at(s, i);

            if (ring->state == ETCH_SOFT_CLAIMED && (!oldest || ring->start_tsc < oldest->start_tsc) &&
                is_dead(s, ring->tid))
                oldest = ring;
        }
        if (!oldest)
            return NULL;
        expected = oldest->tid;
        if (__atomic_compare_exchange_n(&oldest->tid, &expected, tid, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
            break;
    }
    oldest->state = ETCH_SOFT_FREE;
    for (uint32_t i = 0; i < s->chunks; i++)
        *(volatile uint32_t *)chunk_at(oldest, i) = 0;
    oldest->seq = oldest->context = 0;
    oldest->handlers = 0;
    return oldest;
}

static void take_ring(enum etch_soft_chunk_kind kind)
{
    struct state *s = &etch_soft_state;
    uint32_t cpu, tid;
    uint8_t *cur;

    etch_soft_ring = NULL;
    etch_soft_cur = NOWHERE;
    if (!s->pool)
        return;
    tid = (uint32_t)call3(__NR_gettid, 0, 0, 0);
    etch_soft_ring = claim(s, tid);
    if (!etch_soft_ring) {
        __atomic_fetch_add(&s->pool->ringless, 1, __ATOMIC_RELAXED);
        return;
    }
    etch_soft_ring->start_tsc = stamp(&cpu);
    __atomic_store_n(&etch_soft_ring->state, ETCH_SOFT_CLAIMED, __ATOMIC_RELEASE);
    cur = begin_chunk(kind, 0, 0);
    if (cur)
        etch_soft_cur = cur;
}

/* Without signals: a handler that came in the middle would be without a ring, and not be recorded. */
static void begin_thread(enum etch_soft_chunk_kind kind)
{
    uint64_t all = ~(uint64_t)0, before;
    bool held = call6(__NR_rt_sigprocmask, 2 /* SIG_SETMASK */, (long)&all, (long)&before, 8, 0, 0) == 0;

    take_ring(kind);
    if (held)
        call6(__NR_rt_sigprocmask, 2, (long)&before, 0, 8, 0, 0);
}

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

static bool has_ring(void)
{
    return etch_soft_ring && !is_nowhere(etch_soft_cur);
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

static void after_fork(void);

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
    struct frames frames;

    /* What was left lies on dead stack, and is not looked at; from `top` on all is alive. */
    while (etch_soft_ring && etch_soft_ring->handlers && !is_alive(top, innermost_handler()))
        end_signal();
    etch_soft_top = top;
    if (node & ETCH_SOFT_MAY_FORK)
        after_fork();
    if (!has_ring()) {
        begin_nowhere();
        return;
    }
    etch_soft_cur = behind_paths(etch_soft_cur);
    collect_frames(&frames, etch_soft_top, frame);
    if (room(etch_soft_cur) < 1 + sizeof(sync) + frames.n * sizeof(frames.v[0])) {
        uint8_t *cur = begin_chunk(ETCH_SOFT_CONTINUED, 0, 0);

        etch_soft_cur = cur ? put_sync(cur, sync, &frames) : NOWHERE;
        return;
    }
    etch_soft_cur = put_sync(etch_soft_cur, sync, &frames);
}

/* Before and after calls that may wait. */
HIDDEN void etch_soft_stamp(void);
void etch_soft_stamp(void)
{
    uint8_t *cur = etch_soft_cur;
    uint32_t cpu;
    uint64_t tsc;

    if (!has_ring() || room(cur) < ETCH_SOFT_TIME_SIZE)
        return;
    tsc = stamp(&cpu);
    put_word(cur + 1, tsc);
    *(volatile half *)(cur + 9) = (uint16_t)cpu;
    *(volatile uint8_t *)cur = ETCH_SOFT_TIME;
    etch_soft_cur = cur + ETCH_SOFT_TIME_SIZE;
}

/* ---- The pool ---- */

static char *append(char *at, const char *end, const char *text)
{
    while (*text && at < end)
        *at++ = *text++;
    return at;
}

static char *append_number(char *at, const char *end, unsigned long number)
{
    char digits[24];
    int n = 0;

    do
        digits[n++] = (char)('0' + number % 10);
    while (number /= 10);
    while (n > 0 && at < end)
        *at++ = digits[--n];
    return at;
}

static void pool_path(const struct state *s, char path[4096], uint64_t start)
{
    char *end = path + 4095, *at = append(path, end, s->folder);

    at = append(at, end, "/");
    at = append_number(at, end, (unsigned long)s->pid);
    at = append(at, end, "-");
    at = append_number(at, end, start);
    at = append(at, end, ETCH_SOFT_SUFFIX);
    *at = '\0';
}

static int open_pool(const struct state *s, int flags)
{
    char path[4096];

    pool_path(s, path, s->pool->start_tsc);
    return (int)call6(__NR_openat, AT_FDCWD, (long)path, flags | O_CLOEXEC | O_NOFOLLOW, 0600, 0, 0);
}

/* Of code, or of a file: an emulator may not say which of them are code. */
static bool is_worth_noting(const char *line, size_t n, size_t flags)
{
    bool file = false;

    for (size_t i = 0; i < n; i++)
        file |= line[i] == '/';
    return line[flags + 2] == 'x' || file;
}

/* Text of the mappings that may hold code, read by a few system calls: modules come rarely. */
static void note_maps(struct etch_soft_pool *pool)
{
    char buffer[4096], line[512];
    int fd = (int)call6(__NR_openat, AT_FDCWD, (long)"/proc/self/maps", O_RDONLY | O_CLOEXEC, 0, 0, 0);
    size_t n = 0;
    long got;

    if (fd < 0)
        return;
    while ((got = call3(__NR_read, fd, (long)buffer, sizeof(buffer))) > 0)
        for (long i = 0; i < got; i++) {
            if (n < sizeof(line))
                /* NOLINTNEXTLINE(clang-analyzer-core.uninitialized.Assign): the kernel wrote it */
                line[n++] = buffer[i];
            if (buffer[i] != '\n')
                continue;
            for (size_t k = 0; k + 4 < n; k++)
                if (line[k] == ' ') { /* "start-end rwxp ..." */
                    if (!is_worth_noting(line, n, k + 1))
                        break;
                    if (line[n - 1] == '\n' && pool->maps_size + n <= sizeof(pool->maps)) {
                        put(pool->maps + pool->maps_size, line, n);
                        pool->maps_size += (uint32_t)n;
                    } else {
                        pool->maps_lost++;
                    }
                    break;
                }
            n = 0;
        }
    call3(__NR_close, fd, 0, 0);
}

static bool create_pool(struct state *s)
{
    uint64_t size = sizeof(struct etch_soft_pool) + (uint64_t)s->slots * (1 + s->chunks) * ETCH_SOFT_CHUNK;
    char path[4096];
    uint32_t cpu;
    uint64_t start = stamp(&cpu);
    struct etch_soft_pool *pool;
    long at;
    int fd;

    s->pool = NULL;
    s->pid = (int)call3(__NR_getpid, 0, 0, 0);
    pool_path(s, path, start);
    fd = (int)call6(__NR_openat, AT_FDCWD, (long)path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600, 0, 0);
    if (fd < 0)
        return false;
    at = -1;
    if (call3(__NR_ftruncate, fd, (long)size, 0) == 0 &&
        call6(__NR_fallocate, fd, 0, 0, sizeof(struct etch_soft_pool), 0, 0) == 0)
        at = call6(__NR_mmap, 0, (long)size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    call3(__NR_close, fd, 0, 0);
    if (at < 0 && at > -4096)
        return false;
    pool = (struct etch_soft_pool *)at;
    pool->version = ETCH_SOFT_VERSION;
    pool->pid = (uint32_t)s->pid;
    pool->chunks = s->chunks;
    pool->slots = s->slots;
    pool->start_tsc = start;
    note_maps(pool);
    *(volatile uint64_t *)&pool->magic = ETCH_SOFT_MAGIC;
    s->pool_size = size;
    s->pool = pool;
    return true;
}

/* In a child of fork the rings are the parent's: it gets its own, or none. */
static void enter_child(void)
{
    struct state *s = &etch_soft_state;
    struct etch_soft_pool *old = s->pool;

    etch_soft_cur = NOWHERE;
    etch_soft_ring = NULL;
    create_pool(s);
    call3(__NR_munmap, (long)old, (long)s->pool_size, 0);
    if (s->pool)
        begin_thread(ETCH_SOFT_FORKED);
}

static void after_fork(void)
{
    if (etch_soft_state.pool && (int)call3(__NR_getpid, 0, 0, 0) != etch_soft_state.pid)
        enter_child();
}

extern int __register_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void), void *module)
    __attribute__((weak));

static const char *variable(char *const *environment, const char *name)
{
    for (; environment && *environment; environment++) {
        size_t i = 0;

        while (name[i] && (*environment)[i] == name[i])
            i++;
        if (!name[i] && (*environment)[i] == '=')
            return *environment + i + 1;
    }
    return NULL;
}

static uint32_t chunks_wanted(const char *kb)
{
    uint64_t n = 0;

    for (; kb && *kb >= '0' && *kb <= '9' && n < 1u << 24; kb++)
        n = n * 10 + (uint64_t)(*kb - '0');
    n = n ? n / (ETCH_SOFT_CHUNK >> 10) : 16;
    return n < 4 ? 4 : n > 1u << 20 ? 1u << 20 : (uint32_t)n;
}

#define SLOTS 256u

static void start(struct state *s, char *const *environment)
{
    const char *folder = variable(environment, ETCH_SOFT_VARIABLE);

    s->started = true;
    if (!folder || !*folder)
        return;
    append(s->folder, s->folder + sizeof(s->folder) - 1, folder);
    s->chunks = chunks_wanted(variable(environment, ETCH_SOFT_KB_VARIABLE));
    s->slots = SLOTS;
    if (create_pool(s) && __register_atfork)
        __register_atfork(NULL, NULL, after_fork, NULL);
}

/* Once for each module that has a recorder. */
__attribute__((constructor(101))) static void begin_module(int argc, char **argv, char **environment)
{
    struct state *s = &etch_soft_state;

    (void)argc;
    (void)argv;
    if (!s->started)
        start(s, environment);
    else if (s->pool)
        note_maps(s->pool);
    etch_soft_on = s->pool || variable(environment, ETCH_SOFT_ON_VARIABLE);
}
