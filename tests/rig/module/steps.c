/* SPDX-License-Identifier: MIT OR GPL-2.0-or-later */
/* Instruction by instruction. While an event is on a CPU, the user code that this CPU runs has its trap flag set and
 * each #DB tells of one more instruction. What raises no #DB is told by tracepoints: system calls, signals, and other
 * tasks (perf's core hands an inherited event from task to task without a stop). Everything here is of one CPU, with
 * interrupts off. */
#include "aux.h"
#include "insn.h"
#include "packets.h"
#include "rig.h"

#include <asm/debugreg.h>
#include <linux/kdebug.h>
#include <linux/kprobes.h>
#include <linux/ptrace.h>
#include <linux/sched/signal.h>
#include <linux/sched/task_stack.h>
#include <linux/tracepoint.h>
#include <linux/uaccess.h>

struct tracer {
    struct perf_event *event; /* that is on here, or NULL */
    struct perf_output_handle handle;
    struct rig_aux *aux; /* NULL: the event waits for room */
    struct rig_packets packets;
    struct task_struct *task;      /* whose trap flag is ours */
    struct task_struct *from, *to; /* of the last switch on this CPU */
    u64 ip;                        /* the instruction of that task that runs next */
    struct pt_regs before;         /* its registers then, if a watch is set and ip is here, too */
    bool on;                       /* packets are made: user code, within the filters */
    bool stopped;                  /* by a `stop` filter */
    bool psb_due;
    unsigned to_overflow, lost; /* instructions */
};

static DEFINE_PER_CPU(struct tracer, tracers);

static bool covers(const struct rig_range *range, u64 ip)
{
    return ip >= range->begin && ip <= range->end;
}

/* Whether the filters let this address through: without any `filter` all are, otherwise those in one of them. */
static bool passes(const struct tracer *cpu, u64 ip)
{
    const struct rig_filters *filters = cpu->event->hw.addr_filters;
    bool limited = false;

    for (unsigned i = 0; i < filters->n; i++) {
        if (filters->ranges[i].stops)
            continue;
        if (covers(&filters->ranges[i], ip))
            return true;
        limited = true;
    }
    return !limited;
}

static bool stops_at(const struct tracer *cpu, u64 ip)
{
    const struct rig_filters *filters = cpu->event->hw.addr_filters;

    for (unsigned i = 0; i < filters->n; i++)
        if (filters->ranges[i].stops && covers(&filters->ranges[i], ip))
            return true;
    return false;
}

static bool quiet(const struct tracer *cpu)
{
    return !cpu->aux || cpu->stopped;
}

/* User code runs, or ran, at cpu->ip. */
static void enable(struct tracer *cpu)
{
    if (cpu->on || quiet(cpu) || !passes(cpu, cpu->ip))
        return;
    if (cpu->psb_due) {
        rig_put_psb(&cpu->packets, 0);
        cpu->psb_due = false;
    }
    rig_put_enable(&cpu->packets, cpu->ip);
    cpu->on = true;
}

/* Tracing ends while packets are being lost: the OVF stands alone then, and a TIP.PGE will follow. */
static bool end_lost(struct tracer *cpu)
{
    bool lost = cpu->lost;

    cpu->lost = 0;
    if (lost)
        rig_put_overflow(&cpu->packets, 0);
    return lost;
}

static void interrupt(struct tracer *cpu, u64 ip)
{
    if (cpu->on && !quiet(cpu) && !end_lost(cpu)) {
        rig_put_time(&cpu->packets);
        rig_put_interrupt(&cpu->packets, ip);
    }
    cpu->on = false;
}

static void begin(struct tracer *cpu)
{
    cpu->aux = rig_aux_begin(&cpu->handle, cpu->event);
    cpu->packets.aux = cpu->aux;
}

static void follow(struct tracer *cpu, struct task_struct *task)
{
    struct pt_regs *regs = task_pt_regs(task);

    if (task->flags & PF_KTHREAD || !task->mm || regs->cs != __USER_CS)
        return;
    regs->flags |= X86_EFLAGS_TF;
    cpu->task = task;
    cpu->ip = regs->ip;
    rig_watch_silence();
}

static void leave(struct tracer *cpu)
{
    if (!cpu->task)
        return;
    interrupt(cpu, cpu->ip);
    task_pt_regs(cpu->task)->flags &= ~X86_EFLAGS_TF;
    cpu->task = NULL;
    rig_watch_restore();
}

/* What the PMI does on a CPU: hands over what was written, and goes on if there is room. If not, perf's core disables
 * the event, but by an interrupt, which may come many thousand instructions later: none of them is traced, or stepped.
 */
static void hand_over(struct tracer *cpu)
{
    if (!cpu->aux || !rig_aux_wants_end(cpu->aux))
        return;
    rig_aux_end(&cpu->handle, cpu->aux);
    begin(cpu);
    if (cpu->aux)
        return;
    cpu->event->hw.state = PERF_HES_STOPPED;
    leave(cpu);
    rig_packets_resume(&cpu->packets);
}

bool rig_steps_any(void)
{
    return this_cpu_ptr(&tracers)->task != NULL;
}

bool rig_steps_busy(void)
{
    return this_cpu_ptr(&tracers)->event != NULL;
}

int rig_steps_start(struct perf_event *event)
{
    struct tracer *cpu = this_cpu_ptr(&tracers);

    if (cpu->event && cpu->event != event)
        return -EBUSY;
    cpu->event = event;
    begin(cpu);
    if (!cpu->aux) {
        cpu->event = NULL;
        return -ENOSPC;
    }
    perf_event_addr_filters_sync(event);
    rig_packets_resume(&cpu->packets);
    cpu->packets.config = event->attr.config;
    cpu->psb_due |= !(event->attach_state & PERF_ATTACH_ITRACE); /* the first start of an event */
    event->attach_state |= PERF_ATTACH_ITRACE;
    cpu->on = false;
    cpu->stopped = false;
    cpu->to_overflow = rig_knobs.ovf_every;
    /* A control group's event starts before the switch to the task that it is for. */
    follow(cpu, current == cpu->from ? cpu->to : current);
    return 0;
}

void rig_steps_stop(struct perf_event *event)
{
    struct tracer *cpu = this_cpu_ptr(&tracers);

    if (cpu->event != event)
        return;
    leave(cpu);
    if (cpu->aux)
        rig_aux_end(&cpu->handle, cpu->aux);
    cpu->aux = NULL;
    cpu->event = NULL;
}

static u64 read_stack(const struct pt_regs *regs)
{
    u64 value = 0;

    return copy_from_user_nofault(&value, (const void __user *)regs->sp, sizeof(value)) ? 0 : value;
}

/* The program must not find the trap flag in what it pushed. */
static void hide_flag(const struct pt_regs *regs)
{
    u64 flags = read_stack(regs) & ~X86_EFLAGS_TF;

    (void)copy_to_user_nofault((void __user *)regs->sp, &flags, 2);
}

static struct rig_insn read_insn(u64 ip)
{
    u8 bytes[RIG_INSN_MAX] = {0};
    size_t n = sizeof(bytes);

    if (!copy_from_user_nofault(bytes, (const void __user *)ip, n))
        return rig_insn_read(bytes, n);
    n = min(n, PAGE_SIZE - (ip & ~PAGE_MASK));
    if (!copy_from_user_nofault(bytes, (const void __user *)ip, n))
        return rig_insn_read(bytes, n);
    return (struct rig_insn){RIG_OTHER, 0};
}

/* The packets of one instruction that stayed within what is traced */
static void write_flow(struct rig_packets *p, const struct rig_insn *insn, u64 from, const struct pt_regs *regs)
{
    u64 back;

    switch (insn->kind) {
    case RIG_CONDITIONAL:
        rig_put_bit(p, regs->ip != from + insn->length);
        break;
    case RIG_CALL_INDIRECT:
        rig_put_tip(p, regs->ip);
        fallthrough;
    case RIG_CALL:
        back = read_stack(regs);
        if (back != regs->ip) /* a call of the next instruction reads the ip, and never returns */
            rig_put_call(p, back);
        break;
    case RIG_JUMP_INDIRECT:
    case RIG_FAR:
        rig_put_tip(p, regs->ip);
        break;
    case RIG_RETURN:
        rig_put_return(p, regs->ip);
        break;
    default:
        break;
    }
}

static void write_step(struct tracer *cpu, const struct rig_insn *insn, const struct pt_regs *regs)
{
    struct rig_packets *p = &cpu->packets;

    p->cycles++;
    if (passes(cpu, regs->ip)) {
        write_flow(p, insn, cpu->ip, regs);
        return;
    }
    if (insn->kind == RIG_OTHER || insn->kind == RIG_PUSH_FLAGS || insn->kind == RIG_STRING)
        rig_put_interrupt(p, regs->ip); /* ran over the range's end */
    else
        rig_put_leave(p, regs->ip);
    cpu->on = false;
}

/* The knob that loses packets. True: this instruction is among the lost. */
static bool overflow(struct tracer *cpu, const struct pt_regs *regs)
{
    if (!rig_knobs.ovf_every)
        return false;
    if (cpu->lost) {
        if (--cpu->lost)
            return true;
        cpu->on = passes(cpu, regs->ip);
        if (cpu->on)
            rig_put_overflow(&cpu->packets, regs->ip);
        return true;
    }
    if (cpu->to_overflow && --cpu->to_overflow)
        return false;
    cpu->to_overflow = rig_knobs.ovf_every;
    cpu->lost = cpu->on ? rig_knobs.ovf_lost : 0;
    return false;
}

static void write_extras(struct tracer *cpu, u64 ip)
{
    u64 period = rig_knobs.psb_bytes ?: rig_config_psb_bytes(cpu->event->attr.config);

    if (!cpu->on)
        return;
    rig_put_time(&cpu->packets);
    if (rig_knobs.pad)
        rig_put_padding(&cpu->packets, rig_knobs.pad);
    if (cpu->packets.since_psb >= period)
        rig_put_psb(&cpu->packets, ip);
}

/* One instruction ran, from cpu->ip to where the registers are now. */
static void step(struct tracer *cpu, struct pt_regs *regs)
{
    struct rig_insn insn = read_insn(cpu->ip);

    if (insn.kind == RIG_STRING && regs->ip == cpu->ip)
        return; /* not done yet */
    if (insn.kind == RIG_PUSH_FLAGS)
        hide_flag(regs);
    rig_log_add(cpu->ip, RIG_LOG_RAN);
    enable(cpu);
    if (cpu->on && !quiet(cpu) && !overflow(cpu, regs)) {
        write_step(cpu, &insn, regs);
        write_extras(cpu, regs->ip);
    }
    if (!quiet(cpu) && stops_at(cpu, regs->ip)) {
        interrupt(cpu, regs->ip);
        rig_put_stop(&cpu->packets);
        cpu->stopped = true;
    }
    cpu->ip = regs->ip;
    hand_over(cpu);
}

/* Registers from before an instruction are known if the instruction before it was stepped, too. */
static void watch(struct tracer *cpu, u64 from, struct pt_regs *regs)
{
    if (!rig_watch_any())
        return;
    if (cpu->before.ip == from)
        rig_watch_step(&cpu->before, regs);
    cpu->before = *regs;
}

/* The #DB of a user instruction. One that is nobody's comes of a flag that outlived its event, and ends here. */
static int on_trap(struct notifier_block *block, unsigned long what, void *data)
{
    struct die_args *args = data;
    struct pt_regs *regs = args->regs;
    unsigned long *dr6;
    struct tracer *cpu;

    if (what != DIE_DEBUG || !user_mode(regs))
        return NOTIFY_DONE;
    dr6 = (unsigned long *)args->err;
    if (!(*dr6 & DR_STEP))
        return NOTIFY_DONE;
    cpu = this_cpu_ptr(&tracers);
    if (cpu->task == current) {
        u64 from = cpu->ip;

        regs->flags |= X86_EFLAGS_TF;
        step(cpu, regs);
        watch(cpu, from, regs);
    } else if (!test_thread_flag(TIF_SINGLESTEP)) {
        regs->flags &= ~X86_EFLAGS_TF;
    }
    if (test_thread_flag(TIF_SINGLESTEP))
        return NOTIFY_DONE; /* a debugger steps too */
    *dr6 &= ~DR_STEP;
    current->thread.virtual_dr6 &= ~DR_STEP;
    return *dr6 & DR_TRAP_BITS || current->thread.virtual_dr6 ? NOTIFY_DONE : NOTIFY_STOP;
}
NOKPROBE_SYMBOL(on_trap);

static struct notifier_block trap_block = {.notifier_call = on_trap};

static void on_sys_enter(void *data, struct pt_regs *regs, long id)
{
    struct tracer *cpu;
    unsigned long flags;

    local_irq_save(flags);
    cpu = this_cpu_ptr(&tracers);
    if (cpu->task == current) {
        cpu->ip = regs->ip - 2; /* the instruction has two bytes; a restarted one was not foreseen */
        rig_log_add(cpu->ip, RIG_LOG_RAN);
        enable(cpu);
        if (cpu->on && !quiet(cpu) && !end_lost(cpu)) {
            rig_put_time(&cpu->packets);
            rig_put_disable(&cpu->packets);
        }
        cpu->on = false;
        cpu->ip = regs->ip;
        hand_over(cpu);
        regs->flags &= ~X86_EFLAGS_TF; /* nobody who looks at the registers shall see it */
    }
    local_irq_restore(flags);
}

static void on_sys_exit(void *data, struct pt_regs *regs, long result)
{
    struct tracer *cpu;
    unsigned long flags;

    local_irq_save(flags);
    cpu = this_cpu_ptr(&tracers);
    if (cpu->task == current) {
        cpu->ip = regs->ip;
        regs->flags |= X86_EFLAGS_TF;
        regs->r11 &= ~X86_EFLAGS_TF;
    } else if (regs->flags & X86_EFLAGS_TF && !test_thread_flag(TIF_SINGLESTEP)) {
        regs->flags &= ~X86_EFLAGS_TF;
        regs->r11 &= ~X86_EFLAGS_TF;
    }
    local_irq_restore(flags);
}

static void on_switch(void *data, bool preempted, struct task_struct *from, struct task_struct *to, unsigned state)
{
    struct tracer *cpu = this_cpu_ptr(&tracers);

    leave(cpu);
    cpu->from = from;
    cpu->to = to;
    if (cpu->aux)
        follow(cpu, to);
}

static bool is_fault(int signal, const struct kernel_siginfo *info)
{
    if ((unsigned long)info <= 2 || info->si_code <= 0)
        return false;
    return signal == SIGSEGV || signal == SIGBUS || signal == SIGILL || signal == SIGFPE || signal == SIGTRAP;
}

/* A fault, at the moment it happens: before a debugger is told, and before anything else runs. */
static void on_fault(void *data, int signal, struct kernel_siginfo *info, struct task_struct *task, int group,
                     int result)
{
    struct tracer *cpu;
    unsigned long flags;

    if (task != current || !is_fault(signal, info))
        return;
    local_irq_save(flags);
    cpu = this_cpu_ptr(&tracers);
    if (cpu->task == current) {
        rig_log_add(cpu->ip, RIG_LOG_FAULTED);
        enable(cpu);
        interrupt(cpu, cpu->ip);
        hand_over(cpu);
    }
    local_irq_restore(flags);
}

/* A signal is about to be dealt with: the code at the registers' ip did not run. */
static void on_signal(void *data, int signal, struct kernel_siginfo *info, struct k_sigaction *action)
{
    struct tracer *cpu;
    unsigned long flags;

    local_irq_save(flags);
    cpu = this_cpu_ptr(&tracers);
    if (cpu->task == current) {
        interrupt(cpu, cpu->ip);
        cpu->lost = 0;
        task_pt_regs(current)->flags &= ~X86_EFLAGS_TF; /* not into the handler's frame */
        hand_over(cpu);
    }
    local_irq_restore(flags);
}

/* The frame is built and the registers are at the handler, without the trap flag. */
static int on_handler(struct kprobe *probe, struct pt_regs *here)
{
    struct tracer *cpu;
    unsigned long flags;

    local_irq_save(flags);
    cpu = this_cpu_ptr(&tracers);
    if (cpu->task == current) {
        task_pt_regs(current)->flags |= X86_EFLAGS_TF;
        cpu->ip = task_pt_regs(current)->ip;
    }
    local_irq_restore(flags);
    return 0;
}

static struct kprobe handler_probe = {.symbol_name = "signal_setup_done", .pre_handler = on_handler};

static struct {
    const char *name;
    void *probe;
    struct tracepoint *tracepoint;
    bool registered;
} probes[] = {
    {"sys_enter", on_sys_enter},   {"sys_exit", on_sys_exit},     {"sched_switch", on_switch},
    {"signal_generate", on_fault}, {"signal_deliver", on_signal},
};

static void find_tracepoint(struct tracepoint *tracepoint, void *data)
{
    for (size_t i = 0; i < ARRAY_SIZE(probes); i++)
        if (!strcmp(tracepoint->name, probes[i].name))
            probes[i].tracepoint = tracepoint;
}

void rig_steps_unregister(void)
{
    for (size_t i = 0; i < ARRAY_SIZE(probes); i++)
        if (probes[i].registered)
            tracepoint_probe_unregister(probes[i].tracepoint, probes[i].probe, NULL);
    tracepoint_synchronize_unregister();
    if (handler_probe.addr)
        unregister_kprobe(&handler_probe);
    unregister_die_notifier(&trap_block);
}

int rig_steps_register(void)
{
    int error = register_die_notifier(&trap_block);

    if (!error)
        error = register_kprobe(&handler_probe);
    for_each_kernel_tracepoint(find_tracepoint, NULL);
    for (size_t i = 0; i < ARRAY_SIZE(probes) && !error; i++) {
        error = probes[i].tracepoint ? tracepoint_probe_register(probes[i].tracepoint, probes[i].probe, NULL) : -ENOENT;
        probes[i].registered = !error;
    }
    if (error)
        rig_steps_unregister();
    return error;
}
