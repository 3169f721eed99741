/* SPDX-License-Identifier: MIT */
/* Waits for SIGUSR1, so that a recorder can come, and then crashes: the value that find() returns is used unchecked. */
#include <signal.h>
#include <stdio.h>

struct item {
    int key, value;
};

static struct item items[] = {{1, 10}, {2, 20}, {3, 30}};

static struct item *find(int key)
{
    for (unsigned i = 0; i < sizeof(items) / sizeof(items[0]); i++)
        if (items[i].key == key)
            return &items[i];
    return NULL;
}

static int sum(int most)
{
    int all = 0;

    for (int key = 1; key <= most; key++)
        all += find(key)->value;
    return all;
}

int main(void)
{
    sigset_t set;
    int got;

    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigprocmask(SIG_BLOCK, &set, NULL);
    puts("ready");
    fflush(stdout);
    sigwait(&set, &got);
    return sum(4);
}
