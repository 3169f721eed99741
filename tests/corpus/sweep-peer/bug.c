// SPDX-License-Identifier: MIT
// A sweep remembers the next session before it closes one; closing takes the peer along, and the peer may be the next.
#include "../corpus.h"

enum { SESSIONS = 6 };

struct kind {
    const char *name;
    unsigned limit;
};
struct session {
    struct session *prev, *next;
    struct session *peer;
    const struct kind *kind;
    unsigned id;
    unsigned idle;
};
struct server {
    struct session *head;
    struct session *spare;
    unsigned open, closed;
};
static const struct kind client = {"client", 30}, upstream = {"upstream", 45};

// The list of sessions.
static void list_add(struct server *v, struct session *s)
{
    s->prev = NULL;
    s->next = v->head;
    if (s->next)
        s->next->prev = s;
    v->head = s;
    v->open++;
}

static void list_remove(struct server *v, struct session *s)
{
    if (s->prev)
        s->prev->next = s->next;
    else
        v->head = s->next;
    if (s->next)
        s->next->prev = s->prev;
    v->open--;
}

// Sessions. One that was closed is kept for the next to be opened.
static struct session *session_open(struct server *v, const struct kind *kind, unsigned id)
{
    struct session *s = v->spare;

    if (s)
        v->spare = s->next;
    else
        s = malloc(sizeof(*s));
    s->kind = kind;
    s->id = id;
    s->idle = 0;
    s->peer = NULL;
    list_add(v, s);
    return s;
}

static void session_release(struct server *v, struct session *s)
{
    list_remove(v, s);
    s->kind = NULL;                                  //@clear
    s->next = v->spare;
    v->spare = s;
    v->closed++;
}

static void session_join(struct session *a, struct session *b)
{
    if (a != b && !a->peer && !b->peer) {
        a->peer = b;                                 //@join
        b->peer = a;
    }
}

static void session_close(struct server *v, struct session *s)
{
    if (s->peer)
        session_release(v, s->peer);                 //@along
    session_release(v, s);
}

static int session_expired(const struct session *s)
{
    return s->idle > s->kind->limit;                 //@use
}

static void server_sweep(struct server *v)
{
    struct session *next;

    for (struct session *s = v->head; s; s = next) { //@step
        next = s->next;                              //@next
        if (session_expired(s)) {                    //@ask
            session_close(v, s);                     //@close
#ifdef FIXED
            next = v->head;
#endif
        }
    }
}

// What happens meanwhile.
static void server_pass_time(struct server *v)
{
    for (struct session *s = v->head; s; s = s->next)
        s->idle = draw(3) ? s->idle + draw(20) : 0;
}

static unsigned server_report(const struct server *v, char *text, size_t n)
{
    unsigned used = 0;

    for (const struct session *s = v->head; s; s = s->next)
        used += (unsigned)snprintf(text + used, n - used, "%s %u, ", s->kind->name, s->id);
    return used;
}

int main(void)
{
    struct server server = {NULL, NULL, 0, 0};
    struct session *opened[SESSIONS];
    char text[160] = "";
    unsigned length = 0;

    for (unsigned i = 0; i < SESSIONS; i++)
        opened[i] = session_open(&server, i % 2 ? &upstream : &client, i);
    for (unsigned i = 1; i < SESSIONS; i += 2)
        session_join(opened[i], opened[draw(i)]);
    for (unsigned minute = 0; minute < 12; minute++) {
        server_pass_time(&server);
        server_sweep(&server);
        length += server_report(&server, text, sizeof(text));
    }
    printf("%u open, %u closed, %u reported\n", server.open, server.closed, length);
    return 0;
}
