/* SPDX-License-Identifier: MIT */
/* One thread waits until another has loaded the settings: sometimes it waits for ever. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

struct settings {
    char name[16];
    int port;
    atomic_int loaded;
};

static struct settings settings;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

static int parse(struct settings *s, const char *text)
{
    const char *colon = strchr(text, ':');

    if (!colon || colon - text >= (long)sizeof s->name)
        return -1;
    memcpy(s->name, text, (size_t)(colon - text));
    for (colon++; *colon; colon++)
        s->port = s->port * 10 + (*colon - '0');
    return 0;
}

static void *loader(void *arg)
{
    if (parse(&settings, arg) != 0)
        return NULL;
    pthread_mutex_lock(&lock);
    atomic_store(&settings.loaded, 1);
    pthread_mutex_unlock(&lock);
    pthread_cond_signal(&changed);
    return NULL;
}

static void await(struct settings *s)
{
    pthread_mutex_lock(&lock);
    while (!atomic_load(&s->loaded)) {
        pthread_cond_wait(&changed, &lock);
    }
    pthread_mutex_unlock(&lock);
}

static void *server(void *arg)
{
    (void)arg;
    await(&settings);
    printf("%s listens on %d\n", settings.name, settings.port);
    return NULL;
}

int main(void)
{
    pthread_t one, two;

    pthread_create(&one, NULL, loader, "front:8080");
    pthread_create(&two, NULL, server, NULL);
    pthread_join(one, NULL);
    pthread_join(two, NULL);
    return 0;
}
