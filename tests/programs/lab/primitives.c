/* SPDX-License-Identifier: MIT */
/* Every kind of waiting in C, used properly: under no schedule may one of these fail or hang. The argument says which. */
#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#define N 4

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static int counter, ready;

static void together(void *(*routine)(void *), int n)
{
    pthread_t t[64];

    for (long i = 0; i < n; i++)
        if (pthread_create(&t[i], NULL, routine, (void *)i))
            abort();
    for (int i = 0; i < n; i++)
        pthread_join(t[i], NULL);
}

static void *add_locked(void *unused)
{
    (void)unused;
    for (int i = 0; i < 3; i++) {
        pthread_mutex_lock(&mutex);
        counter++;
        pthread_mutex_unlock(&mutex);
    }
    return NULL;
}

static void test_mutex(void)
{
    together(add_locked, N);
    assert(counter == 3 * N);
}

static void test_pool(void)
{
    together(add_locked, 32);
    assert(counter == 96);
}

static void *add_recursive(void *m)
{
    (void)m;
    pthread_mutex_lock(&mutex);
    pthread_mutex_lock(&mutex);
    counter++;
    pthread_mutex_unlock(&mutex);
    pthread_mutex_unlock(&mutex);
    return NULL;
}

static void set_kind(int kind)
{
    pthread_mutexattr_t a;

    pthread_mutexattr_init(&a);
    pthread_mutexattr_settype(&a, kind);
    pthread_mutex_init(&mutex, &a);
}

static void test_recursive(void)
{
    set_kind(PTHREAD_MUTEX_RECURSIVE);
    together(add_recursive, N);
    assert(counter == N);
}

static void test_errorcheck(void)
{
    set_kind(PTHREAD_MUTEX_ERRORCHECK);
    together(add_locked, N);
    pthread_mutex_lock(&mutex);
    assert(pthread_mutex_lock(&mutex) == EDEADLK);
    pthread_mutex_unlock(&mutex);
    assert(pthread_mutex_unlock(&mutex) == EPERM);
    assert(counter == 3 * N);
}

static void *die_with_lock(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&mutex);
    return NULL;
}

static void test_robust(void)
{
    pthread_mutexattr_t a;

    pthread_mutexattr_init(&a);
    pthread_mutexattr_setrobust(&a, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&mutex, &a);
    together(die_with_lock, 1);
    assert(pthread_mutex_lock(&mutex) == EOWNERDEAD);
    assert(pthread_mutex_consistent(&mutex) == 0);
    pthread_mutex_unlock(&mutex);
    together(add_locked, N);
    assert(counter == 3 * N);
}

static void *consume(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&mutex);
    while (!ready)
        pthread_cond_wait(&condition, &mutex);
    ready--;
    counter++;
    pthread_mutex_unlock(&mutex);
    return NULL;
}

static void *produce(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&mutex);
    ready++;
    pthread_cond_signal(&condition);
    pthread_mutex_unlock(&mutex);
    return NULL;
}

static void *either(void *number)
{
    return (long)number % 2 ? consume(NULL) : produce(NULL);
}

static void test_condition(void)
{
    together(either, 6);
    assert(counter == 3 && ready == 0);
}

static void *wait_a_while(void *unused)
{
    struct timespec until;

    (void)unused;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 5;
    pthread_mutex_lock(&mutex);
    while (!ready && pthread_cond_timedwait(&condition, &mutex, &until) == 0)
        ;
    counter++;
    pthread_mutex_unlock(&mutex);
    return NULL;
}

static void test_timed(void)
{
    struct timespec before, after;

    clock_gettime(CLOCK_MONOTONIC, &before);
    together(wait_a_while, N);
    clock_gettime(CLOCK_MONOTONIC, &after);
    assert(counter == N && after.tv_sec - before.tv_sec >= 5 - 1);
}

static void *nap(void *number)
{
    usleep((useconds_t)(1000 * (long)number));
    sleep(1);
    return NULL;
}

static void test_sleep(void)
{
    time_t before = time(NULL);

    together(nap, N);
    assert(time(NULL) - before >= 1);
}

static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static int pair[2];

static void *read_or_write(void *number)
{
    for (int i = 0; i < 3; i++)
        if ((long)number % 2) {
            pthread_rwlock_rdlock(&rwlock);
            assert(pair[0] == pair[1]);
            pthread_rwlock_unlock(&rwlock);
        } else {
            pthread_rwlock_wrlock(&rwlock);
            pair[0]++;
            pair[1]++;
            pthread_rwlock_unlock(&rwlock);
        }
    return NULL;
}

static void test_rwlock(void)
{
    together(read_or_write, N);
    assert(pair[0] == 6 && pair[1] == 6);
}

static pthread_spinlock_t spin;

static void *add_spinning(void *unused)
{
    (void)unused;
    pthread_spin_lock(&spin);
    counter++;
    pthread_spin_unlock(&spin);
    return NULL;
}

static void test_spin(void)
{
    pthread_spin_init(&spin, 0);
    together(add_spinning, N);
    assert(counter == N);
}

static _Atomic int flag;

static void *spin_until(void *number)
{
    if (number)
        flag = 1;
    else
        while (!flag)
            ;
    return NULL;
}

static void test_flag(void)
{
    together(spin_until, 2);
    assert(flag == 1);
}

static sem_t semaphore;

static void *pass(void *unused)
{
    (void)unused;
    while (sem_wait(&semaphore) < 0)
        ;
    counter++;
    sem_post(&semaphore);
    return NULL;
}

static void test_semaphore(void)
{
    sem_init(&semaphore, 0, 1);
    together(pass, N);
    assert(counter == N);
}

static pthread_barrier_t barrier;
static int serial;

static void *meet(void *unused)
{
    (void)unused;
    for (int i = 0; i < 3; i++) {
        __atomic_add_fetch(&counter, 1, __ATOMIC_SEQ_CST);
        if (pthread_barrier_wait(&barrier) == PTHREAD_BARRIER_SERIAL_THREAD)
            __atomic_add_fetch(&serial, 1, __ATOMIC_SEQ_CST);
        assert(__atomic_load_n(&counter, __ATOMIC_SEQ_CST) >= N * (i + 1));
    }
    return NULL;
}

static void test_barrier(void)
{
    pthread_barrier_init(&barrier, NULL, N);
    together(meet, N);
    assert(serial == 3 && counter == 3 * N);
}

static pthread_once_t once = PTHREAD_ONCE_INIT;

static void initialise(void)
{
    sched_yield();
    counter++;
}

static void *use(void *unused)
{
    (void)unused;
    pthread_once(&once, initialise);
    assert(counter == 1);
    return NULL;
}

static void test_once(void)
{
    together(use, N);
}

static pthread_key_t key;

static void add_last(void *value)
{
    (void)value;
    pthread_mutex_lock(&mutex);
    counter++;
    pthread_mutex_unlock(&mutex);
}

static void *set_key(void *number)
{
    pthread_setspecific(key, (char *)number + 1);
    if ((long)number % 2)
        pthread_exit(NULL);
    return NULL;
}

static void test_destructor(void)
{
    pthread_key_create(&key, add_last);
    together(set_key, N);
    assert(counter == N);
}

static void unlock(void *m)
{
    pthread_mutex_unlock(m);
    __atomic_add_fetch(&counter, 1, __ATOMIC_SEQ_CST);
}

static void *wait_for_ever(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&mutex);
    pthread_cleanup_push(unlock, &mutex);
    while (!ready)
        pthread_cond_wait(&condition, &mutex);
    pthread_cleanup_pop(1);
    return NULL;
}

static void test_cancel(void)
{
    pthread_t t[N];
    void *result;

    for (int i = 0; i < N; i++)
        pthread_create(&t[i], NULL, wait_for_ever, NULL);
    for (int i = 0; i < N; i++) {
        pthread_cancel(t[i]);
        pthread_join(t[i], &result);
        assert(result == PTHREAD_CANCELED);
    }
    assert(counter == N);
}

static int ends[2];

static void *talk(void *number)
{
    char byte = 'x';

    if (number) {
        assert(write(ends[1], &byte, 1) == 1);
    } else {
        struct pollfd p = {.fd = ends[0], .events = POLLIN};

        assert(poll(&p, 1, -1) == 1 && read(ends[0], &byte, 1) == 1);
    }
    return NULL;
}

static void test_pipe(void)
{
    assert(pipe(ends) == 0);
    together(talk, 2);
}

static void *make_child(void *number)
{
    pid_t pid = fork();
    int status;

    if (pid == 0)
        _exit(7);
    assert(waitpid(pid, &status, 0) == pid && WEXITSTATUS(status) == 7);
    return number;
}

static void test_fork(void)
{
    together(make_child, 2);
}

static mtx_t c11_mutex;
static cnd_t c11_condition;

static int c11_add(void *unused)
{
    (void)unused;
    mtx_lock(&c11_mutex);
    counter++;
    cnd_signal(&c11_condition);
    mtx_unlock(&c11_mutex);
    return 5;
}

static void test_c11(void)
{
    thrd_t t[2];
    int result;

    mtx_init(&c11_mutex, mtx_plain);
    cnd_init(&c11_condition);
    for (int i = 0; i < 2; i++)
        thrd_create(&t[i], c11_add, NULL);
    mtx_lock(&c11_mutex);
    while (counter < 2)
        cnd_wait(&c11_condition, &c11_mutex);
    mtx_unlock(&c11_mutex);
    for (int i = 0; i < 2; i++) {
        thrd_join(t[i], &result);
        assert(result == 5);
    }
}

static void *detached(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&mutex);
    counter++;
    pthread_cond_signal(&condition);
    pthread_mutex_unlock(&mutex);
    return NULL;
}

static void test_detached(void)
{
    pthread_t t;

    for (int i = 0; i < N; i++) {
        pthread_create(&t, NULL, detached, NULL);
        pthread_detach(t);
    }
    pthread_mutex_lock(&mutex);
    while (counter < N)
        pthread_cond_wait(&condition, &mutex);
    pthread_mutex_unlock(&mutex);
}

#define TEST(name) {#name, test_##name}
static const struct {
    const char *name;
    void (*run)(void);
} tests[] = {TEST(mutex),  TEST(pool),  TEST(recursive), TEST(errorcheck), TEST(robust),    TEST(condition), TEST(timed),
             TEST(sleep),  TEST(rwlock), TEST(spin),     TEST(flag),       TEST(semaphore), TEST(barrier),   TEST(once),
             TEST(destructor), TEST(cancel), TEST(pipe), TEST(fork),       TEST(c11),       TEST(detached)};

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
