/* SPDX-License-Identifier: MIT */
/* Looking at a failing process; see failure.h. */
#include "collector/native/failure.h"

#include "binary/object.h"
#include "collector/native/frames.h"
#include "collector/policy/stack_mask.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <x86intrin.h>

#define HOLD_MS 200
#define REGISTERS 24

bool etch_signal_is_failure(int signal)
{
    switch (signal) {
    case SIGSEGV:
    case SIGBUS:
    case SIGFPE:
    case SIGILL:
    case SIGABRT:
    case SIGTRAP:
    case SIGSYS:
        return true;
    default:
        return false;
    }
}

/* In the order of Linux's perf x86 register numbers. */
static void order_registers(const struct user_regs_struct *r, uint64_t out[REGISTERS])
{
    const uint64_t ordered[REGISTERS] = {r->rax, r->rbx,    r->rcx, r->rdx, r->rsi, r->rdi, r->rbp,     r->rsp,
                                         r->rip, r->eflags, r->cs,  r->ss,  r->ds,  r->es,  r->fs_base, r->gs_base,
                                         r->r8,  r->r9,     r->r10, r->r11, r->r12, r->r13, r->r14,     r->r15};

    memcpy(out, ordered, sizeof(ordered));
}

struct code {
    pid_t pid;
    const struct etch_mappings *mappings;
    uint64_t interrupted; /* where a signal's frame has the address of what it interrupted; 0: no such frame yet */
};

static const struct etch_mapping *code_at(const struct code *code, uint64_t address)
{
    const struct etch_mapping *mapping = etch_mappings_at(code->mappings, address);

    return mapping && (mapping->prot & 4) ? mapping : NULL;
}

static bool follows_call(void *context, uint64_t address)
{
    const struct code *code = context;
    const struct etch_mapping *mapping = code_at(code, address - 1);
    uint8_t bytes[7];
    size_t n;

    if (!mapping)
        return false;
    n = address - mapping->start < sizeof(bytes) ? address - mapping->start : sizeof(bytes);
    return etch_process_read(code->pid, address - n, bytes, n) == n && etch_code_ends_in_call(bytes + n, n);
}

/* ---- Stacks ---- */

/* Returns true if signal handlers return to this address: the code of every libc for the system call rt_sigreturn. */
static bool returns_from_signal(const struct code *code, uint64_t address)
{
    static const uint8_t far[] = {0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05},
                         near[] = {0xb8, 0x0f, 0, 0, 0, 0x0f, 0x05};
    uint8_t bytes[sizeof(far)];

    return etch_process_read(code->pid, address, bytes, sizeof(bytes)) == sizeof(bytes) &&
           (memcmp(bytes, far, sizeof(far)) == 0 || memcmp(bytes, near, sizeof(near)) == 0);
}

/* Accepts the words that the unwind tables look for: return addresses, and in a signal frame the address of the
 * interrupted instruction. This address lies 176 bytes above the return address (struct ucontext). */
static bool is_code(void *context, uint64_t address, uint64_t word)
{
    struct code *code = context;

    if (!code_at(code, word) && !code_at(code, word - 1))
        return false;
    if (returns_from_signal(code, word)) {
        code->interrupted = address + 176;
        return true;
    }
    return address == code->interrupted || follows_call(code, word);
}

static void mask_stack(struct etch_failure *f, Etch__ThreadState *state, struct code *code, uint64_t high)
{
    struct etch_stack_mask mask = {state->stack_start, state->stack_start, high, is_code, code};

    if (f->keep_stack)
        return;
    f->masked_words += etch_stack_mask(&mask, state->stack.data, state->stack.len);
    state->stack_masked = true;
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

/* How much there is from the stack pointer up, without arguments and environment. */
static size_t stack_size(const struct etch_failure *f, const struct etch_mapping *mapping, uint64_t sp)
{
    uint64_t end = mapping ? mapping->end : sp + ETCH_FAILURE_STACK_MAX;

    if (!f->keep_stack && f->arguments > sp && f->arguments < end)
        end = f->arguments;
    return end - sp < ETCH_FAILURE_STACK_MAX ? end - sp : ETCH_FAILURE_STACK_MAX;
}

static void take_stack(struct etch_failure *f, Etch__ThreadState *state, pid_t pid, uint64_t ip, uint64_t sp,
                       uint64_t bp)
{
    const struct etch_mapping *mapping = etch_mappings_at(&f->mappings, sp);
    struct code code = {pid, &f->mappings, 0};
    struct etch_frames_stack stack = {ip, sp, bp, NULL, 0, follows_call, &code};
    size_t size = stack_size(f, mapping, sp);
    bool scanned = false;

    state->stack_start = sp;
    state->stack.data = sp ? malloc(size) : NULL;
    if (state->stack.data)
        state->stack.len = etch_process_read(pid, sp, state->stack.data, size);
    mask_stack(f, state, &code, mapping ? mapping->end : sp + size);
    state->frames = calloc(ETCH_FAILURE_FRAMES_MAX, sizeof(*state->frames));
    if (!state->frames)
        return;
    stack.bytes = state->stack.data;
    stack.size = state->stack.len;
    state->n_frames = etch_frames_find(&stack, state->frames, ETCH_FAILURE_FRAMES_MAX, &scanned);
    state->frames_scanned = scanned;
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

/* The message of assert() or libc before abort(). glibc keeps the message in __abort_msg, a pointer to a size and the
 * text. */
static char *abort_message(pid_t pid, const struct etch_mappings *mappings)
{
    const struct etch_mapping *libc = NULL;
    struct etch_object *object;
    struct etch_symbol symbol;
    struct etch_error ignored;
    uint64_t pointer = 0;
    char path[4200], text[1024 + 1] = "";
    size_t n = 0;

    for (size_t i = 0; i < mappings->list.n && !libc; i++)
        if (strstr(mappings->list.v[i].path, "/libc.so.6"))
            libc = &mappings->list.v[i];
    if (!libc)
        return NULL;
    snprintf(path, sizeof(path), "/proc/%d/root%s", (int)pid, libc->path);
    if (etch_object_open(&object, path, &ignored) < 0)
        return NULL;
    if (etch_object_symbol(object, "__abort_msg", &symbol) &&
        etch_process_read(pid, symbol.address + etch_object_bias(object, libc->start, libc->offset), &pointer, 8) ==
            8 &&
        pointer)
        n = etch_process_read(pid, pointer + 4, text, sizeof(text) - 1);
    etch_object_free(object);
    text[n] = '\0';
    text[strcspn(text, "\n")] = '\0';
    for (char *c = text; *c; c++)
        if ((unsigned char)*c >= 0x80 || (unsigned char)*c < 0x20)
            *c = '?'; /* a protobuf string is UTF-8, and memory is not */
    return text[0] ? strdup(text) : NULL;
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
        record->message = abort_message(target->pid, &failure->mappings);
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
