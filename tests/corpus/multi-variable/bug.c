// SPDX-License-Identifier: MIT
// Two variables that belong together, a text and its length, are changed in two steps; a reader sees one old and one new.
#include "../corpus.h"

struct string {
    const char *text;
    int length;
};
static struct string title = {"title", 5};
#ifdef FIXED
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
#define LOCK() pthread_mutex_lock(&lock)
#define UNLOCK() pthread_mutex_unlock(&lock)
#else
#define LOCK() (void)0
#define UNLOCK() (void)0
#endif

static void *set(void *arg)
{
    (void)arg;
    window(200);
    LOCK();
    title.text = "a";                              //@text
    window(200);
    title.length = 1;                              //@length
    UNLOCK();
    return NULL;
}

int main(void)
{
    pthread_t t;
    const char *text;
    int length;

    pthread_create(&t, NULL, set, NULL);           //@create
    window(400);
    LOCK();
    text = title.text;                             //@read_text
    length = title.length;                         //@read_length
    UNLOCK();
    CHECK((int)strlen(text) == length);            //@check
    pthread_join(t, NULL);
    return 0;
}
