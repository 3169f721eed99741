// SPDX-License-Identifier: MIT
// A weight left out is told by the reader's error, and the default taken; the error stays, and the port is refused.
#include "../corpus.h"
#include <ctype.h>

enum { HOSTS = 5 };

struct cursor {
    const char *at;
    int error;
    unsigned line;
};
struct host {
    char name[16];
    unsigned weight;
    unsigned port;
    struct host *next;
};
struct cluster {
    struct host *hosts;
    unsigned count;
    unsigned weight;
};

// Reading words and numbers.
static void cursor_blank(struct cursor *c)
{
    while (*c->at == ' ')
        c->at++;
}

static int cursor_line(struct cursor *c)
{
    while (*c->at == '\n')
        c->at++;
    c->line++;
    c->error = 0;
    return *c->at != '\0';
}

static int cursor_more(struct cursor *c)
{
    cursor_blank(c);
    return *c->at && *c->at != '\n';
}

static void cursor_word(struct cursor *c, char *word, unsigned room)
{
    unsigned n = 0;

    cursor_blank(c);
    for (; *c->at > ' '; c->at++)
        if (n + 1 < room)
            word[n++] = *c->at;
    word[n] = '\0';
}

static unsigned cursor_number(struct cursor *c)
{
    unsigned n = 0;
    char word[16];

    cursor_word(c, word, sizeof(word));
    for (const char *p = word; *p; p++) {
        if (!isdigit((unsigned char)*p)) { //@digit
            c->error = 1;                  //@bad
            return 0;
        }
        n = n * 10 + (unsigned)(*p - '0');
    }
    return n;
}

// Reading hosts.
static void host_weight(struct cursor *c, struct host *h)
{
    h->weight = cursor_number(c);          //@weight
    if (c->error) {                        //@left
        h->weight = 1;
#ifdef FIXED
        c->error = 0;
#endif
    }
}

static int host_port(struct cursor *c, struct host *h)
{
    h->port = 80;
    if (!cursor_more(c))
        return 1;
    h->port = cursor_number(c);
    return !c->error;                      //@test
}

static struct host *host_read(struct cursor *c)
{
    struct host *h = calloc(1, sizeof(*h));

    cursor_word(c, h->name, sizeof(h->name));
    host_weight(c, h);                     //@optional
    if (!host_port(c, h)) {                //@port
        free(h);
        return NULL;                       //@none
    }
    return h;
}

static void cluster_read(struct cluster *k, const char *text)
{
    struct cursor c = {text, 0, 0};

    while (cursor_line(&c)) {
        struct host *h = host_read(&c);    //@host

        CHECK(h);                          //@check
        h->next = k->hosts;
        k->hosts = h;
        k->weight += h->weight;
        k->count++;
    }
}

// What an administrator may have written: name, weight or "-", and perhaps a port.
static void text_make(char *text, size_t room)
{
    size_t n = 0;

    for (unsigned i = 0; i < HOSTS; i++) {
        n += (size_t)snprintf(text + n, room - n, "node%u ", i);
        if (draw(4))
            n += (size_t)snprintf(text + n, room - n, "%u", 1 + draw(9));
        else
            n += (size_t)snprintf(text + n, room - n, "-");
        if (draw(3) == 0)
            n += (size_t)snprintf(text + n, room - n, " %u", 8000 + draw(100));
        n += (size_t)snprintf(text + n, room - n, "\n");
    }
}

int main(void)
{
    struct cluster cluster = {NULL, 0, 0};
    unsigned ports = 0;
    char text[200];

    text_make(text, sizeof(text));
    cluster_read(&cluster, text);
    for (const struct host *h = cluster.hosts; h; h = h->next)
        ports += h->port;
    printf("%u hosts, weight %u, ports %u\n", cluster.count, cluster.weight, ports);
    return 0;
}
