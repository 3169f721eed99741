// SPDX-License-Identifier: MIT
// An event is handed to a callback with the bus locked, and the callback locks the ledger; a report does it the other way round.
#include "../corpus.h"

struct bus {
    pthread_mutex_t lock;
    void (*handler)(int amount);
    unsigned events;
};
struct ledger {
    pthread_mutex_t lock;
    long balance;
    char text[64];
};
static struct bus bus = {PTHREAD_MUTEX_INITIALIZER, NULL, 0};
static struct ledger ledger = {PTHREAD_MUTEX_INITIALIZER, 0, ""};

static void on_payment(int amount)
{
    window(300);
    pthread_mutex_lock(&ledger.lock);        //@book
    ledger.balance += amount;
    pthread_mutex_unlock(&ledger.lock);
}

static void subscribe(void (*handler)(int amount))
{
    pthread_mutex_lock(&bus.lock);
    bus.handler = handler;
    pthread_mutex_unlock(&bus.lock);
}

static void emit(int amount)
{
#ifdef FIXED
    void (*handler)(int);

    pthread_mutex_lock(&bus.lock);
    bus.events++;
    handler = bus.handler;
    pthread_mutex_unlock(&bus.lock);
    handler(amount);
#else
    pthread_mutex_lock(&bus.lock);           //@emit
    bus.events++;
    bus.handler(amount);                     //@call
    pthread_mutex_unlock(&bus.lock);
#endif
}

static void report(void)
{
    unsigned events;

    pthread_mutex_lock(&ledger.lock);        //@report
    window(300);
    pthread_mutex_lock(&bus.lock);           //@events
    events = bus.events;
    pthread_mutex_unlock(&bus.lock);
    snprintf(ledger.text, sizeof(ledger.text), "%ld after %u events", ledger.balance, events);
    pthread_mutex_unlock(&ledger.lock);
}

static void *shop(void *arg)
{
    const int *amounts = arg;

    for (int i = 0; amounts[i]; i++) {
        window(3000);
        emit(amounts[i]);
    }
    return NULL;
}

int main(void)
{
    static int amounts[] = {12, -5, 30, 0};
    pthread_t t;

    subscribe(on_payment);
    pthread_create(&t, NULL, shop, amounts);
    for (int i = 0; i < 2; i++) {
        window(4000);
        report();
    }
    pthread_join(t, NULL);
    puts(ledger.text);
    return 0;
}
