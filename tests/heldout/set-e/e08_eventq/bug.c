/* SPDX-License-Identifier: MIT */ /*
 * Discrete event simulation of a machine hall.  Events sit in a list that
 * is ordered by time; nodes are taken from a small pool and given back.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MACHINES 10
#define HORIZON  4000

enum what { START, FINISH, INSPECT };

struct event {
    struct event *next;
    long when;
    int id;
    enum what what;
    int machine;
};

static struct event *head, *tail;
static struct event *spare[64];
static int n_spare, next_id = 1;
static long now;

static struct machine {
    int inspection;             /* id of the planned inspection */
    int parts, stops;
    long until;
} machine[MACHINES];

static struct event *event_new(long when, enum what what, int m)
{
    struct event *e;

    if (n_spare > 0)
        e = spare[--n_spare];
    else
        e = calloc(1, sizeof *e);
    if (!e)
        exit(9);
#ifdef FIXED
    e->next = NULL;
#endif
    e->when = when;
    e->what = what;
    e->machine = m;
    e->id = next_id++;
    return e;
}

static void event_done(struct event *e)
{
    if (n_spare < 64)
        spare[n_spare++] = e;
    else
        free(e);
}

static int schedule(long when, enum what what, int m)
{
    struct event *e = event_new(when, what, m);

    if (!head) {
        head = tail = e;
    } else if (when >= tail->when) {
        tail->next = e;
        tail = e;
    } else {
        struct event **at = &head;
        while ((*at)->when <= when)
            at = &(*at)->next;
        e->next = *at;
        *at = e;
    }
    return e->id;
}

static struct event *take_first(void)
{
    struct event *e = head;

    head = e->next;
    if (!head)
        tail = NULL;
    e->next = NULL;
    return e;
}

/* Unplan an event; fine if it has happened already. */
static int cancel(int id)
{
    struct event **at = &head, *prev = NULL;

    while (*at && (*at)->id != id) {
        prev = *at;
        at = &(*at)->next;
    }
    if (!*at)
        return 0;
    struct event *e = *at;
    *at = e->next;
    if (tail == e)
        tail = prev;
    event_done(e);
    return 1;
}

static long minutes(int lo, int hi)
{
    return lo + rand() % (hi - lo + 1);
}

static void happen(const struct event *e)
{
    struct machine *m = &machine[e->machine];

    switch (e->what) {
    case START:
        schedule(now + minutes(20, 60), FINISH, e->machine);
        break;
    case FINISH:
        m->parts++;
        if (rand() % 1100 == 0) {
            /* broke down: repair replaces the planned inspection */
            cancel(m->inspection);
            m->stops++;
            m->until = now + minutes(100, 300);
            m->inspection = schedule(m->until + minutes(300, 500), INSPECT, e->machine);
            schedule(m->until, START, e->machine);
        } else {
            schedule(now + minutes(1, 9), START, e->machine);
        }
        break;
    case INSPECT:
        m->stops++;
        cancel(m->inspection);
        m->inspection = schedule(now + minutes(350, 600), INSPECT, e->machine);
        break;
    }
}

int main(int argc, char **argv)
{
    int events = 0, parts = 0, stops = 0;

    if (argc > 1)
        srand((unsigned)strtoul(argv[1], NULL, 10));
    else
        srand((unsigned)time(NULL) ^ (unsigned)getpid() << 8);

    for (int i = 0; i < MACHINES; i++) {
        schedule(minutes(0, 30), START, i);
        machine[i].inspection = schedule(minutes(200, 600), INSPECT, i);
    }
    while (head && head->when < HORIZON) {
        struct event *e = take_first();
        now = e->when;
        happen(e);
        event_done(e);
        events++;
    }
    for (int i = 0; i < MACHINES; i++) {
        parts += machine[i].parts;
        stops += machine[i].stops;
    }
    printf("%d events, %d parts, %d stops\n", events, parts, stops);
    return 0;
}
