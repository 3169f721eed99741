/* SPDX-License-Identifier: MIT */
/* waits HOW [FILE]: a thread waits for a lock that main holds, and main waits too. The first ways never end. In all
 * others main is woken, most after three seconds, and says so, or is ended by an alarm. With ALARM the ways that can set
 * one are in: of those the program's imports are all that there is to see. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SECONDS 3

static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t both;
static pthread_t thread;
static sem_t sem;
static const char *file;

static void post(int number)
{
    (void)number;
    sem_post(&sem);
}

static void *take_both(void *unused)
{
    pthread_mutex_lock(&b);
    pthread_barrier_wait(&both);
    pthread_mutex_lock(&a);
    return unused;
}

/* Main holds `a`, the other thread `b`, and waits for `a`. */
static void begin(void)
{
    pthread_barrier_init(&both, NULL, 2);
    pthread_mutex_lock(&a);
    pthread_create(&thread, NULL, take_both, NULL);
    pthread_barrier_wait(&both);
}

static void wait_for_sem(sem_t *s)
{
    while (sem_wait(s) < 0 && errno == EINTR)
        ;
}

/* ---- Ways that never end ---- */

static void by_ring(void)
{
    pthread_mutex_lock(&b);
}

static void by_itself(void)
{
    pthread_mutex_lock(&a);
}

static void by_join(void)
{
    pthread_join(thread, NULL);
}

/* ---- Ways that do ---- */

static void by_poll(void)
{
    poll(NULL, 0, SECONDS * 1000);
}

static void by_nanosleep(void)
{
    const struct timespec long_ = {SECONDS, 0};

    nanosleep(&long_, NULL);
}

static void by_time_limit(void)
{
    struct timespec until;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += SECONDS;
    pthread_mutex_timedlock(&b, &until);
}

/* The test sends the signal. */
static void by_signal(void)
{
    signal(SIGUSR1, post);
    wait_for_sem(&sem);
}

#ifdef ALARM
static void by_alarm(void)
{
    signal(SIGALRM, post);
    alarm(SECONDS);
    wait_for_sem(&sem);
}

static void by_alarm_unhandled(void)
{
    alarm(SECONDS);
    wait_for_sem(&sem);
}

static void by_alarm_before_exec(void)
{
    alarm(SECONDS);
    execl(file, file, "ring", (char *)NULL);
}
#endif

static void by_timer(void)
{
    struct itimerspec once = {.it_value = {SECONDS, 0}};
    timer_t timer;

    timer_create(CLOCK_MONOTONIC, NULL, &timer); /* sends SIGALRM, which ends it */
    timer_settime(timer, 0, &once, NULL);
    wait_for_sem(&sem);
}

/* The child has a part in the memory. */
static void by_child(void)
{
    sem_t *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    sem_init(shared, 1, 0);
    if (fork() == 0) {
        sleep(SECONDS);
        sem_post(shared);
        _exit(0);
    }
    wait_for_sem(shared);
}

/* Another process has: the one that runs "waits post FILE". */
static sem_t *map_file(void)
{
    int fd = open(file, O_RDWR | O_CREAT, 0600);

    if (fd < 0 || ftruncate(fd, 4096) < 0)
        exit(1);
    return mmap(NULL, sizeof(sem_t), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
}

static void by_stranger(void)
{
    sem_t *shared = map_file();

    sem_init(shared, 1, 0);
    wait_for_sem(shared);
}

static const struct way {
    const char *name;
    void (*wait)(void);
} ways[] = {{"ring", by_ring},
            {"itself", by_itself},
            {"join", by_join},
            {"poll", by_poll},
            {"nanosleep", by_nanosleep},
            {"limit", by_time_limit},
            {"signal", by_signal},
            {"timer", by_timer},
            {"child", by_child},
#ifdef ALARM
            {"alarm", by_alarm},
            {"deadly_alarm", by_alarm_unhandled},
            {"alarm_before_exec", by_alarm_before_exec},
#endif
            {"stranger", by_stranger}};

int main(int argc, char **argv)
{
    if (argc < 2)
        return 2;
    file = argc > 2 ? argv[2] : argv[0];
    if (strcmp(argv[1], "post") == 0)
        return sem_post(map_file());
    sem_init(&sem, 0, 0);
    puts("waits");
    fflush(stdout);
    begin();
    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
        if (strcmp(ways[i].name, argv[1]) == 0) {
            ways[i].wait();
            puts("woken");
            fflush(stdout);
            _exit(0);
        }
    return 2;
}
