/* SPDX-License-Identifier: MIT */
/* The process in the lab: its number, its children, random numbers. A run that is repeated gets the numbers of the
 * first run. */
#include "collector/lab/descriptor.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHILDREN 256

/* The numbers of children in the first run, and in this one. */
static struct {
    pid_t given, real;
} children[CHILDREN];
static uint32_t n_children;

static pid_t real_child(pid_t given)
{
    for (uint32_t i = n_children; i-- > 0;)
        if (children[i].given == given)
            return children[i].real;
    return -1;
}

/* ---- Numbers ---- */

static pid_t get_number(long call)
{
    return (pid_t)LAB_ANSWERED_BY(lab_input_way_of(ETCH_LAB_PROCESSES), ETCH_LAB_CALL_PROCESS, (int)call,
                                  lab_real_syscall(call));
}

LAB_API pid_t getpid(void);
pid_t getpid(void)
{
    LAB_ENTER();
    return get_number(SYS_getpid);
}

LAB_API pid_t getppid(void);
pid_t getppid(void)
{
    LAB_ENTER();
    return get_number(SYS_getppid);
}

LAB_API pid_t gettid(void);
pid_t gettid(void)
{
    LAB_ENTER();
    return get_number(SYS_gettid);
}

/* The program may have its number from the first run. A process of that number is a stranger now. */
LAB_API int kill(pid_t pid, int number);
int kill(pid_t pid, int number)
{
    enum lab_way way;
    pid_t own;

    LAB_ENTER();
    way = lab_input_way_of(ETCH_LAB_PROCESSES);
    own = (pid_t)lab_real_syscall(SYS_getpid);
    if (way == LAB_ASK)
        return pid == own && lab_controlled() ? lab_signals_kill_self(number, LAB_SITE) : lab_real_kill(pid, number);
    if (way == LAB_KEEP) {
        int result;

        lab_input_keep(ETCH_LAB_CALL_PROCESS, SYS_kill, pid == own || pid == 0, NULL, 0, 0);
        result = pid == own ? lab_signals_kill_self(number, LAB_SITE) : lab_real_kill(pid, number);
        return (int)lab_input_keep(ETCH_LAB_CALL_PROCESS, SYS_kill, result, NULL, 0, 0);
    }
    if (lab_input_take(ETCH_LAB_CALL_PROCESS, SYS_kill, NULL, 0))
        lab_signals_kill_self(number, LAB_SITE);
    else if (real_child(pid) > 0)
        lab_real_kill(real_child(pid), number);
    return (int)lab_input_take(ETCH_LAB_CALL_PROCESS, SYS_kill, NULL, 0);
}

/* ---- Children ---- */

/* Pipes that a child shares with its parent lead outside from now on. */
LAB_API pid_t fork(void);
pid_t fork(void)
{
    enum lab_way way;
    pid_t pid, given;
    bool mine;

    LAB_ENTER();
    mine = lab_controlled();
    if (mine)
        lab_point((struct etch_lab_op){0}, LAB_SITE);
    pid = lab_real_fork();
    if (pid == 0 && mine)
        lab_control_child();
    else if (pid == 0)
        lab = NULL;
    if (!lab || pid <= 0)
        return pid;
    lab->forks++;
    lab_input_shared_inner();
    way = lab_input_way_of(ETCH_LAB_PROCESSES);
    given = way == LAB_GIVE ? (pid_t)lab_input_take(ETCH_LAB_CALL_PROCESS, SYS_fork, NULL, 0) : pid;
    if (way == LAB_KEEP)
        lab_input_keep(ETCH_LAB_CALL_PROCESS, SYS_fork, pid, NULL, 0, 0);
    if (way == LAB_GIVE && n_children < CHILDREN) {
        children[n_children].given = given;
        children[n_children++].real = pid;
    }
    return given;
}

/* The child is waited for again too: it may write to files that the program reads. */
static pid_t wait_again(int *status)
{
    struct iovec part = {status, sizeof(*status)};
    pid_t got = (pid_t)lab_input_take(ETCH_LAB_CALL_WAIT, -1, &part, 1);
    int error = errno;

    if (real_child(got) > 0)
        lab_real_waitpid(real_child(got), NULL, 0);
    errno = error;
    return got;
}

static pid_t wait_for(pid_t pid, int *status, int flags)
{
    struct iovec part = {status, sizeof(*status)};
    enum lab_way way = lab_input_way_of(ETCH_LAB_PROCESSES);
    pid_t got;

    if (way == LAB_GIVE)
        return wait_again(status);
    got = lab_real_waitpid(pid, status, flags);
    return way == LAB_KEEP ? (pid_t)lab_input_keep(ETCH_LAB_CALL_WAIT, -1, got, &part, 1, sizeof(*status)) : got;
}

/* Most children end soon, and then each run is the same: the thread keeps the baton while it waits. If the wait takes
 * long, another thread takes the baton (away.c). */
static void begin_patience(uint64_t site)
{
    if (!lab_controlled())
        return;
    lab_yield(site);
    lab_threads[lab_me].patient = true;
}

static void end_patience(void)
{
    if (lab)
        lab_threads[lab_me].patient = false;
}

LAB_API pid_t waitpid(pid_t pid, int *status, int flags);
pid_t waitpid(pid_t pid, int *status, int flags)
{
    int unused = 0;
    pid_t got;

    LAB_ENTER();
    begin_patience(LAB_SITE);
    got = wait_for(pid, status ? status : &unused, flags);
    end_patience();
    return got;
}

LAB_API pid_t wait4(pid_t pid, int *status, int flags, struct rusage *usage);
pid_t wait4(pid_t pid, int *status, int flags, struct rusage *usage)
{
    pid_t got;

    if (!usage)
        return waitpid(pid, status, flags);
    LAB_ENTER();
    begin_patience(LAB_SITE);
    got = lab_real_wait4(pid, status, flags, usage);
    end_patience();
    return got;
}

LAB_API int waitid(idtype_t type, id_t id, siginfo_t *info, int flags);
int waitid(idtype_t type, id_t id, siginfo_t *info, int flags)
{
    int result;

    LAB_ENTER();
    begin_patience(LAB_SITE);
    result = lab_real_waitid(type, id, info, flags);
    end_patience();
    return result;
}

/* Another thread may hold the lock by another descriptor. */
LAB_API int flock(int fd, int operation);
int flock(int fd, int operation)
{
    int result;

    LAB_ENTER();
    if (!lab_controlled() || operation & (LOCK_NB | LOCK_UN))
        return lab_real_flock(fd, operation);
    while ((result = lab_real_flock(fd, operation | LOCK_NB)) < 0 && errno == EWOULDBLOCK)
        lab_yield(LAB_SITE);
    return result;
}

LAB_API pid_t wait(int *status);
pid_t wait(int *status)
{
    return waitpid(-1, status, 0);
}

/* ---- Random numbers ---- */

LAB_API ssize_t getrandom(void *to, size_t n, unsigned flags);
ssize_t getrandom(void *to, size_t n, unsigned flags)
{
    struct iovec part = {to, n};
    enum lab_way way;
    ssize_t got;

    LAB_ENTER();
    way = lab_input_way_of(ETCH_LAB_RANDOM_NUMBERS);
    got = way == LAB_GIVE ? lab_input_take(ETCH_LAB_CALL_RANDOM, -1, &part, 1) : lab_real_getrandom(to, n, flags);
    return way == LAB_KEEP ? lab_input_keep(ETCH_LAB_CALL_RANDOM, -1, got, &part, 1, LAB_GOT(got)) : got;
}

LAB_API int getentropy(void *to, size_t n);
int getentropy(void *to, size_t n)
{
    if (n > 256) {
        errno = EIO;
        return -1;
    }
    return getrandom(to, n, 0) == (ssize_t)n ? 0 : -1;
}

LAB_API uint32_t arc4random(void);
uint32_t arc4random(void)
{
    uint32_t number = 0;

    return getrandom(&number, sizeof(number), 0) == sizeof(number) ? number : 0;
}

LAB_API void arc4random_buf(void *to, size_t n);
void arc4random_buf(void *to, size_t n)
{
    for (size_t i = 0; i < n; i += 256)
        getrandom((char *)to + i, n - i < 256 ? n - i : 256, 0);
}

/* std::random_device: the C++ library asks the CPU. */
LAB_API uint32_t lab_random_device(void *self) __asm__("_ZNSt13random_device9_M_getvalEv");
uint32_t lab_random_device(void *self)
{
    static uint32_t (*real)(void *);
    uint32_t number = 0;
    struct iovec part = {&number, sizeof(number)};
    enum lab_way way = lab_input_way_of(ETCH_LAB_RANDOM_NUMBERS);

    if (way == LAB_GIVE) {
        lab_input_take(ETCH_LAB_CALL_RANDOM, -1, &part, 1);
        return number;
    }
    if (!real)
        *(void **)&real = lab_next("_ZNSt13random_device9_M_getvalEv");
    number = real ? real(self) : arc4random();
    if (way == LAB_KEEP)
        lab_input_keep(ETCH_LAB_CALL_RANDOM, -1, 0, &part, 1, sizeof(number));
    return number;
}
