/* SPDX-License-Identifier: MIT */
/* Looking at a failing process; see failure.h. */
#include "collector/native/failure.h"

#include "collector/native/stack.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <x86intrin.h>

#define HOLD_MS 200
#define REGISTERS 24

/* In the order of Linux's perf x86 register numbers. */
static void order_registers(const struct user_regs_struct *r, uint64_t out[REGISTERS])
{
    const uint64_t ordered[REGISTERS] = {r->rax, r->rbx,    r->rcx, r->rdx, r->rsi, r->rdi, r->rbp,     r->rsp,
                                         r->rip, r->eflags, r->cs,  r->ss,  r->ds,  r->es,  r->fs_base, r->gs_base,
                                         r->r8,  r->r9,     r->r10, r->r11, r->r12, r->r13, r->r14,     r->r15};

    memcpy(out, ordered, sizeof(ordered));
}

/* The start of arguments and environment, which the kernel puts above the first thread's stack; 0: not known. */
static uint64_t arguments_start(pid_t pid)
{
    char path[64], text[1024], *at;
    uint64_t start = 0;

    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    if (etch_process_text(path, text, sizeof(text)) < 0)
        return 0;
    at = strrchr(text, ')'); /* the name before it may hold anything */
    for (unsigned field = 2; at && field < 28; field++)
        at = strchr(at + 1, ' ');
    if (at)
        start = strtoull(at + 1, NULL, 10);
    return start;
}

static size_t read_process(void *context, uint64_t address, void *buffer, size_t size)
{
    return etch_process_read(*(const pid_t *)context, address, buffer, size);
}

static struct etch_stack_memory memory_of(const struct etch_failure *f, pid_t *pid)
{
    return (struct etch_stack_memory){read_process, pid, &f->mappings, f->arguments, f->keep_stack};
}

static void take_stack(struct etch_failure *f, Etch__ThreadState *state, pid_t pid, uint64_t ip, uint64_t sp,
                       uint64_t bp)
{
    struct etch_stack_memory memory = memory_of(f, &pid);

    f->masked_words += etch_stack_take(&memory, state, ip, sp, bp);
}

static void take_thread(struct etch_failure *f, Etch__ThreadState *state, pid_t pid, pid_t tid)
{
    struct user_regs_struct registers;
    struct etch_thread_wait wait;
    uint64_t ordered[REGISTERS];
    char name[32];

    etch__thread_state__init(state);
    state->tid = (uint32_t)tid;
    etch_thread_name(pid, tid, name);
    state->name = strdup(name);
    etch_thread_wait(pid, tid, &wait);
    state->waiting_in = wait.call_plus_1;
    state->waiting_for = wait.call_plus_1 ? wait.arguments[0] : 0;
    if (ptrace(PTRACE_GETREGS, tid, NULL, &registers) < 0) { /* not stopped: /proc has pc and sp only */
        take_stack(f, state, pid, wait.pc, wait.sp, 0);
        return;
    }
    order_registers(&registers, ordered);
    state->registers = malloc(sizeof(ordered));
    if (state->registers) {
        memcpy(state->registers, ordered, sizeof(ordered));
        state->n_registers = REGISTERS;
    }
    if ((int64_t)registers.orig_rax >= 0 && !state->waiting_in) {
        state->waiting_in = (uint32_t)registers.orig_rax + 1;
        state->waiting_for = registers.rdi;
    }
    take_stack(f, state, pid, registers.rip, registers.rsp, registers.rbp);
}

/* The failing thread first. */
static void take_threads(struct etch_failure *f, struct etch_target *target, pid_t tid)
{
    size_t n = target->threads.n < ETCH_FAILURE_THREADS_MAX ? target->threads.n : ETCH_FAILURE_THREADS_MAX;

    f->states = calloc(n ? n : 1, sizeof(*f->states));
    f->record.threads = calloc(n ? n : 1, sizeof(Etch__ThreadState *));
    if (!f->states || !f->record.threads)
        return;
    for (int turn = 0; turn < 2; turn++)
        for (size_t i = 0; i < target->threads.n && f->record.n_threads < n; i++) {
            Etch__ThreadState *state = &f->states[f->record.n_threads];

            if ((target->threads.v[i].tid == tid) != (turn == 0))
                continue;
            take_thread(f, state, target->pid, target->threads.v[i].tid);
            f->record.threads[f->record.n_threads++] = state;
            if (turn == 0 && state->n_frames)
                f->record.ip = state->frames[0];
        }
}

static char *abort_message(const struct etch_failure *f, pid_t pid)
{
    struct etch_stack_memory memory = memory_of(f, &pid);
    char root[32];

    snprintf(root, sizeof(root), "/proc/%d/root", (int)pid);
    return etch_abort_message(&memory, root);
}

static void take_signal(Etch__Failure *record, const siginfo_t *signal)
{
    if (!signal)
        return;
    record->signal = (uint32_t)signal->si_signo;
    record->code = signal->si_code;
    if (signal->si_code > 0 && (signal->si_signo == SIGSEGV || signal->si_signo == SIGBUS ||
                                signal->si_signo == SIGFPE || signal->si_signo == SIGILL))
        record->fault_address = (uint64_t)(uintptr_t)signal->si_addr;
}

int etch_failure_capture(struct etch_failure *failure, struct etch_target *target, Etch__FailureKind kind, pid_t tid,
                         const siginfo_t *signal, bool hold, bool keep_stack, const char *words, struct etch_error *err)
{
    Etch__Failure *record = &failure->record;

    memset(failure, 0, sizeof(*failure));
    etch__failure__init(record);
    record->message = NULL; /* protobuf-c starts with a text that must not be freed */
    failure->keep_stack = keep_stack;
    failure->arguments = arguments_start(target->pid);
    record->kind = kind;
    record->pid = (uint32_t)target->pid;
    record->tid = (uint32_t)tid;
    record->tsc = __rdtsc();
    take_signal(record, signal);
    if (etch_process_mappings(target->pid, &failure->mappings, err) < 0)
        return -1;
    if (hold)
        etch_target_hold(target, tid, HOLD_MS, false);
    take_threads(failure, target, tid);
    if (hold)
        etch_target_release_held(target);
    if (signal && signal->si_signo == SIGABRT)
        record->message = abort_message(failure, target->pid);
    if (!record->message)
        record->message = strdup(words);
    return 0;
}

void etch_failure_release(struct etch_failure *failure)
{
    Etch__Failure *record = &failure->record;

    for (size_t i = 0; i < record->n_threads; i++) {
        free(failure->states[i].name);
        free(failure->states[i].registers);
        free(failure->states[i].frames);
        free(failure->states[i].stack.data);
    }
    free(failure->states);
    free(record->threads);
    free(record->message);
    if (record->exception)
        etch__exception__free_unpacked(record->exception, NULL);
    etch_mappings_release(&failure->mappings);
}
