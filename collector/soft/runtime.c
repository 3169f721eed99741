/* SPDX-License-Identifier: MIT */
/* The software recorder's runtime, linked into recorded programs by etch cc --record. Compiled code writes most bytes
 * itself. This file handles the rest: a chunk of the ring is full, a function is entered from code without a recorder,
 * or control comes back by longjmp or an exception.
 *
 * The runtime uses one libc function (weakly), no vector register, no lock that waits, no system call, little stack,
 * and no memory except the ring. The runtime may therefore run at any point of any program, also in signal handlers and
 * sandboxes. System calls happen at the start only (pool.c). The reader may be another process, or read after this
 * process is dead. The reader depends on the order of the stores, and this order is the program's own. */
#include "collector/soft/runtime.h"

#include "collector/soft/budget.h"
#include "collector/soft/frames.h"
#include "collector/soft/thread.h"

SHARED __thread uint8_t *etch_soft_cur __attribute__((tls_model("initial-exec")));
SHARED __thread struct etch_soft_act *etch_soft_top __attribute__((tls_model("initial-exec")));
SHARED __thread struct etch_soft_ring *etch_soft_ring __attribute__((tls_model("initial-exec")));
SHARED __thread uint8_t *etch_soft_shade __attribute__((tls_model("initial-exec")));
SHARED struct etch_soft_recorder etch_soft_recorder;
SHARED uint32_t etch_soft_quiet;
SHARED void (*etch_soft_quieting)(void);

/* Not 0: compiled code of this module records. 0: it runs the copies without a recorder. Set once, after earlier
 * constructors ran. A function that such a constructor called stays in its copy until it returns. */
HIDDEN uint8_t etch_soft_on;

static void continue_at(const struct etch_soft_sync *sync, uintptr_t frame)
{
    uint8_t *cur = etch_soft_begin_chunk(ETCH_SOFT_CONTINUED, 0, 0);

    *(uint8_t *volatile *)&etch_soft_cur = cur ? etch_soft_put_place(cur, *sync, frame) : NOWHERE;
}

/* Handles a full chunk. Called by etch_soft_turn3 with the registers saved. Returns the new write position. */
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
    if (has_ring())
        etch_soft_weigh(where);
    return etch_soft_cur;
}

/* Functions that compiled code calls at points where the compiler knows of no call. They change no register except as
 * stated. At `ready` the stack has nine registers, the last saved first, and then the return address. */
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

/* The stack has the write position, which changes, and the edge taken. */
SAVED_CALL("etch_soft_turn3",
           "  mov 72(%rsp), %rdi\n  mov 80(%rsp), %rcx\n"
           "  mov 88(%rsp), %rsi\n  mov %rbp, %rdx\n",
           "etch_soft_turned", "  mov %rax, 80(%rsp)\n");

/* Handles a chunk that is full after OUT. `where` is the return address of the function outside, `frame` is the frame
 * of its caller. */
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

/* Returns true if the code at `at` returns from a signal handler: rt_sigreturn. */
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

/* Compiled code that was interrupted, or left from a handler, may have written beyond etch_soft_cur: paths, and
 * functions that were called through a pointer or that are dark. A record starts with a non-zero byte. Unused bytes
 * after the last record are zero. */
static uint8_t *behind_paths(uint8_t *cur)
{
    const uint8_t *end = chunk_of(cur) + ETCH_SOFT_CHUNK;

    while (cur < end && *cur != ETCH_SOFT_NOTHING && (*cur < ETCH_SOFT_ENTRY || *cur == ETCH_SOFT_PASSED))
        cur += *cur == ETCH_SOFT_PASSED                                ? ETCH_SOFT_PASSED_SIZE
               : *cur == ETCH_SOFT_DARK || *cur == ETCH_SOFT_GONE_DARK ? ETCH_SOFT_DARK_SIZE
                                                                       : 1;
    return cur < end ? cur : (uint8_t *)(uintptr_t)end;
}

/* A handler writes into chunks of its own: the interrupted code may be between any two instructions. */
static void begin_signal(struct etch_soft_act *act, uint64_t ip)
{
    uint8_t *chunk = chunk_of(etch_soft_cur), *cur;
    uint64_t written = (uint64_t)(behind_paths(etch_soft_cur) - chunk);
    uint64_t seq = ((struct etch_soft_chunk *)chunk)->seq;

    act->flags |= ETCH_SOFT_HANDLER;
    etch_soft_ring->handler[etch_soft_ring->handlers].act = (uintptr_t)act;
    etch_soft_ring->handler[etch_soft_ring->handlers].cur = (uintptr_t)etch_soft_cur;
    etch_soft_ring->handler[etch_soft_ring->handlers].context = etch_soft_ring->context;
    __asm__ volatile("" : : : "memory"); /* another handler may run now: complete before counted */
    etch_soft_ring->handlers++;
    cur = etch_soft_begin_chunk(ETCH_SOFT_SIGNAL, seq * ETCH_SOFT_CHUNK + written, ip);
    etch_soft_cur = cur ? cur : NOWHERE;
}

/* Begins a chunk with the callers of the entered function, as far as frame pointers lead. */
static uint8_t *begin_with_caller(const struct etch_soft_act *act, const uint8_t *from)
{
    struct etch_soft_sync sync = {.flags = ETCH_SOFT_OUTSIDE, .where = (uintptr_t)from};
    uint8_t *cur = etch_soft_begin_chunk(ETCH_SOFT_CONTINUED, 0, 0);
    struct etch_soft_frames frames = {.flags = act->prev ? ETCH_SOFT_TRUNCATED : 0};
    uintptr_t caller = *(const uintptr_t *)act->frame;

    if (!cur)
        return NULL;
    frames.to = frames_of(cur);
    if (act->prev && is_between(caller, act->frame, act->prev))
        etch_soft_collect_frames(&frames, act->prev, caller);
    return etch_soft_put_sync(cur, sync, &frames);
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

/* Returns true if a handler without a recorder entered the function: the interrupted code wrote paths beyond
 * etch_soft_cur. */
static bool is_behind(void)
{
    return behind_paths(etch_soft_cur) != etch_soft_cur;
}

/* Without a ring the write position moves on as well, and only some writers check for room. */
static void begin_nowhere(void)
{
    if (is_nowhere(etch_soft_cur))
        etch_soft_cur = NOWHERE;
}

/* ---- Rings that etch asks for ---- */

/* The thread's own stack may be small. It is used for the frames of this file only. */
static uint8_t late_stack[32u << 10] __attribute__((aligned(16)));

static void open_on_own_stack(void)
{
    __asm__ volatile("  mov %%rsp, %%rbx\n"
                     "  mov %0, %%rsp\n"
                     "  call etch_soft_open_late\n"
                     "  mov %%rbx, %%rsp\n"
                     :
                     : "r"(late_stack + sizeof(late_stack))
                     : "rax", "rbx", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "memory", "cc");
}

static void open_late(void)
{
    uint64_t all = ~(uint64_t)0, before = 0;

    if (call6(__NR_rt_sigprocmask, 0, (long)&all, (long)&before, sizeof(all), 0, 0) != 0)
        return;
    open_on_own_stack();
    call6(__NR_rt_sigprocmask, 2, (long)&before, 0, sizeof(before), 0, 0);
}

/* The first thread that enters recorded code from outside makes the rings. A thread that wrote nowhere so far takes a
 * ring: no recorded code runs in it. */
static void answer_request(struct etch_soft_recorder *s, const uint8_t *from)
{
    uint32_t made = ETCH_SOFT_REQUEST_MADE;

    if (etch_soft_ring || etch_soft_top || is_signal_return(from))
        return;
    if (__atomic_compare_exchange_n(&s->request.state, &made, ETCH_SOFT_REQUEST_TAKEN, false, __ATOMIC_ACQUIRE,
                                    __ATOMIC_RELAXED))
        open_late();
    if (s->pool && s->pool->used < s->slots)
        etch_soft_cur = NULL;
}

/* Code without a recorder entered a function. Returns the function's write position. A function that can be entered in
 * this way handles the usual case itself (instrument_entry.c). */
HIDDEN uint8_t *etch_soft_enter3(struct etch_soft_act *act, uint64_t function, uintptr_t frame, const uint8_t *from);
uint8_t *etch_soft_enter3(struct etch_soft_act *act, uint64_t function, uintptr_t frame, const uint8_t *from)
{
    leave_parent();
    act->prev = etch_soft_top;
    act->frame = frame & ~(uintptr_t)1;
    act->flags = frame & 1 ? ETCH_SOFT_OWN : 0;
    if (etch_soft_recorder.request.state)
        answer_request(&etch_soft_recorder, from);
    if (!etch_soft_cur)
        etch_soft_begin_thread(ETCH_SOFT_START);
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

/* r11 has the act. r10 has the function, and afterwards the new write position. rbp is the entry's. */
SAVED_CALL("etch_soft_entered3",
           "  mov %r11, %rdi\n  mov %r10, %rsi\n"
           "  mov %rbp, %rdx\n  mov 8(%rbp), %rcx\n",
           "etch_soft_enter3", "  mov %rax, 8(%rsp)\n");

static void put_byte(uint8_t byte)
{
    uint8_t *cur = etch_soft_cur;

    if (room(cur) < 1)
        cur = etch_soft_begin_chunk(ETCH_SOFT_CONTINUED, 0, 0);
    if (!cur) {
        etch_soft_cur = NOWHERE;
        return;
    }
    *(volatile uint8_t *)cur = byte;
    etch_soft_cur = cur + 1;
}

/* Goes back to the code that the innermost handler interrupted. */
static void end_signal(void)
{
    struct etch_soft_ring *ring = etch_soft_ring;
    uint32_t last = ring->handlers - 1;

    ring->context = ring->handler[last].context;
    *(uint8_t *volatile *)&etch_soft_cur = (uint8_t *)ring->handler[last].cur;
    *(volatile uint32_t *)&ring->handlers = last;
}

/* The slack always has room for this byte. */
static void put_left(const struct etch_soft_act *act)
{
    uint8_t *cur = etch_soft_cur;

    *(volatile uint8_t *)cur++ = ETCH_SOFT_LEFT;
    if (!room(cur))
        cur = begin_with_caller(act, ((const uint8_t *const *)act->frame)[1]);
    etch_soft_cur = cur ? cur : NOWHERE;
}

/* An exception leaves the function. etch_soft_land() records its landing pad. */
HIDDEN void etch_soft_unwind(struct etch_soft_act *act);
void etch_soft_unwind(struct etch_soft_act *act)
{
    if ((act->flags & ETCH_SOFT_HANDLER) && etch_soft_ring && etch_soft_ring->handlers)
        end_signal();
    etch_soft_top = act->prev;
    etch_soft_shade = NULL;
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

/* Called after setjmp, in a landing pad, and after fork. `top` is the value of etch_soft_top at the function's
 * start. */
HIDDEN void etch_soft_land(struct etch_soft_act *top, uint64_t function, uint32_t node);
void etch_soft_land(struct etch_soft_act *top, uint64_t function, uint32_t node)
{
    uintptr_t frame = *(uintptr_t *)__builtin_frame_address(0);
    struct etch_soft_sync sync = {.flags = ETCH_SOFT_LANDED, .node = node & ~ETCH_SOFT_MAY_FORK, .where = function};
    struct etch_soft_frames frames = {0};

    if (node & ETCH_SOFT_MAY_FORK)
        enter_child();
    leave_parent();
    /* Acts that were left lie on dead stack and are not read. All acts from `top` on are alive. */
    while (etch_soft_ring && etch_soft_ring->handlers && !is_alive(top, innermost_handler()))
        end_signal();
    etch_soft_top = top;
    etch_soft_shade = NULL;
    if (!has_ring()) {
        begin_nowhere();
        return;
    }
    etch_soft_cur = behind_paths(etch_soft_cur);
    etch_soft_collect_frames(&frames, etch_soft_top, frame);
    if (room(etch_soft_cur) < 1 + sizeof(sync) + frames.n * sizeof(uint64_t))
        continue_at(&sync, frame);
    else
        etch_soft_cur = etch_soft_put_place(etch_soft_cur, sync, frame);
}

static void put_stamp(enum etch_soft_byte byte)
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
    *(volatile uint8_t *)cur = (uint8_t)byte;
    etch_soft_cur = cur + ETCH_SOFT_TIME_SIZE;
}

/* Before or after calls that may wait, or that others wait for. */
HIDDEN void etch_soft_stamp(void);
void etch_soft_stamp(void)
{
    put_stamp(ETCH_SOFT_TIME);
}

/* Before a call that locks. The first word of glibc's locks is 0 if nobody holds them. Then the call will hardly wait,
 * and the stamp after it serves for both. A wrong guess costs a bound, never truth. */
HIDDEN void etch_soft_stamp_held(const uint32_t *lock);
void etch_soft_stamp_held(const uint32_t *lock)
{
    if (lock && *(const volatile uint32_t *)lock)
        put_stamp(ETCH_SOFT_HELD);
}
