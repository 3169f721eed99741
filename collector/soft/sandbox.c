/* SPDX-License-Identifier: MIT */
/* The software recorder's runtime: a program may forbid itself to read the time stamp counter, and system calls. */
#include "collector/soft/chunk.h"
#include "collector/soft/death.h"

#include <linux/prctl.h>
#include <linux/seccomp.h>

/* After either the time stamp counter may not be read. A program that makes the system call itself is not seen. */
static bool forbids_time(int option, unsigned long value)
{
    return (option == PR_SET_TSC && value == PR_TSC_SIGSEGV) ||
           (option == PR_SET_SECCOMP && value == SECCOMP_MODE_STRICT);
}

/* Either comes before a filter of system calls. */
static bool begins_sandbox(int option)
{
    return option == PR_SET_NO_NEW_PRIVS || option == PR_SET_SECCOMP;
}

static void note_name(const char *name)
{
    for (size_t i = 0; etch_soft_ring && i + 1 < sizeof(etch_soft_ring->name); i++)
        if (!(etch_soft_ring->name[i] = name[i]))
            break;
}

__attribute__((weak, visibility("default"))) int prctl(int option, unsigned long a, unsigned long b, unsigned long c,
                                                       unsigned long d);
int prctl(int option, unsigned long a, unsigned long b, unsigned long c, unsigned long d)
{
    struct etch_soft_pool *pool = etch_soft_recorder.pool;
    uint32_t before = etch_soft_quiet;
    long result;

    if (begins_sandbox(option))
        etch_soft_leave_signals();
    if (forbids_time(option, a)) {
        *(volatile uint32_t *)&etch_soft_quiet = 1;
        if (etch_soft_quieting)
            etch_soft_quieting();
    }
    result = call6(__NR_prctl, option, (long)a, (long)b, (long)c, (long)d, 0);
    if (result >= 0 || result < -4095) {
        if (pool && etch_soft_quiet)
            pool->untimed = 1;
        if (option == PR_SET_NAME)
            note_name((const char *)a);
        return (int)result;
    }
    etch_soft_quiet = before;
    if (__errno_location)
        *__errno_location() = (int)-result;
    return -1;
}
