/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define NDIG	16
#define BASE	1000

struct big {
	int n;			/* digits in use, lowest first */
	int d[NDIG];
};

static void setbig(struct big *b, const char *s)
{
	int len = (int)strlen(s);

	memset(b, 0, sizeof *b);
	while (len > 0) {
		int from = len > 3 ? len - 3 : 0, v = 0, i;

		for (i = from; i < len; i++)
			v = v * 10 + (s[i] - '0');
		b->d[b->n++] = v; //@digit
		len = from;
	}
}

static void addat(struct big *b, int at, int v)
{
	b->d[at] += v; //@add
#ifdef FIXED
	while (b->d[at] >= BASE) {
#else
	if (b->d[at] >= BASE) { //@carry
#endif
		b->d[at + 1] += b->d[at] / BASE; //@over
		b->d[at] %= BASE; //@rest
		at++;
	}
	if (at >= b->n)
		b->n = at + 1;
}

static void trim(struct big *b)
{
	while (b->n > 1 && b->d[b->n - 1] == 0)
		b->n--;
}

static struct big mul(const struct big *x, const struct big *y)
{
	struct big r;
	int i, j;

	memset(&r, 0, sizeof r);
	for (i = x->n - 1; i >= 0; i--)
		for (j = y->n - 1; j >= 0; j--)
			addat(&r, i + j, x->d[i] * y->d[j]); //@part
	trim(&r);
	return r;
}

static void show(char *out, size_t size, const struct big *b)
{
	int i, at;

	at = snprintf(out, size, "%d", b->d[b->n - 1]);
	for (i = b->n - 2; i >= 0; i--)
		at += snprintf(out + at, size - (size_t)at, "%03d", b->d[i]); //@show
}

static long long check(const char *a, const char *b)
{
	return atoll(a) * atoll(b);
}

int main(int argc, char **argv)
{
	static const char *const pairs[][2] = {
		{ "12", "34" },
		{ "1200300", "2100" },
		{ "999999", "1001" },
		{ "567", "370624" },
		{ "123456", "777" },
	};
	struct big x, y, r;
	struct timespec ts;
	char text[64];
	long k;

	clock_gettime(CLOCK_REALTIME, &ts);
	k = argc > 1 ? atol(argv[1]) % 5 : ts.tv_nsec / 1000 % 5; //@input
	setbig(&x, pairs[k][0]); //@x
	setbig(&y, pairs[k][1]); //@y
	r = mul(&x, &y); //@mul
	show(text, sizeof text, &r);
	printf("%s * %s = %s (%lld)\n", pairs[k][0], pairs[k][1], text, check(pairs[k][0], pairs[k][1])); //@print
	return 0;
}
