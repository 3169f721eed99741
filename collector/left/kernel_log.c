/* SPDX-License-Identifier: MIT */
/* See kernel_log.h. */
#include "collector/left/kernel_log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define RECORD 8192 /* bytes; the kernel's records are shorter */
#define SECOND_NS 1000000000u

/* A record is "priority,sequence,microseconds,flags;message". */
bool etch_kernel_log_parse(const char *record, size_t size, struct etch_kernel_kill *kill)
{
    static const char killed[] = "ut of memory: Killed process ";
    char text[RECORD], *message, *found;
    unsigned long long microseconds;
    unsigned pid;
    int at = 0;

    memset(kill, 0, sizeof(*kill));
    if (size >= sizeof(text))
        return false;
    memcpy(text, record, size);
    text[size] = '\0';
    message = strchr(text, ';');
    found = message ? strstr(message, killed) : NULL;
    if (!found || sscanf(text, "%*u,%*u,%19llu", &microseconds) != 1 || microseconds > UINT64_MAX / 1000 ||
        sscanf(found + strlen(killed), "%9u (%n", &pid, &at) != 1 || !at)
        return false;
    found += strlen(killed) + (size_t)at;
    for (size_t i = 0; i + 1 < sizeof(kill->name) && found[i] && found[i] != ')'; i++)
        kill->name[i] = found[i];
    kill->pid = pid;
    kill->boot_ns = microseconds * 1000;
    kill->group = strstr(message, "emory cgroup out of memory") != NULL;
    return kill->name[0] != '\0';
}

void etch_kernel_log_read(etch_kernel_kills *kills)
{
    int fd = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    char record[RECORD];
    struct etch_kernel_kill kill;
    ssize_t n;

    if (fd < 0)
        return;
    /* EPIPE: records were overwritten meanwhile; the next ones are there. */
    while ((n = read(fd, record, sizeof(record))) > 0 || (n < 0 && (errno == EPIPE || errno == EINTR)))
        if (n > 0 && etch_kernel_log_parse(record, (size_t)n, &kill) && !etch_array_push(kills, kill))
            break;
    close(fd);
}

static uint64_t now_ns(clockid_t clock)
{
    struct timespec t;

    return clock_gettime(clock, &t) == 0 ? (uint64_t)t.tv_sec * SECOND_NS + (uint64_t)t.tv_nsec : 0;
}

const struct etch_kernel_kill *etch_kernel_log_find(const etch_kernel_kills *kills, uint32_t pid, const char *name,
                                                    uint64_t start_unix_ns)
{
    uint64_t boot = now_ns(CLOCK_REALTIME) - now_ns(CLOCK_MONOTONIC);

    for (size_t i = kills->n; i-- > 0;) {
        const struct etch_kernel_kill *k = &kills->v[i];

        /* The log's clock and the other are apart by milliseconds. */
        if (k->pid == pid && strncmp(k->name, name, sizeof(k->name) - 1) == 0 &&
            boot + k->boot_ns + SECOND_NS > start_unix_ns)
            return k;
    }
    return NULL;
}
