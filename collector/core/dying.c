/* SPDX-License-Identifier: MIT */
/* See dying.h. */
#include "collector/core/dying.h"

#include "base/input.h"
#include "collector/session/process.h"
#include "proto/soft_layout.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define THREADS_MAX 1024u
#define ENVIRONMENT_MAX ((size_t)1 << 20)

static void read_link(pid_t pid, const char *name, char *text, size_t size)
{
    char path[64];
    ssize_t n;

    snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
    n = readlink(path, text, size - 1);
    text[n > 0 ? n : 0] = '\0';
}

static void take_exe(struct core_dying *d, pid_t pid)
{
    struct stat there, here;
    char path[64];

    read_link(pid, "exe", d->exe, sizeof(d->exe));
    snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
    d->exe_fd = etch_input_open(path);
    if (d->exe_fd >= 0 && fstat(d->exe_fd, &there) == 0)
        d->exe_elsewhere = stat(d->exe, &here) < 0 || here.st_dev != there.st_dev || here.st_ino != there.st_ino;
}

static void take_command(struct core_dying *d, pid_t pid)
{
    char path[64];
    ssize_t n;

    snprintf(path, sizeof(path), "/proc/%d/cmdline", (int)pid);
    n = etch_process_text(path, d->command, sizeof(d->command));
    d->command_size = n > 0 ? (size_t)n : 0;
}

/* Only the one variable is taken out of the environment. */
static void take_rings(struct core_dying *d, pid_t pid)
{
    static const char name[] = ETCH_SOFT_VARIABLE "=";
    char path[64], *text = malloc(ENVIRONMENT_MAX);
    ssize_t n;

    if (!text)
        return;
    snprintf(path, sizeof(path), "/proc/%d/environ", (int)pid);
    n = etch_process_text(path, text, ENVIRONMENT_MAX);
    for (ssize_t at = 0; at < n; at += (ssize_t)strlen(text + at) + 1)
        if (strncmp(text + at, name, sizeof(name) - 1) == 0)
            snprintf(d->rings, sizeof(d->rings), "%s", text + at + sizeof(name) - 1);
    free(text);
}

/* The number that a process or thread has in its own PID namespace: the last of its numbers. */
static uint32_t own_number(pid_t pid, pid_t tid)
{
    char path[64], text[4096], *line;
    uint32_t number = (uint32_t)tid;

    snprintf(path, sizeof(path), "/proc/%d/task/%d/status", (int)pid, (int)tid);
    if (etch_process_text(path, text, sizeof(text)) <= 0 || !(line = strstr(text, "\nNSpid:")))
        return number;
    line += 7;
    line[strcspn(line, "\n")] = '\0';
    for (char *end = line;; line = end) {
        unsigned long value = strtoul(line, &end, 10);

        if (end == line)
            return number;
        number = (uint32_t)value;
    }
}

static void take_threads(struct core_dying *d, pid_t pid)
{
    struct etch_tids tids;

    if (etch_process_threads(pid, &tids) < 0)
        return;
    for (size_t i = 0; i < tids.list.n && i < THREADS_MAX; i++) {
        struct core_dying_thread thread = {.tid = own_number(pid, tids.list.v[i])};

        etch_thread_name(pid, tids.list.v[i], thread.name);
        if (!etch_array_push(&d->threads, thread))
            break;
    }
    etch_array_free(&tids.list);
}

static uint64_t boot_unix_s(void)
{
    char *text = malloc(1u << 16), *line;
    uint64_t seconds = 0;

    if (text && etch_process_text("/proc/stat", text, 1u << 16) > 0 && (line = strstr(text, "\nbtime ")))
        seconds = strtoull(line + 7, NULL, 10);
    free(text);
    return seconds;
}

/* To the precision of the kernel's ticks, and of the time of its start: about a second. */
static uint64_t start_of(pid_t pid)
{
    char path[64], text[1024], *at;
    uint64_t ticks, boot = boot_unix_s(), per_second = (uint64_t)sysconf(_SC_CLK_TCK);

    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    if (!boot || !per_second || etch_process_text(path, text, sizeof(text)) <= 0 || !(at = strrchr(text, ')')))
        return 0;
    for (unsigned field = 2; at && field < 22; field++)
        at = strchr(at + 1, ' ');
    ticks = at ? strtoull(at + 1, NULL, 10) : 0;
    return ticks ? boot * 1000000000u + ticks * (1000000000u / per_second) : 0;
}

static uint32_t namespace_of(pid_t pid)
{
    char link[64];

    read_link(pid, "ns/pid", link, sizeof(link));
    return strncmp(link, "pid:[", 5) == 0 ? (uint32_t)strtoul(link + 5, NULL, 10) : 0;
}

void core_dying_look(struct core_dying *d, pid_t pid)
{
    memset(d, 0, sizeof(*d));
    d->exe_fd = -1;
    if (pid <= 0)
        return;
    take_exe(d, pid);
    read_link(pid, "cwd", d->cwd, sizeof(d->cwd));
    take_command(d, pid);
    take_rings(d, pid);
    take_threads(d, pid);
    etch_thread_name(pid, pid, d->name);
    d->start_unix_ns = start_of(pid);
    d->pid_namespace = namespace_of(pid);
}

void core_dying_release(struct core_dying *d)
{
    if (d->exe_fd >= 0)
        close(d->exe_fd);
    etch_array_free(&d->threads);
}
