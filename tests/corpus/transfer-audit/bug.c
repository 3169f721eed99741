// SPDX-License-Identifier: MIT
// Money leaves one account and reaches the other in two steps, each under a lock of its own; an audit in between misses it.
#include "../corpus.h"

struct account {
    pthread_mutex_t lock;
    long balance;
    unsigned bookings;
};
static struct account checking = {PTHREAD_MUTEX_INITIALIZER, 600, 0};
static struct account savings = {PTHREAD_MUTEX_INITIALIZER, 400, 0};
static unsigned mismatches, audits;
#ifdef FIXED
static pthread_mutex_t books = PTHREAD_MUTEX_INITIALIZER;
#define LOCK() pthread_mutex_lock(&books)
#define UNLOCK() pthread_mutex_unlock(&books)
#else
#define LOCK() (void)0
#define UNLOCK() (void)0
#endif

static void transfer(long amount)
{
    LOCK();
    pthread_mutex_lock(&checking.lock);
    checking.balance -= amount;            //@debit
    checking.bookings++;
    pthread_mutex_unlock(&checking.lock);
    window(300);
    pthread_mutex_lock(&savings.lock);
    savings.balance += amount;             //@credit
    savings.bookings++;
    pthread_mutex_unlock(&savings.lock);
    UNLOCK();
}

static void audit(void)
{
    long sum;

    LOCK();
    pthread_mutex_lock(&checking.lock);
    sum = checking.balance;                //@first
    pthread_mutex_unlock(&checking.lock);
    pthread_mutex_lock(&savings.lock);
    sum += savings.balance;                //@second
    pthread_mutex_unlock(&savings.lock);
    UNLOCK();
    audits++;
    if (sum != 1000)                       //@compare
        mismatches++;                      //@wrong
}

static void *auditor(void *arg)
{
    (void)arg;
    for (int i = 0; i < 2; i++) {
        window(2000);
        audit();
    }
    return NULL;
}

static unsigned receipt(long amount)
{
    char text[64];
    unsigned hash = 0;

    snprintf(text, sizeof(text), "moved %ld to savings", amount);
    for (const char *p = text; *p; p++)
        hash = hash * 65599 + (unsigned char)*p;
    return hash;
}

int main(void)
{
    unsigned hash = 0;
    pthread_t t;

    pthread_create(&t, NULL, auditor, NULL);
    for (long i = 1; i < 4; i++) {
        window(1500);
        transfer(i * 20);
        hash ^= receipt(i * 20);
    }
    pthread_join(t, NULL);
    printf("receipts %08x, %u bookings, %u audits\n", hash, checking.bookings, audits);
    return mismatches > 0;                 //@exit
}
