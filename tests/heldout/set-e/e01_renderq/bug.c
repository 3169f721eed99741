/* SPDX-License-Identifier: MIT */ /*
 * Thumbnail renderer: one coordinator feeds tiles to a pair of render
 * threads through a ring and waits for each image to be complete.
 *
 * n_ready is kept as an atomic next to the ring so that an idle renderer
 * does not have to take the lock just to find that there is nothing to do.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RING      64
#define RENDERERS 2
#define IMAGES    120
#define SIDE      16

struct tile {
    int image, x, y;
};

static struct {
    pthread_mutex_t lock;
    pthread_cond_t ready;
    struct tile ring[RING];
    unsigned head, tail;
    atomic_int n_ready;
    atomic_int quit;
} work = { .lock = PTHREAD_MUTEX_INITIALIZER, .ready = PTHREAD_COND_INITIALIZER };

static struct {
    pthread_mutex_t lock;
    pthread_cond_t complete;
    int tiles_left;
    uint32_t digest;
} image = { .lock = PTHREAD_MUTEX_INITIALIZER, .complete = PTHREAD_COND_INITIALIZER };

static void work_put(const struct tile *t)
{
    pthread_mutex_lock(&work.lock);
    work.ring[work.tail++ % RING] = *t;
    atomic_fetch_add(&work.n_ready, 1);
    pthread_cond_signal(&work.ready);
    pthread_mutex_unlock(&work.lock);
}

/* Sleep until there may be something to do. */
static void work_wait(void)
{
    if (atomic_load(&work.n_ready) > 0 || atomic_load(&work.quit))
        return;
    pthread_mutex_lock(&work.lock);
#ifdef FIXED
    while (atomic_load(&work.n_ready) == 0 && !atomic_load(&work.quit))
#endif
    pthread_cond_wait(&work.ready, &work.lock);
    pthread_mutex_unlock(&work.lock);
}

static int work_take(struct tile *t)
{
    int got = 0;

    pthread_mutex_lock(&work.lock);
    if (work.head != work.tail) {
        *t = work.ring[work.head++ % RING];
        atomic_fetch_sub(&work.n_ready, 1);
        got = 1;
    }
    pthread_mutex_unlock(&work.lock);
    return got;
}

static void work_quit(void)
{
    pthread_mutex_lock(&work.lock);
    atomic_store(&work.quit, 1);
    pthread_cond_broadcast(&work.ready);
    pthread_mutex_unlock(&work.lock);
}

static uint32_t render(const struct tile *t)
{
    uint32_t acc = 2166136261u;

    for (int y = 0; y < SIDE; y++)
        for (int x = 0; x < SIDE; x++) {
            uint32_t px = (uint32_t)((t->x + x) * (t->y + y) + t->image * 31);
            acc = (acc ^ px) * 16777619u;
        }
    return acc;
}

static void *renderer(void *arg)
{
    unsigned long *count = arg;
    struct tile t;

    while (!atomic_load(&work.quit)) {
        if (!work_take(&t)) {
            work_wait();
            continue;
        }
        uint32_t d = render(&t);
        ++*count;
        pthread_mutex_lock(&image.lock);
        image.digest ^= d;
        if (--image.tiles_left == 0)
            pthread_cond_signal(&image.complete);
        pthread_mutex_unlock(&image.lock);
    }
    return NULL;
}

static uint32_t render_image(int id, int tiles)
{
    uint32_t d;

    pthread_mutex_lock(&image.lock);
    image.tiles_left = tiles;
    image.digest = 0;
    pthread_mutex_unlock(&image.lock);

    for (int i = 0; i < tiles; i++) {
        struct tile t = { id, (i % 4) * SIDE, (i / 4) * SIDE };
        work_put(&t);
    }

    pthread_mutex_lock(&image.lock);
    while (image.tiles_left > 0)
        pthread_cond_wait(&image.complete, &image.lock);
    d = image.digest;
    pthread_mutex_unlock(&image.lock);
    return d;
}

int main(void)
{
    pthread_t tid[RENDERERS];
    unsigned long count[RENDERERS] = { 0 }, all = 0;
    uint32_t sum = 0;

    for (int i = 0; i < RENDERERS; i++)
        if (pthread_create(&tid[i], NULL, renderer, &count[i]))
            return 2;
    for (int i = 0; i < IMAGES; i++)
        sum = sum * 31 + render_image(i, 1 + i % 3);
    work_quit();
    for (int i = 0; i < RENDERERS; i++) {
        pthread_join(tid[i], NULL);
        all += count[i];
    }
    printf("%d images, %lu tiles, digest %08x\n", IMAGES, all, sum);
    return 0;
}
