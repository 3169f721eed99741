/* SPDX-License-Identifier: MIT OR GPL-2.0-or-later */
/* Signals between instructions; see signals.h. */
#include "collector/vpt/signals.h"
#include "collector/vpt/registers.h"

#include <signal.h>
#include <string.h>

#define N_SIGNALS 65u

/* x86-64 signal frame: return address, ucontext {flags, link, stack[3], r8-r15, rdi, rsi, rbp, rbx, rdx, rax, rcx, rsp,
 * rip, ...}. The handler gets the ucontext's address in rdx. */
#define FRAME_CONTEXT 8u
#define CONTEXT_REGISTERS 40u
#define SAVED_RDX (CONTEXT_REGISTERS + 12 * 8u)
#define SAVED_RSP (CONTEXT_REGISTERS + 15 * 8u)
#define SAVED_RIP (CONTEXT_REGISTERS + 16 * 8u)

static uint64_t base;
static _Atomic uint64_t handlers[N_SIGNALS];
static struct sigaction qemus[N_SIGNALS];
static struct etch_vpt_self *(*find_self)(void);

void etch_vpt_signals_begin(uint64_t guest_base)
{
    base = guest_base;
}

static uint64_t load(uint64_t address)
{
    uint64_t value;

    memcpy(&value, (const void *)(uintptr_t)(base + address), sizeof(value));
    return value;
}

uint64_t etch_vpt_signals_handler(uint64_t number, uint64_t act)
{
    uint64_t handler = act ? load(act) : 0;

    if (!act || number == 0 || number >= N_SIGNALS)
        return 0;
    if (handler <= 1) /* default, ignore */
        handler = 0;
    atomic_store_explicit(&handlers[number], handler, memory_order_relaxed);
    return handler;
}

bool etch_vpt_signals_is_handler(uint64_t address)
{
    for (unsigned i = 1; i < N_SIGNALS; i++)
        if (atomic_load_explicit(&handlers[i], memory_order_relaxed) == address)
            return true;
    return false;
}

/* A handler that jumps to another one as its last act leaves the frame where it is: that is no new signal. */
static bool is_jump(const struct etch_vpt_self *t, const struct etch_vpt_block *to, uint64_t context)
{
    const struct etch_vpt_block *from = t->block;

    if (from->ending == VPT_JUMPS_INDIRECT)
        return context == t->signal_context;
    return (from->ending == VPT_GOES_ON || from->ending == VPT_CONDITIONAL) && from->target == to->start &&
           load(context + SAVED_RIP) != to->start;
}

bool etch_vpt_signals_entered(struct etch_vpt_self *t, const struct etch_vpt_block *to, uint64_t *ip)
{
    uint64_t context = etch_vpt_register_read(t->cpu, VPT_RDX);
    uint64_t stack = etch_vpt_register_read(t->cpu, VPT_RSP);
    uint64_t number = etch_vpt_register_read(t->cpu, VPT_RDI);

    if (context != stack + FRAME_CONTEXT || number == 0 || number >= N_SIGNALS || is_jump(t, to, context))
        return false;
    t->signal_context = context;
    *ip = load(context + SAVED_RIP);
    /* Interrupted before its own first instruction is another handler: that one's frame is below. */
    while (etch_vpt_signals_is_handler(*ip)) {
        stack = load(context + SAVED_RSP);
        if (load(context + SAVED_RDX) != stack + FRAME_CONTEXT)
            break;
        context = stack + FRAME_CONTEXT;
        *ip = load(context + SAVED_RIP);
    }
    return true;
}

bool etch_vpt_signals_faulted(const struct etch_vpt_self *t)
{
    return t->block && t->fault.seen && t->fault.block == t->block && t->fault.current == t->writer.current &&
           t->fault.tnt == t->writer.tnt;
}

bool etch_vpt_signals_inside(const struct etch_vpt_self *t, uint64_t ip)
{
    const struct etch_vpt_block *b = t->block;

    if (ip < b->start || ip >= b->end)
        return false;
    if (etch_vpt_signals_faulted(t))
        return true;
    switch ((enum etch_vpt_ending)b->ending) {
    case VPT_JUMPS_INDIRECT:
    case VPT_CALLS_INDIRECT:
    case VPT_RETURN:
    case VPT_FAR: /* any address may follow these. An address in the same block means that they did not run */
        return true;
    default:
        return (ip == b->start && b->first_traps) || !etch_vpt_block_may_go_to(b, ip);
    }
}

static void on_fault(int number, siginfo_t *info, void *context)
{
    struct etch_vpt_self *t = find_self();

    if (t && info->si_code > 0) {
        t->fault.seen = true;
        t->fault.current = t->writer.current;
        t->fault.tnt = t->writer.tnt;
        t->fault.block = t->block;
        t->fault.address = (uint64_t)(uintptr_t)info->si_addr - base;
        t->fault.code = info->si_code;
    }
    qemus[number].sa_sigaction(number, info, context);
}

void etch_vpt_signals_hook(struct etch_vpt_self *(*find)(void))
{
    static const int faults[] = {SIGSEGV, SIGBUS};

    find_self = find;
    for (unsigned i = 0; i < 2; i++) {
        struct sigaction act;

        if (sigaction(faults[i], NULL, &qemus[faults[i]]) < 0 || !(qemus[faults[i]].sa_flags & SA_SIGINFO) ||
            qemus[faults[i]].sa_sigaction == on_fault)
            continue;
        act = qemus[faults[i]];
        act.sa_sigaction = on_fault;
        sigaction(faults[i], &act, NULL);
    }
}
