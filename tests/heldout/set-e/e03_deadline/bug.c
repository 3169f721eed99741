/* SPDX-License-Identifier: MIT */ /*
 * Checksum service: one engine thread serves all; clients that cannot
 * wait give a deadline and do the sum themselves when it is missed.
 */
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define RING 16

struct request {
    const unsigned char *data;
    size_t len;
    uint32_t sum;
    int done;
};

static struct {
    pthread_mutex_t lock;
    pthread_cond_t arrived, finished;
    struct request *ring[RING];
    unsigned head, tail;
    int quit;
    unsigned long served, missed;
} svc = { .lock = PTHREAD_MUTEX_INITIALIZER,
          .arrived = PTHREAD_COND_INITIALIZER,
          .finished = PTHREAD_COND_INITIALIZER };

static uint32_t adler(uint32_t seed, const unsigned char *p, size_t n)
{
    uint32_t a = seed & 0xffff, b = seed >> 16;

    for (size_t i = 0; i < n; i++) {
        a = (a + p[i]) % 65521;
        b = (b + a) % 65521;
    }
    return b << 16 | a;
}

static void *engine(void *arg)
{
    (void)arg;
    pthread_mutex_lock(&svc.lock);
    for (;;) {
        while (svc.head == svc.tail && !svc.quit)
            pthread_cond_wait(&svc.arrived, &svc.lock);
        if (svc.head == svc.tail)
            break;
        struct request *r = svc.ring[svc.head++ % RING];
        pthread_mutex_unlock(&svc.lock);

        uint32_t sum = adler(1, r->data, r->len);

        pthread_mutex_lock(&svc.lock);
        r->sum = sum;
        r->done = 1;
        svc.served++;
        pthread_cond_broadcast(&svc.finished);
    }
    pthread_mutex_unlock(&svc.lock);
    return NULL;
}

/* Sum by the engine.  wait_us 0: no deadline.  0, or ETIMEDOUT. */
static int engine_sum(const unsigned char *data, size_t len, long wait_us, uint32_t *sum)
{
    struct request req = { .data = data, .len = len };
    struct timespec until;
    int rc = 0;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += wait_us * 1000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;

    pthread_mutex_lock(&svc.lock);
    svc.ring[svc.tail++ % RING] = &req;
    pthread_cond_signal(&svc.arrived);
    while (!req.done && rc == 0)
        rc = wait_us ? pthread_cond_timedwait(&svc.finished, &svc.lock, &until)
                     : pthread_cond_wait(&svc.finished, &svc.lock);
    if (!req.done) {
        svc.missed++;
#ifdef FIXED
        while (!req.done)
            pthread_cond_wait(&svc.finished, &svc.lock);
#endif
    } else
        rc = 0;
    pthread_mutex_unlock(&svc.lock);
    *sum = req.sum;
    return rc;
}

/* Sum by ourselves, in blocks as they would come from a file. */
static uint32_t own_sum(const unsigned char *data, size_t len)
{
    unsigned char block[2048];
    uint32_t s = 1;

    while (len) {
        size_t n = len < sizeof block ? len : sizeof block;
        memcpy(block, data, n);
        s = adler(s, block, n);
        data += n;
        len -= n;
    }
    return s;
}

static void fill(unsigned char *p, size_t n, unsigned seed)
{
    for (size_t i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        p[i] = (unsigned char)(0x80 | seed >> 24);
    }
}

/* Large images, nobody is in a hurry. */
static void *archiver(void *arg)
{
    size_t n = 600000;
    unsigned char *image = malloc(n);
    uint32_t s;

    for (unsigned i = 0; image && i < 6; i++) {
        size_t len = n / 6 * (i + 1);
        fill(image, len, i);
        engine_sum(image, len, 0, &s);
        *(uint32_t *)arg ^= s;
    }
    free(image);
    return NULL;
}

/* Small packets that have to leave soon.  After a missed deadline we leave
 * the engine alone for a while. */
static void *sender(void *arg)
{
    unsigned char packet[4000];
    int alone = 0;
    uint32_t s;

    for (unsigned i = 0; i < 900; i++) {
        size_t n = 3000 + i % 900;
        fill(packet, n, i);
        if (alone > 0) {
            alone--;
            s = own_sum(packet, n);
        } else if (engine_sum(packet, n, 1200, &s) == ETIMEDOUT) {
            alone = 100;
            s = own_sum(packet, n);
        }
        *(uint32_t *)arg ^= s;
    }
    return NULL;
}

int main(void)
{
    pthread_t e, a, s;
    uint32_t x = 0, y = 0;

    if (pthread_create(&e, NULL, engine, NULL) || pthread_create(&a, NULL, archiver, &x) ||
        pthread_create(&s, NULL, sender, &y))
        return 2;
    pthread_join(a, NULL);
    pthread_join(s, NULL);
    pthread_mutex_lock(&svc.lock);
    svc.quit = 1;
    pthread_cond_signal(&svc.arrived);
    pthread_mutex_unlock(&svc.lock);
    pthread_join(e, NULL);
    printf("archive %08x, packets %08x, %lu served\n", x, y, svc.served);
    return 0;
}
