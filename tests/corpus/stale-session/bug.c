// SPDX-License-Identifier: MIT
// A session is looked up under the list's lock but used without it, and nothing counts who holds it: the reaper frees it meanwhile.
#include "../corpus.h"

struct account {
    char name[24];
    unsigned requests;
};
struct session {
    struct account *owner;
    unsigned id;
    int expired;
    struct session *next;
};
static struct session *sessions;
static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static struct account accounts[3] = {{"ann", 0}, {"bob", 0}, {"eve", 0}};

static void session_open(unsigned id, struct account *owner)
{
    struct session *s = malloc(sizeof(*s));

    s->owner = owner;                             //@owner
    s->id = id;
    s->expired = id == 2;
    pthread_mutex_lock(&list_lock);
    s->next = sessions;
    sessions = s;                                 //@link
    pthread_mutex_unlock(&list_lock);
}

static struct session *session_find(unsigned id)
{
    struct session *s;

    pthread_mutex_lock(&list_lock);
    s = sessions;                                 //@seek
    while (s && s->id != id)
        s = s->next;
#ifndef FIXED
    pthread_mutex_unlock(&list_lock);
#endif
    return s;                                     //@found
}

static void reap(void)
{
    struct session **at = &sessions, *s;

    pthread_mutex_lock(&list_lock);
    while ((s = *at)) {
        if (s->expired) {
            *at = s->next;
            free(s);                              //@free
        } else {
            at = &s->next;
        }
    }
    pthread_mutex_unlock(&list_lock);
}

static unsigned parse(const char *request)
{
    unsigned hash = 0;

    for (; *request; request++)
        hash = hash * 131 + (unsigned char)*request;
    window(800);
    return hash;
}

static unsigned serve(unsigned id, const char *request)
{
    struct session *s = session_find(id);         //@find
    unsigned hash = 0;

    if (s) {
        hash = parse(request);
        s->owner->requests++;                     //@use
    }
#ifdef FIXED
    pthread_mutex_unlock(&list_lock);
#endif
    return hash;
}

static void *server(void *arg)
{
    static const char *const requests[] = {"GET /", "GET /news", "POST /form"};
    unsigned hash = 0;

    (void)arg;
    for (unsigned i = 0; i < 6; i++) {
        window(100);
        hash ^= serve(draw(3), requests[i % 3]);
    }
    return (void *)(unsigned long)hash;
}

int main(void)
{
    pthread_t t;

    for (unsigned i = 0; i < 3; i++)
        session_open(i, &accounts[i]);
    pthread_create(&t, NULL, server, NULL);
    window(4000);
    reap();
    pthread_join(t, NULL);
    for (int i = 0; i < 3; i++)
        printf("%s %u\n", accounts[i].name, accounts[i].requests);
    return 0;
}
