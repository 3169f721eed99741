/* SPDX-License-Identifier: MIT */
/* A run under a debugger. The program waits for the debugger before it begins, and calls lab_halt_here(), at which the
 * debugger has a breakpoint, at the point or the moment that was asked for and at the end that the lab knows of. A
 * debugger stops all threads, so it changes no schedule; but time passes meanwhile, and away.c must not mind. */
#include "collector/lab/runtime.h"

#include <sys/prctl.h>
#include <sys/syscall.h>

static __attribute__((noinline)) void lab_halt_here(void)
{
    __asm__ volatile("" ::: "memory");
}

void lab_halt_await(struct etch_lab_shared *shared)
{
    const struct timespec while_waiting = {0, 1000000};

    shared->halt_here = LAB_OBJECT(&lab_halt_here);
    shared->halt_attached_at = LAB_OBJECT(&shared->halt_attached);
    shared->halt_site_at = LAB_OBJECT(&shared->halt_site);
    shared->halt_plain_at = LAB_OBJECT(&shared->halt_plain);
    shared->halt_first = LAB_OBJECT(&lab_first_edge);
    shared->halt_last = LAB_OBJECT(&lab_last_edge);
    lab_real_syscall(SYS_prctl, (long)PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0L, 0L, 0L);
    __atomic_store_n(&shared->halt_waits, 1, __ATOMIC_RELEASE); /* pairs with the acquire in debug.c */
    while (!__atomic_load_n(&shared->halt_attached, __ATOMIC_ACQUIRE))
        lab_real_syscall(SYS_nanosleep, &while_waiting, NULL);
}

void lab_halt(void)
{
    lab->halt_site = lab->thread[lab_me].site;
    lab->halt_plain = lab_threads[lab_me].plain;
    lab->halted++;
    lab_halt_here();
}

void lab_halt_if_due(bool at_point)
{
    struct lab_thread *t = &lab_threads[lab_me];

    if (!lab->debugged || (!t->halts && !(at_point && lab->points == lab->halt_point)))
        return;
    t->halts = false;
    lab_halt();
}
