/* SPDX-License-Identifier: MIT */
/* Ends in the way that its argument names, and prints what the program can see of its signals. For sketch_rings.sh. */
#define _GNU_SOURCE
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile int zero, handled;
static volatile char sink;
static int *volatile nowhere;
static struct sigaction before;
static sigjmp_buf out;
static char own_stack[65536];

static void say(const char *what)
{
    if (write(1, what, strlen(what)) < 0)
        _exit(99);
}

__attribute__((noinline)) static void fault(void)
{
    *nowhere = 1; /*@fault*/
}

__attribute__((noinline)) static int deep(int n)
{
    char room[512];

    memset(room, n, sizeof(room));
    sink = room[n & 511];
    return n < 0 ? 0 : deep(n + 1) + room[n % 512];
}

/* ---- Handlers of the program ---- */

static void own(int n)
{
    (void)n;
    say("own\n");
    _exit(7);
}

static void leave(int n)
{
    (void)n;
    handled++;
    siglongjmp(out, 1);
}

static void again(int n)
{
    say("again\n");
    signal(n, SIG_DFL);
    raise(n);
}

static void chained(int n, siginfo_t *info, void *context)
{
    say("chained\n");
    if (before.sa_flags & SA_SIGINFO)
        before.sa_sigaction(n, info, context);
    else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN)
        before.sa_handler(n);
    else
        sigaction(n, &before, NULL);
}

static void large(int n)
{
    char local[300000]; /* more than an alternate stack of somebody else may have */

    memset(local, n, sizeof(local));
    sink = local[n];
    handled++;
}

/* A program that asks the kernel, past libc. */
struct kernel_action {
    void *handler;
    unsigned long flags;
    void *restorer;
    unsigned long mask;
};
static struct kernel_action raw_before;

static void raw_chained(int n, siginfo_t *info, void *context)
{
    if (handled++ > 3)
        _exit(55);
    if (raw_before.handler)
        ((void (*)(int, siginfo_t *, void *))raw_before.handler)(n, info, context);
    else
        signal(n, SIG_DFL);
}

static void handle(int n, void (*handler)(int), int flags)
{
    struct sigaction a = {.sa_handler = handler, .sa_flags = flags};

    sigaction(n, &a, NULL);
}

static void handle_chained(int n, void (*handler)(int, siginfo_t *, void *))
{
    struct sigaction a = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};

    sigaction(n, &a, &before);
}

/* ---- Ends ---- */

static void with_signal(const char *how)
{
    sigset_t set;

    sigemptyset(&set);
    if (!strcmp(how, "own")) {
        signal(SIGSEGV, own);
        fault();
    } else if (!strcmp(how, "again")) {
        signal(SIGSEGV, again);
        fault();
    } else if (!strcmp(how, "ignored")) {
        signal(SIGABRT, SIG_IGN);
        raise(SIGABRT);
        exit(3);
    } else if (!strcmp(how, "blocked")) {
        sigaddset(&set, SIGSEGV);
        sigprocmask(SIG_BLOCK, &set, NULL);
        fault();
    } else if (!strcmp(how, "pending")) {
        sigaddset(&set, SIGABRT);
        sigprocmask(SIG_BLOCK, &set, NULL);
        raise(SIGABRT);
        exit(4);
    } else if (!strcmp(how, "chain")) {
        handle_chained(SIGSEGV, chained);
        fault();
    } else if (!strcmp(how, "chain-abort")) {
        handle_chained(SIGABRT, chained);
        abort();
    } else if (!strcmp(how, "chain-raw")) {
        syscall(SYS_rt_sigaction, SIGSEGV, NULL, &raw_before, 8);
        handle_chained(SIGSEGV, raw_chained);
        fault();
    } else if (!strcmp(how, "restored")) {
        sigaction(SIGSEGV, NULL, &before);
        signal(SIGSEGV, own);
        sigaction(SIGSEGV, &before, NULL);
        fault();
    } else if (!strcmp(how, "jump")) {
        signal(SIGSEGV, leave);
        if (!sigsetjmp(out, 1))
            fault();
        signal(SIGSEGV, SIG_DFL);
        fault();
    }
}

static void with_stack(const char *how)
{
    stack_t s = {.ss_sp = own_stack, .ss_size = sizeof(own_stack)};

    if (!strcmp(how, "stack")) {
        sigaltstack(&s, NULL);
        handle(SIGSEGV, own, SA_ONSTACK);
        deep(0);
    } else if (!strcmp(how, "on-stack")) {
        handle(SIGUSR1, large, SA_ONSTACK);
        raise(SIGUSR1);
        sigaltstack(NULL, &s);
        printf("%d %d\n", handled, s.ss_flags);
        exit(handled);
    } else if (!strcmp(how, "deep")) {
        deep(0);
    }
}

static void by_fault(const char *how)
{
    FILE *empty;

    if (!strcmp(how, "segv"))
        fault();
    else if (!strcmp(how, "gp"))
        *(volatile int *)0x8000000000000000ul = 1;
    else if (!strcmp(how, "bus") && (empty = tmpfile()))
        sink = *(volatile char *)mmap(NULL, 4096, PROT_READ, MAP_SHARED, fileno(empty), 0);
    else if (!strcmp(how, "ill"))
        __asm__ volatile("ud2");
    else if (!strcmp(how, "trap"))
        __asm__ volatile("int3");
    else if (!strcmp(how, "fpe"))
        printf("%d\n", 1 / zero);
}

static void by_signal(const char *how)
{
    if (!strcmp(how, "abort"))
        abort();
    else if (!strcmp(how, "raise-segv"))
        raise(SIGSEGV);
    else if (!strcmp(how, "raise-abrt"))
        raise(SIGABRT);
    else if (!strcmp(how, "raise-sys"))
        raise(SIGSYS);
    else if (!strcmp(how, "kill-bus"))
        kill(getpid(), SIGBUS);
    else if (!strcmp(how, "term"))
        raise(SIGTERM);
    else if (!strcmp(how, "outside"))
        for (say("ready\n");;)
            pause();
}

static void *thread(void *how)
{
    if (!strcmp(how, "thread-segv"))
        fault();
    else if (!strcmp(how, "thread-abort"))
        abort();
    else if (!strcmp(how, "thread-deep"))
        deep(0);
    return how;
}

static void in_other(char *how)
{
    pthread_t t;
    int status;

    if (!strncmp(how, "thread", 6)) {
        pthread_create(&t, NULL, thread, how);
        pthread_join(t, NULL);
        return;
    }
    if (!strcmp(how, "fork") && fork() == 0)
        fault();
    else if (!strcmp(how, "vfork") && vfork() == 0)
        fault();
    else if (!strcmp(how, "fork-exit") && fork() == 0)
        exit(8);
    if (!strcmp(how, "fork") || !strcmp(how, "vfork") || !strcmp(how, "fork-exit")) {
        wait(&status);
        printf("%x\n", status);
        exit(5);
    }
}

/* Nothing that a signal handler needs is allowed. */
static void in_sandbox(const char *how)
{
    struct sock_filter code[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
                                 BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 0, 1),
                                 BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
                                 BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)};
    struct sock_fprog program = {sizeof(code) / sizeof(code[0]), code};

    if (!strcmp(how, "strict")) {
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT, 0, 0, 0);
        fault();
    } else if (!strcmp(how, "filter")) {
        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program);
        fault();
    }
}

static void show(void)
{
    static const int all[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP, SIGSYS, SIGTERM};
    struct sigaction a;
    stack_t s;

    for (unsigned i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        memset(&a, 0x55, sizeof(a));
        sigaction(all[i], NULL, &a);
        printf("%d %p %x %d %p\n", all[i], (void *)a.sa_handler, a.sa_flags, sigismember(&a.sa_mask, SIGINT),
               (void *)signal(all[i], SIG_DFL));
    }
    sigaltstack(NULL, &s);
    printf("%p %zu %d\n", s.ss_sp, s.ss_size, s.ss_flags);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    char *how = argc > 1 ? argv[1] : "";

    show();
    by_fault(how);
    by_signal(how);
    with_signal(how);
    with_stack(how);
    in_other(how);
    in_sandbox(how);
    return !strcmp(how, "exit") ? 42 : 0;
}
