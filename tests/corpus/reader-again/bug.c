// SPDX-License-Identifier: MIT
// A reader takes the read lock a second time, in a function it calls; a writer who asked in between goes first, and waits for the reader.
#include "../corpus.h"

enum { PLUGINS = 3 };

struct plugin {
    char name[16];
    unsigned cost;
    unsigned version;
};
struct registry {
    pthread_rwlock_t lock;
    struct plugin plugins[PLUGINS];
    unsigned updates;
};
static struct registry registry;

static void registry_init(struct registry *r)
{
    static const char *const names[PLUGINS] = {"gzip", "rewrite", "proxy"};
    pthread_rwlockattr_t attr;

    pthread_rwlockattr_init(&attr);
    pthread_rwlockattr_setkind_np(&attr, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
    pthread_rwlock_init(&r->lock, &attr);
    pthread_rwlockattr_destroy(&attr);
    for (unsigned i = 0; i < PLUGINS; i++) {
        snprintf(r->plugins[i].name, sizeof(r->plugins[i].name), "%s", names[i]);
        r->plugins[i].cost = 10 + i;
        r->plugins[i].version = 1;
    }
}

static unsigned weigh(const struct plugin *p)
{
    unsigned hash = p->version;

    for (const char *c = p->name; *c; c++)
        hash = hash * 31 + (unsigned char)*c;
    return p->cost + hash % 7;
}

static unsigned plugin_cost(struct registry *r, unsigned i)
{
    unsigned cost;

#ifdef FIXED
    cost = weigh(&r->plugins[i]);
#else
    pthread_rwlock_rdlock(&r->lock);                  //@inner
    cost = weigh(&r->plugins[i]);
    pthread_rwlock_unlock(&r->lock);
#endif
    return cost;
}

static unsigned registry_report(struct registry *r, char *text, size_t n)
{
    unsigned total = 0, used = 0;

    pthread_rwlock_rdlock(&r->lock);                  //@outer
    for (unsigned i = 0; i < PLUGINS; i++) {
        used += (unsigned)snprintf(text + used, n - used, "%s ", r->plugins[i].name);
        window(60);
        total += plugin_cost(r, i);                   //@call
    }
    pthread_rwlock_unlock(&r->lock);
    return total;
}

static void plugin_update(struct registry *r, unsigned i)
{
    pthread_rwlock_wrlock(&r->lock);                  //@write
    r->plugins[i].version++;
    r->plugins[i].cost += 2;
    r->updates++;
    pthread_rwlock_unlock(&r->lock);
}

static void *updater(void *arg)
{
    for (unsigned i = 0; i < 2; i++) {
        window(5000);
        plugin_update(arg, i);
    }
    return NULL;
}

int main(void)
{
    unsigned total = 0;
    char text[80] = "";
    pthread_t t;

    registry_init(&registry);
    pthread_create(&t, NULL, updater, &registry);
    for (int i = 0; i < 3; i++) {
        window(3500);
        total += registry_report(&registry, text, sizeof(text));
    }
    pthread_join(t, NULL);
    printf("%s: %u after %u updates\n", text, total, registry.updates);
    return 0;
}
