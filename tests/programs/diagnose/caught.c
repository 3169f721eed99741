/* SPDX-License-Identifier: MIT */
/* Fails at a null pointer, which a handler of its own catches: it ends with a status, as many programs do. With an
 * argument the handler ends it by abort(); with two, an earlier fault is repaired, and has no part in the failure. */
#include "turn.h"

#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

static char *page;
static int *volatile list[4];
static int how;

static void on_fault(int number, siginfo_t *info, void *context)
{
    (void)number, (void)context;
    if (info->si_addr == page) {
        mprotect(page, 4096, PROT_READ | PROT_WRITE);
        return;
    }
    if (how == 1)
        abort();
    _exit(3);
}

static int sum(int n)
{
    int total = 0;

    for (int i = 0; i < n; i++)
        total += *list[i]; //@fault
    return total;
}

int main(int argc, char **argv)
{
    struct sigaction act = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
    int one = 1;

    (void)argv;
    how = argc - 1;
    page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    sigaction(SIGSEGV, &act, NULL);
    if (how == 2)
        *page = 1; //@repaired
    for (int i = 0; i < 4; i++)
        list[i] = &one;
    if (turn() % 2)
        list[2] = NULL; //@null
    return sum(4) == 4 ? 0 : 1;
}
