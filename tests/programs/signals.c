/* SPDX-License-Identifier: MIT */
/* Signals of each sort: raised by the thread itself, memory faults that a handler mends, divisions that it steps over,
 * a trap instruction, several at once, a handler on its own stack that jumps out, and timer ticks in the middle of
 * loops. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <ucontext.h>
#include <unistd.h>

static volatile sig_atomic_t raised, mended, divided, trapped, ticks, both;
static char *page;
static sigjmp_buf out;

static void on_raise(int n)
{
    (void)n;
    raised++;
}

static void on_both(int n)
{
    both = both * 100 + n;
}

static void on_fault(int n, siginfo_t *info, void *context)
{
    (void)n, (void)info, (void)context;
    mprotect(page, 4096, PROT_READ | PROT_WRITE);
    mended++;
}

static void on_division(int n, siginfo_t *info, void *context)
{
    ucontext_t *uc = context;

    (void)n, (void)info;
    uc->uc_mcontext.gregs[REG_RIP] += 2; /* div %ecx */
    divided++;
}

static void on_trap(int n)
{
    (void)n;
    trapped++;
}

static void on_jump(int n)
{
    (void)n;
    siglongjmp(out, 1);
}

static void on_tick(int n)
{
    (void)n;
    ticks++;
}

static void handle(int n, void (*simple)(int), void (*full)(int, siginfo_t *, void *), int flags)
{
    struct sigaction act;

    memset(&act, 0, sizeof(act));
    act.sa_flags = flags;
    if (full) {
        act.sa_sigaction = full;
        act.sa_flags |= SA_SIGINFO;
    } else {
        act.sa_handler = simple;
    }
    sigaction(n, &act, NULL);
}

static __attribute__((noinline)) void divide(void)
{
    __asm__ volatile("xor %%edx, %%edx; mov $5, %%eax; xor %%ecx, %%ecx; div %%ecx" ::: "eax", "ecx", "edx");
}

static void several(void)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigaddset(&set, SIGUSR2);
    handle(SIGUSR1, on_both, NULL, 0);
    handle(SIGUSR2, on_both, NULL, 0);
    sigprocmask(SIG_BLOCK, &set, NULL);
    raise(SIGUSR1);
    raise(SIGUSR2);
    sigprocmask(SIG_UNBLOCK, &set, NULL);
}

static int faults(void)
{
    int sum = 0;

    page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < 20; i++) {
        mprotect(page, 4096, PROT_NONE);
        for (int j = 0; j < 3; j++)
            sum += page[j]++;
    }
    return sum;
}

static void jump_out(void)
{
    static char stack[65536];
    stack_t alternative = {.ss_sp = stack, .ss_size = sizeof(stack)};

    sigaltstack(&alternative, NULL);
    handle(SIGSEGV, on_jump, NULL, SA_ONSTACK);
    if (sigsetjmp(out, 1) == 0)
        *(volatile int *)8 = 1;
}

static unsigned spin(void)
{
    struct itimerval every = {{0, 1000}, {0, 1000}};
    unsigned n = 0;

    setitimer(ITIMER_REAL, &every, NULL);
    while (ticks < 20)
        n += n * 7 + 1;
    memset(&every, 0, sizeof(every));
    setitimer(ITIMER_REAL, &every, NULL);
    return n;
}

int main(void)
{
    int sum;

    handle(SIGHUP, on_raise, NULL, 0);
    handle(SIGSEGV, NULL, on_fault, 0);
    handle(SIGFPE, NULL, on_division, 0);
    handle(SIGTRAP, on_trap, NULL, 0);
    handle(SIGALRM, on_tick, NULL, SA_RESTART);
    for (int i = 0; i < 10; i++)
        raise(SIGHUP);
    sum = faults();
    for (int i = 0; i < 5; i++)
        divide();
    __asm__ volatile("int3");
    several();
    jump_out();
    spin();
    printf("signals %d %d %d %d %d %d\n", raised, mended, divided, trapped, both, sum);
    return 0;
}
