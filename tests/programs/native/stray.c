/* SPDX-License-Identifier: MIT */
/* stray [own]: gets a SIGTRAP like that of a debug trap whose cause the kernel was not told; with an argument, by an instruction
 * of its own. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

volatile long watched;

int main(int argc, char **argv)
{
    siginfo_t info = {.si_signo = SIGTRAP, .si_code = TRAP_BRKPT};

    (void)argv;
    watched = 1;
    if (argc > 1)
        __asm__ volatile(".byte 0xf1");
    else if (syscall(SYS_rt_tgsigqueueinfo, getpid(), getpid(), SIGTRAP, &info) < 0)
        return 1;
    watched = 2;
    printf("alive\n");
    return 0;
}
