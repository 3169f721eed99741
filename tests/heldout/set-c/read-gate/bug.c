/* SPDX-License-Identifier: MIT */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#define NREAD	3
#define NTERM	4

struct gate {
	atomic_int readers;
	atomic_int writer;		/* one wants in, or is in */
	pthread_mutex_t m;
	pthread_cond_t c;
};

static struct gate gate = {
	.m = PTHREAD_MUTEX_INITIALIZER,
	.c = PTHREAD_COND_INITIALIZER,
};
static int terms[NTERM] = { 1, 2, 3, 4 };
static atomic_long seen;

static void wake(struct gate *g)
{
	pthread_mutex_lock(&g->m);
	pthread_cond_broadcast(&g->c);
	pthread_mutex_unlock(&g->m);
}

static void rleave(struct gate *g)
{
#ifdef FIXED
	int left = atomic_fetch_sub(&g->readers, 1) - 1;

	if (left == 0 && atomic_load(&g->writer))
		wake(g);
#else
	int wanted = atomic_load(&g->writer); //@wanted

	if (atomic_fetch_sub(&g->readers, 1) == 1 && wanted) //@down
		wake(g);
#endif
}

static void renter(struct gate *g)
{
	for (;;) {
		atomic_fetch_add(&g->readers, 1);
		if (!atomic_load(&g->writer))
			return;
		rleave(g);
		pthread_mutex_lock(&g->m);
		while (atomic_load(&g->writer))
			pthread_cond_wait(&g->c, &g->m);
		pthread_mutex_unlock(&g->m);
	}
}

static void wenter(struct gate *g)
{
	pthread_mutex_lock(&g->m);
	while (atomic_load(&g->writer))
		pthread_cond_wait(&g->c, &g->m);
	atomic_store(&g->writer, 1); //@want
	while (atomic_load(&g->readers) > 0) //@busy
		pthread_cond_wait(&g->c, &g->m); //@wait
	pthread_mutex_unlock(&g->m);
}

static void wleave(struct gate *g)
{
	pthread_mutex_lock(&g->m);
	atomic_store(&g->writer, 0);
	pthread_cond_broadcast(&g->c);
	pthread_mutex_unlock(&g->m);
}

static long total(void)
{
	long t = 0;
	int i;

	for (i = 0; i < NTERM; i++)
		t += terms[i];
	return t;
}

static void *reader(void *arg)
{
	(void)arg;
	renter(&gate);
	atomic_fetch_add(&seen, total());
	rleave(&gate); //@leave
	return NULL;
}

static void *writer(void *arg)
{
	int i;

	(void)arg;
	wenter(&gate); //@enter
	for (i = 0; i < NTERM; i++)
		terms[i] *= 10;
	wleave(&gate);
	return NULL;
}

int main(void)
{
	pthread_t r[NREAD], w;
	int i;

	for (i = 0; i < NREAD; i++)
		pthread_create(&r[i], NULL, reader, NULL);
	pthread_create(&w, NULL, writer, NULL);
	for (i = 0; i < NREAD; i++)
		pthread_join(r[i], NULL);
	pthread_join(w, NULL);
	printf("seen %s\n", atomic_load(&seen) % 10 == 0 ? "ok" : "torn");
	return 0;
}
