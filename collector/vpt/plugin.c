/* SPDX-License-Identifier: MIT OR GPL-2.0-or-later */
/* vpt, the QEMU plugin: records each guest thread as an Intel CPU with PT would while it traces user code only
 * (flow.c). Here are the plugin's beginning and end, and the guest's system calls. */
#include "collector/vpt/exec.h"
#include "collector/vpt/flow.h"
#include "collector/vpt/images.h"
#include "collector/vpt/qemu_plugin.h"
#include "collector/vpt/registers.h"
#include "collector/vpt/signals.h"
#include "collector/vpt/translation.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

__attribute__((visibility("default"))) int qemu_plugin_version = 1;

enum { MAP_FIXED_FLAG = 0x10, PROT_EXEC_FLAG = 4 };

#define DEADLY "uncaught target signal"

static char folder[256];
static uint64_t after; /* of the exec that brought this program here; 0: the first program */

/* ---- System calls ---- */

static void follow_exec(struct etch_vpt_self *t, uint64_t path, uint64_t argv, uint64_t envp)
{
    const char *program = (const char *)(uintptr_t)(etch_vpt_process.guest_base + path);
    struct etch_vpt_exec exec;
    bool follow = path && etch_vpt_exec_can_follow(program, &exec);
    uint64_t tsc;

    if (!path || access(program, X_OK) < 0)
        return;
    etch_vpt_event_note(t, VPT_EVENT_EXEC, t->syscall_tsc, follow, 0, 0, 0, program);
    if (!follow)
        return;
    tsc = __rdtsc();
    etch_vpt_images_replaced(t, tsc);
    etch_vpt_flow_end();
    etch_vpt_exec_follow(&exec, etch_vpt_process.guest_base, argv, envp, folder, tsc);
    if (etch_vpt_flow_resume()) /* it failed after all: go on in a new ring */
        etch_vpt_images_kept(etch_vpt_flow_self, __rdtsc());
}

static void on_syscall(qemu_plugin_id_t id, unsigned cpu, int64_t number, uint64_t a1, uint64_t a2, uint64_t a3,
                       uint64_t a4, uint64_t a5, uint64_t a6, uint64_t a7, uint64_t a8)
{
    struct etch_vpt_self *t = etch_vpt_flow_self;
    uint64_t handler;

    (void)id, (void)cpu, (void)a7, (void)a8;
    if (!t || etch_vpt_process.closing)
        return;
    t->syscall_tsc = etch_vpt_now(); /* mappings change one tick later: no time belongs to both sides */
    memcpy(t->syscall_arguments, (uint64_t[]){a1, a2, a3, a4, a5, a6}, sizeof(t->syscall_arguments));
    if (t->block) {
        etch_vpt_put_disable(&t->writer);
        etch_vpt_put_tsc(&t->writer, t->syscall_tsc); /* it may wait: what ran before must not seem to have run after */
        t->block = NULL;
        etch_vpt_commit(&t->writer, 0);
    }
    switch (number) {
    case SYS_exit:
        etch_vpt_flow_end();
        break;
    case SYS_exit_group:
        etch_vpt_process.closing = true;
        etch_vpt_flow_end();
        break;
    case SYS_rt_sigaction:
        handler = etch_vpt_signals_handler(a1, a2);
        if (handler)
            etch_vpt_translation_handler(handler);
        break;
    case SYS_rt_sigreturn:
        etch_vpt_flow_signal_returns(t);
        break;
    case SYS_execve:
        follow_exec(t, a1, a2, a3);
        break;
    case SYS_execveat: /* fexecve and its like, by descriptor, are named as lost: there is no path */
        follow_exec(t, a2, a3, a4);
        break;
    case SYS_munmap:
    case SYS_mremap:
        etch_vpt_images_unmapped(t, a1, a2, t->syscall_tsc + 1);
        break;
    case SYS_mmap:
        if (a4 & MAP_FIXED_FLAG)
            etch_vpt_images_unmapped(t, a1, a2, t->syscall_tsc + 1);
        break;
    default:
        break;
    }
}

static void on_syscall_return(qemu_plugin_id_t id, unsigned cpu, int64_t number, int64_t result)
{
    struct etch_vpt_self *t = etch_vpt_flow_self;
    const uint64_t *a;

    (void)id, (void)cpu;
    if (!t || etch_vpt_process.closing)
        return;
    a = t->syscall_arguments;
    switch (number) {
    case SYS_mmap:
        if (result > 0 && a[2] & PROT_EXEC_FLAG && (int32_t)a[4] >= 0)
            etch_vpt_images_mapped(t, (uint64_t)result, (a[1] + VPT_PAGE - 1) & ~(uint64_t)(VPT_PAGE - 1),
                                   t->syscall_tsc + 1);
        break;
    case SYS_clone:
    case SYS_clone3:
        if (result > 0)
            etch_vpt_event_note(t, VPT_EVENT_CHILD, t->syscall_tsc, (uint64_t)result, 0, 0, 0, NULL);
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
    etch_vpt_translation_fork_lock();
    etch_vpt_images_fork_lock();
}

static void after_fork(void)
{
    etch_vpt_images_fork_unlock();
    etch_vpt_translation_fork_unlock();
}

static void in_child(void)
{
    after_fork();
    etch_vpt_flow_forked();
}

/* The process dies of a signal, in the thread that got it. */
static void die(unsigned number)
{
    struct etch_vpt_self *t = etch_vpt_flow_self;
    bool known;
    uint64_t ip;

    if (!t || etch_vpt_process.closing)
        return;
    etch_vpt_process.closing = true;
    ip = etch_vpt_register_read(t->cpu, VPT_RIP);
    known = etch_vpt_signals_faulted(t);
    if (t->block)
        etch_vpt_flow_interrupt(t, ip);
    etch_vpt_commit(&t->writer, 0);
    etch_vpt_event_note(t, VPT_EVENT_FAULT, __rdtsc(), ip, known ? t->fault.address : 0,
                        number | (known ? (uint64_t)(unsigned)t->fault.code << 32 : 0), known, NULL);
    etch_vpt_flow_end();
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
    uint32_t at = atomic_fetch_add(&etch_vpt_control->log_size, (uint32_t)size);

    (void)cookie;
    if (memmem(text, size, DEADLY, strlen(DEADLY)))
        die(deadly_signal(text, size));
    if (at < sizeof(etch_vpt_control->log))
        memcpy(etch_vpt_control->log + at, text,
               size < sizeof(etch_vpt_control->log) - at ? size : sizeof(etch_vpt_control->log) - at);
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
    if (etch_vpt_registers_are_offered())
        qemu_plugin_version = 2;
}

__attribute__((visibility("default"))) int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int argc,
                                                               char **argv)
{
    parse(argc, argv);
    etch_vpt_translation_begin(after, info->version.cur >= 3);
    if (info->system_emulation || strcmp(info->target_name, "x86_64") != 0 || etch_vpt_control_open(folder) < 0) {
        if (etch_vpt_registers_find()) /* etch reads this line as: the plugin can be loaded */
            fprintf(stderr, "etch-vpt: not started by etch record\n");
        return -1;
    }
    take_stderr();
    if (!etch_vpt_registers_find()) { /* without registers a signal looks like a jump, and the trace would be wrong */
        fprintf(stderr, "this QEMU hides the guest's registers from plugins\n");
        return -1;
    }
    pthread_atfork(before_fork, after_fork, in_child);
    qemu_plugin_register_vcpu_tb_trans_cb(id, etch_vpt_translation_on);
    qemu_plugin_register_vcpu_syscall_cb(id, on_syscall);
    qemu_plugin_register_vcpu_syscall_ret_cb(id, on_syscall_return);
    return 0;
}
