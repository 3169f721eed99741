/* SPDX-License-Identifier: MIT */ /* Configuration-driven message routing: "route" lines create handlers,
 * then messages run through all the handlers that want them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct handler;
typedef int (*handle_fn)(struct handler *h, const char *msg);

struct handler {
    handle_fn fn;
    struct handler *next;
    unsigned long count;
    long limit;
    char *comment;
};

#define N_TOPICS 4

static const char *const topics[N_TOPICS] = { "order", "invoice", "return", "stock" };
static struct handler *handlers[N_TOPICS];
static char *rejected[64];
static int n_rejected;

static int do_count(struct handler *h, const char *msg)
{
    (void)msg;
    h->count++;
    return 0;
}

static int do_length(struct handler *h, const char *msg)
{
    h->count += strlen(msg);
    return h->limit && (long)h->count > h->limit;
}

static int do_vowels(struct handler *h, const char *msg)
{
    for (; *msg; msg++)
        if (strchr("aeiou", *msg))
            h->count++;
    return 0;
}

static const struct {
    const char *name;
    handle_fn fn;
} actions[] = {
    { "count", do_count }, { "length", do_length }, { "vowels", do_vowels },
};

static int set_action(struct handler *h, const char *name)
{
    for (size_t i = 0; i < sizeof actions / sizeof actions[0]; i++)
        if (strcmp(actions[i].name, name) == 0) {
            h->fn = actions[i].fn;
            return 0;
        }
    return -1;
}

static int set_limit(struct handler *h, const char *text)
{
    char *end;

    h->limit = strtol(text, &end, 10);
    return *end == '\0' && h->limit >= 0 ? 0 : -1;
}

static void handler_free(struct handler *h)
{
    free(h->comment);
    free(h);
}

static int find_topic(const char *name)
{
    for (int i = 0; i < N_TOPICS; i++)
        if (strcmp(topics[i], name) == 0)
            return i;
    return -1;
}

/* route TOPIC ACTION LIMIT */
static int add_route(const char *line)
{
    char topic[32], action[16], limit[16];
    struct handler *h;
    int t;

    if (sscanf(line, "route %31s %15s %15s", topic, action, limit) != 3)
        return -1;
    if ((t = find_topic(topic)) < 0)
        return -1;
    h = calloc(1, sizeof *h);
    if (!h)
        return -1;
    h->comment = strdup(line + 6);
    if (set_action(h, action))
        goto fail;
    h->next = handlers[t];
    handlers[t] = h;
    if (set_limit(h, limit))
        goto fail;
    return 0;

fail:
#ifdef FIXED
    if (handlers[t] == h)
        handlers[t] = h->next;
#endif
    handler_free(h);
    return -1;
}

static void configure(int lines)
{
    static const char *acts[] = { "count", "length", "vowels", "length" };
    char line[80];

    for (int i = 0; i < lines; i++) {
        int bad = rand() % 48;

        snprintf(line, sizeof line, "route %s %s %s%d%s", topics[rand() % N_TOPICS],
                 bad == 0 ? "lenght" : acts[rand() % 4], bad == 1 ? "-" : "",
                 1 + rand() % 5000, bad == 2 ? "kB" : "");
        if (add_route(line) && n_rejected < 64)
            rejected[n_rejected++] = strdup(line);
    }
}

static void route(int topic, const char *msg)
{
    for (struct handler *h = handlers[topic]; h; h = h->next)
        if (h->fn(h, msg))
            h->count = 0;
}

int main(int argc, char **argv)
{
    static const char *words[] = { "blue", "urgent", "pallet", "seven", "express", "void" };
    unsigned long sum = 0;
    char msg[128];

    if (argc > 1)
        srand((unsigned)atoi(argv[1]));
    else
        srand((unsigned)(time(NULL) ^ (getpid() * 7919)));

    configure(10);
    for (int i = 0; i < 200; i++) {
        snprintf(msg, sizeof msg, "%s %s %d", words[rand() % 6], words[rand() % 6], i);
        route(i % N_TOPICS, msg);
    }
    for (int i = 0; i < n_rejected; i++)
        printf("rejected: %s\n", rejected[i]);
    for (int t = 0; t < N_TOPICS; t++)
        for (struct handler *h = handlers[t]; h; h = h->next) {
            printf("%-8s %6lu  %s\n", topics[t], h->count, h->comment);
            sum += h->count;
        }
    printf("sum %lu\n", sum);
    return 0;
}
