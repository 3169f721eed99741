/* SPDX-License-Identifier: MIT OR GPL-2.0-or-later */
/* vpt, the QEMU plugin: follows each guest thread from block to block and writes what an Intel CPU with PT would have
 * written while tracing user code only. A block's end is known when the next one begins; what can come in between is a
 * system call (QEMU tells), a signal or a fault (signals.c finds out), or a block that QEMU runs again from its middle.
 */
#include "collector/vpt/exec.h"
#include "collector/vpt/images.h"
#include "collector/vpt/qemu_plugin.h"
#include "collector/vpt/registers.h"
#include "collector/vpt/signals.h"
#include "collector/vpt/thread.h"
#include "collector/vpt/watch.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

__attribute__((visibility("default"))) int qemu_plugin_version = 1;

enum { CLONE_THREAD_FLAG = 0x10000, MAP_FIXED_FLAG = 0x10, PROT_EXEC_FLAG = 4 };

#define DEADLY "uncaught target signal"

static char folder[256];
static uint64_t after; /* of the exec that brought this program here; 0: the first program */
static uint64_t guest_base;
static bool copies_code; /* QEMU has version 3 or later of its interface */
static bool begun;       /* first translation: the addresses are known */
static bool closing;     /* the process ends: what other threads still do is not part of the recording */
static pthread_mutex_t blocks_lock = PTHREAD_MUTEX_INITIALIZER;
static struct vpt_block *blocks;

static __thread struct vpt_self *self __attribute__((tls_model("initial-exec")));
static __thread bool silent __attribute__((tls_model("initial-exec"))); /* ended, or never got memory */
static __thread struct {
    uint32_t pid, tid;
} parent;

static struct vpt_self *find_self(void)
{
    return self;
}

static struct vpt_self *begin(void)
{
    if (self || silent)
        return self;
    self = vpt_self_begin(parent.pid, parent.tid);
    silent = !self;
    if (self && parent.pid)
        vpt_images_forked(self);
    return self;
}

static void end(void)
{
    struct vpt_self *t = self;

    self = NULL;
    silent = true;
    vpt_self_end(t);
    vpt_self_abandon(t);
}

/* ---- Control flow ---- */

static void enable(struct vpt_self *t, uint64_t ip)
{
    struct vpt_writer *w = &t->writer;

    if (t->first) {
        vpt_put_psb(w, vpt_now(), 0);
        vpt_put_mode(w);
        t->first = false;
    } else {
        vpt_put_tsc(w, vpt_now());
    }
    vpt_put_enable(w, ip);
}

/* The block that runs was left for the kernel; `ip` is the first instruction that did not run to its end. */
static void interrupt(struct vpt_self *t, uint64_t ip)
{
    struct vpt_writer *w = &t->writer;
    const struct vpt_block *b = t->block;
    bool inside = vpt_signals_inside(t, ip);

    if (inside || (b->ending == VPT_REPEATS && ip == b->last))
        vpt_truth_fault(&t->truth);
    if (b->ending != VPT_FAR || ip != b->end) { /* otherwise a trap: the instruction itself says so */
        if (!inside && !vpt_block_ends(w, b, ip))
            vpt_put_overflow(w, ip);
        vpt_put_fup(w, ip);
    }
    vpt_put_disable(w);
    vpt_put_tsc(w, vpt_now());
    t->block = NULL;
}

/* QEMU gave up on the running block in its middle and goes on from there: an instruction that it must run alone, such
 * as an atomic one across two words, or one that writes to the page it is on. */
static bool is_continued(const struct vpt_block *from, uint64_t at)
{
    return at >= from->start && at < from->end && !(from->ending == VPT_REPEATS && at == from->last);
}

/* A handler begins that may end the program in a way of its own: where the fault was is then what matters. */
static void note_caught(struct vpt_self *t, uint64_t ip)
{
    uint64_t number = vpt_register_read(t->cpu, VPT_RDI);
    bool known = vpt_signals_faulted(t);

    if (number != SIGFPE && number != SIGILL && number != SIGABRT &&
        !(known && (number == SIGSEGV || number == SIGBUS)))
        return;
    t->caught_context = t->signal_context;
    vpt_event_note(t, VPT_EVENT_CAUGHT, __rdtsc(), ip, known ? t->fault.address : 0, number, known, NULL);
}

/* The handler's frame is on top of the stack again, without the return address. */
static void note_returned(struct vpt_self *t)
{
    if (!t->caught_context || vpt_register_read(t->cpu, VPT_RSP) != t->caught_context)
        return;
    t->caught_context = 0;
    vpt_event_note(t, VPT_EVENT_CAUGHT, __rdtsc(), 0, 0, 0, 2, NULL);
}

/* All that is not the end of one block and the beginning of the next. */
static void take_turn(struct vpt_self *t, const struct vpt_block *to)
{
    const struct vpt_block *from = t->block;
    uint64_t ip;

    if (from && to->handler && vpt_signals_entered(t, to, &ip)) {
        note_caught(t, ip);
        interrupt(t, ip);
        from = NULL;
    }
    if (!from) {
        enable(t, to->start);
    } else if (to->single && from->instructions > 1 && is_continued(from, to->start)) {
        vpt_truth_fault(&t->truth);
    } else if (!vpt_block_ends(&t->writer, from, to->start)) {
        if (is_continued(from, to->start)) {
            vpt_truth_fault(&t->truth);
            return;
        }
        vpt_put_overflow(&t->writer, to->start);
        vpt_event_note(t, VPT_EVENT_GAP, __rdtsc(), 0, to->start, 0, 0, NULL);
    }
}

static void begin_block(unsigned cpu, struct vpt_self *t)
{
    static atomic_flag hooked = ATOMIC_FLAG_INIT;

    t->cpu = cpu;
    if (!atomic_flag_test_and_set(&hooked)) {
        vpt_signals_hook(find_self);
        if (vpt_watch_any())
            vpt_watch_arm(t, guest_base);
    }
}

/* Any block, at any time. */
static __attribute__((noinline)) void turn_block(unsigned cpu, const struct vpt_block *b)
{
    struct vpt_self *t = self;
    struct vpt_writer *w;

    if (closing)
        return;
    if (!t) {
        t = begin();
        if (!t)
            return;
    }
    w = &t->writer;
    if (t->code_changed) {
        vpt_put_tsc(w, t->code_changed - 1);
        vpt_put_tsc(w, t->code_changed);
        t->code_changed = 0;
    }
    if (!t->block)
        begin_block(cpu, t);
    if (!t->block || b->handler || b->single || !vpt_block_ends(w, t->block, b->start))
        take_turn(t, b);
    t->block = b;
    vpt_commit(w, b->start);
    if (w->head >= t->attention)
        vpt_self_attend(t, b->start);
}

/* The hot path: what finishes no packet, which is nearly all. */
static void on_block(unsigned cpu, void *data)
{
    const struct vpt_block *b = data, *from;
    struct vpt_self *t = self;
    uint64_t tnt;

    if (unlikely(!t || closing || b->handler || b->single))
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
        if (tnt >> VPT_TNT_BITS || !vpt_take_return(&t->writer, b->start))
            goto turn;
    } else if (from->ending > VPT_CALLS || b->start != from->target) {
        goto turn;
    } else if (from->ending == VPT_CALLS) {
        vpt_put_call(&t->writer, from->end);
    }
    t->writer.tnt = tnt;
    t->block = b;
    vpt_commit_bits(&t->writer, b->start);
    return;
turn:
    turn_block(cpu, b);
}

/* Where something is watched, accesses are told with the time their block began and the call they are in. */
static void on_watched_block(unsigned cpu, void *data)
{
    const struct vpt_block *b = data;

    if (self && self->block)
        vpt_watch_follow(self, self->block, b->start);
    on_block(cpu, data);
    if (self)
        self->block_tsc = __rdtscp(&self->block_cpu);
}

static void on_instruction(unsigned cpu, void *data)
{
    const struct vpt_instruction *i = data;

    (void)cpu;
    if (self && !closing)
        vpt_truth_add(&self->truth, i->ip, i->repeats);
}

static void on_memory(unsigned cpu, qemu_plugin_meminfo_t info, uint64_t address, void *data)
{
    (void)cpu;
    if (self && !closing)
        vpt_watch_access(self, data, address, 1u << qemu_plugin_mem_size_shift(info), qemu_plugin_mem_is_store(info));
}

/* ---- Translation ---- */

#define INSTRUCTION_MAX 15u

/* An instruction's bytes. */
struct bytes {
    uint8_t v[INSTRUCTION_MAX];
    size_t n;
};

static struct bytes bytes_of(const struct qemu_plugin_insn *insn)
{
    struct bytes b = {.n = qemu_plugin_insn_size(insn)};
    const void *at;

    if (b.n > INSTRUCTION_MAX)
        b.n = INSTRUCTION_MAX;
    at = qemu_plugin_insn_data(insn, b.v, b.n);
    if (!copies_code)
        memcpy(b.v, at, b.n);
    return b;
}

/* Per-instruction callbacks, where something asked for them. Lives as long as the process: a translated block may run
 * at any time. */
static void instrument(struct qemu_plugin_tb *tb, struct vpt_block *b, size_t n)
{
    struct vpt_instruction *list = calloc(n, sizeof(*list));

    b->list = list;
    for (size_t i = 0; list && i < n; i++) {
        struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
        struct bytes code = bytes_of(insn);
        struct vpt_traits traits = vpt_instruction_traits(code.v, code.n);

        list[i] = (struct vpt_instruction){
            .ip = qemu_plugin_insn_vaddr(insn), .atomic = traits.atomic, .repeats = traits.repeats};
        if (vpt_watch_any())
            vpt_watch_site(&list[i], guest_base);
        if (vpt_control->flags & VPT_TRUTH)
            qemu_plugin_register_vcpu_insn_exec_cb(insn, on_instruction, QEMU_PLUGIN_CB_NO_REGS, &list[i]);
        if (vpt_watch_any())
            qemu_plugin_register_vcpu_mem_cb(insn, on_memory, QEMU_PLUGIN_CB_NO_REGS, QEMU_PLUGIN_MEM_RW, &list[i]);
    }
}

static struct vpt_block *make_block(const struct qemu_plugin_tb *tb, size_t n)
{
    struct vpt_block *b = calloc(1, sizeof(*b));
    const struct qemu_plugin_insn *first = qemu_plugin_tb_get_insn(tb, 0), *last = qemu_plugin_tb_get_insn(tb, n - 1);
    struct bytes begins = bytes_of(first), ends = bytes_of(last);

    if (!b)
        return NULL;
    b->start = qemu_plugin_insn_vaddr(first);
    b->last = qemu_plugin_insn_vaddr(last);
    b->end = b->last + qemu_plugin_insn_size(last);
    b->instructions = (uint32_t)n;
    b->single = n == 1;
    b->first_traps = vpt_instruction_traits(begins.v, begins.n).divides;
    vpt_block_classify(b, ends.v, ends.n);
    return b;
}

static void remember(struct vpt_block *b)
{
    pthread_mutex_lock(&blocks_lock);
    b->handler = vpt_signals_is_handler(b->start);
    b->next = blocks;
    blocks = b;
    pthread_mutex_unlock(&blocks_lock);
}

static void remember_handler(uint64_t handler)
{
    pthread_mutex_lock(&blocks_lock);
    for (struct vpt_block *b = blocks; b; b = b->next)
        if (b->start == handler)
            b->handler = true;
    pthread_mutex_unlock(&blocks_lock);
}

/* The whole block's bytes: one after another in the host's memory, but for blocks that cross into another page. */
static void report_code(struct qemu_plugin_tb *tb, const struct vpt_block *b)
{
    const struct qemu_plugin_insn *first = qemu_plugin_tb_get_insn(tb, 0);

    if (!begun) {
        begun = true;
        guest_base = (uint64_t)(uintptr_t)qemu_plugin_insn_haddr(first) - b->start;
        vpt_images_begin(guest_base, after);
        vpt_signals_begin(guest_base);
    }
    if (begin() && !closing)
        vpt_images_translated(self, b->start, (const uint8_t *)(uintptr_t)(guest_base + b->start), b->end - b->start);
}

/* How many instructions the block really has. One that crosses into the next page is translated on its own, but
 * QEMU 7.2 leaves it in the list of the block before, with the bytes that it had read: the beginning of an instruction
 * is none. */
static size_t count(const struct qemu_plugin_tb *tb)
{
    size_t n = qemu_plugin_tb_n_insns(tb);
    const struct qemu_plugin_insn *last = n > 1 ? qemu_plugin_tb_get_insn(tb, n - 1) : NULL;

    struct bytes code = {.n = 0};

    if (last)
        code = bytes_of(last);
    if (last && !vpt_instruction_is_whole(code.v, code.n))
        n--;
    return n;
}

static void on_translation(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
    size_t n = count(tb);
    struct vpt_block *b = n ? make_block(tb, n) : NULL;

    (void)id;
    if (!b)
        return;
    report_code(tb, b);
    remember(b);
    qemu_plugin_register_vcpu_tb_exec_cb(tb, vpt_watch_any() ? on_watched_block : on_block, QEMU_PLUGIN_CB_NO_REGS, b);
    if (vpt_control->flags & VPT_TRUTH || vpt_watch_any())
        instrument(tb, b, n);
}

/* ---- System calls ---- */

static void follow_exec(struct vpt_self *t, uint64_t path, uint64_t argv, uint64_t envp)
{
    const char *program = (const char *)(uintptr_t)(guest_base + path);
    struct vpt_exec exec;
    bool follow = path && vpt_exec_can_follow(program, &exec);
    uint64_t tsc;

    if (!path || access(program, X_OK) < 0)
        return;
    vpt_event_note(t, VPT_EVENT_EXEC, t->syscall_tsc, follow, 0, 0, 0, program);
    if (!follow)
        return;
    tsc = __rdtsc();
    vpt_images_replaced(t, tsc);
    end();
    vpt_exec_follow(&exec, guest_base, argv, envp, folder, tsc);
    silent = false; /* it failed after all: go on in a new ring */
    if (begin())
        vpt_images_kept(self, __rdtsc());
}

static void on_syscall(qemu_plugin_id_t id, unsigned cpu, int64_t number, uint64_t a1, uint64_t a2, uint64_t a3,
                       uint64_t a4, uint64_t a5, uint64_t a6, uint64_t a7, uint64_t a8)
{
    struct vpt_self *t = self;
    uint64_t handler;

    (void)id, (void)cpu, (void)a7, (void)a8;
    if (!t || closing)
        return;
    t->syscall_tsc = vpt_now(); /* mappings change one tick later: no time belongs to both sides */
    memcpy(t->syscall_arguments, (uint64_t[]){a1, a2, a3, a4, a5, a6}, sizeof(t->syscall_arguments));
    if (t->block) {
        vpt_put_disable(&t->writer);
        vpt_put_tsc(&t->writer, t->syscall_tsc); /* it may wait: what ran before must not seem to have run after */
        t->block = NULL;
        vpt_commit(&t->writer, 0);
    }
    switch (number) {
    case SYS_exit:
        end();
        break;
    case SYS_exit_group:
        closing = true;
        end();
        break;
    case SYS_rt_sigaction:
        handler = vpt_signals_handler(a1, a2);
        if (handler)
            remember_handler(handler);
        break;
    case SYS_rt_sigreturn:
        note_returned(t);
        break;
    case SYS_execve:
        follow_exec(t, a1, a2, a3);
        break;
    case SYS_execveat: /* fexecve and its like, by descriptor, are named as lost: there is no path */
        follow_exec(t, a2, a3, a4);
        break;
    case SYS_munmap:
    case SYS_mremap:
        vpt_images_unmapped(t, a1, a2, t->syscall_tsc + 1);
        break;
    case SYS_mmap:
        if (a4 & MAP_FIXED_FLAG)
            vpt_images_unmapped(t, a1, a2, t->syscall_tsc + 1);
        break;
    default:
        break;
    }
}

static void on_syscall_return(qemu_plugin_id_t id, unsigned cpu, int64_t number, int64_t result)
{
    struct vpt_self *t = self;
    const uint64_t *a;

    (void)id, (void)cpu;
    if (!t || closing)
        return;
    a = t->syscall_arguments;
    switch (number) {
    case SYS_mmap:
        if (result > 0 && a[2] & PROT_EXEC_FLAG && (int32_t)a[4] >= 0)
            vpt_images_mapped(t, (uint64_t)result, (a[1] + VPT_PAGE - 1) & ~(uint64_t)(VPT_PAGE - 1),
                              t->syscall_tsc + 1);
        break;
    case SYS_clone:
    case SYS_clone3:
        if (result > 0)
            vpt_event_note(t, VPT_EVENT_CHILD, t->syscall_tsc, (uint64_t)result, 0, 0, 0, NULL);
        break;
    case SYS_prctl:
        if (a[0] == PR_SET_NAME)
            prctl(PR_GET_NAME, t->shared->name);
        break;
    default:
        break;
    }
}

/* ---- Fork and the end ---- */

static void before_fork(void)
{
    pthread_mutex_lock(&blocks_lock);
    vpt_images_fork_lock();
}

static void after_fork(void)
{
    vpt_images_fork_unlock();
    pthread_mutex_unlock(&blocks_lock);
}

/* The child writes nothing into its parent's rings: it gets its own with its first block. */
static void in_child(void)
{
    after_fork();
    if (!self)
        return;
    parent.pid = self->shared->pid;
    parent.tid = self->shared->tid;
    vpt_self_abandon(self);
    self = NULL;
}

/* The process dies of a signal, in the thread that got it. */
static void die(unsigned number)
{
    struct vpt_self *t = self;
    bool known;
    uint64_t ip;

    if (!t || closing)
        return;
    closing = true;
    ip = vpt_register_read(t->cpu, VPT_RIP);
    known = vpt_signals_faulted(t);
    if (t->block)
        interrupt(t, ip);
    vpt_commit(&t->writer, 0);
    vpt_event_note(t, VPT_EVENT_FAULT, __rdtsc(), ip, known ? t->fault.address : 0,
                   number | (known ? (uint64_t)(unsigned)t->fault.code << 32 : 0), known, NULL);
    end();
}

/* ---- Beginning ---- */

static unsigned deadly_signal(const char *text, size_t size)
{
    char copy[64];
    const char *at = (const char *)memmem(text, size, DEADLY, strlen(DEADLY)) + strlen(DEADLY);

    snprintf(copy, sizeof(copy), "%.*s", (int)(text + size - at), at);
    return (unsigned)strtoul(copy, NULL, 10);
}

/* QEMU's own words must not mix with the target's: the target writes to descriptor 2, QEMU to the stream. The line that
 * it prints before it kills itself, in the thread that failed and with its registers in place, is also the only word
 * that a plugin gets of a deadly signal. */
static ssize_t keep_log(void *cookie, const char *text, size_t size)
{
    uint32_t at = atomic_fetch_add(&vpt_control->log_size, (uint32_t)size);

    (void)cookie;
    if (memmem(text, size, DEADLY, strlen(DEADLY)))
        die(deadly_signal(text, size));
    if (at < sizeof(vpt_control->log))
        memcpy(vpt_control->log + at, text,
               size < sizeof(vpt_control->log) - at ? size : sizeof(vpt_control->log) - at);
    return (ssize_t)size;
}

static void take_stderr(void)
{
    FILE *log = fopencookie(NULL, "w", (cookie_io_functions_t){.write = keep_log});

    if (!log)
        return;
    setvbuf(log, NULL, _IOLBF, 0);
    stderr = log;
}

static void parse(int argc, char **argv)
{
    for (int i = 0; i < argc; i++) {
        if (strncmp(argv[i], "dir=", 4) == 0)
            snprintf(folder, sizeof(folder), "%s", argv[i] + 4);
        else if (strncmp(argv[i], "after=", 6) == 0)
            after = strtoull(argv[i] + 6, NULL, 10);
    }
}

/* QEMU reads qemu_plugin_version once this ran, and before it tells its own: 9.0 and later refuse version 1, and 2 is
 * the least that they take. */
__attribute__((constructor)) static void choose_version(void)
{
    if (vpt_registers_are_offered())
        qemu_plugin_version = 2;
}

__attribute__((visibility("default"))) int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int argc,
                                                               char **argv)
{
    parse(argc, argv);
    copies_code = info->version.cur >= 3;
    if (info->system_emulation || strcmp(info->target_name, "x86_64") != 0 || vpt_control_open(folder) < 0) {
        if (vpt_registers_find()) /* etch takes this to mean that it can be loaded */
            fprintf(stderr, "etch-vpt: not started by etch record\n");
        return -1;
    }
    take_stderr();
    if (!vpt_registers_find()) { /* then a signal could not be told from a jump, and the trace would lie */
        fprintf(stderr, "this QEMU hides the guest's registers from plugins\n");
        return -1;
    }
    pthread_atfork(before_fork, after_fork, in_child);
    qemu_plugin_register_vcpu_tb_trans_cb(id, on_translation);
    qemu_plugin_register_vcpu_syscall_cb(id, on_syscall);
    qemu_plugin_register_vcpu_syscall_ret_cb(id, on_syscall_return);
    return 0;
}
