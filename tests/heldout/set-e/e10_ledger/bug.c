/* SPDX-License-Identifier: MIT */ /* Settles a day of postings: sorts them by amount, then looks up for every
 * cancellation the posting that it cancels. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MAX_POSTINGS 400
#define MAX_CANCELS  120

struct posting {
    int32_t cents;              /* < 0: outgoing */
    uint32_t ref;
    int settled;
};

struct cancel {
    int32_t cents;
    uint32_t ref;
};

static struct posting postings[MAX_POSTINGS];
static struct cancel cancels[MAX_CANCELS];
static int n_postings, n_cancels;

static int by_amount(const void *a, const void *b)
{
    const struct posting *p = a, *q = b;

#ifdef FIXED
    if (p->cents != q->cents)
        return p->cents < q->cents ? -1 : 1;
#else
    if (p->cents != q->cents)
        return p->cents - q->cents;
#endif
    return p->ref < q->ref ? -1 : p->ref > q->ref;
}

static uint32_t lcg(uint32_t *s)
{
    *s = *s * 1664525u + 1013904223u;
    return *s >> 8;
}

static int32_t random_amount(uint32_t *s)
{
    int32_t v = (int32_t)(lcg(s) % 500000);

    /* transfers between banks are much larger */
    if (lcg(s) % 9 == 0)
        v = 1000000000 + (int32_t)(lcg(s) % 1000) * 700000;
    return lcg(s) % 2 ? v : -v;
}

static void make_day(uint32_t seed)
{
    uint32_t s = seed;
    int n = 250 + (int)(lcg(&s) % 100);

    for (int i = 0; i < n; i++) {
        struct posting *p = &postings[n_postings++];
        p->cents = random_amount(&s);
        p->ref = 100000u + (uint32_t)i;
        p->settled = 0;
        if (lcg(&s) % 4 == 0 && n_cancels < MAX_CANCELS) {
            cancels[n_cancels].cents = p->cents;
            cancels[n_cancels].ref = p->ref;
            n_cancels++;
        }
    }
}

static void sort_postings(void)
{
    qsort(postings, (size_t)n_postings, sizeof postings[0], by_amount);
}

static struct posting *find_posting(int32_t cents, uint32_t ref)
{
    struct posting key = { .cents = cents, .ref = ref };
    int lo = 0, hi = n_postings - 1;

    while (lo <= hi) {
        int mid = lo + (hi - lo) / 2;
        int c = by_amount(&key, &postings[mid]);
        if (c == 0)
            return &postings[mid];
        if (c < 0)
            hi = mid - 1;
        else
            lo = mid + 1;
    }
    return NULL;
}

/* Number of cancellations that have no posting. */
static int apply_cancels(long long *sum)
{
    int unmatched = 0;

    for (int i = 0; i < n_cancels; i++) {
        struct posting *p = find_posting(cancels[i].cents, cancels[i].ref);
        if (!p) {
            unmatched++;
            continue;
        }
        p->settled = 1;
        *sum -= p->cents;
    }
    return unmatched;
}

static int check_day(int unmatched, long long sum)
{
    long long open = 0;
    int n = 0;

    for (int i = 0; i < n_postings; i++)
        if (!postings[i].settled) {
            open += postings[i].cents;
            n++;
        }
    if (open != sum)
        return 2;
    if (n + n_cancels != n_postings)
        return 3;
    return unmatched ? 4 : 0;
}

int main(int argc, char **argv)
{
    uint32_t seed = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10)
                             : (uint32_t)time(NULL) * 2654435761u + (uint32_t)getpid() * 69069u;
    long long sum = 0;
    int unmatched, rc;

    make_day(seed);
    sort_postings();
    for (int i = 0; i < n_postings; i++)
        sum += postings[i].cents;
    unmatched = apply_cancels(&sum);
    rc = check_day(unmatched, sum);
    printf("%d postings, %d cancelled, balance %lld.%02lld\n", n_postings,
           n_cancels, sum / 100, llabs(sum % 100));
    if (rc)
        fprintf(stderr, "day does not close (%d)\n", rc);
    return rc;
}
