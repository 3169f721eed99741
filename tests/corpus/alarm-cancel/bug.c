// SPDX-License-Identifier: MIT
// A timer's signal handler takes the current transfer away, also while the main loop is about to use it.
#include "../corpus.h"
#include <signal.h>
#include <sys/time.h>

struct transfer {
    int id;
    unsigned left;
    unsigned sum;
};
static struct transfer *volatile current;
static volatile sig_atomic_t timeouts;

static void on_alarm(int sig)
{
    (void)sig;
    current = NULL;                             //@cancel
    timeouts++;
}

static void arm(unsigned us)
{
    struct itimerval in = {{0, 0}, {0, us}};

    setitimer(ITIMER_REAL, &in, NULL);
}

static unsigned chunk_read(unsigned char *chunk, unsigned n)
{
    window(400);
    for (unsigned i = 0; i < n; i++)
        chunk[i] = (unsigned char)(i * 7);
    return n;
}

static unsigned checksum(const unsigned char *chunk, unsigned n)
{
    unsigned sum = 1;

    for (unsigned i = 0; i < n; i++)
        sum = sum * 31 + chunk[i];
    window(700);
    return sum;
}

static int pump(void)
{
    unsigned char chunk[64];
    unsigned n;
#ifdef FIXED
    sigset_t alarms;

    sigemptyset(&alarms);
    sigaddset(&alarms, SIGALRM);
    sigprocmask(SIG_BLOCK, &alarms, NULL);
#endif
    if (!current || current->left == 0) {       //@test
#ifdef FIXED
        sigprocmask(SIG_UNBLOCK, &alarms, NULL);
#endif
        return 0;
    }
    n = chunk_read(chunk, sizeof(chunk));
    current->left -= n;                         //@use
#ifdef FIXED
    sigprocmask(SIG_UNBLOCK, &alarms, NULL);
#endif
    return checksum(chunk, n) != 0;
}

int main(void)
{
    struct sigaction act = {0};
    struct transfer *t = calloc(1, sizeof(*t));
    int steps = 0;

    act.sa_handler = on_alarm;
    sigaction(SIGALRM, &act, NULL);
    t->id = 7;
    t->left = 64 * 5;
    current = t;                                //@begin
    arm(500 + draw(5000));
    while (pump())
        steps++;
    arm(0);
    printf("%d steps, %d timeouts\n", steps, (int)timeouts);
    return 0;
}
