/* SPDX-License-Identifier: MIT */
/* Signals in the lab. A handler runs only in a thread that has the baton: a signal that comes at another time is kept,
 * and the thread gets it when it runs next. A signal that the program sends to itself therefore comes at the same point
 * in each run. */
#include "collector/lab/runtime.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#define NUMBERS 65
#define BIT(number) (UINT64_C(1) << ((number) - 1))

static struct sigaction actions[NUMBERS]; /* the program's own; ours stand before its handlers */
static siginfo_t kept[NUMBERS];           /* of the last signal of each number that a thread is to get */
static __thread bool delivering;          /* the handler may run now */
static __thread unsigned handled;         /* handlers that ran */
static __thread bool restarts;            /* the last of them wants interrupted calls to go on */

static uint64_t bits_of(const sigset_t *set)
{
    uint64_t bits;

    memcpy(&bits, set, sizeof(bits));
    return bits;
}

static bool is_number(int number)
{
    return number > 0 && number < NUMBERS;
}

static bool has_handler(int number)
{
    const struct sigaction *a = &actions[number];

    return a->sa_flags & SA_SIGINFO || (a->sa_handler != SIG_DFL && a->sa_handler != SIG_IGN);
}

static uint64_t own_mask(void)
{
    sigset_t now;

    sigemptyset(&now);
    lab_real_pthread_sigmask(SIG_BLOCK, NULL, &now);
    return bits_of(&now);
}

/* ---- Handlers ---- */

static void call(int number, siginfo_t *info, void *context)
{
    const struct sigaction a = actions[number];
    bool was = delivering;

    if (a.sa_flags & (int)SA_RESETHAND) {
        actions[number].sa_handler = SIG_DFL;
        actions[number].sa_flags = 0;
        lab_real_sigaction(number, &actions[number], NULL);
    }
    handled++;
    restarts = a.sa_flags & SA_RESTART;
    delivering = false;
    if (a.sa_flags & SA_SIGINFO)
        a.sa_sigaction(number, info, context);
    else if (a.sa_handler != SIG_DFL && a.sa_handler != SIG_IGN)
        a.sa_handler(number);
    delivering = was;
}

/* The thread's own instruction raised it. */
static bool is_fault(int number, const siginfo_t *info)
{
    return (number == SIGSEGV || number == SIGBUS || number == SIGFPE || number == SIGILL || number == SIGTRAP ||
            number == SIGSYS) &&
           info->si_code > 0;
}

static bool is_in_lab(const ucontext_t *context)
{
    uint64_t at = (uint64_t)context->uc_mcontext.gregs[REG_RIP];

    return at >= LAB_OBJECT(lab_first_edge) && at < LAB_OBJECT(lab_last_edge);
}

bool lab_signals_restart(void)
{
    return restarts;
}

static void on_signal(int number, siginfo_t *info, void *context)
{
    int before = errno;

    if (!lab_is_mine() || delivering || is_fault(number, info) || (lab_alive < 2 && !is_in_lab(context))) {
        call(number, info, context);
    } else {
        kept[number] = *info;
        __atomic_or_fetch(&lab_threads[lab_me].pending, BIT(number), __ATOMIC_SEQ_CST);
    }
    errno = before;
}

void lab_signals_deliver(void)
{
    struct lab_thread *t = &lab_threads[lab_me];
    uint64_t bits = __atomic_exchange_n(&t->pending, 0, __ATOMIC_SEQ_CST);
    int before = errno;

    for (int i = 1; i < NUMBERS; i++)
        if (bits & BIT(i)) {
            delivering = true;
            lab_real_syscall(SYS_rt_tgsigqueueinfo, lab_real_syscall(SYS_getpid), lab_real_syscall(SYS_gettid), (long)i,
                             &kept[i]);
            delivering = false;
        }
    errno = before;
    if (t->cancel) {
        t->cancel = false;
        lab_real_pthread_cancel(pthread_self());
    }
}

/* The program must not see our handler. */
LAB_API int sigaction(int number, const struct sigaction *restrict action, struct sigaction *restrict old);
int sigaction(int number, const struct sigaction *restrict action, struct sigaction *restrict old)
{
    struct sigaction before, mine;
    int result;

    LAB_ENTER();
    if (!lab || !is_number(number))
        return lab_real_sigaction(number, action, old);
    before = actions[number];
    if (action) {
        mine = *action;
        if (mine.sa_flags & SA_SIGINFO || (mine.sa_handler != SIG_DFL && mine.sa_handler != SIG_IGN)) {
            mine.sa_sigaction = on_signal;
            mine.sa_flags = (mine.sa_flags | SA_SIGINFO) & ~(int)SA_RESETHAND;
        }
        result = lab_real_sigaction(number, &mine, NULL);
        if (result)
            return result;
        actions[number] = *action;
    }
    if (old)
        *old = before;
    return 0;
}

LAB_API __sighandler_t signal(int number, __sighandler_t handler);
__sighandler_t signal(int number, __sighandler_t handler)
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART}, old;

    sigemptyset(&action.sa_mask);
    return sigaction(number, &action, &old) == 0 ? old.sa_handler : SIG_ERR;
}

/* ---- Sending ---- */

static void keep_info(int number, int code, const union sigval *value)
{
    kept[number] = (siginfo_t){.si_signo = number, .si_code = code};
    kept[number].si_pid = (pid_t)lab_real_syscall(SYS_getpid);
    kept[number].si_uid = getuid();
    if (value)
        kept[number].si_value = *value;
}

static bool is_awaited_by(const struct lab_thread *t, int number)
{
    return t->state == LAB_BLOCKED && t->wait == ETCH_LAB_SIGNAL && t->sigwait & BIT(number);
}

/* The thread that gets a signal for the process; UINT32_MAX: all block it. As the kernel does, the first thread has it
 * if it can. */
static uint32_t receiver(int number)
{
    for (uint32_t i = 0; i < lab->threads; i++)
        if (lab_threads[i].state != LAB_DEAD && !(lab_threads[i].mask & BIT(number)))
            return i;
    return UINT32_MAX;
}

/* The signal stays in the kernel: it is blocked, or somebody waits for it. */
static void wake_waiters(int number)
{
    for (uint32_t i = 0; i < lab->threads; i++)
        if (is_awaited_by(&lab_threads[i], number))
            lab_threads[i].state = LAB_READY;
}

/* Sends a signal that has a handler to a thread of the lab. False if the kernel has to. */
static bool post(uint32_t thread, int number, int code, const union sigval *value)
{
    if (!is_number(number) || !has_handler(number) || thread == UINT32_MAX || lab_threads[thread].mask & BIT(number))
        return false;
    keep_info(number, code, value);
    __atomic_or_fetch(&lab_threads[thread].pending, BIT(number), __ATOMIC_SEQ_CST);
    return true;
}

/* The calling thread gets its own signal at once. */
static int deliver_own(void)
{
    if (lab_threads[lab_me].pending)
        lab_signals_deliver();
    return 0;
}

void lab_signals_post(int number, const void *value)
{
    if (post(receiver(number), number, SI_TIMER, value))
        return;
    lab_real_kill((pid_t)lab_real_syscall(SYS_getpid), number);
    wake_waiters(number);
}

static uint32_t number_of(pthread_t thread)
{
    for (uint32_t i = lab->threads; i-- > 0;)
        if (lab_threads[i].self == thread && lab_threads[i].state != LAB_DEAD)
            return i;
    return UINT32_MAX;
}

static struct etch_lab_op signal_op(uint64_t object)
{
    return (struct etch_lab_op){.object = object, .write = true, .interesting = true, .sync = true};
}

LAB_API int pthread_kill(pthread_t thread, int number);
int pthread_kill(pthread_t thread, int number)
{
    int result;

    LAB_ENTER();
    if (!lab_controlled())
        return lab_real_pthread_kill(thread, number);
    lab_point(signal_op((uint64_t)thread), LAB_SITE);
    if (post(number_of(thread), number, SI_TKILL, NULL))
        return deliver_own();
    result = lab_real_pthread_kill(thread, number);
    wake_waiters(number);
    return result;
}

LAB_API int pthread_sigqueue(pthread_t thread, int number, const union sigval value);
int pthread_sigqueue(pthread_t thread, int number, const union sigval value)
{
    int result;

    LAB_ENTER();
    if (!lab_controlled())
        return lab_real_pthread_sigqueue(thread, number, value);
    lab_point(signal_op((uint64_t)thread), LAB_SITE);
    if (post(number_of(thread), number, SI_QUEUE, &value))
        return deliver_own();
    result = lab_real_pthread_sigqueue(thread, number, value);
    wake_waiters(number);
    return result;
}

LAB_API int raise(int number);
int raise(int number)
{
    bool was = delivering;
    int result;

    LAB_ENTER();
    if (lab_controlled())
        lab_point(signal_op(0), LAB_SITE);
    delivering = true;
    result = lab_real_raise(number);
    delivering = was;
    return result;
}

int lab_signals_kill_self(int number, uint64_t site)
{
    int result;

    lab_point(signal_op(0), site);
    if (is_number(number) && post(receiver(number), number, SI_USER, NULL))
        return deliver_own();
    result = lab_real_kill((pid_t)lab_real_syscall(SYS_getpid), number);
    if (is_number(number))
        wake_waiters(number);
    return result;
}

LAB_API int sigqueue(pid_t pid, int number, const union sigval value);
int sigqueue(pid_t pid, int number, const union sigval value)
{
    int result;

    LAB_ENTER();
    if (pid != (pid_t)lab_real_syscall(SYS_getpid) || !lab_controlled())
        return lab_real_sigqueue(pid, number, value);
    lab_point(signal_op(0), LAB_SITE);
    if (is_number(number) && post(receiver(number), number, SI_QUEUE, &value))
        return deliver_own();
    result = lab_real_sigqueue(pid, number, value);
    if (is_number(number))
        wake_waiters(number);
    return result;
}

/* ---- Masks ---- */

/* Signals that were blocked come during the call. */
static int set_mask(int how, const sigset_t *set, sigset_t *old)
{
    bool was = delivering;
    int result;

    delivering = true;
    result = lab_real_pthread_sigmask(how, set, old);
    delivering = was;
    if (lab_is_mine())
        lab_threads[lab_me].mask = own_mask();
    return result;
}

LAB_API int pthread_sigmask(int how, const sigset_t *restrict set, sigset_t *restrict old);
int pthread_sigmask(int how, const sigset_t *restrict set, sigset_t *restrict old)
{
    LAB_ENTER();
    return set_mask(how, set, old);
}

LAB_API int sigprocmask(int how, const sigset_t *restrict set, sigset_t *restrict old);
int sigprocmask(int how, const sigset_t *restrict set, sigset_t *restrict old)
{
    int result;

    LAB_ENTER();
    result = set_mask(how, set, old);
    errno = result ? result : errno;
    return result ? -1 : 0;
}

/* ---- Waiting for signals ---- */

bool lab_signals_waiting(const struct lab_thread *t)
{
    sigset_t now;

    sigemptyset(&now);
    return sigpending(&now) == 0 && bits_of(&now) & t->sigwait;
}

static void await_handler(unsigned before, uint64_t site)
{
    lab_threads[lab_me].sigwait = 0;
    while (handled == before) {
        pthread_testcancel();
        lab_block(ETCH_LAB_SIGNAL, 0, LAB_NEVER, site);
    }
}

LAB_API int pause(void);
int pause(void)
{
    LAB_ENTER();
    if (!lab_controlled())
        return lab_real_pause();
    await_handler(handled, LAB_SITE);
    errno = EINTR;
    return -1;
}

LAB_API int sigsuspend(const sigset_t *set);
int sigsuspend(const sigset_t *set)
{
    unsigned before = handled;
    sigset_t old;

    LAB_ENTER();
    if (!lab_controlled())
        return lab_real_sigsuspend(set);
    set_mask(SIG_SETMASK, set, &old);
    await_handler(before, LAB_SITE);
    set_mask(SIG_SETMASK, &old, NULL);
    errno = EINTR;
    return -1;
}

static int await_signal(const sigset_t *set, siginfo_t *info, uint64_t deadline, uint64_t site)
{
    const struct timespec none = {0, 0};
    struct lab_thread *t = &lab_threads[lab_me];
    int got;

    lab_point(signal_op(0), site);
    while ((got = lab_real_sigtimedwait(set, info, &none)) < 0 && errno == EAGAIN) {
        pthread_testcancel();
        t->sigwait = bits_of(set);
        if (!lab_block(ETCH_LAB_SIGNAL, 0, deadline, site)) {
            errno = EAGAIN;
            return -1;
        }
        t->sigwait = 0;
        if (t->interrupted) {
            errno = EINTR;
            return -1;
        }
    }
    return got;
}

LAB_API int sigtimedwait(const sigset_t *restrict set, siginfo_t *restrict info, const struct timespec *restrict limit);
int sigtimedwait(const sigset_t *restrict set, siginfo_t *restrict info, const struct timespec *restrict limit)
{
    LAB_ENTER();
    if (!lab_controlled() || lab->real_time)
        return lab_real_sigtimedwait(set, info, limit);
    return await_signal(
        set, info, limit ? lab_now() + (uint64_t)limit->tv_sec * 1000000000u + (uint64_t)limit->tv_nsec : LAB_NEVER,
        LAB_SITE);
}

LAB_API int sigwaitinfo(const sigset_t *restrict set, siginfo_t *restrict info);
int sigwaitinfo(const sigset_t *restrict set, siginfo_t *restrict info)
{
    LAB_ENTER();
    return lab_controlled() ? await_signal(set, info, LAB_NEVER, LAB_SITE) : lab_real_sigwaitinfo(set, info);
}

LAB_API int sigwait(const sigset_t *restrict set, int *restrict number);
int sigwait(const sigset_t *restrict set, int *restrict number)
{
    int got;

    LAB_ENTER();
    if (!lab_controlled())
        return lab_real_sigwait(set, number);
    do
        got = await_signal(set, NULL, LAB_NEVER, LAB_SITE);
    while (got < 0 && errno == EINTR);
    if (got < 0)
        return errno;
    *number = got;
    return 0;
}

/* ---- Beginning ---- */

void lab_signals_begin(void)
{
    for (int i = 1; i < NUMBERS; i++)
        lab_real_sigaction(i, NULL, &actions[i]);
    lab_threads[0].mask = own_mask();
}

void lab_signals_forget(void)
{
    lab_threads[0].mask = own_mask();
}
