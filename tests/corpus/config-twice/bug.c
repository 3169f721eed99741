// SPDX-License-Identifier: MIT
// A request asks for the configuration at each step: the number of routes is of one, the routes are of its successor.
#include "../corpus.h"

enum { MOST = 8 };

struct route {
    unsigned length;
    unsigned backend;
    char prefix[16];
};
struct config {
    unsigned version;
    unsigned count;
    struct route *routes[MOST];
    struct config *older;
};
static pthread_mutex_t config_lock = PTHREAD_MUTEX_INITIALIZER;
static struct config *current;

// The configuration. One that was replaced stays: a request may still hold it.
static struct config *config_build(unsigned version, unsigned count)
{
    static const char *const prefixes[MOST] = {"/", "/img", "/api", "/img/big", "/api/v2", "/doc", "/old", "/tmp"};
    struct config *c = calloc(1, sizeof(*c));          //@alloc

    c->version = version;
    c->count = count;
    for (unsigned i = 0; i < count; i++) {
        struct route *r = calloc(1, sizeof(*r));

        r->length = (unsigned)snprintf(r->prefix, sizeof(r->prefix), "%s", prefixes[i]);
        r->backend = 100 * version + i;
        c->routes[i] = r;
    }
    return c;
}

static void config_swap(struct config *c)
{
    pthread_mutex_lock(&config_lock);
    c->older = current;
    current = c;                                       //@swap
    pthread_mutex_unlock(&config_lock);
}

static struct config *config_now(void)
{
    struct config *c;

    pthread_mutex_lock(&config_lock);
    c = current;                                       //@now
    pthread_mutex_unlock(&config_lock);
    return c;                                          //@give
}

static void *reloader(void *arg)
{
    unsigned *reloads = arg;

    for (unsigned count = 5; count > 2; count -= 2) {
        window(5000);
        config_swap(config_build(++*reloads, count));  //@build
    }
    return NULL;
}

// The requests.
static unsigned route_count(const struct config *c)
{
    return c->count;                                   //@count
}

static struct route *route_at(const struct config *c, unsigned i)
{
    return c->routes[i];                               //@at
}

static int route_fits(const struct route *r, const char *path)
{
    window(40);
    return strncmp(path, r->prefix, r->length) == 0;   //@use
}

static unsigned backend_for(const char *path)
{
    unsigned best = 0, backend = 0;
#ifdef FIXED
    const struct config *c = config_now();
#define NOW() c
#else
#define NOW() config_now()
#endif
    unsigned n = route_count(NOW());                   //@ask

    for (unsigned i = 0; i < n; i++) {                 //@loop
        struct route *r = route_at(NOW(), i);          //@get

        if (route_fits(r, path) && r->length > best) { //@fits
            best = r->length;
            backend = r->backend;
        }
    }
    return backend;
}

static unsigned log_line(char *log, size_t n, const char *path, unsigned backend)
{
    return (unsigned)snprintf(log, n, "%s -> %u\n", path, backend);
}

int main(void)
{
    static const char *const paths[] = {"/img/big/a.png", "/api/v2/users", "/", "/doc/index"};
    unsigned reloads = 0, length = 0;
    char log[64];
    pthread_t t;

    config_swap(config_build(0, 7));
    pthread_create(&t, NULL, reloader, &reloads);
    for (unsigned i = 0; i < 4; i++) {
        const char *path = paths[draw(4)];

        window(2500);
        length += log_line(log, sizeof(log), path, backend_for(path));
    }
    pthread_join(t, NULL);
    printf("%u bytes of log, %u reloads\n", length, reloads);
    return 0;
}
