/* SPDX-License-Identifier: MIT */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define NSLOT	16
#define NUSER	2
#define NDOC	2

struct doc {
	int num;		/* 0 ends the spooler */
	char title[24];
};

static struct doc slots[NSLOT];
static int head, tail;
static int lastnum;
static pthread_mutex_t qlock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t nlock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t qcond = PTHREAD_COND_INITIALIZER;

static void snooze(unsigned us)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	usleep((unsigned)(ts.tv_nsec / 60) % us);
}

static int newnum(void)
{
	int n;

	pthread_mutex_lock(&nlock);
	n = ++lastnum; //@num
	pthread_mutex_unlock(&nlock);
	return n;
}

static void enter(const struct doc *d)
{
	pthread_mutex_lock(&qlock);
	slots[tail++ % NSLOT] = *d; //@enter
	pthread_cond_signal(&qcond);
	pthread_mutex_unlock(&qlock);
}

static void render(struct doc *d, const char *user, int i)
{
	snprintf(d->title, sizeof d->title, "%s-%d", user, i);
	snooze((unsigned)strlen(d->title) * 4); //@render
}

static void submit(const char *user, int i)
{
	struct doc d;

#ifdef FIXED
	static pthread_mutex_t slock = PTHREAD_MUTEX_INITIALIZER;

	pthread_mutex_lock(&slock);
#endif
	d.num = newnum(); //@new
	render(&d, user, i);
	enter(&d); //@submit
#ifdef FIXED
	pthread_mutex_unlock(&slock);
#endif
}

static struct doc leave(void)
{
	struct doc d;

	pthread_mutex_lock(&qlock);
	while (head == tail)
		pthread_cond_wait(&qcond, &qlock);
	d = slots[head++ % NSLOT]; //@leave
	pthread_mutex_unlock(&qlock);
	return d;
}

static void *user(void *arg)
{
	int i;

	for (i = 1; i <= NDOC; i++) {
		snooze(3500);
		submit(arg, i);
	}
	return NULL;
}

static void *printer(void *arg)
{
	struct doc d;

	(void)arg;
	for (;;) {
		d = leave(); //@doc
		if (d.num == 0)
			break;
		printf("%d %s\n", d.num, d.title); //@print
	}
	return NULL;
}

int main(void)
{
	static char *names[NUSER] = { "ada", "ben" };
	static const struct doc end;
	pthread_t users[NUSER], prt;
	int i;

	pthread_create(&prt, NULL, printer, NULL);
	for (i = 0; i < NUSER; i++)
		pthread_create(&users[i], NULL, user, names[i]);
	for (i = 0; i < NUSER; i++)
		pthread_join(users[i], NULL);
	enter(&end);
	pthread_join(prt, NULL);
	return 0;
}
