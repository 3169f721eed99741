// SPDX-License-Identifier: MIT
// The lock is given up while a name server is asked; the table grows meanwhile, and the answer goes into the old one.
#include "../corpus.h"

enum { FIRST_ROOM = 4, HOSTS = 3 };

struct address {
    unsigned char octets[4];
    unsigned short port;
};
struct record {
    char name[24];
    unsigned asked;
    struct address *address;
};
struct block {
    struct block *next;
    struct record *records;
};
struct names {
    pthread_mutex_t lock;
    struct record *records;
    unsigned used, room;
    struct block *old;
};
static struct names names = {PTHREAD_MUTEX_INITIALIZER, NULL, 0, 0, NULL};

// The table: who calls these holds its lock. Old blocks stay, for those who read a name without it.
static void names_keep(struct names *n, struct record *records)
{
    struct block *b = malloc(sizeof(*b));

    b->records = records;
    b->next = n->old;
    n->old = b;
}

static void names_grow(struct names *n)
{
    unsigned room = n->room ? n->room * 2 : FIRST_ROOM;
    struct record *fresh = calloc(room, sizeof(*fresh));

    for (unsigned i = 0; i < n->used; i++)
        fresh[i] = n->records[i];                   //@copy
    if (n->records)
        names_keep(n, n->records);
    n->records = fresh;                             //@swap
    n->room = room;
}

static struct record *names_find(struct names *n, const char *name)
{
    for (unsigned i = 0; i < n->used; i++)
        if (strcmp(n->records[i].name, name) == 0)
            return &n->records[i];                  //@give
    return NULL;
}

static void names_add(struct names *n, const char *name)
{
    struct record *r;

    if (n->used == n->room)
        names_grow(n);
    r = &n->records[n->used++];
    snprintf(r->name, sizeof(r->name), "%s", name);
}

// The resolver.
static struct address *ask_server(const char *name)
{
    struct address *a = calloc(1, sizeof(*a));
    unsigned hash = 5381;

    for (const char *c = name; *c; c++)
        hash = hash * 33 ^ (unsigned char)*c;
    for (unsigned i = 0; i < sizeof(a->octets); i++)
        a->octets[i] = (unsigned char)(hash >> 8 * i);
    a->port = 53;
    window(600);
    return a;
}

static void resolve(struct names *n, const char *name)
{
    struct record *r;
    struct address *a;

    pthread_mutex_lock(&n->lock);
    r = names_find(n, name);                        //@find
    r->asked++;
    pthread_mutex_unlock(&n->lock);
    a = ask_server(r->name);
    pthread_mutex_lock(&n->lock);
#ifdef FIXED
    r = names_find(n, name);
#endif
    r->address = a;                                 //@store
    pthread_mutex_unlock(&n->lock);
}

static unsigned dial(struct names *n, const char *name)
{
    struct record *r;
    unsigned sum;

    pthread_mutex_lock(&n->lock);
    r = names_find(n, name);                        //@again
    sum = r->address->port + r->address->octets[0]; //@use
    pthread_mutex_unlock(&n->lock);
    return sum;
}

static void *client(void *arg)
{
    static const char *const hosts[HOSTS] = {"mail.example", "www.example", "ntp.example"};
    unsigned long sum = 0;

    for (unsigned i = 0; i < HOSTS; i++) {
        window(700);
        resolve(arg, hosts[i]);
        sum += dial(arg, hosts[i]);
    }
    return (void *)sum;
}

int main(void)
{
    static const char *const first[] = {"www.example", "mail.example", "ntp.example"};
    char name[24];
    void *sum;
    pthread_t t;

    for (unsigned i = 0; i < 3; i++)
        names_add(&names, first[i]);
    pthread_create(&t, NULL, client, &names);
    for (unsigned i = 0; i < 3; i++) {
        window(1500);
        snprintf(name, sizeof(name), "host%u.example", i);
        pthread_mutex_lock(&names.lock);
        names_add(&names, name);
        pthread_mutex_unlock(&names.lock);
    }
    pthread_join(t, &sum);
    printf("%u names in %u, sum %lu\n", names.used, names.room, (unsigned long)sum);
    return 0;
}
