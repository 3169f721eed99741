/* SPDX-License-Identifier: MIT */
/* Clock health; see clock.h. */
#include "calibrate/clock.h"

#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* True if the first "flags" line of cpuinfo has this word. */
static bool has_flag(const char *line, const char *word)
{
    size_t n = strlen(word);

    for (const char *at = strstr(line, word); at; at = strstr(at + n, word))
        if ((at == line || at[-1] == ' ' || at[-1] == '\t') && (at[n] == ' ' || at[n] == '\n' || at[n] == '\0'))
            return true;
    return false;
}

static void read_flags(struct etch_clock_health *health, const char *root)
{
    char path[4096];
    char *line = NULL;
    size_t size = 0;
    FILE *file;

    snprintf(path, sizeof(path), "%s/proc/cpuinfo", root);
    file = fopen(path, "re");
    if (!file)
        return;
    while (getline(&line, &size, file) > 0) {
        if (strncmp(line, "model name", 10) == 0)
            snprintf(health->model, sizeof(health->model), "%.*s", (int)strcspn(line, "\n"), line);
        if (strncmp(line, "flags", 5) != 0)
            continue;
        health->constant = has_flag(line, "constant_tsc");
        health->nonstop = has_flag(line, "nonstop_tsc");
        health->rdtscp = has_flag(line, "rdtscp");
        break;
    }
    free(line);
    fclose(file);
}

static void read_clocksource(struct etch_clock_health *health, const char *root)
{
    char path[4096];
    FILE *file;

    snprintf(path, sizeof(path), "%s/sys/devices/system/clocksource/clocksource0/current_clocksource", root);
    file = fopen(path, "re");
    if (!file)
        return;
    if (fgets(health->clocksource, sizeof(health->clocksource), file))
        health->clocksource[strcspn(health->clocksource, "\n")] = '\0';
    fclose(file);
}

static void ask_perf(struct etch_clock_health *health)
{
    struct perf_event_attr attr = {
        .type = PERF_TYPE_SOFTWARE,
        .size = sizeof(attr),
        .config = PERF_COUNT_SW_DUMMY,
        .exclude_kernel = 1,
        .exclude_hv = 1,
    };
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    int fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
    struct perf_event_mmap_page *head;

    if (fd < 0)
        return;
    head = mmap(NULL, page, PROT_READ, MAP_SHARED, fd, 0);
    if (head != MAP_FAILED) {
        health->perf_clock_known = true;
        health->perf_clock_offered = head->cap_user_time_zero;
        munmap(head, page);
    }
    close(fd);
}

void etch_clock_health_read(struct etch_clock_health *health, const char *root)
{
    const char *given = getenv("ETCH_CLOCK_ROOT");

    memset(health, 0, sizeof(*health));
    if (root[0] == '\0' && given)
        root = given;
    read_flags(health, root);
    read_clocksource(health, root);
    ask_perf(health);
}

bool etch_clock_orders(const struct etch_clock_health *health)
{
    return health->constant && health->nonstop;
}
