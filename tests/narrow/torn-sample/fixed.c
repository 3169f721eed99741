/* SPDX-License-Identifier: MIT */
/* A reader takes a sample that a writer replaces: sometimes its parts do not belong together, and an assertion fails. */
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

struct sample {
    atomic_uint version; /* odd while the sample is written */
    atomic_int sum;
    atomic_int parts[3];
};

static struct sample current;

static void write_sample(struct sample *s, int base)
{
    unsigned version = atomic_load(&s->version);
    int sum = 0;

    atomic_store(&s->version, version + 1);
    for (int i = 0; i < 3; i++) {
        atomic_store(&s->parts[i], base + i);
        sum += base + i;
    }
    atomic_store(&s->sum, sum);
    atomic_store(&s->version, version + 2);
}

static int read_sample(struct sample *s, int parts[3])
{
    unsigned before;
    int sum;

    do {
        while ((before = atomic_load(&s->version)) & 1)
            ;
        for (int i = 0; i < 3; i++) {
            parts[i] = atomic_load(&s->parts[i]);
        }
        sum = atomic_load(&s->sum);
    } while (atomic_load(&s->version) != before);
    return sum;
}

static void *writer(void *arg)
{
    (void)arg;
    write_sample(&current, 20);
    return NULL;
}

static void *reader(void *arg)
{
    int parts[3];
    int sum = read_sample(&current, parts);

    (void)arg;
    assert(parts[0] + parts[1] + parts[2] == sum);
    printf("sum %d\n", sum);
    return NULL;
}

int main(void)
{
    pthread_t one, two;

    write_sample(&current, 10);
    pthread_create(&one, NULL, writer, NULL);
    pthread_create(&two, NULL, reader, NULL);
    pthread_join(one, NULL);
    pthread_join(two, NULL);
    return 0;
}
