/* SPDX-License-Identifier: MIT */
/* The rarer ways to wait in C, used properly: timed variants, signals, timers, cancellation, other processes. Under no
 * schedule may one of these fail or hang. The argument says which. */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#define N 3

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static int counter;
static volatile sig_atomic_t caught;

static void together(void *(*routine)(void *), int n)
{
    pthread_t t[16];

    for (long i = 0; i < n; i++)
        if (pthread_create(&t[i], NULL, routine, (void *)i))
            abort();
    for (int i = 0; i < n; i++)
        pthread_join(t[i], NULL);
}

static struct timespec in(clockid_t clock, long ms)
{
    struct timespec t;

    clock_gettime(clock, &t);
    t.tv_sec += ms / 1000;
    t.tv_nsec += ms % 1000 * 1000000;
    if (t.tv_nsec >= 1000000000) {
        t.tv_sec++;
        t.tv_nsec -= 1000000000;
    }
    return t;
}

/* ---- Mutexes ---- */

static void *add(void *unused)
{
    (void)unused;
    for (int i = 0; i < 3; i++) {
        pthread_mutex_lock(&mutex);
        counter++;
        pthread_mutex_unlock(&mutex);
    }
    return NULL;
}

static void test_priority_inherit(void)
{
    pthread_mutexattr_t a;

    pthread_mutexattr_init(&a);
    pthread_mutexattr_setprotocol(&a, PTHREAD_PRIO_INHERIT);
    pthread_mutex_init(&mutex, &a);
    together(add, N);
    assert(counter == 3 * N);
}

/* The owner ends while others wait. */
static void *lock_robust(void *unused)
{
    int got = pthread_mutex_lock(&mutex);

    (void)unused;
    if (got == EOWNERDEAD)
        assert(pthread_mutex_consistent(&mutex) == 0);
    else
        assert(got == 0);
    counter++;
    return NULL; /* with the lock */
}

static void test_robust_wait(void)
{
    pthread_mutexattr_t a;

    pthread_mutexattr_init(&a);
    pthread_mutexattr_setrobust(&a, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&mutex, &a);
    together(lock_robust, N);
    assert(counter == N);
}

static void *lock_a_while(void *number)
{
    struct timespec t;
    int got;

    if ((long)number % 2) {
        t = in(CLOCK_REALTIME, 100);
        got = pthread_mutex_timedlock(&mutex, &t);
    } else {
        t = in(CLOCK_MONOTONIC, 100);
        got = pthread_mutex_clocklock(&mutex, CLOCK_MONOTONIC, &t);
    }
    assert(got == ETIMEDOUT);
    return NULL;
}

static void test_timedlock(void)
{
    pthread_mutex_lock(&mutex);
    together(lock_a_while, N);
    pthread_mutex_unlock(&mutex);
}

static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;

static void *rwlock_a_while(void *number)
{
    struct timespec real = in(CLOCK_REALTIME, 100), mono = in(CLOCK_MONOTONIC, 100);

    switch ((long)number) {
    case 0:
        assert(pthread_rwlock_timedrdlock(&rwlock, &real) == ETIMEDOUT);
        break;
    case 1:
        assert(pthread_rwlock_timedwrlock(&rwlock, &real) == ETIMEDOUT);
        break;
    default:
        assert(pthread_rwlock_clockwrlock(&rwlock, CLOCK_MONOTONIC, &mono) == ETIMEDOUT);
    }
    return NULL;
}

static void test_rwlock_timed(void)
{
    pthread_rwlock_wrlock(&rwlock);
    together(rwlock_a_while, N);
    pthread_rwlock_unlock(&rwlock);
}

static sem_t semaphore;

static void *sem_a_while(void *number)
{
    struct timespec real = in(CLOCK_REALTIME, 100), mono = in(CLOCK_MONOTONIC, 100);

    if (number)
        assert(sem_timedwait(&semaphore, &real) < 0 && errno == ETIMEDOUT);
    else
        assert(sem_clockwait(&semaphore, CLOCK_MONOTONIC, &mono) < 0 && errno == ETIMEDOUT);
    return NULL;
}

static void test_sem_timed(void)
{
    sem_init(&semaphore, 0, 0);
    together(sem_a_while, 2);
}

static void *sleeper(void *unused)
{
    sleep(10);
    return unused;
}

static void test_timedjoin(void)
{
    struct timespec t = in(CLOCK_REALTIME, 500);
    pthread_t thread;

    pthread_create(&thread, NULL, sleeper, NULL);
    assert(pthread_tryjoin_np(thread, NULL) == EBUSY);
    assert(pthread_timedjoin_np(thread, NULL, &t) == ETIMEDOUT);
    t = in(CLOCK_MONOTONIC, 30000);
    assert(pthread_clockjoin_np(thread, NULL, CLOCK_MONOTONIC, &t) == 0);
}

static void *cond_a_while(void *unused)
{
    struct timespec t = in(CLOCK_MONOTONIC, 200);

    pthread_mutex_lock(&mutex);
    while (pthread_cond_clockwait(&condition, &mutex, CLOCK_MONOTONIC, &t) == 0)
        ;
    pthread_mutex_unlock(&mutex);
    return unused;
}

static void test_clockwait(void)
{
    together(cond_a_while, N);
}

/* ---- Threads ---- */

static void *outlive(void *unused)
{
    pthread_mutex_lock(&mutex);
    counter++;
    pthread_mutex_unlock(&mutex);
    usleep(1000);
    if (unused)
        exit(counter == 2 ? 0 : 1);
    return NULL;
}

/* The first thread ends before the others. */
static void test_main_exits(void)
{
    pthread_t t;

    pthread_create(&t, NULL, outlive, NULL);
    pthread_create(&t, NULL, outlive, NULL);
    pthread_exit(NULL);
}

static void *spin_for_ever(void *unused)
{
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
    for (;;)
        __atomic_load_n(&counter, __ATOMIC_SEQ_CST);
    return unused;
}

static void test_cancel_async(void)
{
    pthread_t t;
    void *result;

    pthread_create(&t, NULL, spin_for_ever, NULL);
    pthread_cancel(t);
    pthread_join(t, &result);
    assert(result == PTHREAD_CANCELED);
}

static void *sleep_undisturbed(void *unused)
{
    struct timespec before = in(CLOCK_MONOTONIC, 0), after;

    (void)unused;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    sem_post(&semaphore);
    sleep(5);
    after = in(CLOCK_MONOTONIC, 0);
    assert(after.tv_sec - before.tv_sec >= 4);
    counter++;
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
    sleep(100);
    return NULL;
}

static void test_cancel_disabled(void)
{
    pthread_t t;
    void *result;

    sem_init(&semaphore, 0, 0);
    pthread_create(&t, NULL, sleep_undisturbed, NULL);
    sem_wait(&semaphore);
    pthread_cancel(t);
    pthread_join(t, &result);
    assert(result == PTHREAD_CANCELED && counter == 1);
}

static tss_t tss;
static once_flag flag = ONCE_FLAG_INIT;
static mtx_t mtx;

static void drop(void *value)
{
    __atomic_add_fetch(&counter, *(int *)value, __ATOMIC_SEQ_CST);
}

static void init_once(void)
{
    __atomic_add_fetch(&counter, 100, __ATOMIC_SEQ_CST);
}

static int c11_thread(void *unused)
{
    static thread_local int own = 1;
    struct timespec nap = {0, 1000000}, until;

    (void)unused;
    call_once(&flag, init_once);
    tss_set(tss, &own);
    thrd_sleep(&nap, NULL);
    timespec_get(&until, TIME_UTC);
    until.tv_sec += 10;
    assert(mtx_timedlock(&mtx, &until) == thrd_success);
    mtx_unlock(&mtx);
    thrd_yield();
    thrd_exit(3);
}

static void test_c11_rest(void)
{
    thrd_t t[2];
    int result;

    tss_create(&tss, drop);
    mtx_init(&mtx, mtx_timed);
    for (int i = 0; i < 2; i++)
        assert(thrd_create(&t[i], c11_thread, NULL) == thrd_success);
    for (int i = 0; i < 2; i++)
        assert(thrd_join(t[i], &result) == thrd_success && result == 3);
    assert(counter == 102);
    mtx_destroy(&mtx);
}

/* ---- Waiting in loops ---- */

static volatile int plain;

static void *wait_plain(void *number)
{
    if (number)
        plain = 1;
    else
        while (!plain)
            ;
    return NULL;
}

static void test_plain_flag(void)
{
    together(wait_plain, 2);
}

static atomic_flag spin = ATOMIC_FLAG_INIT;

static void *add_spinning(void *unused)
{
    for (int i = 0; i < 3; i++) {
        while (atomic_flag_test_and_set(&spin))
            ;
        counter++;
        atomic_flag_clear(&spin);
    }
    return unused;
}

static void test_test_and_set(void)
{
    together(add_spinning, N);
    assert(counter == 3 * N);
}

static void *wait_for_time(void *unused)
{
    struct timespec end = in(CLOCK_MONOTONIC, 300), now;

    do
        clock_gettime(CLOCK_MONOTONIC, &now);
    while (now.tv_sec < end.tv_sec || (now.tv_sec == end.tv_sec && now.tv_nsec < end.tv_nsec));
    return unused;
}

static void test_busy_clock(void)
{
    together(wait_for_time, 2);
}

/* ---- Signals and timers ---- */

static void on_signal(int number)
{
    caught += number == SIGUSR1 || number == SIGALRM;
}

static void handle(int number)
{
    struct sigaction a = {.sa_handler = on_signal};

    sigaction(number, &a, NULL);
}

static void *sleep_interrupted(void *unused)
{
    sem_post(&semaphore);
    while (!caught)
        sleep(1000);
    return unused;
}

static void test_signal_thread(void)
{
    pthread_t t;

    handle(SIGUSR1);
    sem_init(&semaphore, 0, 0);
    pthread_create(&t, NULL, sleep_interrupted, NULL);
    sem_wait(&semaphore);
    pthread_kill(t, SIGUSR1);
    pthread_join(t, NULL);
    assert(caught == 1);
}

static void *send_process(void *unused)
{
    kill(getpid(), SIGUSR1);
    return unused;
}

static void test_signal_process(void)
{
    handle(SIGUSR1);
    together(send_process, 1);
    while (!caught)
        sched_yield();
    raise(SIGUSR1);
    assert(caught == 2);
}

static void *take_signals(void *set)
{
    int number;

    for (int i = 0; i < 2; i++)
        assert(sigwait(set, &number) == 0 && (number == SIGUSR1 || number == SIGUSR2));
    return NULL;
}

static void test_sigwait(void)
{
    struct timespec short_time = {0, 1000000};
    sigset_t set;
    pthread_t t;

    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigaddset(&set, SIGUSR2);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    pthread_create(&t, NULL, take_signals, &set);
    kill(getpid(), SIGUSR1);
    pthread_kill(t, SIGUSR2);
    pthread_join(t, NULL);
    assert(sigtimedwait(&set, NULL, &short_time) < 0 && errno == EAGAIN);
}

static void *send_main(void *main_thread)
{
    pthread_kill(*(pthread_t *)main_thread, SIGUSR1);
    return NULL;
}

static void test_sigsuspend(void)
{
    pthread_t self = pthread_self(), t;
    sigset_t set, old;

    handle(SIGUSR1);
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &set, &old);
    pthread_create(&t, NULL, send_main, &self);
    while (!caught)
        sigsuspend(&old);
    pthread_join(t, NULL);
    assert(caught == 1);
}

static void test_alarm(void)
{
    handle(SIGALRM);
    alarm(3);
    together(add, 2);
    while (!caught)
        pause();
    assert(alarm(0) == 0 && caught == 1);
}

static void test_alarm_alone(void)
{
    struct itimerval t = {{0, 1000}, {0, 1000}};

    handle(SIGALRM);
    setitimer(ITIMER_REAL, &t, NULL);
    while (caught < 3)
        ;
}

static void *loop_while(void *unused)
{
    while (caught < 3)
        usleep(100);
    return unused;
}

static void test_interval(void)
{
    struct itimerval t = {{0, 1000}, {0, 1000}}, none = {{0, 0}, {0, 0}};

    handle(SIGALRM);
    setitimer(ITIMER_REAL, &t, NULL);
    together(loop_while, 2);
    setitimer(ITIMER_REAL, &none, NULL);
    assert(caught >= 3);
}

static void on_timer(union sigval value)
{
    assert(value.sival_int == 7);
    sem_post(&semaphore);
}

static void test_timer_thread(void)
{
    struct sigevent e = {.sigev_notify = SIGEV_THREAD, .sigev_notify_function = on_timer, .sigev_value.sival_int = 7};
    struct itimerspec t = {{0, 5000000}, {0, 5000000}};
    timer_t id;

    sem_init(&semaphore, 0, 0);
    assert(timer_create(CLOCK_MONOTONIC, &e, &id) == 0 && timer_settime(id, 0, &t, NULL) == 0);
    for (int i = 0; i < 3; i++)
        while (sem_wait(&semaphore) < 0)
            ;
    timer_delete(id);
}

static void test_timer_signal(void)
{
    struct sigevent e = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
    struct itimerspec t = {{0, 0}, {1, 0}};
    timer_t id;

    handle(SIGUSR1);
    assert(timer_create(CLOCK_REALTIME, &e, &id) == 0 && timer_settime(id, 0, &t, NULL) == 0);
    together(add, 2);
    while (!caught)
        usleep(1000);
    timer_delete(id);
}

/* ---- Descriptors ---- */

static int ends[2];

static void *speak(void *unused)
{
    usleep(2000);
    assert(write(ends[1], "hello\n", 6) == 6);
    return unused;
}

static void *listen_by_stdio(void *unused)
{
    FILE *in_file = fdopen(ends[0], "r");
    char line[16];

    assert(fgets(line, sizeof(line), in_file) && strcmp(line, "hello\n") == 0);
    fclose(in_file);
    return unused;
}

static void *either_end(void *number)
{
    return number ? speak(NULL) : listen_by_stdio(NULL);
}

/* The C library reads without asking the lab. */
static void test_stdio_pipe(void)
{
    assert(pipe(ends) == 0);
    together(either_end, 2);
}

static void *listen_by_select(void *number)
{
    struct timeval limit = {5, 0}, little = {0, 1};
    fd_set set;
    char text[8];

    if (number)
        return speak(NULL);
    FD_ZERO(&set);
    FD_SET(ends[0], &set);
    assert(select(ends[0] + 1, &set, NULL, NULL, &little) >= 0);
    FD_SET(ends[0], &set);
    assert(select(ends[0] + 1, &set, NULL, NULL, &limit) == 1 && FD_ISSET(ends[0], &set));
    assert(recv(ends[0], text, sizeof(text), 0) == 6);
    return NULL;
}

static void test_select(void)
{
    assert(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    together(listen_by_select, 2);
}

static void *listen_by_epoll(void *number)
{
    struct epoll_event e = {.events = EPOLLIN};
    uint64_t value = 3;
    int all;

    if (number) {
        assert(write(ends[0], &value, 8) == 8);
        return NULL;
    }
    all = epoll_create1(0);
    epoll_ctl(all, EPOLL_CTL_ADD, ends[0], &e);
    assert(epoll_wait(all, &e, 1, 5000) == 1);
    assert(read(ends[0], &value, 8) == 8 && value == 3);
    close(all);
    return NULL;
}

static void test_epoll(void)
{
    ends[0] = eventfd(0, 0);
    together(listen_by_epoll, 2);
}

static void *say_two(void *unused)
{
    flockfile(stdout);
    sched_yield();
    counter++;
    funlockfile(stdout);
    return unused;
}

static void test_flockfile(void)
{
    together(say_two, N);
    assert(counter == N);
}

/* ---- Other processes ---- */

static void *make_busy_child(void *number)
{
    pid_t pid = fork();
    int status;

    if (pid == 0) {
        counter = 0;
        together(add, 3);
        _exit(counter == 9 ? 7 : 1);
    }
    assert(waitpid(pid, &status, 0) == pid && WEXITSTATUS(status) == 7);
    return number;
}

static void test_child_threads(void)
{
    together(make_busy_child, 2);
}

static void test_exec(void)
{
    pid_t pid = fork();
    int status;

    if (pid == 0) {
        execl("/bin/sh", "sh", "-c", "exit 5", (char *)NULL);
        _exit(1);
    }
    together(add, 2);
    assert(waitpid(pid, &status, 0) == pid && WEXITSTATUS(status) == 5);
}

static void test_shared_semaphore(void)
{
    sem_t *s = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int status;
    pid_t pid;

    sem_init(s, 1, 0);
    sem_init(s + 1, 1, 0);
    pid = fork();
    if (pid == 0) {
        while (sem_wait(s) < 0)
            ;
        sem_post(s + 1);
        _exit(0);
    }
    sem_post(s);
    while (sem_wait(s + 1) < 0)
        ;
    assert(waitpid(pid, &status, 0) == pid && status == 0);
}

static pthread_cond_t *shared_condition;
static pthread_mutex_t *shared_mutex;

static void test_shared_condition(void)
{
    char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int *ready = (int *)(void *)(page + 512), status;
    pthread_mutexattr_t m;
    pthread_condattr_t c;
    pid_t pid;

    shared_condition = (pthread_cond_t *)(void *)page;
    shared_mutex = (pthread_mutex_t *)(void *)(page + 256);
    pthread_mutexattr_init(&m);
    pthread_mutexattr_setpshared(&m, PTHREAD_PROCESS_SHARED);
    pthread_mutex_init(shared_mutex, &m);
    pthread_condattr_init(&c);
    pthread_condattr_setpshared(&c, PTHREAD_PROCESS_SHARED);
    pthread_cond_init(shared_condition, &c);
    pid = fork();
    pthread_mutex_lock(shared_mutex);
    if (pid == 0) {
        *ready = 1;
        pthread_cond_broadcast(shared_condition);
        pthread_mutex_unlock(shared_mutex);
        _exit(0);
    }
    while (!*ready)
        pthread_cond_wait(shared_condition, shared_mutex);
    pthread_mutex_unlock(shared_mutex);
    assert(waitpid(pid, &status, 0) == pid && status == 0);
}

#define TEST(name) {#name, test_##name}
static const struct {
    const char *name;
    void (*run)(void);
} tests[] = {TEST(priority_inherit), TEST(robust_wait),     TEST(timedlock),        TEST(rwlock_timed),
             TEST(sem_timed),        TEST(timedjoin),       TEST(clockwait),        TEST(main_exits),
             TEST(cancel_async),     TEST(cancel_disabled), TEST(c11_rest),         TEST(plain_flag),
             TEST(test_and_set),     TEST(busy_clock),      TEST(signal_thread),    TEST(signal_process),
             TEST(sigwait),          TEST(sigsuspend),      TEST(alarm),            TEST(alarm_alone),
             TEST(interval),         TEST(timer_thread),    TEST(timer_signal),     TEST(stdio_pipe),
             TEST(select),           TEST(epoll),           TEST(flockfile),        TEST(child_threads),
             TEST(exec),             TEST(shared_semaphore), TEST(shared_condition)};

int main(int argc, char **argv)
{
    for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++) {
        if (argc < 2)
            puts(tests[i].name);
        else if (strcmp(argv[1], tests[i].name) == 0)
            tests[i].run();
    }
    return 0;
}
