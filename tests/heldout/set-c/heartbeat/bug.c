/* SPDX-License-Identifier: MIT */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define NUNIT	2
#define LIMIT	50		/* ms without a beat */

struct unit {
	const char *name;
	atomic_long beat;
	atomic_int busy;
	int done;
	pthread_t tid;
};

static struct unit units[NUNIT];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int nlive;
static int nlost;

static long ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000L + ts.tv_nsec / 1000000 + 1000;
}

static void snooze(unsigned us)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	usleep((unsigned)(ts.tv_nsec / 60) % us);
}

static void touch(struct unit *u)
{
	atomic_store(&u->beat, ms()); //@beat
}

static void connectdev(struct unit *u)
{
	int n = 0;

	while (u->name[n])
		n++;
	snooze((unsigned)n * 60);
}

static void *work(void *arg)
{
	struct unit *u = arg;
	int i;

	connectdev(u);
	touch(u); //@first
	for (i = 0; i < 3; i++) {
		snooze(300);
		u->done++;
		touch(u);
	}
	atomic_store(&u->busy, 0);
	pthread_mutex_lock(&lock);
	nlive--;
	pthread_mutex_unlock(&lock);
	return NULL;
}

static void start(struct unit *u, const char *name)
{
	u->name = name;
#ifdef FIXED
	touch(u);
#endif
	atomic_store(&u->busy, 1); //@busy
	pthread_mutex_lock(&lock);
	nlive++;
	pthread_mutex_unlock(&lock);
	pthread_create(&u->tid, NULL, work, u); //@start
}

static int late(struct unit *u)
{
	if (!atomic_load(&u->busy))
		return 0;
	return ms() - atomic_load(&u->beat) > LIMIT; //@age
}

static void *watch(void *arg)
{
	int i, live;

	(void)arg;
	do {
		snooze(1500);
		for (i = 0; i < NUNIT; i++)
			if (late(&units[i])) //@late
				nlost++; //@lost
		pthread_mutex_lock(&lock);
		live = nlive;
		pthread_mutex_unlock(&lock);
	} while (live > 0);
	return NULL;
}

int main(void)
{
	pthread_t dog;
	int i;

	pthread_create(&dog, NULL, watch, NULL);
	start(&units[0], "press");
	start(&units[1], "lathe");
	for (i = 0; i < NUNIT; i++)
		pthread_join(units[i].tid, NULL);
	pthread_join(dog, NULL);
	printf("%d steps\n", units[0].done + units[1].done);
	if (nlost > 0) //@any
		return 7; //@fail
	return 0;
}
