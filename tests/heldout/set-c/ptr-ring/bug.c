/* SPDX-License-Identifier: MIT */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NRING	4
#define NMSG	6

struct msg {
	int type;
	int len;
	char text[16];
};

struct ring {
	_Atomic(struct msg *) box[NRING];
	atomic_uint in;			/* taken by producers */
	atomic_uint out;
	atomic_int open;
};

static struct ring ring = { .open = 2 };
static int sizes[2];

static struct msg *mkmsg(int type, const char *text)
{
	struct msg *m = calloc(1, sizeof *m);

	m->type = type;
	m->len = (int)strlen(text);
	memcpy(m->text, text, (size_t)m->len);
	return m;
}

static int put(struct ring *r, struct msg *m)
{
	unsigned in = atomic_load(&r->in);

	do {
		if (in - atomic_load(&r->out) >= NRING)
			return 0;
	} while (!atomic_compare_exchange_weak(&r->in, &in, in + 1)); //@claim
	atomic_store(&r->box[in % NRING], m); //@store
	return 1;
}

static struct msg *get(struct ring *r)
{
	unsigned out = atomic_load(&r->out);
	struct msg *m;

	if (out == atomic_load(&r->in)) //@any
		return NULL;
#ifdef FIXED
	while (!(m = atomic_exchange(&r->box[out % NRING], NULL)))
		;
#else
	m = atomic_exchange(&r->box[out % NRING], NULL); //@take
#endif
	atomic_store(&r->out, out + 1);
	return m;
}

static int pending(struct ring *r)
{
	return atomic_load(&r->out) != atomic_load(&r->in); //@pending
}

static void *produce(void *arg)
{
	static const char *const words[] = { "red", "green", "blue" };
	int type = *(int *)arg, i;

	for (i = 0; i < NMSG / 2; i++) {
		struct msg *m = mkmsg(type, words[i]);

		while (!put(&ring, m))
			sched_yield();
	}
	atomic_fetch_sub(&ring.open, 1);
	return NULL;
}

static void handle(struct msg *m)
{
	sizes[m->type] += m->len; //@use
	free(m);
}

static void consume(void)
{
	int n = 0;

	while (n < NMSG && (pending(&ring) || atomic_load(&ring.open) > 0)) {
		if (!pending(&ring)) { //@empty
			sched_yield();
			continue;
		}
		handle(get(&ring)); //@handle
		n++;
	}
}

int main(void)
{
	static int types[2] = { 0, 1 };
	pthread_t prod[2];
	int i;

	for (i = 0; i < 2; i++)
		pthread_create(&prod[i], NULL, produce, &types[i]);
	consume();
	for (i = 0; i < 2; i++)
		pthread_join(prod[i], NULL);
	printf("%d %d\n", sizes[0], sizes[1]);
	return sizes[0] == 12 && sizes[1] == 12 ? 0 : 1;
}
