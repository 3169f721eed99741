/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define NSLOT	16
#define FREE	0
#define LIVE	1
#define GONE	2

struct slot {
	char state;
	char word[11];
	int count;
};

static struct slot *tab;
static int nlive;		/* words in the table */
#ifdef FIXED
static int ngone;
#endif
static int nslot;

static unsigned hash(const char *w)
{
	unsigned h = 5381;

	while (*w)
		h = h * 33 + (unsigned char)*w++;
	return h;
}

static struct slot *probe(const char *w)
{
	unsigned i = hash(w) % (unsigned)nslot; //@start

	while (tab[i].state != FREE) { //@step
		if (tab[i].state == LIVE && strcmp(tab[i].word, w) == 0) //@same
			return &tab[i];
		i = (i + 1) % (unsigned)nslot; //@next
	}
	return &tab[i];
}

static void resize(int n)
{
	struct slot *old = tab;
	int i, nold = nslot;

	tab = calloc((size_t)n, sizeof *tab);
	nslot = n;
#ifdef FIXED
	ngone = 0;
#endif
	for (i = 0; i < nold; i++)
		if (old[i].state == LIVE)
			*probe(old[i].word) = old[i];
	free(old);
}

static void addword(const char *w)
{
	struct slot *s;

#ifdef FIXED
	if ((nlive + ngone + 1) * 4 > nslot * 3)
#else
	if ((nlive + 1) * 4 > nslot * 3) //@full
#endif
		resize(nslot * 2);
	s = probe(w);
	if (s->state != LIVE) {
		s->state = LIVE; //@live
		snprintf(s->word, sizeof s->word, "%s", w);
		s->count = 0;
		nlive++;
	}
	s->count++;
}

static void delword(const char *w)
{
	struct slot *s = probe(w); //@find

	if (s->state != LIVE)
		return;
	s->state = GONE; //@gone
	nlive--; //@less
#ifdef FIXED
	ngone++;
#endif
}

static int stream(int words, int keep)
{
	char w[12];
	int i;

	for (i = 0; i < words; i++) { //@each
		snprintf(w, sizeof w, "w%d", i * 7);
		addword(w); //@word
		if (i >= keep) {
			snprintf(w, sizeof w, "w%d", (i - keep) * 7);
			delword(w); //@del
		}
	}
	return nlive;
}

int main(int argc, char **argv)
{
	struct timespec ts;
	int words, n;

	clock_gettime(CLOCK_REALTIME, &ts);
	words = argc > 1 ? atoi(argv[1]) : 4 + (int)(ts.tv_nsec / 1000 % 18); //@input
	resize(NSLOT);
	n = stream(words, 3);
	printf("%d words, %d kept\n", words, n);
	free(tab);
	return 0;
}
