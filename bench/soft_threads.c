/* SPDX-License-Identifier: MIT */
/* The pthread program that bench/soft.sh measures: threads take blocks of words from a queue under a mutex, sort each
 * and count its words in a table of their own. Branches, calls through a pointer, recursion, and a lock at times. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORDS 4096
#define BUCKETS 2048
#define THREADS 2

struct entry {
    char word[12];
    unsigned count;
    struct entry *next;
};

struct table {
    struct entry *buckets[BUCKETS];
    unsigned long distinct;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned left;
static unsigned long total;

typedef int order(const char *a, const char *b);

static int by_text(const char *a, const char *b)
{
    while (*a && *a == *b) {
        a++;
        b++;
    }
    return (unsigned char)*a - (unsigned char)*b;
}

static int by_length(const char *a, const char *b)
{
    size_t m = strlen(a), n = strlen(b);

    return m == n ? by_text(a, b) : m < n ? -1 : 1;
}

static void make_words(char (*words)[12], uint64_t seed)
{
    for (unsigned i = 0; i < WORDS; i++) {
        unsigned n = 0;

        do {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            words[i][n++] = (char)('a' + (seed >> 60));
        } while (n < 11 && (seed >> 40) % 5);
        words[i][n] = '\0';
    }
}

static void sort(char (*words)[12], long low, long high, order *compare)
{
    char pivot[12], swap[12];
    long i = low, k = high;

    if (low >= high)
        return;
    memcpy(pivot, words[(low + high) / 2], 12);
    while (i <= k) {
        while (compare(words[i], pivot) < 0)
            i++;
        while (compare(words[k], pivot) > 0)
            k--;
        if (i <= k) {
            memcpy(swap, words[i], 12);
            memcpy(words[i++], words[k], 12);
            memcpy(words[k--], swap, 12);
        }
    }
    sort(words, low, k, compare);
    sort(words, i, high, compare);
}

static void count_word(struct table *t, const char *word)
{
    uint32_t hash = 2166136261u;
    struct entry *e;

    for (const char *c = word; *c; c++)
        hash = (hash ^ (unsigned char)*c) * 16777619u;
    for (e = t->buckets[hash % BUCKETS]; e && by_text(e->word, word) != 0; e = e->next)
        ;
    if (!e) {
        e = calloc(1, sizeof(*e));
        if (!e)
            abort();
        memcpy(e->word, word, 12);
        e->next = t->buckets[hash % BUCKETS];
        t->buckets[hash % BUCKETS] = e;
        t->distinct++;
    }
    e->count++;
}

static unsigned take_block(void)
{
    unsigned block;

    pthread_mutex_lock(&lock);
    block = left ? left-- : 0;
    pthread_mutex_unlock(&lock);
    return block;
}

static void *work(void *argument)
{
    struct table *t = argument;
    static _Thread_local char words[WORDS][12];
    unsigned block;

    while ((block = take_block()) != 0) {
        make_words(words, block);
        sort(words, 0, WORDS - 1, block % 2 ? by_text : by_length);
        for (unsigned i = 0; i < WORDS; i++)
            count_word(t, words[i]);
    }
    pthread_mutex_lock(&lock);
    total += t->distinct;
    pthread_mutex_unlock(&lock);
    return NULL;
}

int main(int argc, char **argv)
{
    static struct table tables[THREADS];
    pthread_t threads[THREADS];

    left = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 0) : 100;
    for (unsigned i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, work, &tables[i]))
            return 1;
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    return total ? 0 : 1;
}
