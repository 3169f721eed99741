/* SPDX-License-Identifier: MIT */
/* Signals that etch gets for the program; see signals.h. */
#include "collector/session/signals.h"
#include "base/time.h"

#include <errno.h>
#include <string.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#define FORWARD_NS 30000000u /* a signal waits this long to be seen at the program, and is then passed on */

static const int taken[] = {SIGCHLD, SIGINT,  SIGQUIT, SIGTERM, SIGHUP, SIGUSR1,
                            SIGUSR2, SIGTSTP, SIGTTIN, SIGTTOU, SIGPIPE};

static void on_child(int number)
{
    (void)number; /* only to end a wait */
}

static bool is_left(const struct etch_signals *s, int number)
{
    return s->unseen && (number == SIGCHLD || number == SIGTSTP || number == SIGTTIN || number == SIGTTOU);
}

int etch_signals_take(struct etch_signals *s, bool unseen, struct etch_error *err)
{
    struct sigaction child = {.sa_handler = unseen ? on_child : SIG_DFL};

    memset(s, 0, sizeof(*s));
    s->unseen = unseen;
    sigemptyset(&s->mask);
    for (size_t i = 0; i < sizeof(taken) / sizeof(taken[0]); i++)
        if (!is_left(s, taken[i]))
            sigaddset(&s->mask, taken[i]);
    sigaction(SIGCHLD, &child, &s->child_before);
    sigprocmask(SIG_BLOCK, &s->mask, &s->mask_before);
    s->fd = signalfd(-1, &s->mask, SFD_CLOEXEC | SFD_NONBLOCK);
    return s->fd < 0 ? etch_error_set_errno(err, errno, "cannot watch for signals") : 0;
}

void etch_signals_give_back(struct etch_signals *s)
{
    struct timespec none = {0, 0};

    if (s->fd >= 0)
        close(s->fd);
    while (sigtimedwait(&s->mask, NULL, &none) > 0)
        ; /* a signal for the program must not end etch now */
    sigprocmask(SIG_SETMASK, &s->mask_before, NULL);
    sigaction(SIGCHLD, &s->child_before, NULL);
}

void etch_signals_seen(struct etch_signals *s, const siginfo_t *info)
{
    int number = info->si_signo;

    if (number <= 0 || number >= 65)
        return;
    s->passing[number].seen_ns = etch_time_ns();
    s->passing[number].seen_from = info->si_code == SI_USER ? info->si_pid : 0;
    if (s->passing[number].due_from == s->passing[number].seen_from)
        s->passing[number].due_ns = 0;
}

/* A signal from the terminal reaches the program by itself. A signal from another process may be meant for the whole
 * group, or for the program under the process id of etch. Such a signal is passed on unless the program is seen to get
 * the same signal. */
static void take(struct etch_signals *s, const struct signalfd_siginfo *info)
{
    uint32_t number = info->ssi_signo;

    if (s->unseen) {
        if (number != SIGINT && number != SIGQUIT)
            s->passing[number].due_ns = etch_time_ns();
        return;
    }
    if (info->ssi_code != SI_USER && info->ssi_code != SI_QUEUE)
        return;
    if (s->passing[number].seen_from == (pid_t)info->ssi_pid &&
        etch_time_ns() - s->passing[number].seen_ns < (uint64_t)4 * FORWARD_NS)
        return;
    s->passing[number].due_ns = etch_time_ns() + FORWARD_NS;
    s->passing[number].due_from = (pid_t)info->ssi_pid;
}

bool etch_signals_read(struct etch_signals *s, pid_t pid)
{
    struct signalfd_siginfo info;
    bool end = false;

    while (read(s->fd, &info, sizeof(info)) == sizeof(info)) {
        uint32_t number = info.ssi_signo;

        if (number == SIGCHLD || number == SIGPIPE || number >= 65)
            continue;
        if (pid)
            take(s, &info);
        else
            end |= number == SIGINT || number == SIGTERM || number == SIGHUP || number == SIGQUIT;
    }
    return end;
}

void etch_signals_pass_on(struct etch_signals *s, pid_t pid)
{
    uint64_t now = etch_time_ns();

    for (int i = 1; i < 65; i++)
        if (s->passing[i].due_ns && s->passing[i].due_ns <= now) {
            s->passing[i].due_ns = 0;
            kill(pid, i);
        }
}

bool etch_signals_wait(const struct etch_signals *s)
{
    for (int i = 1; i < 65; i++)
        if (s->passing[i].due_ns)
            return true;
    return false;
}
