/* SPDX-License-Identifier: MIT */
/* A single-stepper; see stepper.h. */
#include "tests/tools/stepper.h"

#include <Zydis/Zydis.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define MOST_THREADS 16
#define PATIENCE 400 /* looks after a thread that does not come back, before another may run */

struct thread {
    pid_t tid;
    bool stopped;                /* else it runs, or waits in the kernel */
    int deliver;                 /* signal */
    struct stepper_record *ring; /* of `last` */
    size_t count;                /* records ever made */
    bool interrupted;            /* the newest record is of an earlier instruction than the last that ran */
};

struct stepper {
    pid_t pid;
    size_t last;
    struct thread threads[MOST_THREADS];
    size_t n, alive;
    bool several;
    ZydisDecoder decoder;
    struct stepper_end *end;
    bool ended, failed;
};

static size_t read_memory(pid_t pid, uint64_t address, void *to, size_t size)
{
    struct iovec local = {to, size}, remote = {(void *)(uintptr_t)address, size};
    ssize_t n = process_vm_readv(pid, &local, 1, &remote, 1, 0);

    return n < 0 ? 0 : (size_t)n;
}

size_t stepper_read(const struct stepper_end *end, uint64_t address, void *to, size_t size)
{
    return end->saved ? stepper_read_saved(end, address, to, size) : read_memory(end->pid, address, to, size);
}

/* ---- Records ---- */

static void context_of(const struct user_regs_struct *r, ZydisRegisterContext *c)
{
    const uint64_t values[16] = {r->rax, r->rcx, r->rdx, r->rbx, r->rsp, r->rbp, r->rsi, r->rdi,
                                 r->r8,  r->r9,  r->r10, r->r11, r->r12, r->r13, r->r14, r->r15};

    memset(c, 0, sizeof(*c));
    for (unsigned i = 0; i < 16; i++)
        c->values[ZYDIS_REGISTER_RAX + i] = values[i];
    c->values[ZYDIS_REGISTER_RIP] = r->rip;
}

static uint64_t operand_address(const struct stepper_record *r, const ZydisDecodedInstruction *i,
                                const ZydisDecodedOperand *o)
{
    ZydisRegisterContext context;
    ZyanU64 at = 0;

    context_of(&r->registers, &context);
    if (!ZYAN_SUCCESS(ZydisCalcAbsoluteAddressEx(i, o, r->registers.rip, &context, &at)))
        return 0;
    if (o->mem.segment == ZYDIS_REGISTER_FS)
        at += r->registers.fs_base;
    /* What a push or a call writes is below the stack pointer. */
    if (o->visibility == ZYDIS_OPERAND_VISIBILITY_HIDDEN && o->mem.base == ZYDIS_REGISTER_RSP &&
        (o->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE))
        at = r->registers.rsp - o->size / 8;
    if (i->mnemonic == ZYDIS_MNEMONIC_LEAVE)
        at = r->registers.rbp;
    return at;
}

static void add_operand(struct stepper *s, struct stepper_record *r, const ZydisDecodedInstruction *i,
                        const ZydisDecodedOperand *o)
{
    struct stepper_operand *p = &r->operands[r->n];

    if (o->type != ZYDIS_OPERAND_TYPE_MEMORY || o->mem.type != ZYDIS_MEMOP_TYPE_MEM || r->n == STEPPER_OPERANDS)
        return;
    p->address = operand_address(r, i, o);
    p->size = o->size / 8 <= STEPPER_WIDEST ? (uint8_t)(o->size / 8) : 0;
    p->read = o->actions & ZYDIS_OPERAND_ACTION_MASK_READ;
    p->write = o->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE;
    if (p->size && read_memory(s->pid, p->address, p->before, p->size) != p->size)
        p->size = 0;
    r->n++;
}

static struct stepper_record *newest(struct stepper *s, struct thread *t)
{
    return t->count ? &t->ring[(t->count - 1) % s->last] : NULL;
}

/* The instruction at hand, before it runs. */
static void begin_record(struct stepper *s, struct thread *t)
{
    struct stepper_record *r = &t->ring[t->count % s->last];
    struct stepper_record *before = newest(s, t);
    ZydisDecodedInstruction i;
    ZydisDecodedOperand o[ZYDIS_MAX_OPERAND_COUNT];
    struct user_regs_struct registers;

    if (ptrace(PTRACE_GETREGS, t->tid, 0, &registers) != 0)
        return;
    memset(r->operands, 0, sizeof(r->operands));
    r->registers = registers;
    r->n = 0;
    r->size = (uint8_t)read_memory(s->pid, registers.rip, r->code, sizeof(r->code));
    if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&s->decoder, r->code, r->size, &i, o)))
        i.length = r->size, i.operand_count = 0, i.attributes = 0;
    /* A repeated string instruction stops after each element: one record for all. */
    if (before && before->registers.rip == registers.rip &&
        (i.attributes & (ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE | ZYDIS_ATTRIB_HAS_REPNE)))
        return;
    r->size = i.length;
    for (unsigned k = 0; k < i.operand_count; k++)
        add_operand(s, r, &i, &o[k]);
    t->count++;
}

static void finish_record(struct stepper *s, struct thread *t)
{
    struct stepper_record *r = newest(s, t);

    for (unsigned k = 0; r && k < r->n; k++)
        if (r->operands[k].write && r->operands[k].size)
            (void)read_memory(s->pid, r->operands[k].address, r->operands[k].after, r->operands[k].size);
}

/* ---- Threads ---- */

static struct thread *thread_of(struct stepper *s, pid_t tid)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->threads[i].tid == tid)
            return &s->threads[i];
    if (s->n == MOST_THREADS) {
        s->failed = true;
        return NULL;
    }
    s->threads[s->n] = (struct thread){.tid = tid, .ring = calloc(s->last, sizeof(struct stepper_record))};
    if (!s->threads[s->n].ring) {
        s->failed = true;
        return NULL;
    }
    s->several = s->n > 0;
    s->alive++;
    return &s->threads[s->n++];
}

static bool is_fatal(int signal)
{
    return signal == SIGSEGV || signal == SIGABRT || signal == SIGBUS || signal == SIGFPE || signal == SIGILL ||
           signal == SIGTRAP;
}

static void died(struct stepper *s, struct thread *t, int signal)
{
    struct stepper_end *e = s->end;
    struct stepper_record *r = newest(s, t);
    size_t n = t->count < s->last ? t->count : s->last;

    s->ended = true;
    e->tid = t->tid;
    e->signal = signal;
    e->threads = s->several;
    e->maps = stepper_maps(e->pid);
    (void)ptrace(PTRACE_GETREGS, t->tid, 0, &e->registers);
    e->incomplete = r && r->registers.rip == e->registers.rip;
    if (!e->incomplete)
        finish_record(s, t);
    e->records = calloc(n + 1, sizeof(*e->records));
    for (size_t i = 0; e->records && i < n; i++)
        e->records[i] = t->ring[(t->count - n + i) % s->last];
    e->n = n;
}

static void stopped(struct stepper *s, struct thread *t, int status)
{
    int signal = WSTOPSIG(status);
    siginfo_t info = {0};

    t->stopped = true;
    t->deliver = 0;
    if (status >> 16) /* a new thread, or the end of one */
        return;
    if (signal == SIGSTOP && !t->count) { /* a new thread's first stop */
        begin_record(s, t);
        return;
    }
    if (signal == SIGTRAP && ptrace(PTRACE_GETSIGINFO, t->tid, 0, &info) == 0 && info.si_code > 0 &&
        info.si_code != SI_KERNEL) {
        if (!t->interrupted)
            finish_record(s, t);
        t->interrupted = false;
        begin_record(s, t);
    } else if (is_fatal(signal))
        died(s, t, signal);
    else
        t->deliver = signal;
}

static void handle(struct stepper *s, pid_t tid, int status)
{
    struct thread *t = thread_of(s, tid);

    if (!t)
        return;
    if (WIFSTOPPED(status))
        stopped(s, t, status);
    else {
        t->stopped = false;
        s->alive--;
    }
}

/* Takes the stops that are there. Returns whether there was one. */
static bool look(struct stepper *s, int options)
{
    int status;
    pid_t tid = waitpid(-1, &status, __WALL | options);

    if (tid <= 0)
        return false;
    handle(s, tid, status);
    return true;
}

static struct thread *choose(struct stepper *s, unsigned *seed)
{
    size_t n = 0;

    for (size_t i = 0; i < s->n; i++)
        n += s->threads[i].stopped;
    if (!n)
        return NULL;
    n = (size_t)rand_r(seed) % n;
    for (size_t i = 0; i < s->n; i++)
        if (s->threads[i].stopped && n-- == 0)
            return &s->threads[i];
    return NULL;
}

/* Another thread may have written what the instruction at hand is about to read. */
static void refresh_record(struct stepper *s, struct thread *t)
{
    struct stepper_record *r = newest(s, t);

    for (unsigned k = 0; r && k < r->n; k++)
        if (r->operands[k].size)
            (void)read_memory(s->pid, r->operands[k].address, r->operands[k].before, r->operands[k].size);
}

static void step(struct stepper *s, struct thread *t)
{
    t->stopped = false;
    if (t->deliver && t->count && !t->interrupted) { /* a handler runs instead of the instruction at hand */
        t->count--;
        t->interrupted = true;
    }
    if (ptrace(PTRACE_SINGLESTEP, t->tid, 0, t->deliver) != 0)
        return;
    for (int i = 0; i < PATIENCE && !t->stopped && !s->ended && s->alive; i++)
        if (!look(s, WNOHANG))
            sched_yield();
}

static void loop(struct stepper *s, size_t most, unsigned seed)
{
    struct thread *t = NULL, *last = NULL;
    size_t turn = 0;

    while (!s->ended && !s->failed && s->alive && most) {
        if (!t || !t->stopped || !turn) {
            t = choose(s, &seed);
            turn = (size_t)rand_r(&seed) % 400 + 1;
        }
        if (!t) {
            if (!look(s, 0))
                return;
            continue;
        }
        if (t != last)
            refresh_record(s, t);
        last = t;
        turn--;
        most--;
        step(s, t);
    }
}

/* ---- Start ---- */

static uint64_t entry_of(pid_t pid)
{
    char path[64];
    Elf64_auxv_t v;
    uint64_t entry = 0;
    FILE *f;

    (void)snprintf(path, sizeof(path), "/proc/%d/auxv", (int)pid);
    f = fopen(path, "rb");
    while (f && fread(&v, sizeof(v), 1, f) == 1)
        if (v.a_type == AT_ENTRY)
            entry = v.a_un.a_val;
    if (f)
        fclose(f);
    return entry;
}

/* Runs the dynamic linker at full speed. */
static bool run_to(pid_t pid, uint64_t at)
{
    long word = ptrace(PTRACE_PEEKTEXT, pid, at, 0);
    struct user_regs_struct registers;
    int status;

    if (ptrace(PTRACE_POKETEXT, pid, at, (word & ~0xffL) | 0xcc) != 0 || ptrace(PTRACE_CONT, pid, 0, 0) != 0 ||
        waitpid(pid, &status, 0) != pid || !WIFSTOPPED(status) || ptrace(PTRACE_POKETEXT, pid, at, word) != 0 ||
        ptrace(PTRACE_GETREGS, pid, 0, &registers) != 0)
        return false;
    registers.rip = at;
    return ptrace(PTRACE_SETREGS, pid, 0, &registers) == 0;
}

static void be_stepped(char **argv)
{
    int null = open("/dev/null", O_RDWR);

    (void)dup2(null, 1);
    (void)dup2(null, 2);
    (void)personality(ADDR_NO_RANDOMIZE);
    (void)ptrace(PTRACE_TRACEME, 0, 0, 0);
    execv(argv[0], argv);
    _exit(127);
}

int stepper_run(char **argv, size_t most, size_t last, unsigned seed, struct stepper_end *end)
{
    struct stepper s = {.last = last, .end = end};
    int status;

    *end = (struct stepper_end){.stop = end->stop};
    ZydisDecoderInit(&s.decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
    s.pid = fork();
    if (s.pid == 0)
        be_stepped(argv);
    end->pid = s.pid;
    if (s.pid < 0 || waitpid(s.pid, &status, 0) != s.pid || !WIFSTOPPED(status) ||
        ptrace(PTRACE_SETOPTIONS, s.pid, 0, PTRACE_O_TRACECLONE | PTRACE_O_EXITKILL) != 0 ||
        !run_to(s.pid, entry_of(s.pid)) || !thread_of(&s, s.pid))
        return -1;
    s.threads[0].stopped = true;
    begin_record(&s, &s.threads[0]);
    loop(&s, most, seed);
    if (end->stop && !s.ended && !s.failed && s.threads[0].stopped)
        died(&s, &s.threads[0], SIGKILL);
    for (size_t i = 0; i < s.n; i++)
        free(s.threads[i].ring);
    return s.ended ? 0 : 1;
}

void stepper_close(struct stepper_end *end)
{
    int status;

    if (end->pid > 0)
        (void)kill(end->pid, SIGKILL);
    while (end->pid > 0 && waitpid(-1, &status, __WALL) > 0)
        ;
    free(end->records);
    free(end->maps);
    end->records = NULL;
    end->maps = NULL;
}
