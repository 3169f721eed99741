/* SPDX-License-Identifier: MIT */
/* The software recorder's runtime: how the process dies.
 *
 * The handler is installed for the signals below that are at their default when the program starts. Its action is reset
 * by the kernel before it runs (SA_RESETHAND), so the second signal has the default action. A faulting instruction is
 * executed again and faults again. Any other signal is queued again with the same siginfo, and the kernel delivers it
 * when the handler returns. Status, core file and the registers in the core file therefore are those of a program
 * without the handler.
 *
 * The program sees nothing of the handler through libc: sigaction(), signal() and sigaltstack() show the default. If
 * the program sets a handler or an alternate stack, these replace ours. If the program sets the default again, our
 * handler is installed again. The handler calls no function of libc, and no system call but those two. */
#define _GNU_SOURCE /* names of registers */
#include "collector/soft/death.h"

#include "collector/soft/thread.h"

#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>

#define SA_RESTORER 0x04000000
#define ALTERNATE (256u << 10) /* only what is used takes memory */
#define SETUP_EINVAL 22
#define FIRST_STACK (64u << 20) /* the kernel maps nothing else so near to the end of the first thread's stack */
#define THREAD_STACK (8u << 20)
#define KERNEL_SET 8

extern int __sigaction(int signal, const struct sigaction *action, struct sigaction *old) __attribute__((weak));
extern void (*bsd_signal(int signal, void (*handler)(int)))(int) __attribute__((weak));

extern void *dlsym(void *handle, const char *name) __attribute__((weak));

/* glibc's: the words before abort(), which it keeps for debuggers. */
struct abort_message {
    uint32_t size; /* of the mapping */
    char text[];
};
static const struct abort_message *const *abort_message;

/* As the kernel has it. */
struct action {
    void (*handler)(int signal, siginfo_t *info, void *context);
    uint64_t flags;
    void (*restorer)(void);
    uint64_t mask;
};

static uintptr_t first_thread, first_stack_end; /* of the thread that ran the start */
static uintptr_t alternate;                     /* our alternate stack; 0: none */
static bool off;                                /* the handler is not to be installed */
static uint32_t signals;                        /* that the handler was installed for */

/* Debuggers and the recorder itself know these bytes. */
HIDDEN void etch_soft_signal_return(void);
__asm__(".text\n.hidden etch_soft_signal_return\n.globl etch_soft_signal_return\n"
        ".type etch_soft_signal_return,@function\n"
        "  nop\n"
        "etch_soft_signal_return:\n"
        "  mov $15, %rax\n  syscall\n"
        ".size etch_soft_signal_return,.-etch_soft_signal_return\n");

static uintptr_t this_thread_at(void)
{
    uintptr_t at;

    __asm__("mov %%fs:0, %0" : "=r"(at));
    return at;
}

/* ---- The record ---- */

/* In the order of Linux's perf x86 register numbers. The kernel's frame has no ds, es, fs_base and gs_base. */
static void note_registers(struct etch_soft_death *d, const greg_t *r)
{
    static const int8_t order[ETCH_SOFT_REGISTERS] = {
        REG_RAX, REG_RBX, REG_RCX, REG_RDX, REG_RSI, REG_RDI, REG_RBP, REG_RSP, REG_RIP, REG_EFL, -1,      -1,
        -1,      -1,      -1,      -1,      REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};
    uint64_t segments = (uint64_t)r[REG_CSGSFS];

    for (unsigned i = 0; i < ETCH_SOFT_REGISTERS; i++)
        d->registers[i] = order[i] >= 0 ? (uint64_t)r[order[i]] : 0;
    d->registers[10] = segments & 0xffff;
    d->registers[11] = segments >> 48;
    d->registers[14] = this_thread_at(); /* libc keeps fs_base in its first word */
}

/* The end of the calling thread's stack, 0: not known. libc puts a thread's own data at the end of its stack. The first
 * thread has its arguments there. */
static uintptr_t stack_end(uintptr_t sp)
{
    bool first = this_thread_at() == first_thread;
    uintptr_t end = first ? first_stack_end : this_thread_at();

    return sp < end && end - sp < (first ? FIRST_STACK : THREAD_STACK) ? end : 0;
}

/* A stack overflow: the pages at the stack pointer do not exist. The frame pointer of recorded code lies above them. */
static uintptr_t readable_from(const siginfo_t *info, uintptr_t sp, uintptr_t bp, uintptr_t end)
{
    uintptr_t fault = (uintptr_t)info->si_addr;

    if ((info->si_signo != SIGSEGV && info->si_signo != SIGBUS) || info->si_code <= 0 || fault + 65536 < sp ||
        fault > sp + ETCH_SOFT_STACK)
        return sp;
    return bp > sp && bp > fault && bp < end && !(bp & 7) ? bp : end;
}

static void note_stack(struct etch_soft_death *d, const siginfo_t *info, const greg_t *r)
{
    uintptr_t sp = (uintptr_t)r[REG_RSP], end = stack_end(sp), from, size;

    if (!end)
        return;
    from = readable_from(info, sp, (uintptr_t)r[REG_RBP], end) & ~(uintptr_t)7;
    size = end - from < ETCH_SOFT_STACK ? end - from : ETCH_SOFT_STACK;
    put(d->stack, (const void *)from, size);
    d->stack_start = from;
    d->stack_high = end;
    d->stack_size = (uint32_t)size;
}

static void note_message(struct etch_soft_death *d)
{
    const struct abort_message *m = abort_message && d->signal == SIGABRT ? *abort_message : NULL;

    for (size_t i = 0; m && i + 1 < sizeof(d->message) && i + sizeof(*m) < m->size; i++)
        if (!(d->message[i] = m->text[i]))
            break;
}

static void advance(struct etch_soft_death *d, enum etch_soft_death_state state)
{
    __atomic_store_n(&d->state, state, __ATOMIC_RELEASE);
}

static void note(struct etch_soft_pool *pool, const siginfo_t *info, const greg_t *r)
{
    uint32_t n = __atomic_fetch_add(&pool->n_deaths, 1, __ATOMIC_RELAXED);
    struct etch_soft_death *d = &pool->deaths[n];

    if (n >= ETCH_SOFT_DEATHS)
        return;
    advance(d, ETCH_SOFT_DEATH_BEGUN);
    d->pid = etch_soft_recorder.pid;
    d->tid = etch_soft_ring ? etch_soft_ring->tid : this_thread_at() == first_thread ? d->pid : 0;
    d->signal = info->si_signo;
    d->code = info->si_code;
    d->address = (uintptr_t)info->si_addr;
    d->tsc = stamp(&d->cpu);
    note_registers(d, r);
    advance(d, ETCH_SOFT_DEATH_REGISTERS);
    note_message(d);
    note_stack(d, info, r);
    advance(d, ETCH_SOFT_DEATH_WHOLE);
}

/* ---- The handler ---- */

/* The instruction faults again if the CPU reported the fault. It does not after a trap, and not if the kernel reports a
 * condition of its own, such as a handler's frame that finds no room on the stack. */
static bool repeats(const siginfo_t *info)
{
    int s = info->si_signo;

    return (s == SIGSEGV || s == SIGBUS || s == SIGILL || s == SIGFPE) && info->si_code > 0 &&
           info->si_code < SI_KERNEL;
}

/* The signal is blocked until the handler returns. */
static void send_again(siginfo_t *info)
{
    long pid = call3(__NR_getpid, 0, 0, 0), tid = call3(__NR_gettid, 0, 0, 0);

    if (call6(__NR_rt_tgsigqueueinfo, pid, tid, info->si_signo, (long)info, 0, 0) != 0)
        call3(__NR_tgkill, pid, tid, info->si_signo);
}

static long act(int signal, const struct action *action, struct action *old)
{
    return call6(__NR_rt_sigaction, signal, (long)action, (long)old, KERNEL_SET, 0, 0);
}

/* A thread that ran no recorded code has no ring. With a ring its id is known without a system call. */
static void name_thread(void)
{
    if (!etch_soft_ring && !etch_soft_cur)
        etch_soft_begin_thread(ETCH_SOFT_START);
}

/* A child that fork() did not make has no ring and no words of its own. A program that asked the kernel itself for the
 * action before its own may call this function; the kernel has not reset the action then. */
static void die(int signal, siginfo_t *info, void *context)
{
    const ucontext_t *u = context;
    struct etch_soft_pool *pool = etch_soft_recorder.pool;
    struct action none = {0};

    if (pool && !is_copy(&etch_soft_recorder)) {
        name_thread();
        note(pool, info, u->uc_mcontext.gregs);
    }
    if (__builtin_return_address(0) != (void *)etch_soft_signal_return)
        act(signal, &none, NULL);
    else if (repeats(info))
        return;
    send_again(info);
}

/* ---- Installing ---- */

/* All other signals wait until the handler is done. */
static void install(int signal)
{
    struct action ours = {die, SA_SIGINFO | SA_ONSTACK | SA_RESETHAND | SA_RESTORER, etch_soft_signal_return,
                          ~(uint64_t)0};
    struct action now = {0};

    if (act(signal, NULL, &now) == 0 && !now.handler && act(signal, &ours, NULL) == 0)
        signals |= 1u << signal;
}

static const uint8_t watched[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP, SIGSYS};

static bool is_watched(int signal)
{
    return signal > 0 && signal < 32 && (signals >> signal & 1);
}

static bool is_ours(const stack_t *stack)
{
    return alternate && (uintptr_t)stack->ss_sp == alternate;
}

static long exchange_stack(const stack_t *stack, stack_t *old)
{
    return call3(__NR_sigaltstack, (long)stack, (long)old, 0);
}

static void give_stack(void)
{
    stack_t stack = {0}, old = {0};
    long at;

    if (exchange_stack(NULL, &old) != 0 || !(old.ss_flags & SS_DISABLE))
        return;
    at = call6(__NR_mmap, 0, ALTERNATE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at < 0 && at > -4096)
        return;
    call3(__NR_mprotect, at, 4096, PROT_NONE);
    alternate = (uintptr_t)at + 4096;
    stack.ss_sp = (void *)alternate;
    stack.ss_size = ALTERNATE - 4096;
    if (exchange_stack(&stack, NULL) != 0)
        alternate = 0;
}

uint32_t etch_soft_watch_signals(uintptr_t top)
{
    first_thread = this_thread_at();
    first_stack_end = top;
    if (dlsym)
        abort_message = dlsym(NULL, "__abort_msg");
    for (size_t i = 0; i < sizeof(watched); i++)
        install(watched[i]);
    if (signals)
        give_stack();
    return signals;
}

/* A handler of the program that asks for an alternate stack shall run where it runs without us. */
static void take_stack_back(void)
{
    stack_t none = {.ss_flags = SS_DISABLE}, now = {0};

    if (alternate && this_thread_at() == first_thread && exchange_stack(NULL, &now) == 0 && is_ours(&now))
        exchange_stack(&none, NULL);
}

void etch_soft_leave_signals(void)
{
    struct action none = {0}, now = {0};

    if (off || !signals)
        return;
    off = true;
    for (size_t i = 0; i < sizeof(watched); i++)
        if (is_watched(watched[i]) && act(watched[i], NULL, &now) == 0 && now.handler == die)
            act(watched[i], &none, NULL);
}

/* ---- What the program sees ---- */

static int failed(long error)
{
    if (__errno_location)
        *__errno_location() = (int)-error;
    return -1;
}

/* Without libc's own, in a static program: as the kernel has it. */
static int plain_sigaction(int signal, const struct sigaction *action, struct sigaction *old)
{
    struct action to = {0}, from = {0};
    long status;

    if (action) {
        to.handler = action->sa_sigaction;
        to.flags = (uint64_t)(uint32_t)action->sa_flags | SA_RESTORER;
        to.restorer = etch_soft_signal_return;
        put(&to.mask, &action->sa_mask, KERNEL_SET);
    }
    status = act(signal, action ? &to : NULL, &from);
    if (status < 0)
        return failed(status);
    if (old) {
        *old = (struct sigaction){0};
        old->sa_sigaction = from.handler;
        old->sa_flags = (int)from.flags;
        old->sa_restorer = from.restorer;
        put(&old->sa_mask, &from.mask, KERNEL_SET);
    }
    return 0;
}

static bool is_handler(const struct sigaction *action)
{
    return action->sa_handler != SIG_DFL && action->sa_handler != SIG_IGN;
}

__attribute__((weak, visibility("default"))) int sigaction(int signal, const struct sigaction *action,
                                                           struct sigaction *old)
{
    bool again = action && action->sa_handler == SIG_DFL && is_watched(signal) && !off;
    int status;

    if (action && is_handler(action) && (action->sa_flags & SA_ONSTACK))
        take_stack_back();
    status = __sigaction ? __sigaction(signal, action, old) : plain_sigaction(signal, action, old);
    if (status == 0 && old && old->sa_sigaction == die) {
        old->sa_handler = SIG_DFL;
        old->sa_flags = 0;
        old->sa_restorer = NULL;
        for (size_t i = 0; i < sizeof(old->sa_mask) / sizeof(unsigned long); i++)
            old->sa_mask.__val[i] = 0;
    }
    if (status == 0 && again)
        install(signal);
    return status;
}

/* BSD's, as libc has it. */
__attribute__((weak, visibility("default"))) void (*signal(int signal, void (*handler)(int)))(int)
{
    struct sigaction action = {0}, old;
    void (*before)(int);

    if (bsd_signal) {
        before = bsd_signal(signal, handler);
        if (handler == SIG_DFL && before != SIG_ERR && is_watched(signal) && !off)
            install(signal);
        return (uintptr_t)before == (uintptr_t)die ? SIG_DFL : before;
    }
    if (handler == SIG_ERR || signal < 1 || signal > 64) {
        failed(-SETUP_EINVAL);
        return SIG_ERR;
    }
    action.sa_handler = handler;
    action.sa_flags = SA_RESTART;
    action.sa_mask.__val[0] = 1ul << (signal - 1);
    return sigaction(signal, &action, &old) < 0 ? SIG_ERR : old.sa_handler;
}

__attribute__((weak, visibility("default"))) int sigaltstack(const stack_t *stack, stack_t *old)
{
    long status = exchange_stack(stack, old);

    if (status < 0)
        return failed(status);
    if (old && is_ours(old))
        *old = (stack_t){.ss_flags = SS_DISABLE};
    return 0;
}
