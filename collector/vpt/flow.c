/* SPDX-License-Identifier: MIT OR GPL-2.0-or-later */
/* vpt, control flow: writes what an Intel CPU with PT would have written while tracing user code only. A block's end is
 * known when the next one begins; what can come in between is a system call (QEMU tells), a signal or a fault
 * (signals.c finds out), or a block that QEMU runs again from its middle. */
#include "collector/vpt/flow.h"

#include "collector/vpt/images.h"
#include "collector/vpt/registers.h"
#include "collector/vpt/signals.h"
#include "collector/vpt/watch.h"

#include <signal.h>

#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

struct etch_vpt_process etch_vpt_process;
__thread struct etch_vpt_self *etch_vpt_flow_self __attribute__((tls_model("initial-exec")));

static __thread bool silent __attribute__((tls_model("initial-exec"))); /* ended, or never got memory */
static __thread struct {
    uint32_t pid, tid;
} parent;

static struct etch_vpt_self *find_self(void)
{
    return etch_vpt_flow_self;
}

struct etch_vpt_self *etch_vpt_flow_begin(void)
{
    if (etch_vpt_flow_self || silent)
        return etch_vpt_flow_self;
    etch_vpt_flow_self = etch_vpt_self_begin(parent.pid, parent.tid);
    silent = !etch_vpt_flow_self;
    if (etch_vpt_flow_self && parent.pid)
        etch_vpt_images_forked(etch_vpt_flow_self);
    return etch_vpt_flow_self;
}

void etch_vpt_flow_end(void)
{
    struct etch_vpt_self *t = etch_vpt_flow_self;

    etch_vpt_flow_self = NULL;
    silent = true;
    etch_vpt_self_end(t);
    etch_vpt_self_abandon(t);
}

struct etch_vpt_self *etch_vpt_flow_resume(void)
{
    silent = false;
    return etch_vpt_flow_begin();
}

/* The child writes nothing into its parent's rings. */
void etch_vpt_flow_forked(void)
{
    struct etch_vpt_self *t = etch_vpt_flow_self;

    if (!t)
        return;
    parent.pid = t->shared->pid;
    parent.tid = t->shared->tid;
    etch_vpt_self_abandon(t);
    etch_vpt_flow_self = NULL;
}

/* ---- From block to block ---- */

static void enable(struct etch_vpt_self *t, uint64_t ip)
{
    struct etch_vpt_writer *w = &t->writer;

    if (t->first) {
        etch_vpt_put_psb(w, etch_vpt_now(), 0);
        etch_vpt_put_mode(w);
        t->first = false;
    } else {
        etch_vpt_put_tsc(w, etch_vpt_now());
    }
    etch_vpt_put_enable(w, ip);
}

void etch_vpt_flow_interrupt(struct etch_vpt_self *t, uint64_t ip)
{
    struct etch_vpt_writer *w = &t->writer;
    const struct etch_vpt_block *b = t->block;
    bool inside = etch_vpt_signals_inside(t, ip);

    if (inside || (b->ending == VPT_REPEATS && ip == b->last))
        etch_vpt_truth_fault(&t->truth);
    if (b->ending != VPT_FAR || ip != b->end) { /* otherwise a trap: the instruction itself says so */
        if (!inside && !etch_vpt_block_ends(w, b, ip))
            etch_vpt_put_overflow(w, ip);
        etch_vpt_put_fup(w, ip);
    }
    etch_vpt_put_disable(w);
    etch_vpt_put_tsc(w, etch_vpt_now());
    t->block = NULL;
}

/* QEMU left the running block in its middle and goes on from there. It does so for an instruction that must run alone:
 * an atomic access across two words, or a write to the page of the instruction. */
static bool is_continued(const struct etch_vpt_block *from, uint64_t at)
{
    return at >= from->start && at < from->end && !(from->ending == VPT_REPEATS && at == from->last);
}

/* A handler begins that may end the program in a way of its own: where the fault was is then what matters. */
static void note_caught(struct etch_vpt_self *t, uint64_t ip)
{
    uint64_t number = etch_vpt_register_read(t->cpu, VPT_RDI);
    bool known = etch_vpt_signals_faulted(t);

    if (number != SIGFPE && number != SIGILL && number != SIGABRT &&
        !(known && (number == SIGSEGV || number == SIGBUS)))
        return;
    t->caught_context = t->signal_context;
    etch_vpt_event_note(t, VPT_EVENT_CAUGHT, __rdtsc(), ip, known ? t->fault.address : 0, number, known, NULL);
}

/* The handler's frame is on top of the stack again, without the return address. */
void etch_vpt_flow_signal_returns(struct etch_vpt_self *t)
{
    if (!t->caught_context || etch_vpt_register_read(t->cpu, VPT_RSP) != t->caught_context)
        return;
    t->caught_context = 0;
    etch_vpt_event_note(t, VPT_EVENT_CAUGHT, __rdtsc(), 0, 0, 0, 2, NULL);
}

/* All that is not the end of one block and the beginning of the next. */
static void take_turn(struct etch_vpt_self *t, const struct etch_vpt_block *to)
{
    const struct etch_vpt_block *from = t->block;
    uint64_t ip;

    if (from && to->handler && etch_vpt_signals_entered(t, to, &ip)) {
        note_caught(t, ip);
        etch_vpt_flow_interrupt(t, ip);
        from = NULL;
    }
    if (!from) {
        enable(t, to->start);
    } else if (to->single && from->instructions > 1 && is_continued(from, to->start)) {
        etch_vpt_truth_fault(&t->truth);
    } else if (!etch_vpt_block_ends(&t->writer, from, to->start)) {
        if (is_continued(from, to->start)) {
            etch_vpt_truth_fault(&t->truth);
            return;
        }
        etch_vpt_put_overflow(&t->writer, to->start);
        etch_vpt_event_note(t, VPT_EVENT_GAP, __rdtsc(), 0, to->start, 0, 0, NULL);
    }
}

static void begin_block(unsigned cpu, struct etch_vpt_self *t)
{
    static atomic_flag hooked = ATOMIC_FLAG_INIT;

    t->cpu = cpu;
    if (!atomic_flag_test_and_set(&hooked)) {
        etch_vpt_signals_hook(find_self);
        if (etch_vpt_watch_any())
            etch_vpt_watch_arm(t, etch_vpt_process.guest_base);
    }
}

/* Any block, at any time. */
static __attribute__((noinline)) void turn_block(unsigned cpu, const struct etch_vpt_block *b)
{
    struct etch_vpt_self *t = etch_vpt_flow_self;
    struct etch_vpt_writer *w;

    if (etch_vpt_process.closing)
        return;
    if (!t) {
        t = etch_vpt_flow_begin();
        if (!t)
            return;
    }
    w = &t->writer;
    if (t->code_changed) {
        etch_vpt_put_tsc(w, t->code_changed - 1);
        etch_vpt_put_tsc(w, t->code_changed);
        t->code_changed = 0;
    }
    if (!t->block)
        begin_block(cpu, t);
    if (!t->block || b->handler || b->single || !etch_vpt_block_ends(w, t->block, b->start))
        take_turn(t, b);
    t->block = b;
    etch_vpt_commit(w, b->start);
    if (w->head >= t->attention)
        etch_vpt_self_attend(t, b->start);
}

/* The hot path: what finishes no packet, which is nearly all. */
void etch_vpt_flow_on_block(unsigned cpu, void *data)
{
    const struct etch_vpt_block *b = data, *from;
    struct etch_vpt_self *t = etch_vpt_flow_self;
    uint64_t tnt;

    if (unlikely(!t || etch_vpt_process.closing || b->handler || b->single))
        goto turn;
    from = t->block;
    if (unlikely(!from || t->code_changed))
        goto turn;
    tnt = t->writer.tnt;
    if (likely(from->ending == VPT_CONDITIONAL)) {
        tnt = tnt << 1 | (b->start != from->end);
        /* One test, not two: which way it went is as hard to predict here as it was for the guest. */
        if (unlikely(((b->start != from->target) & (b->start != from->end)) | (tnt >> VPT_TNT_BITS != 0)))
            goto turn;
    } else if (from->ending == VPT_RETURN) {
        tnt = tnt << 1 | 1;
        if (tnt >> VPT_TNT_BITS || !etch_vpt_take_return(&t->writer, b->start))
            goto turn;
    } else if (from->ending > VPT_CALLS || b->start != from->target) {
        goto turn;
    } else if (from->ending == VPT_CALLS) {
        etch_vpt_put_call(&t->writer, from->end);
    }
    t->writer.tnt = tnt;
    t->block = b;
    etch_vpt_commit_bits(&t->writer, b->start);
    return;
turn:
    turn_block(cpu, b);
}

void etch_vpt_flow_on_watched_block(unsigned cpu, void *data)
{
    const struct etch_vpt_block *b = data;

    if (etch_vpt_flow_self && etch_vpt_flow_self->block)
        etch_vpt_watch_follow(etch_vpt_flow_self, etch_vpt_flow_self->block, b->start);
    etch_vpt_flow_on_block(cpu, data);
    if (etch_vpt_flow_self)
        etch_vpt_flow_self->block_tsc = __rdtscp(&etch_vpt_flow_self->block_cpu);
}

void etch_vpt_flow_on_instruction(unsigned cpu, void *data)
{
    const struct etch_vpt_instruction *i = data;

    (void)cpu;
    if (etch_vpt_flow_self && !etch_vpt_process.closing)
        etch_vpt_truth_add(&etch_vpt_flow_self->truth, i->ip, i->repeats);
}

void etch_vpt_flow_on_memory(unsigned cpu, qemu_plugin_meminfo_t info, uint64_t address, void *data)
{
    (void)cpu;
    if (etch_vpt_flow_self && !etch_vpt_process.closing)
        etch_vpt_watch_access(etch_vpt_flow_self, data, address, 1u << qemu_plugin_mem_size_shift(info),
                              qemu_plugin_mem_is_store(info));
}
